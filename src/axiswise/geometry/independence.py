r"""Independence of the latents over the whole set: the total correlation of the aggregate posterior."""

from typing import NamedTuple, cast

import torch

from axiswise._arguments import checked
from axiswise.distributions import DeterministicParameters, Parameters
from axiswise.distributions.estimators import minibatch_log_weights, total_correlation
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry._likelihood_terms import part_of
from axiswise.shapes import Finite, Float, Tensor


class Independence(NamedTuple):
    """How far the latents are from independent over the whole set."""

    score: Finite[Tensor, "..."]
    """Total correlation of the aggregate posterior, in nats: 0 if latents are independent."""
    gaussian: Float[Tensor, "..."]
    """That of the Gaussian with the samples' covariance: what straight-line relations alone make of it."""
    correlations: Float[Tensor, "... z z"]
    """Correlations of the samples; 0 with latents that do not vary."""


@checked
def independence(posterior: Parameters, samples: Finite[Tensor, "... n z"], *, points: int = 1000) -> Independence:
    r"""Estimates the total correlation of the aggregate posterior, which is 0 if and only if latents are independent.

    .. math:: \mathrm{TC} = \mathrm{KL}\Big( q(z) \,\Big\|\, \prod_j q(z_j) \Big), \qquad
        q(z) = \frac1n \sum_i q(z | x_i)

    The aggregate is that of the points used. The fewer of them, and the less their posteriors overlap, the more of the
    estimate is bias: with n posteriors that keep apart it is (d − 1) log n for d latents, whatever the truth. Compare
    values at the same number of points only, and look at the Gaussian one, which has no such bias but sees covariances
    alone.

    References:
        Chen, Li, Grosse and Duvenaud, *Isolating sources of disentanglement in variational autoencoders*, NeurIPS 2018,
        equation 2. Independence as what orthogonal columns are to lead to: Allen, *Unpicking data at the seams*, 2024,
        theorem 2.

    Arguments:
        posterior: Parameters of q(z | x) at n observations, any leading axes (members) before those and the latents.
        samples: A sample of each posterior.
        points: How many of the observations to use, from the first: time and memory grow with their square.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> diagonal = DiagonalParameters(torch.tensor([[3.0, 3.0], [-3.0, -3.0]]), torch.full((2, 2), -9.0))
        >>> independence(diagonal, diagonal.mean).score  # two points on a diagonal: log 2
        tensor(0.6931, dtype=torch.float64)
    """
    if samples.ndim < 2 or 0 in samples.shape or posterior.mean.shape != samples.shape:
        raise AxiswiseError(
            "`posterior` and `samples` must have the same axes (…, n, z), none of them empty. "
            f"Got {tuple(posterior.mean.shape)} and {tuple(samples.shape)}."
        )
    if points < 2:
        raise AxiswiseError(f"`points` must be at least 2. Got {points}.")
    if isinstance(posterior, DeterministicParameters):
        raise NotDefined("The aggregate posterior needs posteriors with a density. Got deterministic codes.")
    rows = slice(0, points)
    used = part_of(posterior, rows)
    z = samples[..., rows, :].double()
    leading = z.shape[:-2]
    fields = [field.double().reshape(-1, *field.shape[len(leading) :]) for field in cast(tuple[Tensor, ...], used)]
    weights = minibatch_log_weights(z.shape[-2], z)
    members = [
        total_correlation(type(used)(*own), sample, weights)
        for sample, *own in zip(z.reshape(-1, *z.shape[-2:]), *fields, strict=True)
    ]
    correlations = _correlations(z)
    return Independence(torch.stack(members).reshape(leading), -0.5 * _log_determinant(correlations), correlations)


def _correlations(z: Float[Tensor, "... n z"]) -> Float[Tensor, "... z z"]:
    centred = z - z.mean(-2, keepdim=True)
    spread = torch.linalg.vector_norm(centred, dim=-2, keepdim=True)
    unit = torch.where(spread > 0.0, centred / torch.where(spread > 0.0, spread, 1.0), 0.0)
    return unit.mT @ unit


def _log_determinant(correlations: Float[Tensor, "... z z"]) -> Float[Tensor, "..."]:
    """Of the latents that vary; minus infinity, to rounding, where one is a linear function of others."""
    still = torch.diag_embed((correlations.diagonal(dim1=-2, dim2=-1) == 0.0).to(correlations.dtype))
    values = torch.linalg.eigvalsh(correlations + still)
    floor = values.shape[-1] * torch.finfo(values.dtype).eps * values[..., -1:]
    return torch.where(values > floor, values, 0.0).log().sum(-1).clamp(max=0.0)
