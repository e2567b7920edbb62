"""The study of Figure 3: its grid, its measures, and the rules its directions are judged by."""

import numpy as np
import pytest
import torch

from axiswise.distributions import corners
from axiswise.evaluation import conduct
from axiswise.papers.mathieu2019.figures import directions, interval, main
from axiswise.papers.mathieu2019.studies import ALPHAS, BETAS, figure_3, largest_mode


def row(measure, alpha, beta, seed, value, detail=None):
    settings = {"alpha": alpha, "beta": beta}
    return {"measure": measure, "hyperparameters": settings, "seed": seed, "value": value, "detail": detail or {}}


def rows_of(information, inclusive, share, seeds=5):
    """Rows whose values are functions of (α, β) with a little noise over seeds."""
    noise = np.random.default_rng(0).normal(0.0, 0.01, (len(ALPHAS), len(BETAS), seeds))
    found = []
    for (i, alpha), (j, beta), seed in (
        (a, b, s) for a in enumerate(ALPHAS) for b in enumerate(BETAS) for s in range(seeds)
    ):
        shake = noise[i, j, seed]
        detail = {"inclusive": inclusive(alpha, beta) + shake}
        found.append(row("overlap", alpha, beta, seed, information(alpha, beta) + shake, detail))
        found.append(row("largest_mode", alpha, beta, seed, share(alpha, beta) + shake))
    return found


def as_published(alpha, beta):
    """Less of everything with β, until the match worsens; α matches."""
    return abs(np.log10(beta) - 0.3) / (1.0 + alpha)


def test_directions_hold_for_what_the_paper_describes():
    rows = rows_of(lambda a, b: 5.0 - b / 3, as_published, lambda a, b: 0.3)
    assert [direction.holds for direction in directions(rows)] == [True, True, True, True]


@pytest.mark.parametrize("broken", range(4))
def test_directions_fail_one_by_one(broken):
    information = (lambda a, b: 5.0) if broken == 0 else (lambda a, b: 5.0 - b / 3)
    inclusive = [as_published, lambda a, b: as_published(0, b), lambda a, b: 1 / (b + 1) / (1 + a), as_published][
        broken
    ]
    share = (lambda a, b: 0.6 if b == BETAS[2] else 0.3) if broken == 3 else (lambda a, b: 0.3)
    held = [direction.holds for direction in directions(rows_of(information, inclusive, share))]
    assert held == [number != broken for number in range(4)]


def test_interval_is_students():
    from scipy import stats

    values = np.random.default_rng(1).normal(size=7)
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    np.testing.assert_allclose(interval(values), (values.mean(), expected.low, expected.high))


def test_largest_mode_counts_the_nearest_corner():
    spread = torch.tensor([[0.0, 0.0], [0.1, 1.0], [1.0, 0.2], [0.9, 1.3]])
    collapsed = torch.full((4, 2), 0.9)
    assert largest_mode(torch.stack((spread, collapsed)), corners(2)).tolist() == [0.25, 1.0]


def test_the_grid_is_that_of_the_directions():
    members = figure_3("default")[0].members
    assert {(member.objective.alpha, member.objective.beta) for member in members} == {
        (alpha, beta) for alpha in ALPHAS for beta in BETAS
    }
    assert len(members) == len(ALPHAS) * len(BETAS) * 5
    assert all(member.batch is None and member.steps == 500 and member.optimizer.amsgrad for member in members)


@pytest.mark.slow
def test_the_figure_is_drawn_from_a_study(tmp_path, capsys):
    conduct(figure_3, "smoke", tmp_path / "study", name="mathieu2019.figure_3")
    main([str(tmp_path / "study"), str(tmp_path / "out")])
    assert (tmp_path / "out" / "figure_3.png").read_bytes().startswith(b"\x89PNG")
    assert len(capsys.readouterr().out.splitlines()) == 4
