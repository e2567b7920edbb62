"""Active units on posteriors whose answer is known."""

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives
from axiswise.errors import AxiswiseError
from axiswise.evaluation import evaluate
from axiswise.population import grid, train
from axiswise.scores import active_units

VARIANCE = np.array([[0.01, 1.0, 0.7, 0.81], [0.03, 1.0, 0.7, 0.79], [0.02, 1.0, 0.99, 0.8]])  # means .02 1 .797 .8


def test_variance_below_the_threshold():
    found = active_units(VARIANCE)
    assert found.score == 2
    assert isinstance(found.score, int)
    assert found.active.tolist() == [True, False, True, False]
    np.testing.assert_allclose(found.means, VARIANCE.mean(0), atol=1e-15)
    assert (found.threshold, found.estimator) == (0.8, "mean variance below 0.8")
    assert active_units(VARIANCE, variance_below=0.5).score == 1


def test_divergence_above_the_threshold():
    kl = np.array([[3.0, 0.0, 0.01, 0.03], [2.0, 0.0, 0.01, 0.0]])
    found = active_units(kl=kl)
    assert found.active.tolist() == [True, False, False, True]
    assert (found.score, found.threshold, found.estimator) == (2, 0.01, "mean KL above 0.01 nats")
    assert active_units(kl=kl, kl_above=0.001).score == 3


def test_the_variance_decides_where_both_are_given_unless_told():
    kl = np.zeros_like(VARIANCE)
    assert active_units(VARIANCE, kl).score == 2
    assert active_units(VARIANCE, kl, by="variance").score == 2
    assert active_units(VARIANCE, kl, by="kl").score == 0


def test_leading_axes_are_members_and_tensors_are_read():
    stack = np.stack([[VARIANCE, VARIANCE * 0], [VARIANCE + 1, VARIANCE]])
    for given in (stack, torch.from_numpy(stack), torch.from_numpy(stack).float()):
        found = active_units(given)
        assert found.score.tolist() == [[2, 4], [0, 2]]
        assert found.active.shape == (2, 2, 4)


def test_a_measure_of_trained_members():
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(2))
    rows = evaluate(train(members, square), square, [active_units], points=100)
    assert [row["measure"] for row in rows] == ["active_units"] * 2
    assert all(row["value"] in (0, 1, 2) for row in rows)
    assert rows[0]["detail"]["estimator"] == "mean variance below 0.8"


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"`variance` or `kl` must be given. Got None; a model without posteriors"),
        ({"variance": VARIANCE, "by": "kl"}, r"`kl` must be given. Got None"),
        ({"variance": VARIANCE, "by": "mean"}, r"`by` must be \"variance\", \"kl\" or None. Got 'mean'."),
        ({"variance": np.ones(3)}, r"`variance` must have axes \(…, n, z\).* Got shape \(3,\)"),
        ({"kl": np.full((2, 3), np.nan)}, r"`kl` must be finite. Got values"),
    ],
)
def test_refuses(arguments, message):
    with pytest.raises(AxiswiseError, match=message):
        active_units(**arguments)
