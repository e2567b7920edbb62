r"""The Hessian of log p(x | z) by the latents: what the decoder's slope makes of it, and what its curvature adds."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch.func import jvp, vmap

from axiswise._arguments import checked
from axiswise.distributions import Bernoulli, Gaussian, LearnedGaussian, Likelihood
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry.gram import SAMPLES_AT_A_TIME, as_gram
from axiswise.geometry.jacobian import ByProducts, differentiable, jacobian, passes
from axiswise.shapes import Finite, Float, Tensor

Parametrisation = Literal["natural", "mean"]

PASS_BYTES = 1 << 24  # of weights that second derivatives are multiplied by at a time


class Hessian(NamedTuple):
    """The two terms of the Hessian of log p(x | z), which add up to it."""

    gauss_newton: Float[Tensor, "... n z z"]
    """−DᵀA²D, minus the Fisher information of the latents."""
    residual: Float[Tensor, "... n z z"]
    """What the decoder's second derivative adds, in proportion to x − E[x | z]."""


class ResidualShare(NamedTuple):
    """How much of the Hessian the Gauss–Newton form leaves out."""

    score: Finite[Tensor, "..."]
    """Share of the residual term: 0 where it vanishes, 1 where there is nothing else."""
    gauss_newton: Float[Tensor, "..."]
    """Mean Frobenius norm of the Gauss–Newton term."""
    residual: Float[Tensor, "..."]
    """Mean Frobenius norm of the residual term."""


class Metrics(NamedTuple):
    """What a decoder does to small steps of its latents, in two units, at each point."""

    gram: Float[Tensor, "... n z z"]
    """JᵀJ, in units of the observation: see :func:`gram`."""
    information: Float[Tensor, "... n z z"]
    """Jᵀ Var[x | z]⁻¹ J, in nats: see :func:`fisher_information`."""


@checked
def metrics(
    decode: Callable[[Tensor], Tensor],
    z: Finite[Tensor, "... n z"],
    likelihood: Likelihood,
    *,
    chunk: int | None = None,
) -> Metrics:
    r"""Computes JᵀJ and the Fisher information of the latents in one pass, for any number of points.

    .. math:: G = J^\top J, \qquad F = J^\top \mathrm{Var}[x | z]^{-1} J

    Jacobians, of which both are made, are the cost of either, so that those of a few points at a time are used for both
    and not stored.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 6 to 8.

    Arguments:
        decode: E[x | z] at points (…, n, z), for any n; rows must not depend on each other.
        z: The points, any leading axes (members).
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        chunk: How many points of each member to work on at a time; as many as suit the device if None.

    Example:
        >>> matrix = torch.tensor([[3.0, 0.0], [4.0, 1.0]])
        >>> found = metrics(lambda z: z @ matrix.T, torch.zeros(1, 2), Gaussian(2.0))
        >>> found.gram.tolist(), found.information.tolist()
        ([[[25.0, 4.0], [4.0, 1.0]]], [[[6.25, 1.0], [1.0, 0.25]]])
    """
    _check(likelihood)
    parts = [
        (as_gram(each.jacobians), fisher_information(each.jacobians, likelihood, each.decoded))
        for each in passes(decode, z, chunk=chunk)
    ]
    return Metrics(*(torch.cat(column, -3) for column in zip(*parts, strict=True)))


@checked
def fisher_information(
    jacobians: Finite[Tensor, "... n x z"], likelihood: Likelihood, mean: Finite[Tensor, "..."] | None = None
) -> Float[Tensor, "... n z z"]:
    r"""Computes what an observation tells about the latents, to first order of the decoder.

    .. math:: D^\top A^2 D = J^\top \mathrm{Var}[x | z]^{-1} J,
        \qquad J = \frac{\partial\, \mathbb E[x | z]}{\partial z},

    where D is the Jacobian of the natural parameters and :math:`A^2 = \mathrm{Var}[x | z]`. Information does not depend
    on the parametrisation, so that the Jacobians of the mean, which are what people look at, give the same. For
    Gaussian pixels of scale s it is :math:`J^\top J / s^2`. A Bernoulli pixel that is saturated to the last digit has
    neither variance nor slope and tells nothing.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equations 6 to 8.

    Arguments:
        jacobians: Jacobians of E[x | z], any leading axes (members) before samples, pixels and latents.
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        mean: E[x | z] at the same points, (…, n) and the shape of an observation; Gaussian pixels do not need it.

    Example:
        >>> fisher_information(torch.tensor([[[3.0, 0.0], [4.0, 1.0]]]), Gaussian(2.0))
        tensor([[[6.2500, 1.0000],
                 [1.0000, 0.2500]]], dtype=torch.float64)
    """
    if jacobians.ndim < 3 or 0 in jacobians.shape:
        raise AxiswiseError(
            f"`jacobians` must have axes (…, n, x, z), none of them empty. Got shape {tuple(jacobians.shape)}."
        )
    *points, pixels, latents = jacobians.shape
    if mean is None:
        if not isinstance(likelihood, Gaussian | LearnedGaussian):
            _check(likelihood)
            raise AxiswiseError(
                "`mean` must be given where the variance of a pixel depends on it. Got None with "
                f"{type(likelihood).__name__}. Pass E[x | z] at the points of `jacobians`."
            )
        mean = jacobians[..., 0]
    elif mean.shape[: len(points)] != torch.Size(points) or mean.numel() != math.prod(points) * pixels:
        raise AxiswiseError(
            f"`mean` must have {pixels} pixels at each of the points {tuple(points)} of `jacobians`. "
            f"Got shape {tuple(mean.shape)}."
        )
    variance = _variance_of_mean(likelihood, mean.reshape(*points, pixels).double()).flatten(0, -2)
    # A few samples at a time, to bound the memory of double precision.
    parts = (each.split(SAMPLES_AT_A_TIME) for each in (jacobians.flatten(0, -3), variance))
    products = [_information(part.double(), own) for part, own in zip(*parts, strict=True)]
    return torch.cat(products).reshape(*points, latents, latents)


@checked
def hessian(
    decode: Callable[[Tensor], Tensor],
    codes: Finite[Tensor, "... n z"],
    x: Finite[Tensor, "n ..."],
    likelihood: Likelihood,
    *,
    parametrisation: Parametrisation = "mean",
) -> Hessian:
    r"""Differentiates log p(x | z) twice by the latents, and tells its two terms apart.

    With natural parameters :math:`\theta(z)`, of which :math:`\mu = \mathbb E[x | \theta]` is the mean and
    :math:`V = \mathrm{Var}[x | \theta]` the variance of each pixel,

    .. math:: \nabla_z^2 \log p(x | z) = -D^\top V D + \sum_i (x_i - \mu_i) \nabla_z^2 \theta_i,
        \qquad D = \frac{\partial\theta}{\partial z},

    and with the same terms in means, whose Jacobian is :math:`J = V D`,

    .. math:: -J^\top V^{-1} J + \sum_i \frac{x_i - \mu_i}{V_i}
        \left( \nabla_z^2 \mu_i - \frac{V_i'}{V_i} \nabla_z \mu_i \nabla_z \mu_i^\top \right),
        \qquad V' = \frac{dV}{d\mu}.

    The second term, the same in both, vanishes where the reconstruction is exact, and almost everywhere if the natural
    parameters are piecewise linear in z, as with ReLU; for smooth decoders, such as tanh, it is of the order of x − μ.
    For Gaussian pixels of scale s the natural parameter is :math:`\mu / s^2`. Saturated Bernoulli means lose the digits
    of V: give logits, with "natural", where that matters.

    Takes a forward-mode derivative for each pair of latents, and memory for as many as there are latents.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 6 (in
        natural parameters; its Gaussian case, A = 1/σ, is in means).

    Arguments:
        decode: Maps points (…, n, z) to parameters ``(…, n, *shape)``, for any n; rows must not depend on each other.
        codes: The points, any leading axes (members).
        x: The observation at each point, shared by members.
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        parametrisation: What `decode` gives: "mean", E[x | z], or "natural" parameters (logits, mean / s²).

    Example:
        >>> found = hessian(lambda z: z**2, torch.tensor([[3.0]]), torch.tensor([[10.0]]), Gaussian())
        >>> found.gauss_newton.item(), found.residual.item()
        (-36.0, 2.0)
    """
    if parametrisation not in get_args(Parametrisation):
        raise AxiswiseError(f'`parametrisation` must be "natural" or "mean". Got {parametrisation!r}.')
    _check(likelihood)
    jacobians = jacobian(decode, codes)
    *points, pixels, _ = jacobians.shape
    if x.shape[0] != codes.shape[-2] or x[0].numel() != pixels:
        raise AxiswiseError(
            f"`x` must hold an observation of {pixels} pixels for each of the {codes.shape[-2]} points of `codes`. "
            f"Got shape {tuple(x.shape)}."
        )
    with torch.no_grad():
        decoded = decode(codes).reshape(*points, pixels).double()
    error = x.reshape(-1, pixels).double() - _mean(likelihood, decoded, parametrisation)
    if parametrisation == "natural":
        gauss_newton = -_product(jacobians, _variance_of_natural(likelihood, decoded))
        return Hessian(gauss_newton, second_derivatives(decode, codes, error))
    variance = _variance_of_mean(likelihood, decoded)
    slope = torch.where(error == 0.0, 0.0, error / variance)
    residual = second_derivatives(decode, codes, slope)
    if isinstance(likelihood, Bernoulli):  # the variance of the others does not depend on the mean
        residual = residual - _product(jacobians, torch.where(slope == 0.0, 0.0, slope * (1 - 2 * decoded) / variance))
    return Hessian(-_information(jacobians.double(), variance), residual)


@checked
def residual_share(
    decode: Callable[[Tensor], Tensor],
    codes: Finite[Tensor, "... n z"],
    x: Finite[Tensor, "n ..."],
    likelihood: Likelihood,
    *,
    points: int = 100,
) -> ResidualShare:
    r"""Measures how much of the Hessian of log p(x | z) is lost by its Gauss–Newton form.

    .. math:: \frac{\sum_n \lVert R_n \rVert_F}{\sum_n \lVert G_n \rVert_F + \lVert R_n \rVert_F},

    with G the Gauss–Newton and R the residual term of :func:`hessian` at a member's own codes. The law of the encoder's
    variances and the orthogonality of the decoder's columns are derived for R = 0.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, equation 6 and
        appendix A.2, which argue that R is small.

    Arguments:
        decode: E[x | z] at points (…, n, z).
        codes: Posterior means.
        x: The observations they encode.
        likelihood: Gaussian, LearnedGaussian or Bernoulli.
        points: How many of the points to use, from the first: second derivatives are costly.

    Example:
        >>> residual_share(lambda z: z**2, torch.tensor([[3.0]]), torch.tensor([[10.0]]), Gaussian()).score
        tensor(0.0526, dtype=torch.float64)
    """
    if points < 1:
        raise AxiswiseError(f"`points` must be at least 1. Got {points}.")
    found = hessian(decode, codes[..., :points, :], x[:points], likelihood)
    gauss_newton, residual = (torch.linalg.matrix_norm(term).mean(-1) for term in found)
    whole = gauss_newton + residual
    return ResidualShare(torch.where(whole == 0.0, 0.0, residual / whole), gauss_newton, residual)


@checked
def second_derivatives(
    decode: Callable[[Tensor], Tensor], z: Finite[Tensor, "... n z"], weights: Finite[Tensor, "..."]
) -> Float[Tensor, "... n z z"]:
    r"""Sums the second derivatives of a decoder's outputs, weighted, at each point.

    .. math:: S_{kj}(\mathbf z) = \sum_i w_{ij} \frac{\partial^2 \mathrm{Dec}_i(\mathbf z)}{\partial z_k \partial z_j}

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, the terms of eq 6
        that a linear decoder does not have.

    Arguments:
        decode: Maps points (…, n, z) to outputs ``(…, n, *shape)``, for any n; rows must not depend on each other.
        z: The points, any leading axes (members).
        weights: (…, n, x), or (…, n, x, z) where they depend on j.

    Example:
        >>> second_derivatives(lambda z: z.prod(-1, keepdim=True), torch.tensor([[2.0, 5.0]]), torch.ones(1, 1))
        tensor([[[0., 1.],
                 [1., 0.]]], dtype=torch.float64)
    """
    z = z.detach()
    weights = weights.double()
    if weights.shape[: z.ndim - 1] != z.shape[:-1] or weights.ndim not in (z.ndim, z.ndim + 1):
        raise AxiswiseError(
            f"`weights` must have axes (…, n, x), or (…, n, x, z), of the points of `z`, {tuple(z.shape)}. "
            f"Got shape {tuple(weights.shape)}."
        )
    pixels = decode(z[..., :1, :]).numel() // max(1, math.prod(z.shape[:-2]))
    if weights.shape[z.ndim - 1] != pixels:
        raise AxiswiseError(
            f"`weights` must have the {pixels} pixels that `decode` gives. Got {weights.shape[z.ndim - 1]}."
        )
    weights = weights if weights.ndim > z.ndim else weights[..., None].expand(*weights.shape, z.shape[-1])
    row = math.prod(z.shape[:-2]) * math.prod(weights.shape[-2:]) * 8
    chunk = max(1, PASS_BYTES // row)
    with torch.no_grad():
        parts = [
            _contract(decode, points, own)
            for points, own in zip(z.split(chunk, -2), weights.split(chunk, -3), strict=True)
        ]
    return torch.cat(parts, -3)


def _contract(
    decode: Callable[[Tensor], Tensor], z: Float[Tensor, "... n z"], weights: Float[Tensor, "... n x z"]
) -> Float[Tensor, "... n z z"]:
    """Row by row of the result: forward mode over forward mode, which needs nothing of the decoder but a derivative."""
    axes = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)

    def summed(outer: Tensor, inner: Tensor, weight: Tensor) -> Tensor:
        def slope(point: Tensor) -> Tensor:
            return jvp(decode, (point,), (inner.expand_as(point),))[1]

        second = jvp(slope, (z,), (outer.expand_as(z),))[1]
        return (second.reshape(weight.shape).double() * weight).sum(-1)

    with differentiable(), ByProducts():
        rows = [vmap(summed, in_dims=(None, 0, -1), out_dims=-1)(outer, axes, weights) for outer in axes]
    return torch.stack(rows, -2)


def _information(jacobians: Float[Tensor, "... x z"], variance: Float[Tensor, "... x"]) -> Float[Tensor, "... z z"]:
    """Jᵀ V⁻¹ J, to which a pixel without variance and slope adds nothing."""
    scaled = torch.where(jacobians == 0.0, 0.0, jacobians / variance.sqrt()[..., None])
    return scaled.mT @ scaled


def _product(jacobians: Float[Tensor, "... x z"], weights: Float[Tensor, "... x"]) -> Float[Tensor, "... z z"]:
    """Jᵀ diag(w) J."""
    jacobians = jacobians.double()
    return (jacobians * weights[..., None]).mT @ jacobians


def _mean(likelihood: Likelihood, decoded: Tensor, parametrisation: Parametrisation) -> Tensor:
    if parametrisation == "mean":
        return decoded
    return decoded.sigmoid() if isinstance(likelihood, Bernoulli) else decoded * _variance_of_mean(likelihood, decoded)


def _variance_of_natural(likelihood: Likelihood, natural: Tensor) -> Tensor:
    return (
        likelihood.curvature(natural) if isinstance(likelihood, Bernoulli) else _variance_of_mean(likelihood, natural)
    )


def _variance_of_mean(likelihood: Likelihood, mean: Tensor) -> Tensor:
    """Var[x | z] of each pixel."""
    if isinstance(likelihood, Bernoulli):
        return mean * (1.0 - mean)
    _check(likelihood)
    return likelihood.curvature(mean).reciprocal().double()  # pyright: ignore[reportAttributeAccessIssue] (checked)


def _check(likelihood: Likelihood) -> None:
    if not isinstance(likelihood, Gaussian | LearnedGaussian | Bernoulli):
        raise NotDefined(
            "`likelihood` must be Gaussian, LearnedGaussian or Bernoulli, whose variance follows from the mean. "
            f"Got {type(likelihood).__name__}."
        )
