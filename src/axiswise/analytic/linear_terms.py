"""The terms of a linear β-VAE's objective and its inference errors, exactly."""

from functools import cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.analytic._checks import Scalar, as_scalar, positive
from axiswise.analytic.linear_gaussian import LinearGaussian, LinearPosterior, LinearVAE, mean_log_likelihood
from axiswise.errors import AxiswiseError
from axiswise.numerics import assignment
from axiswise.numerics.gaussian import LOG_TWO_PI
from axiswise.shapes import Finite, Float, Int, Shaped, Tensor

ENUMERATED_UP_TO = 5  # latents: 5! · 2⁵ = 3,840 signed permutations
UNCORRELATED = 1e-9  # correlation of two latents' means below which they count as independent


class LinearTerms(NamedTuple):
    """The terms of a linear β-VAE on linear-Gaussian data: means over the data, constants included, in nats.

    Example:
        >>> from axiswise.analytic import beta_vae_optimum
        >>> model = LinearGaussian(torch.eye(3, 2))
        >>> round(terms(model, beta_vae_optimum(model.covariance, latents=2, beta=1)).kl.item(), 4)
        0.6931
    """

    reconstruction: Float[Tensor, "..."]
    """E log p(x | z), the reconstruction objective."""
    kl: Float[Tensor, "..."]
    """E KL(q(z | x) ‖ p(z)), the conditional-independence loss."""
    elbo: Float[Tensor, "..."]
    """Reconstruction − KL."""
    objective: Float[Tensor, "..."]
    """Reconstruction − β KL, which training maximises."""
    log_likelihood: Float[Tensor, "..."]
    """E log p(x) under the decoder: the ELBO plus the model inference error."""
    mie: Float[Tensor, "..."]
    """Model inference error E KL(q(z | x) ‖ p(z | x))."""
    tie: Float[Tensor, "..."]
    """True inference error E KL(q(z | x) ‖ p(s | x)), the smallest over signed permutations of the latents."""
    tie_branches: Float[Tensor, "... b"]
    """The true inference error of every signed permutation, in the order of `signed_permutations`; b = 0 if omitted."""


@checked
def terms(model: LinearGaussian, vae: LinearVAE, beta: Scalar = 1.0) -> LinearTerms:
    r"""Integrates every term of the β-objective over linear-Gaussian data.

    With the mean variances :math:`v_j = e^{b^\sigma_j + \frac12 [W^\sigma \Sigma_x W^{\sigma\top}]_{jj}}`,

    .. math:: \mathbb E \log p(x|z) &= -\tfrac{N}{2} \log 2\pi\sigma^2 - \tfrac{1}{2\sigma^2} \Big(
        \mathrm{tr}\big[ (D W^\mu - I) \Sigma_x (D W^\mu - I)^\top \big] + \|D b^\mu + b^D\|^2
        + \sum_j [D^\top D]_{jj} v_j \Big), \\
        \mathrm{KL} &= \tfrac12 \Big( \mathrm{tr}\, W^\mu \Sigma_x W^{\mu\top} + \|b^\mu\|^2
        + \sum_j ( v_j - b^\sigma_j - 1 ) \Big),

    and for a posterior :math:`N(Fx + f, E)`, that of the decoder (MIE) or of the true mixing (TIE),

    .. math:: \tfrac12 \Big( \sum_j E^{-1}_{jj} v_j - \sum_j b^\sigma_j + \log\det E
        + \mathrm{tr}\big[ (F - W^\mu)^\top E^{-1} (F - W^\mu) \Sigma_x \big]
        + (f - b^\mu)^\top E^{-1} (f - b^\mu) - k \Big).

    Permuting or flipping latents does not change the objective, but it changes the TIE, which compares each latent with
    one source. There is a branch for each of the :math:`k!\,2^k` signed permutations of the latents, and `tie` is the
    smallest. Up to five latents, all branches are evaluated. For more, the smallest is found by assignment if the
    latents' means are uncorrelated, as they are at the optimum: then the error is a sum of one term for each pair of a
    latent and a source. If they are correlated it is NaN. It is also NaN if the VAE has another number of latents than
    the data have sources.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eqs 2–6, 21 and 25–27, which
        are those of σ² = 1 and, in eq 21, without the constants :math:`\beta k/2 - \tfrac N2 \log 2\pi`.

    Arguments:
        model: The data.
        vae: The linear VAE; its leading axes broadcast against those of the data.
        beta: Weight β of the divergence in `objective`, the only term that depends on it.

    Example:
        >>> from axiswise.analytic import beta_vae_optimum
        >>> model = LinearGaussian(torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 0.0]]))
        >>> found = terms(model, beta_vae_optimum(model.covariance, latents=2, beta=1))
        >>> round(found.elbo.item(), 4), bool(found.mie.abs() < 1e-14), bool(found.tie.abs() < 1e-14)
        (-5.4081, True, True)
    """
    covariance = model.covariance
    if vae.decoder.shape[-2] != covariance.shape[-1]:
        raise AxiswiseError(
            f"`vae` must have the {covariance.shape[-1]} observed values of the data. Got {vae.decoder.shape[-2]}."
        )
    weight = positive("beta", beta, covariance)
    reconstruction, kl = reconstruction_and_kl(covariance, vae)
    bias = _filled(vae.decoder_bias, vae.decoder[..., 0])
    log_likelihood = mean_log_likelihood(vae.decoder, vae.noise, covariance + _outer(bias, bias))
    mie = _inference_errors(covariance, vae, vae.posterior, bias, _as_they_are(vae))[..., 0]
    branches, tie = _true_errors(model, covariance, vae)
    shape = np.broadcast_shapes(log_likelihood.shape, tie.shape, weight.shape)
    return LinearTerms(
        reconstruction=reconstruction.expand(shape),
        kl=kl.expand(shape),
        elbo=(reconstruction - kl).expand(shape),
        objective=(reconstruction - weight * kl).expand(shape),
        log_likelihood=log_likelihood.expand(shape),
        mie=mie.expand(shape),
        tie=tie.expand(shape),
        tie_branches=branches.expand(*shape, branches.shape[-1]),
    )


@checked
def beta_objective(covariance: Finite[Tensor, "... x x"], vae: LinearVAE, beta: Scalar) -> Finite[Tensor, "..."]:
    r"""Returns the β-objective of a linear VAE on data of mean 0 and covariance Σ, which training maximises.

    .. math:: \mathbb E \log p(x|z) - \beta\, \mathbb E\, \mathrm{KL}(q(z|x) \,\|\, p(z)), \qquad x \sim N(0, \Sigma)

    If the variances do not depend on x, it holds for any data of mean 0 and covariance Σ, Gaussian or not. It is
    differentiable in all arguments.

    References:
        Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019, eq 21, with its constants.

    Arguments:
        covariance: Covariance Σ of the data.
        vae: The linear VAE.
        beta: Weight β of the divergence.

    Example:
        >>> vae = LinearVAE(torch.zeros(2, 1), torch.zeros(1, 2), torch.ones(1))
        >>> beta_objective(torch.eye(2), vae, beta=3).item()
        -2.8378...
    """
    reconstruction, kl = reconstruction_and_kl(covariance, vae)
    return reconstruction - positive("beta", beta, covariance) * kl


@checked
def reconstruction_and_kl(
    covariance: Finite[Tensor, "... x x"], vae: LinearVAE
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."]]:
    """Returns the two terms of the objective, as defined in :func:`terms`, on data of mean 0 and a given covariance.

    Arguments:
        covariance: Covariance of the data.
        vae: The linear VAE.

    Example:
        >>> vae = LinearVAE(torch.zeros(2, 1), torch.zeros(1, 2), torch.ones(1))
        >>> [round(term.item(), 4) for term in reconstruction_and_kl(torch.eye(2), vae)]
        [-2.8379, 0.0]
    """
    products = vae.decoder.mT @ vae.decoder
    spread = vae.encoder @ covariance
    means = spread @ vae.encoder.mT
    variances = vae.mean_variances(covariance)
    shift = _filled(vae.encoder_bias, vae.encoder[..., 0])
    offset = (vae.decoder @ shift[..., None])[..., 0] + _filled(vae.decoder_bias, vae.decoder[..., 0])
    # ‖(D Wμ − I) x‖² expanded, so that no tensor is larger than Wμ Σ.
    error = _trace(covariance) - 2.0 * (vae.decoder.mT * spread).sum((-2, -1)) + (products * means).sum((-2, -1))
    error = error + offset.square().sum(-1) + (_diagonal(products) * variances).sum(-1)
    kl = _trace(means) + shift.square().sum(-1) + (variances - vae.variances.log() - 1.0).sum(-1)
    noise = as_scalar(vae.noise, covariance)
    constant = covariance.shape[-1] * (LOG_TWO_PI + noise.log())
    return -0.5 * (constant + error / noise), 0.5 * kl


@checked
def signed_permutations(size: int) -> Float[Tensor, "b k k"]:
    r"""All matrices that permute and flip latents: entry (i, j) is the sign with which latent j becomes source i.

    Permutations vary slowest, in lexical order, and signs fastest, + before −: the first is the identity.

    .. math:: \{ P S : P \text{ a permutation matrix},\ S = \mathrm{diag}(\pm 1, \dots, \pm 1) \}

    There are :math:`d!\, 2^d` of them.

    References:
        The hyperoctahedral group: Humphreys, *Reflection groups and Coxeter groups*, 1990, section 2.10.

    Arguments:
        size: Number of latents, at most 5.

    Example:
        >>> signed_permutations(2).shape, signed_permutations(2)[1].int().tolist()
        (torch.Size([8, 2, 2]), [[1, 0], [0, -1]])
    """
    if not 1 <= size <= ENUMERATED_UP_TO:
        raise AxiswiseError(f"`size` must lie between 1 and {ENUMERATED_UP_TO}: there are k! 2^k of them. Got {size}.")
    placed, signs = _every(size)
    return (placed[:, None] * signs[:, None, :]).flatten(0, 1)


class _Names(NamedTuple):
    """Signed permutations of latents: every permutation matrix with every choice of signs."""

    placed: Float[Tensor, "... o k k"]
    signs: Float[Tensor, "... s k"]


@cache
def _every(size: int) -> _Names:
    orders = torch.tensor(list(permutations(range(size))))
    signs = torch.tensor(list(product((1.0, -1.0), repeat=size)), dtype=torch.float64)
    return _Names(_placed(orders), signs)


def _placed(order: Int[Tensor, "... k"]) -> Float[Tensor, "... k k"]:
    """Permutation matrices whose column j has its one in row order[j]."""
    return torch.nn.functional.one_hot(order, order.shape[-1]).mT.to(torch.float64)


def _as_they_are(vae: LinearVAE) -> _Names:
    identity = torch.eye(vae.latents, dtype=torch.float64, device=vae.decoder.device)
    return _Names(identity[None], torch.ones_like(identity[:1]))


def _inference_errors(
    covariance: Float[Tensor, "... x x"],
    vae: LinearVAE,
    target: LinearPosterior,
    bias: Float[Tensor, "... x"],
    names: _Names,
) -> Float[Tensor, "... b"]:
    r"""E KL(N(P Wμ x + P bμ, P diag(σ²) Pᵀ) ‖ N(F (x − b), E)) for every signed permutation P, permutations slowest.

    With the second moments S of q's means, T of the target's and C between them, the quadratic form is
    :math:`\mathrm{tr}\, E^{-1} (P S P^\top - 2 P C + T)`. A permutation with all its signs is one matrix product.
    """
    precision = torch.linalg.inv(target.covariance)
    shift, other = _filled(vae.encoder_bias, vae.encoder[..., 0]), -(target.weights @ bias[..., None])[..., 0]
    means = vae.encoder @ covariance @ vae.encoder.mT + _outer(shift, shift)
    cross = vae.encoder @ covariance @ target.weights.mT + _outer(shift, other)
    others = target.weights @ covariance @ target.weights.mT + _outer(other, other)
    constant = (precision * others).sum((-2, -1)) - torch.linalg.slogdet(precision)[1]
    constant = constant - vae.variances.log().sum(-1) - vae.latents
    renamed = names.placed.mT @ precision[..., None, :, :] @ names.placed
    unsigned = (_diagonal(renamed) * vae.mean_variances(covariance)[..., None, :]).sum(-1)
    signed = (renamed * means[..., None, :, :]).flatten(-2) @ _outer(names.signs, names.signs).flatten(-2).mT
    linear = _diagonal((cross @ precision)[..., None, :, :] @ names.placed) @ names.signs.mT
    return (0.5 * (signed - 2.0 * linear + unsigned[..., None] + constant[..., None, None])).flatten(-2)


def _true_errors(
    model: LinearGaussian, covariance: Float[Tensor, "... x x"], vae: LinearVAE
) -> tuple[Float[Tensor, "... b"], Float[Tensor, "..."]]:
    """The TIE of every signed permutation, if they can be listed, and the smallest."""
    truth, bias = model.posterior, torch.zeros_like(covariance[..., 0])
    leading = np.broadcast_shapes(covariance.shape[:-2], vae.encoder.shape[:-2], vae.variances.shape[:-1])
    none = covariance.new_empty((*leading, 0))
    if vae.latents != model.mixing.shape[-1]:
        return none, covariance.new_full(leading, torch.nan)
    if vae.latents <= ENUMERATED_UP_TO:
        names = _Names(*(part.to(covariance.device) for part in _every(vae.latents)))
        branches = _inference_errors(covariance, vae, truth, bias, names)
        return branches, branches.amin(-1)
    names, separates = _assigned(covariance, vae, truth)
    least = _inference_errors(covariance, vae, truth, bias, names)[..., 0]
    return none, torch.where(separates, least, torch.nan)


@torch.no_grad()
def _assigned(
    covariance: Float[Tensor, "... x x"], vae: LinearVAE, truth: LinearPosterior
) -> tuple[_Names, Shaped[Tensor, "..."]]:
    """The signed permutation of smallest TIE if the latents' means are uncorrelated, and whether they are.

    Then Sᵢⱼ = 0 between latents, the signs are free, and a latent j assigned to source i costs E⁻¹ᵢᵢ (S_jj + v_j) − 2
    |G_ji| with G = C E⁻¹, independently of the others.
    """
    precision = torch.linalg.inv(truth.covariance)
    shift = _filled(vae.encoder_bias, vae.encoder[..., 0])
    means = vae.encoder @ covariance @ vae.encoder.mT + _outer(shift, shift)
    pull = vae.encoder @ covariance @ truth.weights.mT @ precision
    each = _diagonal(means) + vae.mean_variances(covariance)
    gain = 2.0 * pull.abs() - _outer(each, _diagonal(precision))
    columns = torch.from_numpy(assignment(gain.cpu().numpy()).columns).to(gain.device)
    signs = pull.expand_as(gain).gather(-1, columns[..., None])[..., 0].sign()
    scale = _diagonal(means).sqrt()
    off = (means - torch.diag_embed(_diagonal(means))).abs()
    separates = (off <= UNCORRELATED * _outer(scale, scale)).all(-1).all(-1)
    names = _Names(_placed(columns)[..., None, :, :], torch.where(signs == 0.0, 1.0, signs)[..., None, :])
    return names, separates


def _filled(bias: Float[Tensor, "... d"] | None, like: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
    return torch.zeros_like(like) if bias is None else bias


def _outer(first: Float[Tensor, "... d"], second: Float[Tensor, "... e"]) -> Float[Tensor, "... d e"]:
    return first[..., :, None] * second[..., None, :]


def _diagonal(matrix: Float[Tensor, "... d d"]) -> Float[Tensor, "... d"]:
    return matrix.diagonal(dim1=-2, dim2=-1)


def _trace(matrix: Float[Tensor, "... d d"]) -> Float[Tensor, "..."]:
    return _diagonal(matrix).sum(-1)
