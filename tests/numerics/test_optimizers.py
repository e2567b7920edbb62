"""Stacked optimizers against PyTorch's, member by member."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axiswise.errors import AxiswiseError
from axiswise.numerics.optimizers import AdaGrad, Adam, Optimizer
from axiswise.numerics.schedules import Cosine, Linear, hyperparameters, value_at

STEPS, WEIGHTS = 50, 7

# Members of one stack: constants beside schedules, and every hyperparameter different somewhere.
COHORTS: dict[str, list[Optimizer]] = {
    "Adam": [
        Adam(),
        Adam(lr=3e-2),
        Adam(lr=1e-3, beta1=0.5, beta2=0.9),
        Adam(lr=1e-2, beta1=0.0, eps=1e-3),
        Adam(lr=Cosine(1e-1, 0.0, steps=30)),
        Adam(lr=Linear(0.0, 1e-2, steps=20), beta1=Linear(0.9, 0.95, steps=10), beta2=Cosine(0.9, 0.99, steps=50)),
    ],
    "AdaGrad": [
        AdaGrad(),
        AdaGrad(lr=0.5),
        AdaGrad(lr=0.1, eps=1e-3),
        AdaGrad(lr=Cosine(1e-1, 0.0, steps=30)),
        AdaGrad(lr=Linear(0.0, 1e-1, steps=20), eps=Linear(1e-3, 1e-6, steps=10)),
    ],
}


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def gradient_at(parameters: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """A gradient that depends on where the parameters are, so that an error anywhere is carried along."""
    return parameters**3 - parameters + noise


def ours(cohort: list[Optimizer], start: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """The whole cohort in one matrix, its coefficients worked out for all steps at once."""
    steps = len(noise)
    values = {
        name: torch.tensor(
            [[value_at(getattr(member, name), step) for member in cohort] for step in range(steps)], dtype=torch.float64
        )
        for name in hyperparameters(cohort[0])
    }
    optimizer, parameters = cohort[0], start.clone()
    state = optimizer.start(parameters)
    coefficients = optimizer.coefficients(values, torch.arange(steps, dtype=torch.float64)[:, None])
    for step in range(steps):
        now = {name: factors[step][:, None] for name, factors in coefficients.items()}
        optimizer.update(parameters, gradient_at(parameters, noise[step]), state, now)
    return parameters


def pytorchs(member: Optimizer, start: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """One member, moved by PyTorch, with its options set by hand before every step."""
    parameters = start.clone().requires_grad_()
    kind = torch.optim.Adam if isinstance(member, Adam) else torch.optim.Adagrad
    optimizer = kind([parameters])
    for step in range(len(noise)):
        options = {name: value_at(value, step) for name, value in hyperparameters(member).items()}
        if isinstance(member, Adam):
            options["betas"] = (options.pop("beta1"), options.pop("beta2"))
        optimizer.param_groups[0].update(options)
        parameters.grad = gradient_at(parameters.detach(), noise[step])
        optimizer.step()
    return parameters.detach()


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_every_member_moves_as_pytorch_moves_it(cohort):
    start, noise = doubles(len(cohort), WEIGHTS, seed=0), doubles(STEPS, len(cohort), WEIGHTS, seed=1)
    together = ours(cohort, start, noise)
    for position, member in enumerate(cohort):
        expected = pytorchs(member, start[position], noise[:, position])
        assert (start[position] - expected).abs().max() > 1e-3, "a member that does not move tests nothing"
        torch.testing.assert_close(together[position], expected, rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_members_do_not_see_each_other(cohort):
    """To rounding, since vector units round a row's tail differently; a NaN in one member's gradient stays its own."""
    start, noise = doubles(len(cohort), WEIGHTS, seed=2), doubles(STEPS, len(cohort), WEIGHTS, seed=3)
    noise[10, 0] = math.nan
    together = ours(cohort, start, noise)
    assert together[0].isnan().all()
    for position in range(1, len(cohort)):
        alone = ours([cohort[position]], start[position : position + 1], noise[:, position : position + 1])
        torch.testing.assert_close(together[position], alone[0], rtol=1e-10, atol=0.0)


@pytest.mark.parametrize("optimizer", [Adam(lr=0.0), AdaGrad(lr=0.0)], ids=repr)
def test_a_rate_of_zero_moves_nothing(optimizer):
    """Schedules end there."""
    start = doubles(1, WEIGHTS, seed=4)
    assert torch.equal(ours([optimizer], start, doubles(STEPS, 1, WEIGHTS, seed=5)), start)


@pytest.mark.parametrize("optimizer", [Adam(), AdaGrad()], ids=repr)
def test_a_weight_without_gradient_stays(optimizer):
    parameters = doubles(1, WEIGHTS, seed=6)
    moved, state = parameters.clone(), optimizer.start(parameters)
    values = {name: torch.full((1, 1), value).double() for name, value in hyperparameters(optimizer).items()}
    coefficients = optimizer.coefficients(values, torch.zeros(1, 1, dtype=torch.float64))
    optimizer.update(moved, torch.zeros_like(moved), state, coefficients)
    assert torch.equal(moved, parameters)


@given(exponent=st.integers(-20, 20))
def test_adam_without_eps_ignores_the_scale_of_the_loss(exponent):
    """Its first claim: steps are invariant to rescaling the gradient (powers of two, so exactly)."""
    gradients = doubles(10, 1, WEIGHTS, seed=7)
    runs = []
    for scale in (1.0, 2.0**exponent):
        parameters = torch.zeros(1, WEIGHTS, dtype=torch.float64)
        state = Adam().start(parameters)
        for step, gradient in enumerate(gradients):
            values = {
                name: torch.tensor([[value]], dtype=torch.float64)
                for name, value in {"lr": 0.1, "beta1": 0.9, "beta2": 0.999, "eps": 0.0}.items()
            }
            coefficients = Adam().coefficients(values, torch.tensor([[step]], dtype=torch.float64))
            Adam().update(parameters, gradient * scale, state, coefficients)
        runs.append(parameters)
    assert torch.equal(*runs)


def test_first_step_of_adam_is_the_rate():
    """With bias correction |Δθ| = η |g| / (|g| + ε), whatever the decays."""
    start, noise = torch.zeros(1, WEIGHTS, dtype=torch.float64), doubles(1, 1, WEIGHTS, seed=8)
    moved = ours([Adam(lr=0.25, beta1=0.7, beta2=0.3, eps=1e-2)], start, noise)
    gradient = noise[0]
    torch.testing.assert_close(moved, -0.25 * gradient / (gradient.abs() + 1e-2), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("optimizer", [Adam(), AdaGrad()], ids=repr)
def test_keeps_the_protocol(optimizer):
    """State has the parameters' shape and type, and updates happen where the tensors lie."""
    assert isinstance(optimizer, Optimizer)
    parameters = torch.ones(3, WEIGHTS)
    state = optimizer.start(parameters)
    assert all(
        moment.shape == parameters.shape and moment.dtype == parameters.dtype and not moment.any()
        for moment in state.values()
    )
    values = {name: torch.full((4, 3), 0.5).double() for name in hyperparameters(optimizer)}
    coefficients = optimizer.coefficients(values, torch.arange(4.0).double()[:, None])
    assert all(factors.shape == (4, 3) and factors.dtype == torch.float64 for factors in coefficients.values())
    places = [tensor.data_ptr() for tensor in (parameters, *state.values())]
    now = {name: factors[0][:, None].float() for name, factors in coefficients.items()}
    assert optimizer.update(parameters, torch.ones(3, WEIGHTS), state, now) is None
    assert [tensor.data_ptr() for tensor in (parameters, *state.values())] == places
    assert (parameters < 1.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Adam(lr=-1e-3), r"`lr` of Adam must be a finite number of at least 0\.0\. Got -0\.001\."),
        (lambda: Adam(lr=math.nan), r"`lr` of Adam must be .* Got nan\."),
        (lambda: Adam(beta1=1.0), r"`beta1` of Adam must be .* at least 0\.0 and below 1\.0\. Got 1\.0\."),
        (lambda: Adam(beta2=1.5), r"`beta2` of Adam must be .* at least 0\.0 and below 1\.0\. Got 1\.5\."),
        (lambda: Adam(eps=-1.0), r"`eps` of Adam must be a finite number of at least 0\.0\. Got -1\.0\."),
        (lambda: Adam(lr=Linear(1.0, -1.0, steps=2)), r"`lr` of Adam must be .* Got Linear\(start=1\.0, end=-1\.0"),
        (lambda: AdaGrad(lr=math.inf), r"`lr` of AdaGrad must be a finite number of at least 0\.0\. Got inf\."),
        (lambda: AdaGrad(eps=-1e-10), r"`eps` of AdaGrad must be .* Got -1e-10\."),
    ],
)
def test_refuses_what_cannot_train(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
