"""A study that saves its state after every block of steps: what the tests of faults and kills disturb."""

from dataclasses import dataclass

import axiswise as aw
from axiswise.population import loop

loop.SAVE_SECONDS = 0.0  # workers import this module, too
loop.LONGEST_BLOCK = 8


@dataclass(frozen=True)
class Own(aw.objectives.BetaVAE):
    """An objective of a user's own."""


def spread(codes):
    """A measure of a user's own."""
    return codes.std(dim=(1, 2))


def square():
    """A dataset."""
    return aw.data.synth_linear(samples=60)


def study(scale: str) -> list[aw.studies.Run]:
    """Two runs: two cohorts each, of which one has members with an objective of a user's own."""
    linear = aw.grid(
        model=aw.models.linear(3, 2), objective=[Own(0.1), aw.objectives.BetaVAE()], steps=12, batch=4, seed=range(2)
    )
    return [aw.studies.Run(name, square, linear, [spread, aw.scores.mig]) for name in ("one", "two")]
