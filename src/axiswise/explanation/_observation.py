"""What `explain` computes of a model, once: encodings, reconstructions and Jacobians, checked."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from axiswise import geometry
from axiswise.distributions import (
    Anisotropic,
    Bernoulli,
    DeterministicParameters,
    Gaussian,
    Likelihood,
    Parameters,
    Prior,
    StandardNormal,
)
from axiswise.errors import AxiswiseError
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.geometry.gram import as_gram
from axiswise.numerics import normal
from axiswise.population._external import Reader, refuse_non_finite
from axiswise.shapes import Float, Tensor

FEW = 50  # points below which intervals and threshold decisions are told to be weak
DERIVATIVES = 1 << 24  # numbers in all Jacobians together: 1,070 points of 784 pixels and 20 latents, 64 MB
KL_ABOVE = 0.01  # nats; what makes a latent active under a prior without a variance
STILL = 1e-6  # of the largest spread, below which a code without noise counts as constant
STEP = 1e-2  # of central differences: float32 leaves about 1e-5 / STEP, their curvature about STEP²
NAMED = 12  # latents that are listed by name


class Seen(NamedTuple):
    """What was computed of a model."""

    reader: Reader
    x: Tensor
    """The observations."""
    posterior: Parameters
    samples: Float[Tensor, "n z"]
    """One sample of each posterior."""
    decoded: Float[Tensor, "m x"]
    """E[x | z] at the first m codes."""
    jacobians: Float[Tensor, "m x z"]
    gram: Float[Tensor, "m z z"]
    hidden: bool
    """Whether the decoder hides its derivatives, so that differences had to be taken."""
    kl: Float[Tensor, "n z"] | None
    """KL(q(z_j | x) ‖ p(z_j)); None without noise."""
    active: list[int]
    """Active latents, the most precise first."""
    likelihood: Likelihood
    likelihood_words: str
    prior: Prior
    scale: Float[Tensor, " z"] | None
    """Standard deviation of a Gaussian prior; None for others."""
    shape: tuple[int, ...]
    """Of the latents of one observation."""

    @property
    def latents(self) -> int:
        """How many there are."""
        return self.posterior.mean.shape[-1]

    def name(self, latent: int) -> str:
        """What a latent is called: by its place in a feature map, where there are such."""
        if len(self.shape) == 1:
            return f"z{latent}"
        return "z" + ",".join(str(int(place)) for place in np.unravel_index(latent, self.shape))

    def names(self, latents: Sequence[int]) -> str:
        """The names of several, not all if they are many."""
        told = ", ".join(self.name(latent) for latent in latents[:NAMED])
        return f"{told}, …" if len(latents) > NAMED else told


def observe(
    reader: Reader, x: Tensor, likelihood: Likelihood | None, prior: Prior, seed: int, limits: list[str]
) -> Seen:
    """Encodes, decodes and differentiates.

    Arguments:
        reader: The model.
        x: Observations.
        likelihood: The likelihood, or None where it is unknown.
        prior: The prior.
        seed: Decides the noise of samples.
        limits: Where to add what cannot be concluded.

    Raises:
        AxiswiseError: If the model's outputs cannot be used.
    """
    posterior = reader.encode(x)
    if not torch.allclose(reader.encode(x[:1]).mean, posterior.mean[:1], rtol=1e-3, atol=1e-3):
        limits.append(
            "The encoding of an observation depends on the others in its batch, as with batch norm that keeps no "
            "running statistics: all numbers hold for this batch alone."
        )
    latents = posterior.mean.shape[-1]
    expected = getattr(prior, "latents", latents)
    if expected != latents:
        raise AxiswiseError(f"`prior` must have as many latents as the encoder, {latents}. Got {expected}.")
    noise = normal(seed, "explain", 0, tuple(posterior.mean.shape), dtype=posterior.mean.dtype)
    samples = posterior.sample(noise.to(posterior.mean.device))
    noisy = not isinstance(posterior, DeterministicParameters)
    kl = prior.kl(posterior, samples).per_latent if noisy else None
    scale = _prior_scale(prior, posterior.mean[:1])
    _doubt(posterior, len(x), limits)

    count = min(len(x), max(2, DERIVATIVES // (x[0].numel() * latents)))
    codes = posterior.mean[:count]
    decoded = _decoded(reader, codes, x, likelihood)
    likelihood, words = _likelihood(likelihood, decoded, x[:count].flatten(1), limits)
    jacobians, hidden = _jacobians(reader.decode, codes, limits)
    refuse_non_finite("The Jacobian of `decode`", jacobians)
    return Seen(
        reader=reader,
        x=x,
        posterior=posterior,
        samples=samples,
        decoded=decoded,
        jacobians=jacobians,
        gram=as_gram(jacobians),
        hidden=hidden,
        kl=kl,
        active=_active(posterior, kl, scale),
        likelihood=likelihood,
        likelihood_words=words,
        prior=prior,
        scale=scale,
        shape=reader.latent_shape or (latents,),
    )


def _doubt(posterior: Parameters, points: int, limits: list[str]) -> None:
    """Says what the encoder's outputs leave open."""
    if isinstance(posterior, DeterministicParameters):
        limits.append(
            "The encoder gives codes without noise. Nothing that rests on posterior variances can be said: which "
            "latents are passive, whether the encoder obeys its law, how much encodings overlap."
        )
    elif bool((posterior.log_variance >= 0.0).all()):
        limits.append(
            "Every posterior is at least as wide as a standard normal prior. If the encoder returns variances or "
            "standard deviations, return the logarithm of the variance instead."
        )
    if points < FEW:
        limits.append(
            f"{points} points are few: which latents count as active, and every interval, may change with more."
        )


def _prior_scale(prior: Prior, like: Float[Tensor, "1 z"]) -> Float[Tensor, " z"] | None:
    """Standard deviation of each latent under a Gaussian prior."""
    if isinstance(prior, StandardNormal | Anisotropic):
        one = torch.ones_like(like)
        return prior.sample(one, one)[0]  # noise of one becomes s
    return None


def _active(posterior: Parameters, kl: Tensor | None, scale: Tensor | None) -> list[int]:
    """Active latents by the mean variance of their posteriors, the most precise first.

    Without a Gaussian prior the divergence decides; without noise, whether the code varies.
    """
    if kl is None:
        spread = posterior.mean.double().std(0)
        active, order = spread > STILL * spread.max(), spread.argsort(descending=True, stable=True)
    elif scale is not None:
        share = posterior.variance.double().mean(0) / scale.double().square()
        active, order = share < ACTIVE_BELOW, share.argsort(stable=True)
    else:
        divergence = kl.double().mean(0)
        active, order = divergence > KL_ABOVE, divergence.argsort(descending=True, stable=True)
    return [latent for latent in order.tolist() if active[latent]]


def _decoded(reader: Reader, codes: Tensor, x: Tensor, likelihood: Likelihood | None) -> Float[Tensor, "m x"]:
    """Reconstructions as rows of pixels, of the right size and range."""
    with torch.no_grad():
        decoded = reader.decode(codes)
    pixels = x[0].numel()
    if decoded[0].numel() != pixels:
        raise AxiswiseError(
            f"`decode` must return as many numbers for each z as an observation has, {pixels} of shape "
            f"{tuple(x.shape[1:])}. Got {decoded[0].numel()} of shape {tuple(decoded.shape[1:])}. A decoder of means "
            "and variances can be wrapped: lambda z: decode(z)[0]."
        )
    refuse_non_finite("What `decode` returned", decoded)
    if isinstance(likelihood, Bernoulli):
        for what, values, fix in (
            ("What `decode` returns", decoded, "If these are logits, wrap it: lambda z: torch.sigmoid(decode(z))."),
            ("`x`", x, "Scale it, or say likelihood=Gaussian(scale)."),
        ):
            low, high = values.min().item(), values.max().item()
            if low < 0.0 or high > 1.0:
                raise AxiswiseError(
                    f"{what} must lie in 0 … 1 with a Bernoulli likelihood. Got values from {low:.3g} to {high:.3g}. "
                    f"{fix}"
                )
    return decoded.flatten(1)


def _likelihood(likelihood: Likelihood | None, decoded: Tensor, x: Tensor, limits: list[str]) -> tuple[Likelihood, str]:
    """The likelihood as given, or Gaussian pixels as wide as the model's errors; and its name."""
    if likelihood is None:
        scale = max((decoded - x).double().square().mean().sqrt().item(), 1e-6)
        limits.append(
            f"The likelihood is unknown: Gaussian pixels of scale {scale:.3g}, the model's own error, were assumed. "
            "Whether the level of the encoder's variances is right cannot be told, only how they vary."
        )
        return Gaussian(scale), f"unknown (Gaussian({scale:.3g}) assumed)"
    if isinstance(likelihood, Gaussian):
        return likelihood, f"Gaussian({likelihood.scale:g})"
    return likelihood, type(likelihood).__name__


def _jacobians(
    decode: Callable[[Tensor], Tensor], codes: Float[Tensor, "m z"], limits: list[str]
) -> tuple[Float[Tensor, "m x z"], bool]:
    """Jacobians by automatic differentiation, or by central differences where the decoder hides its derivatives."""
    reason = "the decoder hides its derivatives (it detaches, or leaves PyTorch)"
    try:
        found = geometry.jacobian(decode, codes)
        with torch.no_grad():
            constant = torch.equal(decode(codes[:2]), decode(codes[:2] + STEP))
        if found.any() or constant:
            return found, False
    except (RuntimeError, AxiswiseError) as error:  # an operation without a derivative, or one that vmap cannot map
        words = str(error.__cause__ or error).partition("\n")[0][:160].rstrip(". ")
        reason = f"PyTorch cannot differentiate the decoder ({words})"
    limits.append(
        f"Derivatives were taken as central differences of step {STEP:g}, good to about three digits, because {reason}."
    )
    columns = []
    with torch.no_grad():
        for axis in torch.eye(codes.shape[-1], dtype=codes.dtype, device=codes.device):
            above, below = (decode(codes + sign * STEP * axis).flatten(1) for sign in (1.0, -1.0))
            columns.append((above - below) / (2.0 * STEP))
    return torch.stack(columns, -1), True
