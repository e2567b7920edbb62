"""Pairs of observations: how the factors of one change to those of the next."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, final, get_args

import torch

from axiswise._arguments import check_fields, checked
from axiswise.data.dataset import FactorDataset
from axiswise.data.factors import FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int, Tensor

TransitionKind = Literal["laplace", "uniform"]
"""Many small changes, or a few of any size."""

RATES = (1.0, 10.0)  # range of a rate that is drawn


@checked
def transitions(
    dataset: FactorDataset,
    kind: TransitionKind = "laplace",
    *,
    rate: float | None = 1.0,
    categorical: Sequence[str] | None = None,
) -> FactorDataset:
    """Adds transitions to a dataset, for objectives that train on pairs of successive observations.

    Observations and rows stay as they are. ``dataset.successors(index, uniform)`` draws the rows that follow, and
    `train` fills `Batch.pair` with them. Transitions walk on the full grid: subsets and splits made afterwards have
    none.

    Arguments:
        dataset: A full grid of its factors.
        kind: "laplace" (`LaplaceTransition`) changes most factors slightly, "uniform" (`UniformTransition`) changes
            some factors to any level.
        rate: For "laplace", how strongly factors keep their level; None draws it for each pair.
        categorical: For "laplace", the factors that never change; None for the factor "shape", if there is one.

    Example:
        >>> from axiswise.data import Factor, arrays
        >>> levels = FactorSpace((Factor("shape", 2), Factor("scale", 4)), grid=True).levels(torch.arange(8))
        >>> dataset = transitions(arrays(torch.rand(8, 5), levels, names=["shape", "scale"]))
        >>> dataset.transition
        LaplaceTransition(rate=1.0, categorical=('shape',))
        >>> dataset.successors(torch.tensor([0, 5]), torch.full((2, 4), 0.9))
        tensor([2, 7])
    """
    if kind not in get_args(TransitionKind):
        raise AxiswiseError(f"`kind` must be one of {get_args(TransitionKind)}. Got {kind!r}.")
    space = dataset.space
    if not space.grid:
        raise AxiswiseError(
            "Transitions need a full grid, on which every next combination of levels has a row. Got dataset "
            f"{dataset.name!r} of factors {list(space.names)}, which is not one. Add them to the whole dataset, or to "
            "a `data.subset` of it by levels, which is a grid, too."
        )
    if kind == "laplace":
        if categorical is None:
            categorical = [name for name in space.names if name == "shape"]
        transition = LaplaceTransition(None if rate is None else float(rate), tuple(categorical))
    elif rate != 1.0 or categorical is not None:
        raise AxiswiseError(
            "The uniform transition has neither a rate nor categorical factors: it changes any factor to any level. "
            f'Got rate={rate} and categorical={categorical}. Leave them out, or use kind="laplace".'
        )
    else:
        transition = UniformTransition()
    if not _changing(space, transition):
        raise AxiswiseError(
            "Transitions need a factor that can change: one of at least two levels that is not categorical. "
            f"Got factors {dict(zip(space.names, space.sizes, strict=True))} with categorical="
            f"{list(categorical or ())}."
        )
    described = json.loads(json.dumps({"kind": kind, **asdict(transition)}))
    return replace(dataset.changed(transitions=described), transition=transition)


@final
@dataclass(frozen=True)
class LaplaceTransition:
    r"""Each factor moves independently, more likely to a near level than to a far one; at least one moves.

    A factor of n levels moves from l to v with a probability that decreases with the distance like the Laplace density
    of scale log(n) / rate, normalised over its levels:

    .. math:: P(v \mid l) = \frac{q^{|v - l|}}{\sum_{w=0}^{n-1} q^{|w - l|}}, \qquad
        q = \exp\left(-\frac{\mathrm{rate}}{\log n}\right).

    If no factor moves, one of those that can change, each with equal probability, is drawn again from
    :math:`P(v \mid l, v \ne l)`. Categorical factors keep their level, and so do factors with a single level. Circular
    factors are not wrapped around: as in the reference implementation, the last level is farthest from the first.

    A transition uses a uniform number for each factor, two for the forced change if no factor moved, and one for the
    rate if that is drawn. Powers of q add up to geometric sums, so all levels are drawn by closed forms, whatever their
    number.

    References:
        Klindt, Schott, Sharma, Ustyuzhaninov, Brendel, Bethge and Paiton, *Towards nonlinear disentanglement in natural
        data with temporal sparse coding*, ICLR 2021 (LAP), and the program released with it.

    Arguments:
        rate: Rate of the decay, for every factor in units of 1 / log n; None draws it for each transition, uniformly
            from 1 to 10 and for all factors together.
        categorical: Names of the factors that never change.

    Example:
        >>> from axiswise.data import Factor
        >>> space = FactorSpace((Factor("shape", 3), Factor("scale", 6)), grid=True)
        >>> transition = LaplaceTransition(categorical=("shape",))
        >>> levels, draws = torch.tensor([[2, 5], [2, 5]]), torch.tensor([[0.5, 0.1, 0.5, 0.5], [0.5, 0.9, 0.5, 0.5]])
        >>> transition.step(space, levels, draws)
        tensor([[2, 3],
                [2, 2]])
    """

    rate: float | None = 1.0
    categorical: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)
        if self.rate is not None and not (math.isfinite(self.rate) and self.rate > 0):
            raise AxiswiseError(
                f"`rate` must be positive and finite, or None to draw it for each pair. Got {self.rate}."
            )

    def draws(self, space: FactorSpace) -> int:
        """One for each factor, two for a forced change, and one for the rate if it is drawn."""
        return len(space) + 2 + (self.rate is None)

    def step(
        self, space: FactorSpace, levels: Int[Tensor, "*shape k"], uniform: Float[Tensor, "*shape draws"]
    ) -> Int[Tensor, "*shape k"]:
        """The next levels of every row; see above.

        Arguments:
            space: The factors.
            levels: The levels of every row.
            uniform: Uniform numbers, as many for each row as `draws` returns.
        """
        _check_draws(self.draws(space), uniform)
        uniform = uniform.double()
        count = len(space)
        own, which, forced = uniform[..., :count], uniform[..., count, None], uniform[..., count + 1, None]
        changing, sizes = _columns(_changing(space, self), levels), _columns(space.sizes, levels)
        position = torch.arange(count, device=levels.device)
        lowest, highest = RATES
        rate = self.rate if self.rate is not None else lowest + (highest - lowest) * uniform[..., count + 2, None]
        # A single level has no scale, but such a factor never changes.
        decay = rate / sizes.clamp_min(2).double().log()

        below, above = levels, sizes - 1 - levels
        reach_below, reach_above = _geometric_sum(decay, below), _geometric_sum(decay, above)
        moving = (-decay).exp() * (reach_below + reach_above)  # the weight of all other levels, that of staying being 1
        stay = 1.0 / (1.0 + moving)
        moves = (own > stay) & torch.isin(position, changing)
        redrawn = ~moves.any(-1, keepdim=True) & (position == changing[_floor(which, len(changing))])

        # The rest of a factor's number, after it decided that the factor moves, decides where to.
        left = torch.where(redrawn, forced, (own - stay) / (1.0 - stay).clamp_min(torch.finfo(torch.float64).tiny))
        left = left.clamp(0.0, 1.0)
        share = reach_below / (reach_below + reach_above).clamp_min(1.0)
        downwards = (left < share) | (above == 0)  # the latter for numbers that rounding made 1
        left = torch.where(downwards, left / share, (left - share) / (1.0 - share))
        distance = _geometric_quantile(decay, torch.where(downwards, below, above), left)
        return torch.where(moves | redrawn, torch.where(downwards, levels - distance, levels + distance), levels)


@final
@dataclass(frozen=True)
class UniformTransition:
    r"""A random number of factors change, each to any of its other levels.

    Of the F factors with more than one level, k change, where k is uniform on 1 … F − 1 (1 where F is 1). All sets of k
    factors are equally likely, and so are the other levels of each. Categorical factors are no exception.

    A transition uses a uniform number for k, one for each factor to sort them by, the first k of which change, and one
    for each factor to draw its new level.

    References:
        Locatello, Poole, Rätsch, Schölkopf, Bachem and Tschannen, *Weakly-supervised disentanglement without
        compromises*, ICML 2020; with at least one change and levels that differ, as Klindt et al., *Towards
        nonlinear disentanglement in natural data with temporal sparse coding*, ICLR 2021 (UNI), draw them.

    Example:
        >>> from axiswise.data import Factor
        >>> space = FactorSpace((Factor("shape", 3), Factor("scale", 6)), grid=True)
        >>> UniformTransition().step(space, torch.tensor([2, 5]), torch.tensor([0.5, 0.2, 0.1, 0.5, 0.5]))
        tensor([2, 2])
    """

    def draws(self, space: FactorSpace) -> int:
        """One for the number of changes, two for each factor."""
        return 1 + 2 * len(space)

    def step(
        self, space: FactorSpace, levels: Int[Tensor, "*shape k"], uniform: Float[Tensor, "*shape draws"]
    ) -> Int[Tensor, "*shape k"]:
        """The next levels of every row; see above.

        Arguments:
            space: The factors.
            levels: The levels of every row.
            uniform: Uniform numbers, as many for each row as `draws` returns.
        """
        _check_draws(self.draws(space), uniform)
        uniform = uniform.double()
        count, able = len(space), _changing(space, self)
        sizes, changing = _columns(space.sizes, levels), _columns(able, levels)
        changes = 1 + _floor(uniform[..., :1], max(1, len(able) - 1))
        position = torch.arange(count, device=levels.device)
        order = torch.where(
            torch.isin(position, changing), uniform[..., 1 : 1 + count], 2.0
        )  # factors that cannot change come last
        changed = order.argsort(dim=-1, stable=True).argsort(-1) < changes
        others = (sizes - 1).clamp_min(1)
        return torch.where(changed, (levels + 1 + _floor(uniform[..., 1 + count :], others)) % sizes, levels)


def _changing(space: FactorSpace, transition: LaplaceTransition | UniformTransition) -> list[int]:
    """Columns of the factors that can change."""
    fixed = transition.categorical if isinstance(transition, LaplaceTransition) else ()
    fixed = {space.position(name) for name in fixed}
    return [column for column, size in enumerate(space.sizes) if column not in fixed and size is not None and size > 1]


def _columns(numbers: Sequence[int | None], like: Int[Tensor, "..."]) -> Int[Tensor, " m"]:
    return torch.tensor(numbers, dtype=torch.int64, device=like.device)


def _check_draws(expected: int, uniform: Float[Tensor, "..."]) -> None:
    if uniform.shape[-1] != expected:
        raise AxiswiseError(
            f"This transition takes {expected} uniform numbers for each row, as `draws(space)` returns. "
            f"Got {uniform.shape[-1]}."
        )


def _floor(uniform: Float[Tensor, "..."], count: int | Int[Tensor, "..."]) -> Int[Tensor, "..."]:
    """A uniform number as one of 0 … count − 1."""
    # The product may round up to `count` if the number is close to 1.
    return (uniform * count).long().clamp_max(count - 1)


def _geometric_sum(decay: Float[Tensor, "..."], terms: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    r"""1 + q + … + q^{m−1} for q = exp(−decay): :math:`(1 - q^m) / (1 - q)`, without cancellation if q is near 1."""
    return torch.expm1(-decay * terms) / torch.expm1(-decay)


def _geometric_quantile(
    decay: Float[Tensor, "..."], terms: Int[Tensor, "..."], uniform: Float[Tensor, "..."]
) -> Int[Tensor, "..."]:
    r"""Distances 1 … m with weights 1, q, …, q^{m−1}, by quantile: the least d with (1 − q^d) / (1 − q^m) ≥ uniform."""
    exact = -torch.log1p(uniform * torch.expm1(-decay * terms)) / decay
    # Infinite for a uniform number of 1, and 0 / 0 for a factor of one level, which does not move.
    return torch.minimum(exact.ceil().clamp_min(1.0).nan_to_num(1.0, posinf=2.0**31).long(), terms.clamp_min(1))
