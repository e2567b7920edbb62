"""Stacked optimizers against PyTorch's, member by member."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from axiswise.errors import AxiswiseError
from axiswise.optimizers import SGD, AdaGrad, Adam, Optimizer
from axiswise.schedules import Cosine, Linear, hyperparameters, value_at

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
    "AMSGrad": [
        Adam(lr=1e-2, amsgrad=True),
        Adam(lr=3e-2, beta2=0.5, amsgrad=True),
        Adam(lr=3e-2, beta2=0.5, weight_decay=0.1, clip=0.5, amsgrad=True),
        Adam(lr=Cosine(1e-1, 0.0, steps=30), beta1=0.5, beta2=Cosine(0.9, 0.99, steps=50), amsgrad=True),
    ],
    "SGD": [
        SGD(),
        SGD(lr=0.1),
        SGD(lr=3e-2, momentum=0.9),
        SGD(lr=Cosine(1e-1, 0.0, steps=30), momentum=Linear(0.5, 0.9, steps=20)),
        SGD(lr=3e-2, momentum=0.5, weight_decay=0.1),
        SGD(lr=3e-2, momentum=0.5, clip=1.0),
    ],
    "Nesterov": [
        SGD(lr=3e-2, nesterov=True),
        SGD(lr=3e-2, momentum=0.9, nesterov=True),
        SGD(lr=Linear(3e-2, 0.0, steps=60), momentum=Cosine(0.9, 0.5, steps=40), weight_decay=0.2, nesterov=True),
        SGD(lr=3e-2, momentum=0.5, weight_decay=0.1, clip=1.0, nesterov=True),
    ],
    "Adam with decay and clipping": [
        Adam(lr=1e-2),
        Adam(lr=1e-2, weight_decay=0.3),
        Adam(lr=1e-2, weight_decay=Linear(0.0, 1.0, steps=30), eps=1e-2),
        Adam(lr=1e-2, clip=0.5, eps=1e-1),
        Adam(lr=1e-2, clip=1e3, eps=1e-1),
        Adam(lr=1e-2, clip=Cosine(4.0, 0.5, steps=30), weight_decay=0.1, eps=1e-1),
    ],
    "AdaGrad with decay and clipping": [
        AdaGrad(lr=0.1),
        AdaGrad(lr=0.1, weight_decay=0.3),
        AdaGrad(lr=0.1, clip=0.5, eps=1e-1),
        AdaGrad(lr=0.1, clip=Linear(4.0, 0.5, steps=30), weight_decay=Cosine(1.0, 0.0, steps=30), eps=1e-1),
    ],
}
EVERY = [Adam(), Adam(amsgrad=True), AdaGrad(), SGD(), SGD(momentum=0.9, nesterov=True)]


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
    if isinstance(member, Adam):
        optimizer = torch.optim.Adam([parameters], amsgrad=member.amsgrad)
    elif isinstance(member, SGD):
        optimizer = torch.optim.SGD([parameters], momentum=0.5, nesterov=member.nesterov)  # its check needs a momentum
    else:
        optimizer = torch.optim.Adagrad([parameters])
    for step in range(len(noise)):
        options = {name: value_at(value, step) for name, value in hyperparameters(member).items()}
        if isinstance(member, Adam):
            options["betas"] = (options.pop("beta1"), options.pop("beta2"))
        limit = options.pop("clip")
        optimizer.param_groups[0].update(options)
        parameters.grad = gradient_at(parameters.detach(), noise[step])
        if limit > 0.0:
            torch.nn.utils.clip_grad_norm_([parameters], limit)
        optimizer.step()
    return parameters.detach()


@pytest.mark.parametrize("cohort", COHORTS.values(), ids=COHORTS)
def test_every_member_moves_as_pytorch_moves_it(cohort):
    start, noise = doubles(len(cohort), WEIGHTS, seed=0), doubles(STEPS, len(cohort), WEIGHTS, seed=1)
    together = ours(cohort, start, noise)
    for position, member in enumerate(cohort):
        expected = pytorchs(member, start[position], noise[:, position])
        assert (start[position] - expected).abs().max() > 1e-3, "a member that does not move tests nothing"
        torch.testing.assert_close(together[position], expected, rtol=1e-12, atol=0.0)


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


@pytest.mark.parametrize("optimizer", [replace(optimizer, lr=0.0) for optimizer in EVERY], ids=repr)
def test_a_rate_of_zero_moves_nothing(optimizer):
    """Schedules end there."""
    start = doubles(1, WEIGHTS, seed=4)
    assert torch.equal(ours([optimizer], start, doubles(STEPS, 1, WEIGHTS, seed=5)), start)


@pytest.mark.parametrize("optimizer", EVERY, ids=repr)
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
                for name, value in hyperparameters(Adam(lr=0.1, eps=0.0)).items()
            }
            coefficients = Adam().coefficients(values, torch.tensor([[step]], dtype=torch.float64))
            Adam().update(parameters, gradient * scale, state, coefficients)
        runs.append(parameters)
    assert torch.equal(*runs)


def moved_once(optimizer: Optimizer, values: dict[str, list[float]], parameters: torch.Tensor, gradient: torch.Tensor):
    """Where one step takes a stack whose members have these values instead of the optimizer's own."""
    count = len(parameters)
    own = {name: [value] * count for name, value in hyperparameters(optimizer).items()}
    table = {name: torch.tensor([row], dtype=torch.float64) for name, row in (own | values).items()}
    coefficients = optimizer.coefficients(table, torch.zeros(1, 1, dtype=torch.float64))
    now = {name: factors[0][:, None].to(parameters.dtype) for name, factors in coefficients.items()}
    moved, state = parameters.clone(), optimizer.start(parameters)
    optimizer.update(moved, gradient.clone(), state, now)
    return moved, set(coefficients)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("optimizer", EVERY, ids=repr)
def test_members_without_decay_or_limit_do_not_notice_those_of_others(optimizer, dtype):
    """Bit for bit, even where the norm of a gradient overflows; and where no member has any, there are no factors."""
    if not isinstance(optimizer, SGD):
        optimizer = replace(optimizer, eps=1.0)  # without it the first step does not depend on the gradient's size
    parameters, gradient = doubles(3, WEIGHTS, seed=9).to(dtype), doubles(3, WEIGHTS, seed=10).to(dtype)
    gradient[2] *= torch.finfo(dtype).max ** 0.6
    plain, names = moved_once(optimizer, {}, parameters, gradient)
    assert names.isdisjoint({"clip", "decay"})
    beside, names = moved_once(optimizer, {"clip": [1e-3, 0.0, 0.0]}, parameters, gradient)
    assert names & {"clip", "decay"} == {"clip"}
    assert not torch.equal(beside[0], plain[0])
    assert torch.equal(beside[1:], plain[1:])
    beside, names = moved_once(optimizer, {"weight_decay": [0.5, 0.0, 0.0]}, parameters, gradient)
    assert names & {"clip", "decay"} == {"decay"}
    assert not torch.equal(beside[0], plain[0])
    assert torch.equal(beside[1:], plain[1:])


@pytest.mark.parametrize("optimizer", EVERY, ids=repr)
def test_a_broken_gradient_breaks_its_own_member_only(optimizer):
    parameters, gradient = doubles(3, WEIGHTS, seed=11), doubles(3, WEIGHTS, seed=12)
    values = {"clip": [1.0, 1.0, 1.0], "weight_decay": [0.1, 0.1, 0.1]}
    whole, _ = moved_once(optimizer, values, parameters, gradient)
    gradient[1, 0] = math.nan
    broken, _ = moved_once(optimizer, values, parameters, gradient)
    assert broken[1].isnan().all()  # through the norm, as PyTorch's clipping has it
    assert torch.equal(broken[[0, 2]], whole[[0, 2]])


def test_clipping_shortens_each_member_by_its_own_norm():
    gradient = torch.tensor([[3.0, 4.0], [0.3, 0.4], [30.0, 40.0]], dtype=torch.float64)
    moved, _ = moved_once(SGD(lr=1.0), {"clip": [1.0, 1.0, 0.0]}, torch.zeros_like(gradient), gradient)
    expected = -torch.tensor([[0.6, 0.8], [0.3, 0.4], [30.0, 40.0]], dtype=torch.float64)
    torch.testing.assert_close(moved, expected, rtol=1e-6, atol=0.0)  # the 1e-6 in the denominator
    assert torch.equal(moved[1:], expected[1:])


def test_the_amsgrad_denominator_never_falls():
    """After one large gradient, small ones move far less than with Adam, which forgets it."""
    gradients = torch.full((40, 1, 1), 1e-2, dtype=torch.float64)
    gradients[0] = 1.0

    def distance(optimizer: Adam) -> float:
        parameters = torch.zeros(1, 1, dtype=torch.float64)
        state = optimizer.start(parameters)
        values = {name: torch.full((40, 1), value).double() for name, value in hyperparameters(optimizer).items()}
        coefficients = optimizer.coefficients(values, torch.arange(40.0).double()[:, None])
        for step, gradient in enumerate(gradients.clone()):
            now = {name: factors[step][:, None] for name, factors in coefficients.items()}
            optimizer.update(parameters, gradient, state, now)
        return -parameters.item()

    adam = Adam(lr=0.1, beta1=0.0, beta2=0.5)
    assert distance(replace(adam, amsgrad=True)) < 0.2 < 2.0 < distance(adam)


def test_nesterov_without_momentum_is_plain_descent():
    start, noise = doubles(1, WEIGHTS, seed=13), doubles(STEPS, 1, WEIGHTS, seed=14)
    assert torch.equal(ours([SGD(lr=0.1, nesterov=True)], start, noise), ours([SGD(lr=0.1)], start, noise))


def test_first_step_of_adam_is_the_rate():
    """With bias correction |Δθ| = η |g| / (|g| + ε), whatever the decays."""
    start, noise = torch.zeros(1, WEIGHTS, dtype=torch.float64), doubles(1, 1, WEIGHTS, seed=8)
    moved = ours([Adam(lr=0.25, beta1=0.7, beta2=0.3, eps=1e-2)], start, noise)
    gradient = noise[0]
    torch.testing.assert_close(moved, -0.25 * gradient / (gradient.abs() + 1e-2), rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("optimizer", EVERY, ids=repr)
def test_keeps_the_protocol(optimizer):
    """State has the parameters' shape and type, and updates happen in place."""
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
        (lambda: Adam(weight_decay=-0.1), r"`weight_decay` of Adam must be .* at least 0\.0\. Got -0\.1\."),
        (lambda: Adam(clip=math.inf), r"`clip` of Adam must be a finite number of at least 0\.0\. Got inf\."),
        (lambda: AdaGrad(weight_decay=math.nan), r"`weight_decay` of AdaGrad must be .* Got nan\."),
        (lambda: AdaGrad(clip=-1.0), r"`clip` of AdaGrad must be .* Got -1\.0\."),
        (lambda: SGD(lr=-1.0), r"`lr` of SGD must be a finite number of at least 0\.0\. Got -1\.0\."),
        (lambda: SGD(momentum=1.0), r"`momentum` of SGD must be .* at least 0\.0 and below 1\.0\. Got 1\.0\."),
        (lambda: SGD(weight_decay=-1.0), r"`weight_decay` of SGD must be .* Got -1\.0\."),
        (lambda: SGD(clip=-1.0), r"`clip` of SGD must be .* Got -1\.0\."),
    ],
)
def test_refuses_what_cannot_train(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()


@pytest.mark.parametrize(("optimizer", "name"), [(Adam(), "amsgrad"), (SGD(), "nesterov")])
def test_refuses_switches_that_are_merely_true(optimizer, name):
    """Set past the signature, which the test run would check first."""
    altered = replace(optimizer)
    object.__setattr__(altered, name, 1)
    with pytest.raises(AxiswiseError, match=rf"`{name}` of .* must be True or False\. Got 1\."):
        altered.__post_init__()
