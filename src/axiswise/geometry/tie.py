r"""The true inference error: how far is the encoder from the posterior of the process that made the data?"""

from collections.abc import Callable
from itertools import permutations, product
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.distributions import DeterministicParameters, Parameters
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.shapes import Finite, Float, Int, Tensor

ENUMERATED_UP_TO = 5  # latents: 5! · 2⁵ = 3,840 ways to name and flip them


class TrueInferenceError(NamedTuple):
    """How far the encoder is from the true posterior, means over the observations, in nats."""

    score: Finite[Tensor, "..."]
    """The least over all ways to name and flip the latents."""
    as_they_are: Float[Tensor, "..."]
    """The error with latent j taken for source j."""
    order: Int[Tensor, "... z"]
    """Which latent is taken for each source in the least."""
    signs: Int[Tensor, "... z"]
    """With which sign."""


@checked
def tie(
    x: Finite[Tensor, "n ..."],
    posterior: Parameters,
    truth: Callable[[Tensor], Parameters],
) -> TrueInferenceError:
    r"""Computes the divergence of the encoder from the posterior of the true sources.

    .. math:: \mathrm{TIE} = \min_{P} \frac1n \sum_i \mathrm{KL}\big( N(P \mu_i, P \Sigma_i P^\top) \,\big\|\,
        N(m_i, E_i) \big), \qquad q(z | x_i) = N(\mu_i, \Sigma_i),\; p(s | x_i) = N(m_i, E_i)

    over signed permutations P: an objective does not know the names and signs of the sources, so the kindest naming is
    taken. Both posteriors are Gaussian, so that there is nothing to sample.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, equation 3 and appendix C. The
        minimum is ours: the value of one fixed naming depends on which optimum was found.

    Arguments:
        x: The observations, shared by members.
        posterior: Parameters of q(z | x), any leading axes (members) before observations and latents.
        truth: Gives the true posterior of the sources at observations; as many sources as latents, at most five. Fix it
            with `functools.partial` where this is a measure.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> truth = lambda x: DiagonalParameters(x, torch.zeros_like(x))
        >>> x = torch.tensor([[1.0, 2.0], [-1.0, 3.0]])
        >>> found = tie(x, DiagonalParameters(-x.flip(-1), torch.zeros(2, 2)), truth)
        >>> found.score.item(), found.as_they_are.item(), found.order.tolist(), found.signs.tolist()
        (0.0, 6.5, [1, 0], [-1, -1])
    """
    if isinstance(posterior, DeterministicParameters):
        raise NotDefined("The true inference error needs a posterior with a density. Got a deterministic code.")
    target = truth(x)
    mean, root = posterior.mean.double(), posterior.cholesky.double()
    latents = mean.shape[-1]
    if mean.ndim < 2 or target.mean.shape != (len(x), latents) or mean.shape[-2] != len(x):
        raise AxiswiseError(
            f"`truth` must give a posterior of {latents} sources for each of the observations of `posterior`, "
            f"with axes (…, n, z). Got {tuple(target.mean.shape)} for `x` of shape {tuple(x.shape)} and `posterior` "
            f"of shape {tuple(mean.shape)}."
        )
    if latents > ENUMERATED_UP_TO:
        raise NotDefined(
            f"The true inference error is the least over all ways to name the latents, at most {ENUMERATED_UP_TO} of "
            f"them. Got {latents}."
        )
    other, wide = target.mean.double(), target.cholesky.double()
    precision = torch.cholesky_inverse(wide)
    moments = root @ root.mT + mean[..., :, None] * mean[..., None, :]
    # Σ_i tr E_i⁻¹ P S_i Pᵀ for every P, from one table of means over the observations.
    table = torch.einsum("nij,...nab->...ijab", precision, moments) / len(x)
    pull = torch.einsum("nij,nj,...na->...ia", precision, other, mean) / len(x)
    constant = (other[:, None, :] @ precision @ other[..., None]).mean() + 2.0 * _log_diagonal(wide).mean()
    constant = constant - 2.0 * _log_diagonal(root).mean(-1) - latents
    orders = torch.tensor(list(permutations(range(latents))), device=mean.device)
    signs = torch.tensor(list(product((1.0, -1.0), repeat=latents)), dtype=mean.dtype, device=mean.device)
    row = torch.arange(latents, device=mean.device)
    # [..., permutation, i, j]: E⁻¹ᵢⱼ against the moments of the latents that are called i and j.
    paired = table[..., row[:, None], row, orders[:, :, None], orders[:, None, :]]
    square = torch.einsum("...oij,si,sj->...os", paired, signs, signs)
    linear = pull[..., row, orders] @ signs.mT
    errors = (0.5 * (square - 2.0 * linear + constant[..., None, None])).flatten(-2)
    least = errors.argmin(-1)
    chosen = torch.div(least, len(signs), rounding_mode="floor")
    return TrueInferenceError(
        errors.amin(-1), errors[..., 0], orders[chosen], signs[least % len(signs)].to(torch.int64)
    )


def _log_diagonal(cholesky: Float[Tensor, "... z z"]) -> Float[Tensor, "..."]:
    """Half the log-determinant of the covariance."""
    return cholesky.diagonal(dim1=-2, dim2=-1).log().sum(-1)
