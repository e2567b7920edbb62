"""What slopes cost, against minimisation over the posterior; how to spread them, against a linear program."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linprog, minimize_scalar

from axiswise.analytic import optimal_slope, slope_cost
from axiswise.errors import AxiswiseError


@pytest.mark.parametrize("slope", [0.0, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("beta", [0.5, 1, 4.0])
@pytest.mark.parametrize("noise", [1, 0.2])
def test_the_cost_is_the_minimum_over_the_posterior(slope, beta, noise):
    def lost(logarithm):
        variance = math.exp(logarithm)
        return (slope / noise) ** 2 * variance + beta * (variance - logarithm - 1.0)

    found = minimize_scalar(lost, bounds=(-12, 1), options={"xatol": 1e-10})
    cost = slope_cost(torch.tensor(slope, dtype=torch.float64), beta, noise=noise).item()
    assert cost == pytest.approx(found.fun, abs=1e-9)


def cost_of(slopes: np.ndarray, beta: float) -> np.ndarray:
    return beta * np.log1p(slopes**2 / beta)


@pytest.mark.parametrize("steepest", [0.8, 3.0, 20.0])
@pytest.mark.parametrize("beta", [1.0, 2.5])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_the_best_spread_is_that_of_a_linear_program(steepest, beta, share):
    """How much of the range to spend at each of many slopes, so that their mean is the given one."""
    slopes = np.linspace(0.0, steepest, 4001)
    mean = share * steepest
    solved = linprog(cost_of(slopes, beta), A_eq=np.stack([np.ones(4001), slopes]), b_eq=[1.0, mean], bounds=(0, None))
    found = optimal_slope(torch.tensor(mean, dtype=torch.float64), steepest, beta)
    # Grid slopes are off by a step at most, of which the convex cost makes its curvature, at most 2, times the square.
    assert found.cost.item() == pytest.approx(solved.fun, abs=2 * (steepest / 4000) ** 2)
    low, rest = found.low.item(), found.steep_share.item()
    assert (1 - rest) * low + rest * steepest == pytest.approx(mean, abs=1e-12)
    assert (1 - rest) * cost_of(low, beta) + rest * cost_of(steepest, beta) == pytest.approx(
        found.cost.item(), abs=1e-12
    )


def test_plateaus_flatten_as_jumps_may_be_steeper():
    steepest = torch.tensor([1e2, 1e4, 1e6], dtype=torch.float64)
    found = optimal_slope(torch.ones(3, dtype=torch.float64), steepest, 2.0)
    limit = 2.0 * torch.log1p(steepest**2 / 2.0) / (2.0 * steepest)
    torch.testing.assert_close(found.low[1:], limit[1:], rtol=2e-3, atol=0)
    assert (found.cost.diff() < 0).all()
    assert found.cost[-1] < 1e-4


def test_gentle_decoders_have_no_plateaus():
    mean = torch.linspace(0.0, 1.0, 11, dtype=torch.float64)
    found = optimal_slope(mean, 1.0, 1.0)
    torch.testing.assert_close(found.low, mean)
    assert found.steep_share.max() == 0.0


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_refuses_what_is_not_positive(value):
    one = torch.tensor(0.5)
    with pytest.raises(AxiswiseError, match=rf"`beta` must be positive and finite\. Got {value}\."):
        slope_cost(one, value)
    with pytest.raises(AxiswiseError, match=rf"`noise` must be positive and finite\. Got {value}\."):
        slope_cost(one, 1.0, noise=value)
    with pytest.raises(AxiswiseError, match=rf"`steepest` must be positive and finite\. Got {value}\."):
        optimal_slope(one, value, 1.0)


@pytest.mark.parametrize("mean", [-0.5, 2.5])
def test_refuses_a_height_that_cannot_be_climbed(mean):
    with pytest.raises(AxiswiseError, match=rf"`mean_slope` must lie between 0 and `steepest`\. Got {mean}; allow"):
        optimal_slope(torch.tensor([0.5, mean]), 2.0, 1.0)
