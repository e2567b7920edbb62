"""What `explain` computes of a model once: encodings, reconstructions and Jacobians, checked."""

from collections.abc import Callable
from typing import Literal, NamedTuple

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

DERIVATIVES = 1 << 24  # numbers in all Jacobians together: 1,070 points of 784 pixels and 20 latents, 64 MB
KL_ABOVE = 0.01  # nats; what makes a latent active under a prior without a variance
STILL = 1e-6  # of the largest spread, below which a code without noise counts as constant
STEP = 1e-2  # of central differences: float32 leaves about 1e-5 / STEP, their curvature about STEP²
STEP_ERROR = 1e-3  # of central differences, as a share of the slope
ROUNDED = 10  # units in the last place that differentiation may be wrong by
SAME = 1e-5  # of the spread, within which two results are the same
NAMED = 12  # latents that are listed by name

Guess = Literal["Bernoulli", "logits", "Gaussian"]
"""A likelihood that was not given: Bernoulli pixels, the same of which `decode` returns logits, or Gaussian ones."""


Unsteady = Literal["draws", "depends on its batch"]
"""Why what a function returns for a row is not a function of that row alone."""


class Slopes(NamedTuple):
    """The decoder's derivatives at some codes."""

    jacobians: Float[Tensor, "m x z"]
    gram: Float[Tensor, "m z z"]
    not_differentiable: str | None
    """PyTorch's message where the decoder has no derivatives and differences were taken, "" where there is none."""
    rounding: float
    """Error to expect of the Jacobians, as a share of their size."""


class Observed(NamedTuple):
    """What was computed of a model."""

    reader: Reader
    x: Tensor
    """The observations."""
    posterior: Parameters
    samples: Float[Tensor, "n z"]
    """One sample of each posterior."""
    decoded: Float[Tensor, "m x"]
    """E[x | z] at the first m codes."""
    slopes: Slopes | Unsteady
    """The decoder's derivatives, or why it has none that mean anything."""
    kl: Float[Tensor, "n z"] | None
    """KL(q(z_j | x) ‖ p(z_j)); None without noise."""
    active: list[int]
    """Active latents, the most precise first."""
    likelihood: Likelihood
    guess: Guess | None
    """What the likelihood was guessed to be; None where it was given. The scale of Gaussian pixels is not guessed."""
    prior: Prior
    scale: Float[Tensor, " z"] | None
    """Standard deviation of a Gaussian prior; None for others."""
    shape: tuple[int, ...]
    """Of the latents of one observation."""
    maybe_variances: bool
    """Whether what stood second in a tuple was read as log-variances, and may be variances or their roots."""
    unsteady: Unsteady | None
    """Why the encoding of an observation is not a function of that observation alone."""

    @property
    def latents(self) -> int:
        """How many there are."""
        return self.posterior.mean.shape[-1]

    def name(self, latent: int) -> str:
        """What a latent is called: by its place in a feature map, where there are such."""
        if len(self.shape) == 1:
            return f"z{latent}"
        return "z" + ",".join(str(int(place)) for place in np.unravel_index(latent, self.shape))


def observe(reader: Reader, x: Tensor, likelihood: Likelihood | None, prior: Prior, seed: int) -> Observed:
    """Encodes, decodes and differentiates.

    Arguments:
        reader: The model.
        x: Observations.
        likelihood: The likelihood, or None where it is unknown.
        prior: The prior.
        seed: Decides the noise of samples.

    Raises:
        AxiswiseError: If the model's outputs cannot be used.
    """
    posterior = reader.encode(x)
    latents = posterior.mean.shape[-1]
    expected = getattr(prior, "latents", latents)
    if expected != latents:
        raise AxiswiseError(f"`prior` must have as many latents as the encoder, {latents}. Got {expected}.")
    noise = normal(seed, "explain", 0, tuple(posterior.mean.shape), dtype=posterior.mean.dtype)
    samples = posterior.sample(noise.to(posterior.mean.device))
    noisy = not isinstance(posterior, DeterministicParameters)
    wide = noisy and bool((posterior.log_variance >= 0.0).all()) and bool(posterior.log_variance.any())
    doubtful = wide and reader.by_place
    kl = prior.kl(posterior, samples).per_latent if noisy else None
    scale = _prior_scale(prior, posterior.mean[:1])

    count = min(len(x), max(2, DERIVATIVES // (x[0].numel() * latents)))
    codes, precision = posterior.mean[:count], torch.finfo(reader.dtype or x.dtype).eps
    decoded = _decoded(reader, codes, x, likelihood)
    shape = reader.latent_shape or (latents,)
    guess = None
    if likelihood is None:
        guess = _guess(decoded, x[:count].flatten(1))
        likelihood = Gaussian() if guess == "Gaussian" else Bernoulli()
    if guess == "logits":
        outputs = reader.decode
        reader, decoded = Reader(reader.encoder, lambda z: outputs(z).sigmoid()), decoded.sigmoid()
    return Observed(
        reader=reader,
        x=x,
        posterior=posterior,
        samples=samples,
        decoded=decoded,
        slopes=_unsteady(reader.decode, codes) or _slopes(reader, codes, precision),
        kl=kl,
        active=_active(posterior, kl, scale),
        likelihood=likelihood,
        guess=guess,
        prior=prior,
        scale=scale,
        shape=shape,
        maybe_variances=doubtful,
        unsteady=_unsteady(lambda rows: _moments(reader.encode(rows)), x),
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
            ("`x`", x, "Scale it, or pass likelihood=Gaussian(scale)."),
        ):
            low, high = values.min().item(), values.max().item()
            if low < 0.0 or high > 1.0:
                raise AxiswiseError(
                    f"{what} must lie in 0 … 1 with a Bernoulli likelihood. Got values from {low:.3g} to {high:.3g}. "
                    f"{fix}"
                )
    return decoded.flatten(1)


def _guess(decoded: Float[Tensor, "m x"], pixels: Float[Tensor, "m x"]) -> Guess:
    """The likelihood that the range of observations and reconstructions suggests.

    What lies beyond 0 … 1 and reconstructs images better through a sigmoid is taken for logits.
    """

    def in_range(values: Tensor) -> bool:
        return bool(values.min() >= 0.0) and bool(values.max() <= 1.0)

    if not in_range(pixels):
        return "Gaussian"
    if in_range(decoded):
        return "Bernoulli"
    as_logits, as_means = ((values - pixels).double().square().mean() for values in (decoded.sigmoid(), decoded))
    return "logits" if as_logits < as_means else "Gaussian"


def _moments(posterior: Parameters) -> Float[Tensor, "n w"]:
    """Means and variances side by side."""
    return torch.cat([posterior.mean, posterior.variance], 1)


def _unsteady(function: Callable[[Tensor], Tensor], rows: Tensor) -> Unsteady | None:
    """Calls a function again, and then with half of its rows, each twice: whether it draws, or looks at the batch.

    The batch keeps its size, and what is compared its place, so that the same numbers are added in the same order.
    """
    halved = rows[torch.arange(len(rows), device=rows.device) // 2 * 2]
    with torch.no_grad():
        first, again, among_others = (function(each).double() for each in (rows, rows, halved))
    tolerance = SAME * first.std().item()
    if not torch.allclose(first, again, SAME, tolerance):
        return "draws"
    return None if torch.allclose(first[::2], among_others[::2], SAME, tolerance) else "depends on its batch"


def _slopes(reader: Reader, codes: Float[Tensor, "m z"], precision: float) -> Slopes:
    """The decoder's derivatives, and how good they are.

    Arguments:
        reader: The model.
        codes: Where to take them.
        precision: What the model's numbers are rounded to.
    """
    jacobians, message = _jacobians(reader.decode, codes)
    refuse_non_finite("The Jacobian of `decode`", jacobians)
    rounding = ROUNDED * precision if message is None else max(STEP_ERROR, precision / STEP)
    return Slopes(jacobians, as_gram(jacobians), message, rounding)


def _jacobians(
    decode: Callable[[Tensor], Tensor], codes: Float[Tensor, "m z"]
) -> tuple[Float[Tensor, "m x z"], str | None]:
    """Jacobians by automatic differentiation, or by central differences, and then PyTorch's message, if any."""
    message = ""
    try:
        found = geometry.jacobian(decode, codes)
        with torch.no_grad():
            constant = torch.equal(decode(codes[:2]), decode(codes[:2] + STEP))
        if found.any() or constant:
            return found, None
    except (RuntimeError, AxiswiseError) as error:  # an operation without a derivative, or one that vmap cannot map
        message = str(error.__cause__ or error).partition("\n")[0][:160].rstrip(". ")
    columns = []
    with torch.no_grad():
        for axis in torch.eye(codes.shape[-1], dtype=codes.dtype, device=codes.device):
            above, below = (decode(codes + sign * STEP * axis).flatten(1) for sign in (1.0, -1.0))
            columns.append((above - below) / (2.0 * STEP))
    return torch.stack(columns, -1), message
