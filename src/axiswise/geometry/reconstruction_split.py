r"""The squared error of a noisy code: what the code itself misses, what the noise adds, and what is between."""

from collections.abc import Callable
from typing import NamedTuple

from axiswise._arguments import checked
from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor


class ReconstructionSplit(NamedTuple):
    """The three terms of the expected squared error, means over samples, and the share of the one that is left out."""

    score: Finite[Tensor, "..."]
    """Share of the cross term, signed, in the expected squared error."""
    deterministic: Float[Tensor, "..."]
    """Squared error of the decoded mean."""
    stochastic: Float[Tensor, "..."]
    """Squared distance between the decoded sample and the decoded mean."""
    cross: Float[Tensor, "..."]
    """Twice the product of the mean's error with the bias of decoded samples around it."""


class LinearisedNoise(NamedTuple):
    """The stochastic term to first order of the decoder, mean over samples."""

    score: Finite[Tensor, "..."]
    """E ‖Jε‖²."""
    per_latent: Float[Tensor, "... z"]
    """What the noise of each latent adds by itself, σ_j² ‖J_j‖²; they add up where the posterior is diagonal."""


@checked
def reconstruction_split(
    decode: Callable[[Tensor], Tensor],
    codes: Finite[Tensor, "... n z"],
    samples: Finite[Tensor, "... n z"],
    x: Finite[Tensor, "n ..."],
) -> ReconstructionSplit:
    r"""Splits the squared reconstruction error into a deterministic, a stochastic and a cross term.

    .. math:: \mathbb E \lVert f(z) - x \rVert^2 = \lVert f(\mu) - x \rVert^2 + \mathbb E \lVert f(z) - f(\mu) \rVert^2
        + 2 \langle f(\mu) - x,\, \mathbb E f(z) - f(\mu) \rangle

    The cross term vanishes if decoded samples are unbiased around the decoded mean, as with linear decoders. Each
    sample is used with its mirror image :math:`2\mu - z`, which a symmetric posterior draws as often: the cross term is
    then exactly 0 for linear decoders, not only in expectation.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equations 13 to 15, proposition 4, which assumes that the cross term vanishes.

    Arguments:
        decode: E[x | z] at points (…, n, z).
        codes: Posterior means μ, any leading axes (members).
        samples: One sample of each posterior.
        x: The observations, shared by members.

    Example:
        >>> import torch
        >>> one = torch.ones(1, 1)
        >>> found = reconstruction_split(lambda z: z**2, one, 1.5 * one, 2.0 * one)
        >>> [round(term.item(), 4) for term in found]
        [-0.32, 1.0, 1.0625, -0.5]
    """
    if codes.shape != samples.shape or x.shape[0] != codes.shape[-2]:
        raise AxiswiseError(
            "`codes` and `samples` must have the same axes (…, n, z), and `x` one observation for each n. "
            f"Got {tuple(codes.shape)}, {tuple(samples.shape)} and {tuple(x.shape)}."
        )
    decoded, one, other = (
        decode(points).reshape(*codes.shape[:-1], -1).double() for points in (codes, samples, 2.0 * codes - samples)
    )
    if x[0].numel() != decoded.shape[-1]:
        raise AxiswiseError(f"`x` must have the {decoded.shape[-1]} pixels that `decode` gives. Got {x[0].numel()}.")
    error, first, second = decoded - x.reshape(len(x), -1).double(), one - decoded, other - decoded
    deterministic = error.square().sum(-1).mean(-1)
    stochastic = 0.5 * (first.square() + second.square()).sum(-1).mean(-1)
    cross = (error * (first + second)).sum(-1).mean(-1)
    return ReconstructionSplit(cross / (deterministic + stochastic + cross), deterministic, stochastic, cross)


@checked
def linearised_noise(gram: Finite[Tensor, "... n z z"], posterior: Parameters) -> LinearisedNoise:
    r"""Computes the stochastic term of the squared error with the decoder replaced by its tangent.

    .. math:: \mathbb E \lVert f(z) - f(\mu) \rVert^2 \approx \mathbb E_\varepsilon \lVert J \varepsilon \rVert^2
        = \mathrm{tr}(J^\top J\, \Sigma), \qquad \varepsilon \sim N(0, \Sigma)

    Its distance from the `stochastic` term of :func:`reconstruction_split` shows how straight the decoder is within the
    noise, on which the argument for orthogonal columns rests.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equations 16 and 17.

    Arguments:
        gram: Products JᵀJ at the posterior means, from :func:`gram`, any leading axes (members).
        posterior: The posteriors at the same samples.

    Example:
        >>> import torch
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.zeros(1, 2), torch.zeros(1, 2))
        >>> linearised_noise(torch.tensor([[[4.0, 1.0], [1.0, 9.0]]]), q).score
        tensor(13., dtype=torch.float64)
    """
    root = posterior.cholesky.double()
    if root.shape != gram.shape:
        raise AxiswiseError(
            f"`gram` must have the axes (…, n, z, z) of the posterior's covariances, {tuple(root.shape)}. "
            f"Got {tuple(gram.shape)}."
        )
    covariance = root @ root.mT
    own = covariance.diagonal(dim1=-2, dim2=-1) * gram.double().diagonal(dim1=-2, dim2=-1)
    return LinearisedNoise((gram.double() * covariance).sum((-2, -1)).mean(-1), own.mean(-2))
