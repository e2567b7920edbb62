"""Schedules against PyTorch's, their bounds, and what a hyperparameter may be."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axiswise.errors import AxiswiseError
from axiswise.objectives import BetaVAE
from axiswise.optimizers import AdaGrad, Adam
from axiswise.schedules import (
    Cosine,
    Linear,
    Schedule,
    check_hyperparameter,
    hyperparameters,
    value_at,
)

KINDS = [Linear, Cosine]
ends = st.floats(0.0, 1e3)
lengths = st.integers(1, 10_000)


@pytest.mark.parametrize("kind", KINDS)
@given(start=ends, end=ends, steps=lengths, step=st.integers(0, 20_000))
def test_goes_from_start_to_end_and_stays(kind, start, end, steps, step):
    schedule = kind(start, end, steps=steps)
    scale = 1e-15 * max(start, end) + 1e-300  # the second part for subnormal ends, which round absolutely
    assert schedule.at(0) == pytest.approx(start, abs=2 * scale)
    assert schedule.at(steps) == schedule.at(steps + step) == pytest.approx(end, abs=2 * scale)
    assert min(start, end) - 4 * scale <= schedule.at(step) <= max(start, end) + 4 * scale
    assert schedule.at(step) >= 0.0
    toward = math.copysign(1.0, end - start)
    assert toward * schedule.at(step + 1) >= toward * schedule.at(step) - 4 * scale


@pytest.mark.parametrize("kind", KINDS)
@given(steps=lengths)
def test_is_half_way_at_half_time(kind, steps):
    assert kind(1.0, 3.0, steps=2 * steps).at(steps) == pytest.approx(2.0, rel=1e-14)


def pytorchs(make, steps: int) -> list[float]:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler, rates = make(optimizer), []
    for _ in range(steps + 1):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def test_cosine_is_pytorchs():
    rates = pytorchs(lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40, eta_min=0.02), 40)
    assert [Cosine(0.3, 0.02, steps=40).at(step) for step in range(41)] == pytest.approx(rates, rel=1e-12)


def test_linear_is_pytorchs():
    rates = pytorchs(lambda optimizer: torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, total_iters=40), 60)
    assert [Linear(0.3, 0.03, steps=40).at(step) for step in range(61)] == pytest.approx(rates, rel=1e-12)


def test_linear_is_the_reference_implementations_annealing():
    schedule = Linear(0.0, 100.0, steps=100)
    assert [schedule.at(step) for step in (0, 10, 100, 101)] == pytest.approx([0.0, 10.0, 100.0, 100.0], rel=1e-15)


@dataclass(frozen=True)
class Halving:
    """A user's own schedule: nothing but `at`."""

    first: float

    def at(self, step: int) -> float:
        return self.first * 0.5**step


def test_value_at_takes_numbers_and_any_schedule():
    assert value_at(3, 7) == 3.0
    assert isinstance(value_at(3, 7), float)
    assert value_at(Cosine(1.0, 0.0, steps=2), 1) == pytest.approx(0.5)
    assert isinstance(Halving(1.0), Schedule)
    assert value_at(Halving(8.0), 3) == 1.0


def test_hyperparameters_are_the_fields_declared_so():
    @dataclass(frozen=True)
    class Structured:
        layers: int = 3

    warm = Linear(0.0, 1.0, steps=5)
    assert hyperparameters(BetaVAE(warm)) == {"beta": warm}
    none = {"weight_decay": 0.0, "clip": 0.0}
    assert hyperparameters(Adam(lr=warm)) == {"lr": warm, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, **none}
    assert hyperparameters(AdaGrad(eps=0)) == {"lr": 1e-2, "eps": 0, **none}
    assert hyperparameters(Structured()) == {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps", [0, -3])
def test_refuses_to_take_no_time(kind, steps):
    message = f"`steps` of {kind.__name__} must be a whole number of at least 1. Got {steps}."
    with pytest.raises(AxiswiseError, match=message):
        kind(0.0, 1.0, steps=steps)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("start", "end"), [(math.nan, 1.0), (1.0, math.inf)])
def test_refuses_ends_that_are_not_finite(kind, start, end):
    with pytest.raises(AxiswiseError, match=rf"of {kind.__name__} must be a finite number. Got (nan|inf)\."):
        kind(start, end, steps=3)


@pytest.mark.parametrize(
    "value",
    [
        -1e-9,
        math.nan,
        math.inf,
        True,
        Linear(-1.0, 1.0, steps=3),
        Linear(1.0, -1.0, steps=3),
        Halving(-1.0),
    ],
    ids=repr,
)
def test_refuses_values_below_zero_or_not_finite(value):
    with pytest.raises(
        AxiswiseError, match=r"`weight` of Thing must be a finite number of at least 0\.0\. Got "
    ) as caught:
        check_hyperparameter("Thing", "weight", value)
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("value", [0, 0.0, 7, 1e9, Linear(0.0, 1.0, steps=3), Halving(2.0)], ids=repr)
def test_accepts_numbers_and_schedules(value):
    check_hyperparameter("Thing", "weight", value)


def test_bounds_are_the_callers():
    check_hyperparameter("Thing", "weight", -1.0, low=-1.0)
    with pytest.raises(AxiswiseError, match=r"at least 1\.0\. Got 0\.5"):
        check_hyperparameter("Thing", "weight", 0.5, low=1.0)
    with pytest.raises(AxiswiseError, match=r"at least 0\.0 and below 1\.0\. Got 1\.0"):
        check_hyperparameter("Thing", "weight", 1.0, below=1.0)
    with pytest.raises(AxiswiseError, match=r"at least 0\.0 and below 1\.0\. Got Linear"):
        check_hyperparameter("Thing", "weight", Linear(0.0, 1.0, steps=3), below=1.0)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("several", [[1, 2], (0.1, 0.01), np.arange(3)], ids=["list", "tuple", "array"])
def test_several_values_are_several_objects(several):
    with pytest.raises(AxiswiseError, match=r"For several, give `grid` a list of BetaVAEs, one for each beta\."):
        BetaVAE(several)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.float32, np.float64])
def test_numbers_of_numpy_are_numbers(kind):
    assert value_at(BetaVAE(kind(4)).beta, 0) == 4.0
    with pytest.raises(AxiswiseError, match=r"`beta` of BetaVAE must be a finite number .* Got np.True_\."):
        BetaVAE(np.bool_(True))
