r"""Annealed priors: the effect of the β of a β-VAE on the prior, :math:`p(z)^\beta` normalised."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from axiswise._arguments import check_fields, checked
from axiswise.distributions import (
    Anisotropic,
    FullParameters,
    Mixture,
    Parameters,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
)
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import normal_log_density
from axiswise.shapes import Count, Finite, Float, Tensor

NODES = 16  # of the Gauss–Legendre rule on each panel
TAIL = 45.0  # depth, in nats below its largest value, to which the integrand is followed
CONVERGED = 1e-12  # largest change of a panel's share when it is bisected; the two parts err by far less
ROUNDS = 60  # of bisection, far more than any mixture needs


@dataclass(frozen=True)
class Annealed:
    r"""An annealed prior :math:`f_\beta(z) = p(z)^\beta / F_\beta`, made by `annealed`.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        theorem 1.

    Arguments:
        prior: The prior p.
        beta: β.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> q = DiagonalParameters(torch.zeros(2), torch.full((2,), -math.log(4.0)))
        >>> annealed(StandardNormal(), beta=4.0).kl(q, q.mean).item()  # f_β is N(0, I / 4), like q
        0.0
    """

    prior: Prior
    beta: float | int | Float[Tensor, "..."]

    def __post_init__(self) -> None:
        check_fields(self)

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """β log p(z) − log F_β."""
        beta = _as_tensor(self.beta, z.device)
        return beta * self.prior.log_density(z) - log_normaliser(self.prior, beta, z.shape[-1])

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """KL(q ‖ f_β): in closed form for Gaussian priors, otherwise estimated at `sample`, a draw of q.

        Annealing a Gaussian prior divides its latents by √β. So the divergence equals that from the prior itself, with
        the latents of q multiplied by √β (mathieu2019, corollary 1).
        """
        if not isinstance(self.prior, StandardNormal | Anisotropic):
            return posterior.log_density(sample) - self.log_density(sample)
        root = _as_tensor(self.beta, sample.device)[..., None].sqrt()
        scaled = FullParameters(root * posterior.mean, root[..., None] * posterior.cholesky)
        return self.prior.kl(scaled, root * sample).total


@checked
def annealed(prior: Prior, beta: float | int | Finite[Tensor, "..."]) -> Annealed:
    r"""Returns the prior raised to the power β and normalised: the effective prior of a β-VAE.

    .. math:: f_\beta(z) = \frac{p(z)^\beta}{F_\beta}, \qquad F_\beta = \int p(z)^\beta\, dz

    A larger β concentrates the prior at its modes. For densities :math:`\propto \exp(-|z/a|^k)`, such as Gaussians
    (k = 2), this is only a change of scale: a becomes :math:`a\, \beta^{-1/k}`. A Student-t stays a Student-t, with
    degrees of freedom ν′ = β (ν + 1) − 1 and scale :math:`\sqrt{\nu/\nu'}`. Mixtures and sparse priors change
    their form.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        theorem 1.

    Arguments:
        prior: The prior p, one that `log_normaliser` supports.
        beta: β, positive; a tensor broadcasts against the leading axes of z.

    Example:
        >>> from axiswise.distributions import StandardNormal
        >>> narrow = annealed(StandardNormal(), beta=4.0)
        >>> round(narrow.log_density(torch.zeros(1)).exp().item() * math.sqrt(2 * math.pi), 4)  # that of N(0, 1/4)
        2.0
    """
    _check_beta(_as_tensor(beta))
    return Annealed(prior, beta)


@checked
def log_normaliser(
    prior: Prior, beta: float | int | Finite[Tensor, "*b"], latents: Count | None = None
) -> Finite[Tensor, "..."]:
    r"""Returns the logarithm of the integral that normalises an annealed prior, in float64.

    .. math:: \log F_\beta = \log \int p(z)^\beta\, dz

    For Gaussian priors of d latents, :math:`(\beta - 1) \log p(0) - \tfrac d2 \log \beta`. For Student-t priors, with
    ν′ = β (ν + 1) − 1,

    .. math:: \log F_\beta = d \left( \beta \log t_\nu(0) + \tfrac12 \log \nu\pi + \log\Gamma(\tfrac{\nu'}{2})
        - \log\Gamma(\tfrac{\nu' + 1}{2}) \right),

    which is finite only if ν′ > 0. Sparse priors, mixtures of one latent and mixtures that are the product of their
    marginals, as `corners` is, are integrated latent by latent, by an adaptive Gauss–Legendre rule whose relative error
    is that of rounding.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        theorem 1.

    Arguments:
        prior: The prior p: StandardNormal, Anisotropic, StudentT, Sparse, or a Mixture of independent latents.
        beta: β, positive; of any shape. Gradients with respect to it are exact.
        latents: Number of latents, if the prior does not define it.

    Example:
        >>> from axiswise.distributions import StandardNormal
        >>> log_normaliser(StandardNormal(), torch.tensor([1.0, 2.0]), latents=2).exp() * 4 * math.pi
        tensor([12.5664,  1.0000], dtype=torch.float64)
    """
    beta = _as_tensor(beta)
    _check_beta(beta)
    count = _latents(prior, latents)
    match prior:
        case StandardNormal() | Anisotropic():
            device = getattr(getattr(prior, "logits", None), "device", beta.device)  # that of learned logits, if any
            at_mode = prior.log_density(torch.zeros(count, dtype=torch.float64, device=device))
            return (beta - 1.0) * at_mode - 0.5 * count * beta.log()
        case StudentT():
            return count * _student_t(prior.df, beta)
        case Sparse(gamma=0.0 | 1.0):
            one = prior.log_density(torch.zeros(1, dtype=torch.float64, device=beta.device))
            return count * ((beta - 1.0) * one - 0.5 * beta.log())
        case Sparse():
            both = {(0.0, 1.0): 1.0 - prior.gamma, (0.0, prior.scale): prior.gamma}
            return count * _integrated(Components.of(both, beta), beta)
        case Mixture():
            marginals = _independent(prior)
            found = {key: _integrated(Components.of(dict(key), beta), beta) for key in set(marginals)}
            return torch.stack([found[key] for key in marginals]).sum(0)
        case _:
            raise AxiswiseError(
                "The normaliser of an annealed prior is known for StandardNormal, Anisotropic, StudentT, Sparse and "
                f"Mixture. Got {type(prior).__name__}."
            )


def _student_t(df: float, beta: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Log ∫ t_ν(z)^β dz."""
    annealed_df = beta * (df + 1.0) - 1.0
    if bool((annealed_df <= 0.0).any()):
        raise AxiswiseError(
            "A Student-t prior to the power β can be normalised only if β (ν + 1) > 1: otherwise its tails are too "
            f"heavy. Got {(annealed_df.min() + 1.0).item():.6g}, for ν = {df:g} and β = {beta.min().item():g}. Choose "
            f"β above {1.0 / (df + 1.0):.6g}."
        )
    at_mode = math.lgamma(0.5 * (df + 1.0)) - math.lgamma(0.5 * df) - 0.5 * math.log(df * math.pi)
    shape = torch.lgamma(0.5 * annealed_df) - torch.lgamma(0.5 * (annealed_df + 1.0))
    return beta * at_mode + 0.5 * math.log(df * math.pi) + shape


Marginal = tuple[tuple[tuple[float, float], float], ...]
"""One latent's mixture: ((mean, standard deviation), weight) of each component."""


def _independent(prior: Mixture) -> list[Marginal]:
    """The mixtures of the single latents, if the mixture is their product.

    Components of Gaussian mixtures are identifiable, so the product of the marginals is the mixture if and only if its
    components are all combinations of theirs, with the products of their weights.
    """
    means = np.array(prior.means)
    table = prior.variances if isinstance(prior.variances, tuple) else np.full(means.shape, prior.variances)
    weights = [1.0 / len(means)] * len(means) if prior.weights is None else prior.weights
    components: dict[tuple[tuple[float, float], ...], float] = {}
    marginals: list[dict[tuple[float, float], float]] = [{} for _ in range(prior.latents)]
    for weight, row in zip(weights, np.stack([means, np.sqrt(table)], -1).tolist(), strict=True):
        key = tuple((mean, scale) for mean, scale in row)
        components[key] = components.get(key, 0.0) + weight
        for marginal, single in zip(marginals, key, strict=True):
            marginal[single] = marginal.get(single, 0.0) + weight
    product = math.prod(len(marginal) for marginal in marginals) == len(components) and all(
        math.isclose(
            weight, math.prod(marginal[single] for marginal, single in zip(marginals, key, strict=True)), rel_tol=1e-9
        )
        for key, weight in components.items()
    )
    if not product:
        raise AxiswiseError(
            "The normaliser of an annealed Mixture is computed latent by latent, so the mixture must be the product of "
            f"its marginals, as `corners` is. Got {len(components)} components of {prior.latents} latents that depend "
            "on each other. Use a mixture of one latent, or a product."
        )
    return [tuple(sorted(marginal.items())) for marginal in marginals]


class Components(NamedTuple):
    """A mixture of Gaussians on the line."""

    means: Float[Tensor, " c"]
    scales: Float[Tensor, " c"]
    log_weights: Float[Tensor, " c"]

    @staticmethod
    def of(weights: Mapping[tuple[float, float], float], like: Tensor) -> "Components":
        """From weights by (mean, standard deviation), on the device of another tensor."""
        rows = [(mean, scale, math.log(weight)) for (mean, scale), weight in weights.items()]
        return Components(*torch.tensor(rows, dtype=torch.float64, device=like.device).T)

    def log_density(self, z: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """The logarithm of the mixture's density."""
        each = normal_log_density(z[..., None], self.means, 2.0 * self.scales.log())
        return (each + self.log_weights).logsumexp(-1)


def _integrated(mixture: Components, beta: Float[Tensor, "*b"]) -> Float[Tensor, "*b"]:
    """Log ∫ p(z)^β dz of a mixture on the line.

    Panels are bisected until the result converges for every β. Then only the integrand depends on β, so the result can
    be differentiated by it.
    """
    flat = beta.reshape(-1)
    edges = _edges(mixture, flat.detach())
    return _panels(mixture, flat, edges[:-1], edges[1:]).logsumexp(-1).reshape(beta.shape)


def _edges(mixture: Components, beta: Float[Tensor, " b"]) -> Float[Tensor, " e"]:
    """Edges of panels on which a Gauss–Legendre rule integrates the mixture's powers to rounding."""
    # The density is at most the sum of the components' peaks, which is at most their number times its largest value.
    lowest = beta.min()
    reach = mixture.scales.max() * ((2.0 * TAIL + 2.0 * math.log(len(mixture.means)) * lowest) / lowest).sqrt()
    marks = torch.cat([mixture.means, mixture.means - mixture.scales, mixture.means + mixture.scales])
    ends = torch.stack([mixture.means.min() - reach, mixture.means.max() + reach])
    edges = torch.cat([marks, ends]).unique()
    tolerance = CONVERGED * (1.0 + beta[:, None])  # rounding of β log p grows with β
    for _ in range(ROUNDS):
        low, high = edges[:-1], edges[1:]
        middle = 0.5 * (low + high)
        whole = _panels(mixture, beta, low, high)
        bisected = torch.logaddexp(_panels(mixture, beta, low, middle), _panels(mixture, beta, middle, high))
        total = bisected.logsumexp(-1, keepdim=True)
        rough = ((whole - total).exp() - (bisected - total).exp()).abs() > tolerance
        if not bool(rough.any()):
            return torch.cat([edges, middle]).sort().values
        edges = torch.cat([edges, middle[rough.any(0)]]).sort().values
    raise AxiswiseError(
        f"The integral of the mixture to the power β did not converge after {ROUNDS} bisections. Got β from "
        f"{beta.min().item():g} to {beta.max().item():g}, and components at {mixture.means.tolist()}."
    )


def _panels(
    mixture: Components, beta: Float[Tensor, " b"], low: Float[Tensor, " e"], high: Float[Tensor, " e"]
) -> Float[Tensor, "b e"]:
    """Log ∫ p(z)^β dz over each panel, by the Gauss–Legendre rule."""
    nodes, weights = (torch.from_numpy(part).to(low) for part in np.polynomial.legendre.leggauss(NODES))
    half = 0.5 * (high - low)[:, None]
    log_density = mixture.log_density(low[:, None] + half * (1.0 + nodes))
    return (beta[:, None, None] * log_density + (half * weights).log()).logsumexp(-1)


def _as_tensor(beta: float | int | Tensor, device: torch.device | None = None) -> Float[Tensor, "..."]:
    return torch.as_tensor(beta, dtype=torch.float64, device=device)


def _check_beta(beta: Float[Tensor, "..."]) -> None:
    if not bool(((beta > 0.0) & beta.isfinite()).all()):
        raise AxiswiseError(f"`beta` must be positive and finite. Got {beta.tolist()}.")


def _latents(prior: Prior, latents: int | None) -> int:
    own: int | None = getattr(prior, "latents", None)
    number = latents if own is None else own
    if number is None:
        raise AxiswiseError(
            f"A {type(prior).__name__} prior does not define the number of latents. Got no `latents`. Give their "
            "number."
        )
    if None not in (own, latents) and own != latents:
        raise AxiswiseError(
            f"The prior {type(prior).__name__} is one of {own} latents. Got `latents` = {latents}. Give the same "
            "number, or leave it out."
        )
    return number
