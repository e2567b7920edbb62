"""External models, trained elsewhere: read as a posterior and a mean, and made into a population."""

import functools
import inspect
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from axiswise._arguments import checked
from axiswise.distributions import (
    Bernoulli,
    Deterministic,
    DeterministicParameters,
    Diagonal,
    DiagonalParameters,
    Full,
    FullParameters,
    Gaussian,
    LearnedGaussian,
    Likelihood,
    OptimalGaussian,
    Parameters,
    Posterior,
    Prior,
    StandardNormal,
)
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks
from axiswise.objectives import Batch, BetaVAE, Draw, Terms, Trainable
from axiswise.population._trained import Trained, refuse_arrays
from axiswise.population.member import Member
from axiswise.population.population import Population
from axiswise.records import versions
from axiswise.records._identity import stored_as
from axiswise.shapes import Float, Tensor

CHUNK = 1 << 22  # numbers of observations passed to a user's function at a time
# Names that output objects of pythae, diffusers and others have for the mean, the width and E[x | z].
MEANS = ("mean", "mu", "loc", "embedding", "z_mean")
LOG_VARIANCES = ("log_variance", "logvar", "log_var", "log_covariance", "z_log_var", "z_logvar")
LOG_DEVIATIONS = ("log_sigma", "log_std", "log_scale", "logsigma", "logstd")
DEVIATIONS = ("std", "stddev", "scale", "sigma")
VARIANCES = ("variance", "var")
RECONSTRUCTIONS = ("reconstruction", "recon_x", "recon", "x_hat", "sample", "mean")
WIDTHS: tuple[tuple[tuple[str, ...], Callable[[Tensor], Tensor]], ...] = (
    (LOG_VARIANCES, lambda width: width),
    (LOG_DEVIATIONS, lambda width: 2.0 * width),
    (DEVIATIONS, lambda width: 2.0 * width.log()),
    (VARIANCES, lambda width: width.log()),
)
"""What a width is called, and how it becomes a log-variance."""
UNDERSTOOD = f"{', '.join(MEANS)}, with {', '.join(name for names, _ in WIDTHS for name in names)}"
KINDS = {Diagonal: DiagonalParameters, Full: FullParameters, Deterministic: DeterministicParameters}

HALVES = (torch.float16, torch.bfloat16)  # which NumPy, or PyTorch on a CPU, cannot compute everything in
LARGEST = 1e15  # of observations in single precision


@checked
def from_models(
    models: Sequence[tuple[Callable[..., Any], Callable[..., Any] | None]] | Sequence[Any],
    *,
    posterior: Posterior = Diagonal(),
    prior: Prior = StandardNormal(),
    likelihood: Likelihood = Gaussian(),
    beta: float | int | None = None,
    name: str = "external",
) -> Population:
    """Makes a population of models that were trained elsewhere, so that `evaluate`, UDR and reports work on them.

    Nothing is copied: members call your functions in evaluation mode, and then restore the mode of the modules. Latents
    that are feature maps are flattened. Such a population cannot be saved or moved, since it does not own its weights.
    What is unknown, such as the optimizer, is None in its rows.

    Arguments:
        models: Pairs (encode, decode) of modules or other callables. ``encode(x)`` returns a pair of tensors, mean and
            log-variance, a posterior's named tuple, or a normal distribution of PyTorch. ``decode(z)`` returns
            E[x | z]: probabilities, not logits; None where there is no decoder. Tuples of more, such as a model's
            ``(reconstruction, mean, log-variance)``, are read, too. So are named tuples, mappings and output objects,
            such as pythae's, by their names alone: ``logvar``, ``std``, ``sigma`` or ``variance`` beside ``mean``.
        posterior: What `encode` returns: Diagonal(), Full() or Deterministic().
        prior: Distribution of the latents.
        likelihood: Distribution of observations around E[x | z].
        beta: Weight of the divergence that they were trained with, if it is known.
        name: Name of the architecture in tables.

    Example:
        >>> encoder, decoder = nn.Linear(3, 4), nn.Linear(2, 3)
        >>> both = from_models([(lambda x: encoder(x).chunk(2, -1), decoder)] * 2)
        >>> codes = both.encode(torch.zeros(5, 3))
        >>> len(both), codes.mean.shape, both.decode(codes.mean).shape
        (2, torch.Size([2, 5, 2]), torch.Size([2, 5, 3]))
    """
    if not len(models):
        raise AxiswiseError("A population needs at least one model. Got none; give a list of pairs (encode, decode).")
    objective = BetaVAE(beta) if beta is not None else Unknown()
    trained = []
    for number, pair in enumerate(models):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[0]):
            raise AxiswiseError(
                f"Every model must be a pair (encode, decode) of callables. Got {_described(pair)} as model {number}."
            )
        reader = Reader(*pair, likelihood=likelihood, kind=KINDS.get(type(posterior)))
        reader.latents = getattr(prior, "latents", 0)
        # The seed distinguishes members, and decides the noise of their samples.
        vae = VAE(External(reader, name), posterior, prior, likelihood)
        member = Member(vae, objective, steps=0, batch=None, seed=number)
        about = {"dataset": None, "dtype": None, "device": None, "versions": versions()}
        decode = None if pair[1] is None else reader.decode
        history = {"step": torch.zeros(0).numpy()}
        trained.append(Trained(member, {}, {}, history, "trained", 0.0, about, reader.encode, decode))
    return Population(trained)


class Reader:
    """A user's model as the library calls it: posteriors and means, flat latents, in evaluation mode.

    Arguments:
        encode: Returns means and log-variances, in any of the forms that `from_models` takes.
        decode: Returns E[x | z]; None where there is no decoder.
        likelihood: Turns a mean back into a decoder's raw output, where that is needed.
        kind: The named tuple that `encode` must return, or its equivalent; any if None.

    Example:
        >>> model = nn.Sequential(nn.Conv2d(1, 4, 2, 2), nn.Dropout(0.5))
        >>> reader = Reader(lambda x: model(x).chunk(2, 1), lambda z: z.mean(1))
        >>> reader.encode(torch.zeros(7, 1, 4, 4)).mean.shape, reader.latent_shape, model.training
        (torch.Size([7, 8]), (2, 2, 2), True)
    """

    def __init__(
        self,
        encode: Callable[..., Any],
        decode: Callable[..., Any] | None,
        likelihood: Likelihood = Gaussian(),
        kind: type | None = None,
    ) -> None:
        self.encoder, self.decoder, self._likelihood, self._kind = encode, decode, likelihood, kind
        self.latent_shape: tuple[int, ...] | None = None
        """Shape of the latents of one observation, once one has been encoded."""
        self.latents = 0
        """Their number; 0 before that."""
        self.by_place = False
        """Whether the log-variance was known by its place in a tuple alone, without a name."""
        self.dtype: torch.dtype | None = None
        """What the encoder returned; half precision is widened for what is computed of it."""
        self._pixels = 0
        """Numbers in one observation; 0 before one has been encoded."""

    def encode(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """Parameters of q(z | x), latents flattened, without a graph.

        Raises:
            AxiswiseError: If `encode` does not return posteriors, or returns numbers that are not finite.
        """
        check_observations(x)
        rows = max(1, CHUNK // max(1, x[0].numel()))
        with evaluating(self.encoder), torch.no_grad():
            parts = [self._read(part) for part in x.split(rows)]
        return type(parts[0])(*(torch.cat(fields) for fields in zip(*parts, strict=True)))  # pyright: ignore

    def decode(self, z: Float[Tensor, "n z"], *, raw: bool = False) -> Float[Tensor, "n ..."]:
        """E[x | z] at flat latents, or with ``raw=True`` the decoder's output that has this mean.

        Raises:
            AxiswiseError: If there is no decoder, or it does not return a tensor with a row for each of `z`.
        """
        if self.decoder is None:
            raise AxiswiseError("The model has no decoder. Give one in place of None.")
        shaped = z if self.latent_shape is None else z.reshape(len(z), *self.latent_shape)
        if self.dtype in HALVES:
            shaped = shaped.to(self.dtype)
        own = raw and "raw" in _parameters(self.decoder)
        with evaluating(self.decoder):
            decoded = _called("decode", self.decoder, shaped, {"raw": True} if own else {})
            decoded = as_reconstruction(decoded, len(z), self._pixels)
        if decoded.ndim < 2 or len(decoded) != len(z):
            raise AxiswiseError(
                f"`decode` must return a row for each row of z, which has shape {tuple(shaped.shape)}. "
                f"Got shape {tuple(decoded.shape)}."
            )
        decoded = _widened(decoded)
        return decoded if own or not raw else self._raw(decoded)

    def _raw(self, mean: Tensor) -> Tensor:
        if isinstance(self._likelihood, Bernoulli):
            return torch.logit(mean, eps=torch.finfo(mean.dtype).eps)
        if isinstance(self._likelihood, Gaussian | LearnedGaussian | OptimalGaussian):
            return mean
        raise AxiswiseError(
            f"The raw output does not follow from a mean with {type(self._likelihood).__name__}. Give a `decode` that "
            "takes `raw=True`."
        )

    def _read(self, x: Tensor) -> Parameters:
        """One chunk of posteriors, checked and flattened."""
        self._pixels = x[0].numel()
        output = _called("encode", self.encoder, x, {})
        posterior = as_posterior(output, len(x), self._pixels)
        self.by_place = isinstance(output, tuple | list) and not (_names(output) or _normals(output, self._pixels))
        self.dtype = posterior.mean.dtype
        if self._kind is not None and not isinstance(posterior, self._kind):
            raise AxiswiseError(
                f"`encode` must return {self._kind.__name__} or an equivalent. Got {type(posterior).__name__}. "
                "Say with `posterior` what it returns: Diagonal(), Full() or Deterministic()."
            )
        shape = tuple(posterior.mean.shape[1:])
        self.latent_shape = shape if len(shape) > 1 else None
        fields: Any = posterior
        flat = type(posterior)(*(_widened(part.flatten(1) if len(shape) > 1 else part) for part in fields))
        self.latents = flat.mean.shape[-1]
        for name, part in zip(fields._fields, flat, strict=True):  # pyright: ignore (a named tuple)
            refuse_non_finite(f"The {name.replace('_', '-')} that `encode` returned", part)
        return flat


def as_posterior(output: Any, rows: int, pixels: int = 0) -> Parameters:
    """Reads the output of an encoder, or of a whole model.

    It may be two tensors, a posterior's named tuple, a normal distribution of PyTorch, or a named tuple, mapping or
    object that has a mean and a width under usual names. Names decide where there are any, and standard deviations and
    variances are converted. Of other tuples the reconstruction is left out, and what has no row for each observation,
    such as a loss; two tensors, or one normal distribution, must remain.

    Arguments:
        output: The output.
        rows: Number of observations.
        pixels: Numbers in one observation, by which a reconstruction is known.

    Example:
        >>> as_posterior((torch.zeros(4, 2), torch.zeros(4, 2)), 4).variance.sum()
        tensor(8.)
        >>> as_posterior((torch.ones(4, 9), torch.zeros(4, 2), torch.zeros(4, 2)), 4, pixels=9).variance.sum()
        tensor(8.)
        >>> as_posterior({"mean": torch.zeros(4, 2), "std": torch.full((4, 2), 0.5)}, 4).variance.sum()
        tensor(2.)
        >>> as_posterior(torch.zeros(4, 2), 4)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `encode` must return a pair (mean, log-variance) of tensors. Got one tensor ...
    """
    if isinstance(output, Tensor):
        raise AxiswiseError(
            f"`encode` must return a pair (mean, log-variance) of tensors. Got one tensor of shape "
            f"{tuple(output.shape)}. If that is both side by side, split it: lambda x: encode(x).chunk(2, 1). If it is "
            "a code without noise: lambda x: axiswise.distributions.DeterministicParameters(encode(x))."
        )
    output = getattr(output, "latent_dist", output)  # where diffusers keeps a posterior
    if not isinstance(output, Parameters):
        normals = _normals(output, pixels)
        output = normals[0] if len(normals) == 1 else _by_name(output) or output
    if isinstance(output, tuple | list) and not isinstance(output, Parameters) and not _names(output):
        pair = [part for part in output if len(output) == 2 or (_has_rows(part, rows) and part[0].numel() != pixels)]
        if len(pair) != 2 or not all(isinstance(part, Tensor) for part in pair):
            kinds = ", ".join(_described(part) for part in output)
            raise AxiswiseError(
                f"`encode` must return a pair (mean, log-variance) of tensors. Got {len(output)} parts: {kinds}. Wrap "
                "it so that it returns these two: lambda x: encode(x)[1:], for example."
            )
        output = DiagonalParameters(*pair)
    if not isinstance(output, DiagonalParameters | FullParameters | DeterministicParameters):
        understood = f" Names that are understood: {UNDERSTOOD}." if _names(output) else ""
        raise AxiswiseError(
            "`encode` must return a pair (mean, log-variance) of tensors, or DiagonalParameters, FullParameters or "
            f"DeterministicParameters. Got {_described(output)}. Wrap it so that it does.{understood}"
        )
    mean = output.mean
    if mean.ndim < 2 or len(mean) != rows or not mean.is_floating_point() or 0 in mean.shape:
        raise AxiswiseError(
            f"The mean that `encode` returns must have a row of latents for each of {rows} observations. "
            f"Got shape {tuple(mean.shape)}, {mean.dtype}."
        )
    if isinstance(output, DiagonalParameters) and output.log_variance.shape != mean.shape:
        raise AxiswiseError(
            "Mean and log-variance must have the same shape. "
            f"Got {tuple(mean.shape)} and {tuple(output.log_variance.shape)}; a variance that is shared can be "
            "expanded: log_variance.expand_as(mean)."
        )
    if isinstance(output, FullParameters) and output.cholesky.shape != (*mean.shape, mean.shape[-1]):
        raise AxiswiseError(
            f"The Cholesky factor must have shape {(*mean.shape, mean.shape[-1])}. Got {tuple(output.cholesky.shape)}."
        )
    return output


def as_reconstruction(output: Any, rows: int, pixels: int = 0) -> Tensor:
    """Reads the output of a decoder: a tensor, or the one in a tuple, a mapping or an object that is E[x | z].

    Arguments:
        output: The output.
        rows: Number of codes.
        pixels: Numbers in one observation, by which a reconstruction is known; 0 where any number will do.

    Example:
        >>> as_reconstruction({"reconstruction": torch.zeros(4, 9)}, 4).shape
        torch.Size([4, 9])
        >>> as_reconstruction((torch.zeros(4, 9), torch.zeros(())), 4).shape
        torch.Size([4, 9])
    """
    if isinstance(output, Tensor):
        return output
    found = _named(output, RECONSTRUCTIONS)
    if found is None and isinstance(output, tuple | list):
        suitable = [part for part in output if _has_rows(part, rows) and pixels in (0, part[0].numel())]
        found = suitable[0] if len(suitable) == 1 else None
    if found is None:
        raise AxiswiseError(
            f"`decode` must return a tensor E[x | z], or one in an output object. Got {_described(output)}. Wrap it so "
            "that it returns the reconstruction alone: lambda z: decode(z)[0], for example."
        )
    return found


def _normals(output: Any, pixels: int) -> list[Parameters]:
    """The normal distributions that an output is, or holds beside a reconstruction."""
    if isinstance(output, tuple | list | Mapping):
        parts = output.values() if isinstance(output, Mapping) else output
        found = [one for part in parts if not isinstance(part, tuple | list | Mapping) for one in _normals(part, 0)]
        return [one for one in found if pixels == 0 or one.mean[0].numel() != pixels] if len(found) > 1 else found
    if isinstance(output, torch.distributions.Independent):
        output = output.base_dist
    if isinstance(output, torch.distributions.Normal):
        return [DiagonalParameters(output.mean, output.variance.log())]
    if isinstance(output, torch.distributions.MultivariateNormal | torch.distributions.LowRankMultivariateNormal):
        return [FullParameters(output.mean, output.scale_tril)]
    return []


def _by_name(output: Any) -> Parameters | None:
    """A mean and a width that have usual names, the latter as a log-variance."""
    if isinstance(output, torch.distributions.Distribution):
        return None  # that is not normal, whatever the names of its parameters
    mean = _named(output, MEANS)
    for names, convert in WIDTHS:
        width = _named(output, names)
        if mean is not None and width is not None:
            return DiagonalParameters(mean, convert(width))
    return None


def _names(output: Any) -> tuple[str, ...]:
    """The names of the parts of a named tuple or a mapping."""
    return tuple(map(str, output)) if isinstance(output, Mapping) else tuple(getattr(output, "_fields", ()))


def _widened(tensor: Tensor) -> Tensor:
    """Half precision as single precision."""
    return tensor.float() if tensor.dtype in HALVES else tensor


def _named(output: Any, names: Sequence[str]) -> Tensor | None:
    """The first tensor that an object or mapping has under one of some names."""
    keys = output if isinstance(output, Mapping) else {}
    parts = (part for name in names for part in (getattr(output, name, None), keys.get(name)))
    return next((part for part in parts if isinstance(part, Tensor)), None)


def _has_rows(part: Any, rows: int) -> bool:
    return isinstance(part, Tensor) and part.ndim > 1 and len(part) == rows


def check_observations(x: Any) -> None:
    """Raises unless `x` is a floating-point tensor of at least one observation, all of it finite.

    Example:
        >>> check_observations([[1.0]])
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `x` must be a floating-point tensor of observations (n, …). Got list; ...
    """
    refuse_arrays(x)
    if x.is_meta:
        raise AxiswiseError("`x` must hold numbers. Got a tensor on the device meta, which has none.")
    if x.ndim < 2 or 0 in x.shape or not x.is_floating_point():
        raise AxiswiseError(
            f"`x` must be a floating-point tensor of observations (n, …), none of its axes empty. "
            f"Got shape {tuple(x.shape)}, {x.dtype}. Bytes become grey values by x.float() / 255."
        )
    refuse_non_finite("`x`", x)
    if (largest := x.abs().max().item()) > LARGEST:
        raise AxiswiseError(f"`x` must lie within ±{LARGEST:g}, so that squares add up. Got {largest:g}; rescale it.")


def refuse_non_finite(what: str, tensor: Tensor) -> None:
    """Raises if anything in a tensor is NaN or infinite, and says where."""
    bad = ~tensor.isfinite()
    if bad.any():
        rows = bad.flatten(1).any(1)
        raise AxiswiseError(
            f"{what} must be finite. Got {int(bad.sum())} values that are NaN or infinite, in {int(rows.sum())} of "
            f"{len(rows)} rows, the first in row {int(rows.nonzero()[0])}. Look at that observation, or at whether "
            "the model diverged."
        )


@contextmanager
def evaluating(*functions: Callable[..., Any] | None) -> Iterator[int]:
    """Puts all modules that some functions use into evaluation mode, and restores them; yields how many changed.

    It finds modules themselves, those of a bound method, and those that a function, a partial or an object refers to by
    name.

    Example:
        >>> model = nn.Dropout()
        >>> with evaluating(lambda x: model(x)) as changed:
        ...     changed, model.training
        (1, False)
        >>> model.training
        True
    """
    layers = {id(layer): layer for function in functions for found in _modules(function) for layer in found.modules()}
    changed = [layer for layer in layers.values() if layer.training]
    try:
        for layer in changed:
            layer.training = False
        yield len(changed)
    finally:
        for layer in changed:
            layer.training = True


def _modules(function: Any, depth: int = 4) -> list[nn.Module]:
    """The modules that a callable refers to, a few levels deep."""
    if isinstance(function, nn.Module):
        return [function]
    if depth == 0 or isinstance(function, type | types.ModuleType | Tensor | str | int | float | None):
        return []
    within: list[Any] = []
    if isinstance(function, functools.partial):
        within = [function.func, *function.args, *function.keywords.values()]
    elif inspect.ismethod(function):
        within = [function.__self__, function.__func__]
    elif inspect.isfunction(function):
        named = inspect.getclosurevars(function)
        within = [*named.nonlocals.values(), *named.globals.values()]
    elif isinstance(function, list | tuple):
        within = list(function)
    elif isinstance(function, dict):
        within = list(function.values())
    elif hasattr(function, "__dict__"):
        within = list(vars(function).values())
    return [module for part in within for module in _modules(part, depth - 1)]


def _called(what: str, function: Callable[..., Any], argument: Tensor, options: Mapping[str, Any]) -> Any:
    """The result of a user's function; its exception becomes an error that says what the argument was."""
    try:
        return function(argument, **options)
    except AxiswiseError:
        raise
    except Exception as error:  # a user's function may raise anything
        raise AxiswiseError(
            f"`{what}` must take a tensor of shape {tuple(argument.shape)}, {argument.dtype}, on {argument.device}. "
            f"Got {type(error).__name__}: {error}. Reshape, convert or move its argument in a function around it."
        ) from error


def _parameters(function: Callable[..., Any]) -> Sequence[str]:
    target = function.forward if isinstance(function, nn.Module) else function
    try:
        return list(inspect.signature(target).parameters)
    except (TypeError, ValueError):  # built in C, without a signature
        return []


def _described(value: Any) -> str:
    if names := _names(value):
        return f"{type(value).__name__} with the names {', '.join(names)}"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__} of {', '.join(_described(part) for part in value)}"
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


@dataclass(frozen=True)
class Unknown:
    """The objective of an external model, which is unknown. It cannot be trained further."""

    def networks(self, model: VAE) -> Trainable:
        """None."""
        return Trainable({})

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """None."""
        return {}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """Raises: the loss is unknown.

        Raises:
            AxiswiseError: Always.
        """
        raise AxiswiseError("A model of your own cannot be trained here. Use `models.custom` to train your modules.")


@dataclass(frozen=True)
class External:
    """Architecture of a model that was built elsewhere.

    Arguments:
        reader: Calls the model.
        name: Its name in tables.
    """

    # Addresses of rows depend on the stored word, so it stays that of version 0.1.
    reader: Reader = field(metadata=stored_as(lambda reader: "foreign"))
    name: str = "external"

    @property
    def shape(self) -> tuple[int, ...]:
        """Unknown."""
        return ()

    @property
    def latents(self) -> int:
        """Number of latents, 0 before anything was encoded."""
        return self.reader.latents

    def build_encoder(self, outputs: int) -> nn.Module:
        """Raises: it cannot be built here.

        Raises:
            AxiswiseError: Always.
        """
        raise AxiswiseError("A model of your own cannot be built again here. Use `models.custom` for that.")

    def build_decoder(self, outputs: int) -> nn.Module:
        """Raises, as `build_encoder` does."""
        return self.build_encoder(outputs)
