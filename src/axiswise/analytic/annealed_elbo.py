r"""The objective of a β-VAE as the ELBO of an annealed prior and a reward for the encoder's entropy."""

from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.analytic.annealed_prior import annealed, log_normaliser
from axiswise.distributions import Anisotropic, Parameters, Prior, StandardNormal
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_entropy
from axiswise.shapes import Finite, Float, Tensor


class AnnealedELBO(NamedTuple):
    """The objective of a β-VAE, to be maximised, and its parts; in nats.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.ones(2), torch.zeros(2))
        >>> annealed_elbo(torch.tensor(-3.0), q, q.mean, StandardNormal(), beta=4.0).entropy.item()
        2.8378...
    """

    objective: Float[Tensor, "..."]
    """L_β, the sum of the ELBO, β − 1 times the entropy, and the logarithm of the normaliser."""
    elbo: Float[Tensor, "..."]
    """The ELBO with the annealed prior f_β in place of p."""
    entropy: Float[Tensor, "..."]
    """H(q) of the posterior, which β rewards."""
    log_normaliser: Float[Tensor, "..."]
    """Log F_β, which depends on neither encoder nor decoder."""


@checked
def annealed_elbo(
    log_likelihood: Finite[Tensor, "..."],
    posterior: Parameters,
    sample: Finite[Tensor, "... z"],
    prior: Prior,
    beta: float | int | Finite[Tensor, "..."],
) -> AnnealedELBO:
    r"""Writes the objective of a β-VAE as the ELBO of an annealed prior and a reward for the posterior's entropy.

    .. math:: \mathbb E_q \log p(x|z) - \beta\, \mathrm{KL}(q \,\|\, p)
        = \underbrace{\mathbb E_q \log p(x|z) - \mathrm{KL}(q \,\|\, f_\beta)}_{\text{ELBO}}
        + (\beta - 1) H(q) + \log F_\beta, \qquad f_\beta = p^\beta / F_\beta

    The left side is the negative loss of `BetaVAE`, and both sides agree for each sample. For Gaussian priors all terms
    are closed forms, and `sample` is not used. For others, divergence and entropy are both estimated at `sample`, like
    the prior's own estimate of KL(q ‖ p).

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        theorem 1, equation 3.

    Arguments:
        log_likelihood: E log p(x | z) under q, or its value at `sample`.
        posterior: Parameters of q(z | x), any leading axes.
        sample: A draw of each posterior.
        prior: The prior p, one that `log_normaliser` supports.
        beta: β, positive; a tensor broadcasts against the leading axes.

    Example:
        >>> from axiswise.distributions import DiagonalParameters, StandardNormal
        >>> q = DiagonalParameters(torch.ones(2), torch.zeros(2))
        >>> parts = annealed_elbo(torch.tensor(-3.0), q, q.mean, StandardNormal(), beta=4.0)
        >>> round(parts.objective.item(), 5), round(parts.elbo.item(), 5)  # KL(q ‖ p) = 1
        (-7.0, -8.61371)
    """
    if log_likelihood.shape != sample.shape[:-1] or sample.shape != posterior.mean.shape:
        raise AxiswiseError(
            "`log_likelihood`, `sample` and `posterior` must have axes (…,), (…, z) and (…, z) of the same points. Got "
            f"{tuple(log_likelihood.shape)}, {tuple(sample.shape)} and {tuple(posterior.mean.shape)}."
        )
    own = posterior.log_density(sample)  # first, because it raises for a posterior without a density
    if isinstance(prior, StandardNormal | Anisotropic):
        entropy = normal_entropy(posterior.log_variance).sum(-1) - posterior.total_correlation
    else:
        entropy = -own
    power = torch.as_tensor(beta, dtype=torch.float64, device=sample.device)
    elbo = log_likelihood - annealed(prior, power).kl(posterior, sample)
    constant = log_normaliser(prior, power, sample.shape[-1])
    return AnnealedELBO(elbo + (power - 1.0) * entropy + constant, elbo, entropy, constant)
