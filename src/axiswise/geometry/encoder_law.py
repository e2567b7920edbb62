r"""The encoder law: are the posterior's variances those that the decoder's slope implies?"""

from collections.abc import Callable
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.distributions import Anisotropic, Likelihood, Prior, StandardNormal
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry.column_coherence import off_diagonal_share
from axiswise.geometry.gram import exactly_one
from axiswise.geometry.hessian import fisher_information
from axiswise.shapes import Finite, Float, Tensor


class EncoderLaw(NamedTuple):
    """How far the encoder's variances are from the law, and how far the decoder is from what the law is said to do."""

    score: Float[Tensor, "..."]
    """Mean over samples and latents of the logarithmic deviation: 0.1 is about ten percent. Infinite without noise."""
    per_latent: Float[Tensor, "... z"]
    """Mean over the samples of the signed deviation: positive where the encoder is noisier than the law."""
    off_diagonal: Float[Tensor, "..."]
    """Share of DᵀA²D off its diagonal, mean over the samples: 0 if columns are orthogonal; NaN if there is none."""


@checked
def encoder_law(
    variance: Finite[Tensor, "... n z"],
    likelihood: Likelihood,
    beta: float | int | Finite[Tensor, "..."],
    *,
    jacobians: Finite[Tensor, "... n x z"] | None = None,
    decode: Callable[[Tensor], Tensor] | None = None,
    codes: Finite[Tensor, "... n z"] | None = None,
    information: Float[Tensor, "... n z z"] | None = None,
    prior: Prior = StandardNormal(),
) -> EncoderLaw:
    r"""Compares the posterior's variances with those that make the deterministic ELBO stationary.

    .. math:: \frac{1}{\sigma_j^2} = \frac{1}{s_j^2} + \frac{1}{\beta} \left[D^\top A^2 D\right]_{jj}, \qquad
        \text{deviation } \log \sigma_j^2
        \left( \frac{1}{s_j^2} + \frac{1}{\beta} \left[D^\top A^2 D\right]_{jj} \right)

    for the diagonal posterior and a Gaussian prior of variances :math:`s_j^2`, all 1 by default. This holds whether or
    not :math:`F = D^\top A^2 D` is diagonal. That it should be, which makes the columns of a Gaussian decoder
    orthogonal, is another claim, and has a measure of its own:

    .. math:: \text{off-diagonal share} = \frac1n \sum_n \frac{\lVert F_n - \mathrm{diag}\, F_n \rVert_F}
        {\lVert F_n \rVert_F}.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 7 and 8.

    Arguments:
        variance: Posterior variances, any leading axes (members) before samples and latents.
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        beta: Weight of the divergence, one for all or one for each member.
        jacobians: Jacobians of E[x | z] at the same samples.
        decode: E[x | z]; needed, with `codes`, where the variance of a pixel depends on its mean.
        codes: Where the Jacobians were taken.
        information: F = DᵀA²D at the samples, from :func:`metrics`, in place of `jacobians`, `decode` and `codes`.
        prior: StandardNormal or Anisotropic.

    Example:
        >>> from axiswise.distributions import Gaussian
        >>> jacobians = torch.tensor([[[3.0, 0.0], [0.0, 1.0]]])
        >>> found = encoder_law(torch.tensor([[0.1, 0.5]]), Gaussian(), beta=1, jacobians=jacobians)
        >>> found.score.item() < 1e-6, found.off_diagonal.item()
        (True, 0.0)
    """
    exactly_one(jacobians=jacobians, information=information)
    if jacobians is not None:
        mean = None if decode is None or codes is None else decode(codes).detach()
        information = fisher_information(jacobians, likelihood, mean)
    assert information is not None  # for type checkers
    if variance.shape != information.shape[:-1]:
        raise AxiswiseError(
            f"`variance` must have the shape {tuple(information.shape[:-1])} of the samples and latents of "
            f"`jacobians`. Got {tuple(variance.shape)}."
        )
    deviation = (variance.double() / optimal_variance(information, beta, prior=prior)).log()
    return EncoderLaw(deviation.abs().mean((-2, -1)), deviation.mean(-2), off_diagonal_share(information))


@checked
def optimal_variance(
    information: Float[Tensor, "... n z z"],
    beta: float | int | Finite[Tensor, "..."],
    *,
    prior: Prior = StandardNormal(),
) -> Float[Tensor, "... n z"]:
    r"""Computes the variances of the best diagonal posterior, to second order of the likelihood.

    .. math:: \sigma_j^2 = \left( \frac{1}{s_j^2} + \frac{F_{jj}}{\beta} \right)^{-1}

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 7.

    Arguments:
        information: F = DᵀA²D at each sample, from :func:`fisher_information`, or minus the Hessian of log p(x | z).
        beta: Weight of the divergence, one for all or one for each of the leading axes.
        prior: StandardNormal or Anisotropic.

    Example:
        >>> optimal_variance(torch.tensor([[[8.0, 3.0], [3.0, 2.0]]]), beta=2)
        tensor([[0.2000, 0.5000]], dtype=torch.float64)
    """
    if information.ndim < 3 or information.shape[-1] != information.shape[-2]:
        raise AxiswiseError(f"`information` must have axes (…, n, z, z). Got shape {tuple(information.shape)}.")
    weight = torch.as_tensor(beta, dtype=torch.float64, device=information.device)
    if not ((weight > 0.0) & weight.isfinite()).all():
        raise AxiswiseError(f"`beta` must be positive and finite: at 0 nothing sets the variance. Got {beta!r}.")
    if weight.ndim and weight.shape != information.shape[:-3]:
        raise AxiswiseError(
            f"`beta` must be a number, or one for each of the leading axes {tuple(information.shape[:-3])}. "
            f"Got shape {tuple(weight.shape)}."
        )
    diagonal = information.double().diagonal(dim1=-2, dim2=-1)
    return 1.0 / (_precision(prior, diagonal) + diagonal / weight[..., None, None])


def _precision(prior: Prior, like: Float[Tensor, "... n z"]) -> Float[Tensor, "..."]:
    """1 / s² of the prior, to be broadcast over samples."""
    if isinstance(prior, Anisotropic) and prior.latents != like.shape[-1]:
        raise AxiswiseError(f"`prior` must have as many latents as there are, {like.shape[-1]}. Got {prior.latents}.")
    if isinstance(prior, StandardNormal | Anisotropic):
        one = torch.ones_like(like)
        return prior.sample(one, one).square().reciprocal()  # noise of one becomes s, in the type of the noise
    raise NotDefined(
        "`prior` must be StandardNormal or Anisotropic: the law is that of a Gaussian prior. "
        f"Got {type(prior).__name__}."
    )
