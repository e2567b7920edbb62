"""Claims about scores."""

import math

import numpy as np

from axiswise.scores import disentanglement


def test_rolinek_disent(within):
    """Perfect codes: the printed score exceeds 1 by the excess error of unrelated neighbours, the bounded one is 1."""
    square = np.random.default_rng(0).uniform(size=(20_000, 2))
    printed, bounded = (disentanglement(square, square, form=form) for form in ("printed", "bounded"))
    # 4,000 test points: a root mean square of that many errors has a relative deviation of about 1 / √8000, and points
    # near each other share neighbours. Four deviations, and the error of the perfect prediction, below 10⁻³.
    within(abs(printed.score - math.sqrt(1 + 1 / 5)), 4 * 1.5 / math.sqrt(8000) + 1e-3, "printed, against √(6/5)")
    within(abs(bounded.score - 1), 1e-3, "bounded, against 1")
    assert (bounded.performance >= 0).all()


def test_rolinek_disent_of_levels(within):
    """A factor of three levels, perfectly classified: 2 as printed, 1 if bounded; noise beside it is no better."""
    generator = np.random.default_rng(1)
    levels = np.tile(np.arange(3), 5000)[:, None]
    codes = np.concatenate([levels + 0.1 * generator.uniform(size=(15_000, 1)), generator.normal(size=(15_000, 1))], -1)
    printed, bounded = (disentanglement(codes, levels, form=form) for form in ("printed", "bounded"))
    # 3,000 test points and an accuracy of one third by chance: four deviations, over the norm.
    chance = 4 * math.sqrt(2 / 9 / 3000)
    within(abs(printed.score - 2), 3 * chance, "printed, against 2")
    within(abs(bounded.score - 1), 1.5 * chance, "bounded, against 1")
    assert printed.performance[0, 0] == 1.0
