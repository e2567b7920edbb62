"""What a study is: a function of a scale that returns runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from axiswise._arguments import check_fields
from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.evaluation import Measure
from axiswise.population import Member
from axiswise.stopping import StoppingRule

Scale = Literal["smoke", "default", "paper"]
"""How large a study is: seconds, to see that it runs; our own size; the size of the paper."""
SCALES: tuple[Scale, ...] = ("smoke", "default", "paper")
"""Every scale, the smallest first."""


@dataclass(frozen=True)
class Run:
    """Members trained on one dataset and what is measured of them.

    Arguments:
        name: Name of its folder within the study; runs whose names share the part before the slash are compared.
        dataset: Makes the dataset. It is called when the run begins, so that a study can be listed without its data.
        members: What is trained, on `dataset().split().train` if `held_out`, else on all of it.
        measures: What is measured, on the test split if `held_out`, else on all of it.
        held_out: Whether to train on 80 % and measure on 10 % that training never saw.
        every: Steps between two evaluations on the other 10 %; None makes about twenty, if there is a rule.
        stop: The rule by which members stop early, as for `train`; None trains each to its last step.
    """

    name: str
    dataset: Callable[[], FactorDataset]
    members: Sequence[Member]
    measures: Sequence[Measure]
    held_out: bool = False
    every: int | None = None
    stop: StoppingRule | None = None

    def __post_init__(self) -> None:
        if self.validated and not self.held_out:
            raise AxiswiseError(
                f"`every` and `stop` of run {self.name!r} need data to validate on. Got held_out=False. Pass "
                "held_out=True."
            )
        if not callable(self.dataset):
            raise AxiswiseError(
                f"`dataset` of run {self.name!r} must be a function that makes the dataset. Got "
                f"{type(self.dataset).__name__}. Pass the function, such as `aw.data.synth_linear`, or a "
                "`functools.partial` of it."
            )
        check_fields(self)

    @property
    def validated(self) -> bool:
        """Whether members are validated while they are trained."""
        return self.every is not None or self.stop is not None


Study = Callable[[Scale], list[Run]]
"""A function of the scale; its docstring's first line is the title of its report, the next paragraph the summary."""


def with_seeds_from(runs: Sequence[Run], first: int) -> list[Run]:
    """Runs with a number added to the seed of every member; data and measures stay as they are.

    Example:
        >>> from axiswise.studies import quickstart
        >>> [member.seed for member in with_seeds_from(quickstart("smoke"), 1000)[0].members[:2]]
        [1000, 1001]
    """
    return [replace(run, members=[replace(each, seed=each.seed + first) for each in run.members]) for run in runs]
