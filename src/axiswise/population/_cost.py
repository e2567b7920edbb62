"""What steps cost, before any is taken, so that progress counts work and not steps: its time left is then right."""

from collections.abc import Sequence

import torch
from torch.utils.flop_counter import FlopCounterMode

from axiswise.models import VAE, Networks
from axiswise.population._cohort import Cohort, count_weights
from axiswise.records import address, describe

# What a step costs beside the products of its networks, in multiplications: measured on a CPU, for cohorts of up to 3e8
# of them. On a GPU both take less time, and products more so: there it is an estimate.
OVERHEAD = {"cpu": 10_000_000}
OVERHEAD_ELSEWHERE = 100_000_000
WHOLE = 1000  # observations of a batch that is the whole dataset, whose size is not known here


def step_weights(planned: Sequence[Cohort], device: torch.device) -> list[int]:
    """What one step of one member costs in each cohort, as a multiple of the cheapest, rounded.

    A step of a cohort of :math:`p` members with batches of :math:`n` costs :math:`c + p n m`, where :math:`m` are the
    multiplications of encoder and decoder for one observation and :math:`c` is what every step costs; each member has
    its share. An objective that differentiates its networks or has an adversary costs more than that.

    Arguments:
        planned: The cohorts.
        device: Where they are trained.

    Example:
        >>> from axiswise import models, objectives
        >>> from axiswise.population import grid
        >>> both = [models.linear(3, 2), models.mlp(3, 2, encoder=(500, 500))]
        >>> members = grid(model=both, objective=objectives.BetaVAE(), steps=1, batch=1000)
        >>> step_weights([Cohort((member,), 1) for member in members], torch.device("cpu"))
        [1, 27]
    """
    known: dict[str, int] = {}
    costs = []
    for cohort in planned if len(planned) > 1 else ():  # alone, it has nothing to be compared with
        first = cohort.members[0]
        key = address(describe(first.model))
        known[key] = known[key] if key in known else multiplications(first.model)
        own = OVERHEAD.get(device.type, OVERHEAD_ELSEWHERE) / len(cohort.members)
        costs.append(own + known[key] * (first.batch or WHOLE))
    return [round(cost / min(costs)) for cost in costs] or [1] * len(planned)


def multiplications(model: VAE) -> int:
    """Multiplications of encoder and decoder for one observation, or their weights where PyTorch cannot count them.

    Example:
        >>> from axiswise.models import linear
        >>> multiplications(linear(3, 2))  # to two means and two log-variances, and back
        18
    """
    modules = model.modules()
    networks = Networks(model, {name: module.eval() for name, module in modules.items()})
    counter = FlopCounterMode(display=False)
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad(), counter:
            networks.decode(networks.encode(torch.zeros(1, *model.shape)).mean)
        counted = counter.get_total_flops() // 2  # a multiplication and an addition are two
    except Exception:  # of anyone's network, which fails again in its training, and is reported there
        counted = 0
    return counted or count_weights(modules.values())
