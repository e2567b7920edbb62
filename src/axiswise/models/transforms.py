"""Changes of a model's latent coordinates: the same model, with its latents scaled or rotated.

A model is a pair (encode, decode) of callables, such as ``(model.encode, model.decode)`` of ``model = population[i]``.
The encoder's posteriors are transformed to the new latents, and the decoder undoes the change first, so reconstructions
do not change. Weights do not change either, and those of modules, or of the modules whose methods these are, stay
registered in the result.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import nn

from axiswise._arguments import checked
from axiswise.distributions import DeterministicParameters, DiagonalParameters, FullParameters, Parameters
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor

EncoderDecoder = tuple[Callable[..., Any], Callable[..., Any] | None]
"""A model: its encoder, x ↦ the posterior's named tuple, and its decoder, from z, or None if there is no decoder."""


class Transformed(NamedTuple):
    """A model in other latent coordinates, as ordinary modules; the decoder is None if the model has none.

    Example:
        >>> encode = lambda x: DeterministicParameters(x)
        >>> scale_latents((encode, None), beta=4).decoder is None
        True
    """

    encoder: nn.Module
    decoder: nn.Module | None


@checked
def scale_latents(model: EncoderDecoder, beta: float | int | Finite[Tensor, " z"]) -> Transformed:
    r"""Multiplies the latents of a model by √β: the effect of β on a Gaussian VAE, besides overlap of encodings.

    .. math:: \mu'(x) = \sqrt\beta\, \mu(x), \qquad S'(x) = \beta\, S(x), \qquad
        p'(x | z) = p\!\left(x \,\middle|\, z / \sqrt\beta\right)

    With a Gaussian prior the β-VAE's objective at the model is, up to a constant, the ELBO plus
    :math:`\frac{\beta - 1}{2} \log |S'(x)|` at the transformed one: the objective `EntropyRegularised`. With one β for
    each latent this whitens: ``scale_latents(model, 1 / variances)`` turns an `Anisotropic` prior of those
    variances into the standard normal.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        corollary 1.

    Arguments:
        model: Encoder and decoder. The encoder returns a posterior's named tuple, any leading axes; the decoder's
            further arguments, such as ``raw=True``, are passed on.
        beta: Square of the factor, positive: one for all latents, or one for each.

    Example:
        >>> encode = lambda x: DiagonalParameters(x, torch.zeros_like(x))
        >>> scaled = scale_latents((encode, lambda z: z + 1.0), beta=4)
        >>> q = scaled.encoder(torch.ones(1, 2))
        >>> q.mean.tolist(), q.variance.tolist(), scaled.decoder(q.mean).tolist()
        ([[2.0, 2.0]], [[4.0, 4.0]], [[2.0, 2.0]])
    """
    factors = torch.as_tensor(beta, dtype=None if isinstance(beta, Tensor) else torch.float64)
    if not bool(((factors > 0.0) & factors.isfinite()).all()):
        raise AxiswiseError(
            f"`beta` must be positive and finite, one number or one for each latent. Got {factors.tolist()}. It is the "
            "square of the factor that latents are multiplied by."
        )
    encode, decode = model
    return Transformed(
        ChangedEncoder(encode, partial(_scaled, factors)),
        None if decode is None else ChangedDecoder(decode, partial(_unscaled, factors)),
    )


@checked
def rotate_latents(
    model: EncoderDecoder, rotation: Float[Tensor, "z z"], posterior: Literal["full", "diagonal"] = "full"
) -> Transformed:
    r"""Rotates the latents of a model.

    .. math:: \mu'(x) = R\, \mu(x), \qquad S'(x) = R\, S(x) R^\top, \qquad p'(x | z) = p(x | R^\top z)

    With a rotationally symmetric prior, likelihood, ELBO and the β-VAE's objective do not change. But S′ is not
    diagonal in general, even if S is, and a VAE with a diagonal posterior cannot represent it. "diagonal" cuts S′ to
    its diagonal, the marginal variances. The objective then changes unless S is a multiple of the identity or R
    permutes the axes: this is what aligns a VAE's latents with its axes.

    The Cholesky factor of S′ comes from a QR decomposition of :math:`(R L)^\top`, which is twice as accurate, in
    digits, as factoring S′ itself.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        theorem 2; Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR
        2019, equations 8 and 9.

    Arguments:
        model: Encoder and decoder, as for `scale_latents`.
        rotation: R, any orthogonal matrix: reflections and permutations too.
        posterior: "full" keeps all of S′, "diagonal" its diagonal only. Deterministic codes are rotated, and stay so.

    Example:
        >>> encode = lambda x: DiagonalParameters(x, torch.tensor([[0.0, 2.0]]).log1p())
        >>> quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]])
        >>> turned = rotate_latents((encode, lambda z: z), quarter)
        >>> q = turned.encoder(torch.tensor([[1.0, 0.0]]))
        >>> q.mean.tolist(), turned.decoder(q.mean).tolist(), [round(v, 4) for v in q.variance[0].tolist()]
        ([[0.0, 1.0]], [[1.0, 0.0]], [3.0, 1.0])
    """
    if posterior not in ("full", "diagonal"):
        raise AxiswiseError(f'`posterior` must be "full" or "diagonal". Got {posterior!r}.')
    if rotation.shape[0] != rotation.shape[-1]:
        raise AxiswiseError(f"`rotation` must be a square matrix. Got shape {tuple(rotation.shape)}.")
    identity = torch.eye(len(rotation), dtype=rotation.dtype, device=rotation.device)
    deviation = (rotation.mT @ rotation - identity).abs().max().item()
    if not deviation <= torch.finfo(rotation.dtype).eps ** 0.75:  # NaN fails, too
        raise AxiswiseError(
            f"`rotation` must be orthogonal, RᵀR = I. Got a matrix that deviates by {deviation:.3g}. "
            "torch.linalg.qr(matrix).Q is an orthogonal one."
        )
    encode, decode = model
    return Transformed(
        ChangedEncoder(encode, partial(_rotated, rotation, posterior == "diagonal")),
        None if decode is None else ChangedDecoder(decode, partial(_unrotated, rotation)),
    )


class ChangedEncoder(nn.Module):
    """An encoder, and the transform of its posteriors to other coordinates."""

    def __init__(self, encode: Callable[..., Any], change: Callable[[Any], Parameters]) -> None:
        super().__init__()
        self.encode, self.change = encode, change
        self.owner = _owner(encode)

    def forward(self, x: Float[Tensor, "..."]) -> Parameters:
        """Parameters of q(z | x) in the new coordinates."""
        return self.change(self.encode(x))


class ChangedDecoder(nn.Module):
    """A decoder of latents in other coordinates, which are transformed back first."""

    def __init__(self, decode: Callable[..., Any], undo: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.decode, self.undo = decode, undo
        self.owner = _owner(decode)

    def forward(self, z: Float[Tensor, "... z"], **options: Any) -> Float[Tensor, "..."]:
        """The decoder's output at the latents in its own coordinates; options, such as ``raw=True``, are passed on."""
        return self.decode(self.undo(z), **options)


def _owner(function: Callable[..., Any]) -> nn.Module | None:
    """The module that a function is a method of, so that its weights are found."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, nn.Module) else None


def _scaled(beta: Tensor, posterior: Any) -> Parameters:
    """The posterior of √β z. A diagonal one stays diagonal: its log-variances move by log β."""
    _check(posterior, beta.shape[0] if beta.ndim else None)
    factors = beta.to(posterior.mean)
    mean = factors.sqrt() * posterior.mean
    match posterior:
        case DeterministicParameters():
            return DeterministicParameters(mean)
        case DiagonalParameters():
            return DiagonalParameters(mean, posterior.log_variance + factors.log())
        case _:
            return FullParameters(mean, factors.sqrt()[..., None] * posterior.cholesky)


def _unscaled(beta: Tensor, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
    return z / beta.to(z).sqrt()


def _rotated(rotation: Tensor, cut: bool, posterior: Any) -> Parameters:
    """The posterior of R z, all of its covariance or the diagonal alone."""
    _check(posterior, len(rotation))
    matrix = rotation.to(posterior.mean)
    mean = posterior.mean @ matrix.mT
    if isinstance(posterior, DeterministicParameters):
        return DeterministicParameters(mean)
    root = matrix @ posterior.cholesky  # S′ = root rootᵀ, but not triangular
    if cut:
        return DiagonalParameters(mean, root.square().sum(-1).log())
    lower = torch.linalg.qr(root.mT).R.mT
    signs = torch.where(lower.diagonal(dim1=-2, dim2=-1) < 0.0, -1.0, 1.0).to(lower)
    return FullParameters(mean, lower * signs[..., None, :])


def _unrotated(rotation: Tensor, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
    return z @ rotation.to(z)  # in rows: Rᵀ z


def _check(posterior: Any, latents: int | None) -> None:
    """Raises unless an encoder returned a posterior of that many latents."""
    if not isinstance(posterior, Parameters):
        raise AxiswiseError(
            "The encoder must return a posterior's named tuple. Got "
            f"{type(posterior).__name__}. Wrap what it returns: DiagonalParameters(mean, log_variance), for example."
        )
    found = posterior.mean.shape[-1]
    if latents is not None and latents != found:
        raise AxiswiseError(
            f"The change is one of {latents} latents. Got an encoder of {found}. Give both the same number."
        )
