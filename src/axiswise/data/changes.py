"""Pure changes of a dataset: each takes a dataset and returns another with its own identity."""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, final

import torch

from axiswise import numerics
from axiswise._arguments import check_fields, checked
from axiswise.data._reflection import add_reflected
from axiswise.data.dataset import FactorDataset, Render, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int, Num, Tensor

RENDERED_AT_ONCE = 1 << 22  # values: 16 MB in float32

Pattern = Callable[[Mapping[str, Tensor], Tensor], Tensor]
"""Tensors and factors (…, k) in, values (…, \\*shape) in −1…1 out: what a `Change` adds, in units of its epsilon."""


@final
@dataclass(frozen=True, eq=False)
class Change:
    """A small addition to every observation that depends on its factors only; see `manipulated`.

    Arguments:
        name: Its name in records.
        epsilon: The largest change of any value.
        pattern: Pure function of (tensors, factors) that returns what is added, in units of epsilon: values in −1…1,
            in the shape of the observations. Factors are levels, or float64 where any factor has real values.
        tensors: What the pattern reads, such as the weights of a network; they move with the dataset. Their SHA-256 is
            part of the identity.
        arguments: JSON values that, with the name and the tensors, determine the pattern.

    Example:
        >>> Change("brighter", 0.1, lambda tensors, factors: torch.ones(*factors.shape[:-1], 1, 8, 8)).epsilon
        0.1
    """

    name: str
    epsilon: float
    pattern: Pattern
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.name:
            raise AxiswiseError("A change needs a name. Got ''.")
        _check_epsilon(self.epsilon)


@checked
def subset(dataset: FactorDataset, /, **factor_values: int | Sequence[int]) -> FactorDataset:
    """Keeps the rows whose factors have the given levels.

    A factor with one remaining level leaves the space; other levels are renumbered from 0, in order. A subset of a full
    grid is a full grid. A circular factor that loses levels becomes discrete: it no longer closes.

    Arguments:
        dataset: The dataset to choose from.
        factor_values: For each factor by name, the level or levels to keep.

    Example:
        >>> from axiswise.data import arrays
        >>> grid = FactorSpace((Factor("shape", 3), Factor("scale", 4)), grid=True)
        >>> whole = arrays(torch.rand(12, 5), grid.levels(torch.arange(12)), names=grid.names)
        >>> part = subset(whole, shape=1, scale=[0, 2])
        >>> len(part), part.space.names, part.space.sizes, part.space.grid
        (2, ('scale',), (2,), True)
    """
    space = dataset.space
    if not factor_values:
        raise AxiswiseError(f"Name at least one factor to choose by. This dataset has {list(space.names)}.")
    levels = {
        name: _chosen_levels(space.factors[space.position(name)], values) for name, values in factor_values.items()
    }
    factors = dataset.factors(torch.arange(len(dataset), device=dataset.device))
    chosen = torch.ones(len(dataset), dtype=torch.bool, device=dataset.device)
    for name, values in levels.items():
        column = factors[:, space.position(name)].contiguous()
        values = torch.tensor(values, dtype=factors.dtype, device=dataset.device)
        chosen &= torch.isin(column, values)
        factors[:, space.position(name)] = torch.searchsorted(values, column)  # renumbers the rows that are chosen
    rows = chosen.nonzero().squeeze(-1)
    if len(rows) == 0:
        raise AxiswiseError(f"No row has {levels}. Choose levels that occur together.")
    remaining = [column for column, name in enumerate(space.names) if len(levels.get(name, ())) != 1]
    narrowed = tuple(_narrowed(space.factors[column], levels) for column in remaining)
    return replace(
        dataset.take(rows, subset={name: levels[name] for name in space.names if name in levels}),
        space=FactorSpace(narrowed, grid=space.grid),
        # Rows and levels are in order, so the rest of a full grid is a full grid.
        levels=None if space.grid else factors[rows][:, remaining],
    )


@checked
def downsampled(dataset: FactorDataset, factor: int) -> FactorDataset:
    """Shrinks images by averaging squares of `factor` × `factor` pixels.

    Arguments:
        dataset: A dataset of images (c, h, w).
        factor: Side of the squares; it must divide height and width.

    Example:
        >>> from axiswise.data import arrays
        >>> downsampled(arrays(torch.rand(10, 1, 64, 64)), 4).shape
        (1, 16, 16)
    """
    if len(dataset.shape) != 3:
        raise AxiswiseError(f"Expected a dataset of images (c, h, w). Got observations of shape {dataset.shape}.")
    channels, height, width = dataset.shape
    if factor < 1 or height % factor or width % factor:
        raise AxiswiseError(f"`factor` must divide the images' {height} × {width} pixels. Got {factor}.")
    return replace(
        dataset.changed(downsampled=factor),
        shape=(channels, height // factor, width // factor),
        render=partial(_pooled, dataset.render, factor),
    )


@checked
def with_noise(dataset: FactorDataset, epsilon: float, *, seed: int = 0) -> FactorDataset:
    r"""Adds uniform noise to every value of every observation.

    .. math:: x' = \rho(x + \varepsilon u), \qquad u \sim \mathcal{U}(-1, 1), \qquad
        \rho(t) = t - 2 (t - 1)_+ + 2 (-t)_+.

    ρ reflects images back into 0…1 and preserves :math:`\|x' - x\|_\infty \le \varepsilon`. Other observations have no
    fixed range, and ρ is omitted. A row always has the same noise: rendering draws it from the seed and the row number,
    and does not store it. The paper does not say how it treats values outside the range; here it is as in
    `manipulated`.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        section 5.2, with ε = 0.1 for dSprites and 0.175 for Shapes3D.

    Arguments:
        dataset: The dataset to change.
        epsilon: The amplitude ε of the noise; at most 1 for images.
        seed: Seed of the noise.

    Example:
        >>> from axiswise.data import arrays
        >>> noisy = with_noise(arrays(torch.zeros(10, 1, 8, 8)), 0.1)
        >>> x = noisy.x(torch.arange(10))
        >>> bool((x > 0).all()), bool((x < 0.1).all()), bool((x == noisy.x(torch.arange(10))).all())
        (True, True, True)
    """
    _check_epsilon(epsilon, dataset)
    dataset = _counting_own_rows(dataset)
    return replace(
        dataset.changed(noise=float(epsilon), seed=seed),
        render=partial(_noisy, dataset.render, dataset.shape, float(epsilon), seed),
    )


@checked
def with_correlation(
    dataset: FactorDataset, first: str, second: str, spread: float, *, samples: int | None = None, seed: int = 0
) -> FactorDataset:
    r"""Draws rows such that two factors are correlated.

    Each row of the result is drawn independently, with replacement, from all rows of the dataset. Its probability
    decreases with the difference of two factors, both scaled to 0 … 1:

    .. math:: P(\text{row}) \propto \exp\left(-\frac{(a - b)^2}{2 s^2}\right), \qquad
        a = \frac{l_1}{n_1 - 1}, \quad b = \frac{l_2}{n_2 - 1},

    for levels l of n. On a full grid this is the joint distribution of the two factors, and the others stay independent
    and uniform. The smaller the spread s, the stronger the correlation. Circular factors are not wrapped around. The
    result is not a grid and has no transitions.

    References:
        Träuble, Creager, Kilbertus, Locatello, Dittadi, Goyal, Schölkopf and Bauer, *On disentangled representations
        learned from correlated data*, ICML 2021. Roth, Ibrahim, Akata, Vincent and Bouchacourt, *Disentanglement of
        correlated factors via Hausdorff factorized support*, ICLR 2023, and the program released with it.

    Arguments:
        dataset: The dataset to draw from.
        first: Name of a factor with levels.
        second: Name of another.
        spread: The standard deviation s.
        samples: How many rows to draw; None for the number of rows of the dataset.
        seed: Seed of the draw.

    Example:
        >>> from axiswise.data import arrays
        >>> grid = FactorSpace((Factor("width", 8), Factor("height", 4)), grid=True)
        >>> whole = arrays(torch.rand(32, 5), grid.levels(torch.arange(32)), names=grid.names)
        >>> drawn = with_correlation(whole, "width", "height", 0.1, samples=1000)
        >>> bool(torch.corrcoef(drawn.factors(torch.arange(1000)).T.double())[0, 1] > 0.9)
        True
    """
    if first == second:
        raise AxiswiseError(f"Correlate two different factors. Got {first!r} twice.")
    if not (math.isfinite(spread) and spread > 0):
        raise AxiswiseError(f"`spread` must be positive and finite. Got {spread}.")
    count = len(dataset) if samples is None else samples
    if count < 1:
        raise AxiswiseError(f"`samples` must be at least 1. Got {samples}.")
    # Always on the CPU: a device that adds in another order could draw other rows.
    factors = dataset.factors(torch.arange(len(dataset), device=dataset.device)).cpu()
    difference = _share(dataset.space, factors, first) - _share(dataset.space, factors, second)
    exponent = -difference.square() / (2 * spread * spread)
    cumulated = (exponent - exponent.max()).exp().cumsum(0)  # the largest weight is 1, so they cannot all underflow
    # Two words make 53 bits: the 32 of one are too coarse for the rows of dSprites.
    high, low = numerics.words(seed, "correlation", 0, 2 * count).reshape(2, count)
    uniform = ((high >> 5) * 2**26 + (low >> 6)).double() * 2.0**-53
    rows = torch.searchsorted(cumulated, uniform * cumulated[-1], right=True).clamp_max(len(dataset) - 1)
    # Sorted rows read memory in order; the choice of rows is still random.
    return dataset.take(rows.sort().values, correlation=[first, second], spread=float(spread), samples=count, seed=seed)


@checked
def manipulated(dataset: FactorDataset, change: Change) -> FactorDataset:
    r"""Adds a small change to every observation that depends on its factors.

    .. math:: x' = \rho(x + \varepsilon\, m(w)), \qquad \|m\|_\infty \le 1, \qquad
        \rho(t) = t - 2 (t - 1)_+ + 2 (-t)_+,

    where w are the factors of x, and m is the change's pattern, clamped to −1…1. ρ reflects images back into 0…1 and
    preserves :math:`\|x' - x\|_\infty \le \varepsilon`. Other observations have no fixed range, and ρ is omitted.
    Factors and transitions stay.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, eq 12,
        section 4.4 and appendix B.1 (whose ρ is printed with x where x' is meant).

    Arguments:
        dataset: The dataset to change.
        change: What to add.

    Example:
        >>> from axiswise.data import arrays
        >>> brighter = Change("brighter", 0.5, lambda tensors, factors: factors.float())
        >>> dataset = arrays(torch.zeros(3, 1), torch.tensor([[0], [1], [1]]))
        >>> manipulated(dataset, brighter).x(torch.arange(3)).flatten()
        tensor([0.0000, 0.5000, 0.5000])
    """
    _check_epsilon(change.epsilon, dataset)
    dataset = _counting_own_rows(dataset)
    tensors, prefix = dict(dataset.tensors), f"change {_changes(dataset)} "
    tensors |= {prefix + name: tensor.to(dataset.device) for name, tensor in change.tensors.items()}
    if dataset.levels is not None:
        tensors[f"levels {prefix}"] = dataset.levels
    result = replace(
        dataset.changed(
            manipulated=change.name,
            epsilon=float(change.epsilon),
            arguments=dict(change.arguments),
            tensors={name: _sha256(tensor) for name, tensor in change.tensors.items()},
        ),
        tensors=tensors,
        render=partial(_manipulated, dataset.render, dataset.shape, dataset.space, change, prefix),
    )
    found = change.pattern(_own(tensors, prefix), dataset.factors(torch.zeros(1, dtype=torch.int64))).shape
    if found != (1, *dataset.shape):
        raise AxiswiseError(
            f"The pattern of change {change.name!r} must return an observation of shape {dataset.shape} for each row "
            f"of {len(dataset.space)} factors. Got shape {tuple(found)} for one row."
        )
    return result


@checked
def materialized(dataset: FactorDataset) -> FactorDataset:
    """Renders every observation once and stores them all, which trades memory for time.

    The values are the same, and so is the identity.

    Arguments:
        dataset: The dataset to render; the result takes 4 × numel bytes for each row on its device.

    Example:
        >>> from axiswise.data import arrays
        >>> small = materialized(downsampled(arrays(torch.rand(10, 1, 64, 64)), 16))
        >>> small.tensors["x"].shape
        torch.Size([10, 1, 4, 4])
    """
    index = torch.arange(len(dataset), device=dataset.device)
    x = torch.empty((len(dataset), *dataset.shape), device=dataset.device, dtype=torch.float32)
    for rows in index.split(max(1, RENDERED_AT_ONCE // dataset.numel)):
        x[rows] = dataset.x(rows)
    return replace(dataset, tensors={"x": x}, render=stored, rows=None)


def _chosen_levels(factor: Factor, values: int | Sequence[int]) -> list[int]:
    """The levels to choose, each once and in order."""
    if factor.size is None:
        raise AxiswiseError(f"Only factors with levels can be chosen by. Factor {factor.name!r} has real values.")
    levels = sorted({values} if isinstance(values, int) else set(values))
    if not levels or levels[0] < 0 or levels[-1] >= factor.size:
        raise AxiswiseError(f"The levels of factor {factor.name!r} lie in 0 … {factor.size - 1}. Got {values}.")
    return levels


def _narrowed(factor: Factor, levels: Mapping[str, list[int]]) -> Factor:
    if factor.name not in levels or len(levels[factor.name]) == factor.size:
        return factor
    chosen = levels[factor.name]
    return Factor(
        factor.name, len(chosen), "discrete", tuple(factor.levels[level] for level in chosen if factor.levels)
    )


def _pooled(
    render: Render, factor: int, tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]
) -> Float[Tensor, "*shape c h w"]:
    x = render(tensors, index)
    return x.unflatten(-1, (-1, factor)).unflatten(-3, (-1, factor)).mean((-3, -1))


def _check_epsilon(epsilon: float, dataset: FactorDataset | None = None) -> None:
    if not (math.isfinite(epsilon) and epsilon >= 0):
        raise AxiswiseError(f"`epsilon` must be finite and not negative. Got {epsilon}.")
    if dataset is not None and len(dataset.shape) == 3 and epsilon > 1:
        raise AxiswiseError(f"`epsilon` must be at most 1 for images, whose values lie in 0…1. Got {epsilon}.")


def _counting_own_rows(dataset: FactorDataset) -> FactorDataset:
    """The same dataset, whose render looks up the rows of a subset and takes the dataset's own row numbers.

    What depends on the row must depend on this number: only it stays the same when a subset is materialized.
    """
    if dataset.rows is None:
        return dataset
    name = f"rows {_changes(dataset)}"
    return replace(
        dataset,
        tensors={**dataset.tensors, name: dataset.rows},
        render=partial(_through, dataset.render, name),
        rows=None,
    )


def _changes(dataset: FactorDataset) -> int:
    """How often a dataset was changed, a number that distinguishes the tensors of successive changes."""
    return len(dataset.arguments.get("changes", ()))


def _through(
    render: Render, name: str, tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]
) -> Float[Tensor, "..."]:
    return render(tensors, tensors[name][index])


def _noisy(
    render: Render,
    shape: tuple[int, ...],
    epsilon: float,
    seed: int,
    tensors: Mapping[str, Tensor],
    index: Int[Tensor, "*shape"],
) -> Float[Tensor, "..."]:
    # A seed on the device draws there. Filling a tensor, unlike copying one, does not make the host wait.
    drawn = numerics.uniform(index.new_full((), seed), "noise of rows", index, shape)
    return add_reflected(render(tensors, index), epsilon * (2.0 * drawn - 1.0), images=len(shape) == 3)


def _manipulated(
    render: Render,
    shape: tuple[int, ...],
    space: FactorSpace,
    change: Change,
    prefix: str,
    tensors: Mapping[str, Tensor],
    index: Int[Tensor, "*shape"],
) -> Float[Tensor, "..."]:
    factors = space.levels(index) if space.grid else tensors[f"levels {prefix}"][index]
    with numerics.repeatable():
        added = change.pattern(_own(tensors, prefix), factors).to(torch.float32).clamp(-1.0, 1.0)
    return add_reflected(render(tensors, index), change.epsilon * added, images=len(shape) == 3)


def _own(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _share(space: FactorSpace, factors: Num[Tensor, "n k"], name: str) -> Float[Tensor, " n"]:
    """The levels of a factor, from 0 for the first to 1 for the last."""
    column = space.position(name)
    size = space.sizes[column]
    if size is None or size < 2:
        found = "real values" if size is None else "a single one"
        raise AxiswiseError(f"Only factors of at least two levels can be correlated. Factor {name!r} has {found}.")
    return factors[:, column].double() / (size - 1)


def _sha256(tensor: Tensor) -> str:
    values = tensor.detach().cpu().flatten().view(torch.uint8).numpy()  # bytes: numpy lacks some of PyTorch's types
    return hashlib.sha256(f"{tensor.dtype} {tuple(tensor.shape)} ".encode() + values.tobytes()).hexdigest()
