"""What claims cost: their exact checks, and the studies that they need."""

from typing import Literal

from axiswise.studies import Cost, cost_entry, read_costs, sum_costs
from axiswise_papers._claim import Claim


def claim_cost(claim: Claim, column: Literal["cpu", "gpu"]) -> Cost:
    """What a claim costs alone: its exact checks, which run on the CPU, and every study that it needs.

    Arguments:
        claim: The claim.
        column: Where.
    """
    document = read_costs("axiswise_papers")
    exact = [cost_entry(document, column, "claims", claim.id)] if claim.exact and column == "cpu" else []
    names = dict.fromkeys(part.study for part in claim.trained)
    return sum_costs([*exact, *(cost_entry(document, column, "studies", name) for name in names)])
