"""What holds for every divergence of the aggregate posterior, and for total correlation: they are parts of a loss."""

import pytest
import torch
from torch.func import grad, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from axiswise.distributions import Diagonal, StandardNormal
from axiswise.distributions.estimators import (
    MMD,
    AggregateDivergence,
    Estimate,
    ExclusiveKL,
    InclusiveKL,
    MomentMatching,
    minibatch_log_weights,
    stratified_log_weights,
    total_correlation,
)

BATCH, LATENTS, SIZE = 6, 3, 40
DIVERGENCES: list[AggregateDivergence] = [
    InclusiveKL(),
    InclusiveKL(samples=9, second=5, summed=True),
    ExclusiveKL(),
    MMD(),
    MMD(constant=1.0, power=1),
    MMD(per_latent=True, scales=(0.1, 1.0, 5.0)),
    MomentMatching(),
]


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def inputs(divergence: AggregateDivergence, *leading: int, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Encoder outputs of the batch and of the second sample, noise for the batch, and draws of the prior."""
    return (
        doubles(*leading, BATCH, 2 * LATENTS, seed=seed),
        doubles(*leading, divergence.second, 2 * LATENTS, seed=seed + 1),
        doubles(*leading, BATCH, LATENTS, seed=seed + 2),
        doubles(*leading, divergence.prior_samples(BATCH), LATENTS, seed=seed + 3),
    )


def part(divergence: AggregateDivergence, name: str):
    """One field of the estimate, as a function of the tensors above."""

    def loss(heads, second, noise, prior_sample):
        q = Diagonal().unpack(heads)
        aggregate = Diagonal().unpack(second) if divergence.second else q
        estimate = divergence.estimate(aggregate, q, q.sample(noise), StandardNormal(), prior_sample, SIZE)
        return getattr(estimate, name)

    return loss


def correlation(heads, noise):
    """Total correlation by both kinds of weights."""
    q = Diagonal().unpack(heads)
    sample = q.sample(noise)
    return total_correlation(q, sample, minibatch_log_weights(BATCH, sample)) + total_correlation(
        q, sample, stratified_log_weights(BATCH, SIZE, sample)
    )


VALUES = {repr(divergence): (part(divergence, "value"), inputs(divergence, 3)) for divergence in DIVERGENCES}
BIASES = {f"bias of {divergence!r}": (part(divergence, "bias"), inputs(divergence, 3)) for divergence in DIVERGENCES}
CORRELATION = {
    "total correlation": (correlation, (doubles(3, BATCH, 2 * LATENTS, seed=7), doubles(3, BATCH, LATENTS, seed=8)))
}
TRAINED = VALUES | CORRELATION
EVERY = TRAINED | BIASES


@pytest.mark.parametrize("divergence", DIVERGENCES, ids=repr)
def test_keeps_the_protocol(divergence):
    assert isinstance(divergence, AggregateDivergence)
    assert hash(divergence) == hash(type(divergence)(**vars(divergence)))
    for name in Estimate._fields:
        found = part(divergence, name)(*inputs(divergence))
        assert found.shape == ()
        assert found.dtype == torch.float64


def test_what_a_step_must_draw():
    assert [divergence.prior_samples(BATCH) for divergence in DIVERGENCES] == [6, 9, 0, 6, 6, 6, 6]
    assert [divergence.second for divergence in DIVERGENCES] == [0, 5, 0, 0, 0, 0, 0]


@pytest.mark.parametrize(("loss", "stacked"), EVERY.values(), ids=EVERY)
def test_members_are_mapped_as_they_are_alone(loss, stacked):
    together = vmap(loss)(*stacked)
    alone = torch.stack([loss(*(tensor[member] for tensor in stacked)) for member in range(3)])
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("loss", "stacked"), EVERY.values(), ids=EVERY)
def test_gradients_are_those_of_finite_differences(loss, stacked):
    single = tuple(tensor[0].clone().requires_grad_(tensor.numel() > 0) for tensor in stacked)
    if loss(*single).requires_grad:  # a bias of zero depends on nothing
        assert torch.autograd.gradcheck(loss, single)


@pytest.mark.parametrize(("loss", "stacked"), TRAINED.values(), ids=TRAINED)
def test_a_trace_made_on_one_batch_serves_the_next(loss, stacked):
    """As the training step does: traced once, with its gradient, mapped over members, and replayed."""
    gradients = vmap(grad(loss, argnums=tuple(range(len(stacked)))))
    others = tuple(tensor.flip(0) * 1.5 for tensor in stacked)
    replayed = make_fx(gradients)(*stacked)(*others)
    torch.testing.assert_close(replayed, gradients(*others), rtol=1e-12, atol=1e-14)
    assert replayed[0].abs().sum() + replayed[1].abs().sum() > 1e-3


@pytest.mark.parametrize(("loss", "stacked"), EVERY.values(), ids=EVERY)
def test_single_precision_is_double_precision_rounded(loss, stacked):
    single = loss(*(tensor[0].float() for tensor in stacked))
    assert single.dtype == torch.float32
    # Densities here are e^±30: their logarithms lose a few units in the seventh digit.
    expected = loss(*(tensor[0].float().double() for tensor in stacked))
    torch.testing.assert_close(single.double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(("loss", "stacked"), EVERY.values(), ids=EVERY)
def test_the_gpu_agrees(loss, stacked):
    on_gpu = vmap(loss)(*(tensor.cuda() for tensor in stacked))
    assert on_gpu.device.type == "cuda"
    torch.testing.assert_close(on_gpu.cpu(), vmap(loss)(*stacked), rtol=1e-10, atol=1e-12)
