"""What a score is computed from: codes and factors that belong together, and what the result says about them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise._columns import Columns, as_columns, as_columns_alike, as_doubles, check_row_order, complete_rows
from axiswise.errors import AxiswiseError, warn
from axiswise.numerics import permutation
from axiswise.scores._value import as_text
from axiswise.scores.factors import Factors, as_factors
from axiswise.scores.score import DROPPING, as_code_array, as_codes, as_value
from axiswise.shapes import Array, Count, Float, Int, Kind, OnMissing, Points, Shaped, Table, Values

HELD_OUT = 3  # one sample in so many is held out where a score needs a test part and none is given


class UndefinedScore(UserWarning):
    """A factor, or a whole code, is constant: what a score says about it is not defined.

    Example:
        >>> import warnings
        >>> from axiswise.scores import mig
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = mig([[0.1], [0.9], [0.2]], {"on": [0, 1, 0], "still": [3, 3, 3]})
        >>> caught[0].category.__name__
        'UndefinedScore'
    """


class Inputs(NamedTuple):
    """What a score was computed from, as far as its numbers do not show it.

    Example:
        >>> from axiswise.scores import mig
        >>> mig([[0.1], [0.9], [0.2], [0.8]], {"on": [0, 1, 0, 1]}).inputs.factor_names
        ('on',)
    """

    samples: int
    """Rows that were used, test points among them."""
    dropped: int
    """Rows with missing values that were left out."""
    factor_names: tuple[str, ...]
    """Names of the factors, in the order of the result; none for scores that need no factors."""
    levels: tuple[tuple[str, ...] | None, ...]
    """Names of the levels of each factor, None where they are numbers."""
    constant_factors: tuple[str, ...]
    """Factors of a single value: what the result says about each of them is NaN, and means are over the others."""
    varying_latents: int | Int[ndarray, "..."]
    """Latents that are not constant. At 0 the model has collapsed, and its score means nothing. Codes alone show no
    more: a latent that is noise varies, too. `active_units` tells by the posteriors, and `evaluate` does so."""

    __repr__ = as_text


class CodesRead(NamedTuple):
    """Codes, and what there is to say about them."""

    codes: Float[ndarray, "... n z"]
    inputs: Inputs


class PairRead(NamedTuple):
    """Codes with their factors, and what there is to say about both."""

    codes: Float[ndarray, "... n z"]
    factors: Factors
    inputs: Inputs


class PopulationRead(NamedTuple):
    """Codes of several members at the same points, which of their latents count, and what there is to say."""

    codes: Float[ndarray, "p n z"]
    alive: Shaped[ndarray, "p z"]
    inputs: Inputs


class Split(NamedTuple):
    """Codes and factors with the rows to fit on and the rows to test on."""

    codes: Float[ndarray, "... n z"]
    factors: Factors
    train: Int[ndarray, " a"]
    test: Int[ndarray, " b"]
    inputs: Inputs


@checked
def read_codes(codes: Array | Table, missing: OnMissing = "raise", least: Count = 2) -> CodesRead:
    """Reads the codes of a score that needs no factors.

    Arguments:
        codes: Array | Table, any leading axes (members) before samples and latents.
        missing: Whether to raise an error if values are missing (NaN), or to leave their rows out.
        least: How many samples the score needs: one, if it looks at each alone.

    Example:
        >>> read_codes([[1.0, 2.0], [3.0, None], [5.0, 6.0]], missing="drop").inputs.dropped
        1
    """
    array = as_code_array(codes)
    complete = complete_rows(missing, _gaps(array))
    read = as_codes(array[..., complete, :], remedy=DROPPING)
    return CodesRead(read, _inputs(read, None, array.shape[-2] - read.shape[-2], least))


@checked
def read_pair(
    codes: Array | Table, factors: Values, kinds: Kind | Sequence[Kind] | None = None, missing: OnMissing = "raise"
) -> PairRead:
    """Reads codes and their factors.

    Arguments:
        codes: Array | Table, any leading axes (members) before samples and latents.
        factors: Their factors.
        kinds: The kinds of the factors.
        missing: Whether to raise an error if values are missing (NaN), or to leave their rows out, in all members.

    Example:
        >>> read = read_pair([[1.0], [2.0], [3.0]], ["red", "blue", None], missing="drop")
        >>> read.inputs.dropped, read.inputs.levels, read.factors.values.tolist()
        (1, (('blue', 'red'),), [[1.0], [0.0]])
    """
    check_row_order(codes, factors, what="`codes` and `factors`")
    read, known, dropped = _read(codes, as_columns(factors), kinds, missing)
    return PairRead(read, known, _inputs(read, known, dropped))


@checked
def read_population(
    codes: Array | Table, kl: Array | Table | None, kl_above: float, missing: OnMissing = "raise"
) -> PopulationRead:
    """Reads the codes of members that a score compares.

    Arguments:
        codes: Codes of the members at the same points, axes (p, n, z).
        kl: Divergence of each latent's posterior from its prior, with the same axes.
        kl_above: A latent counts if its mean divergence is above this; without `kl`, if it is not constant.
        missing: Whether to raise an error if values are missing (NaN), or to leave their rows out, in all members.

    Example:
        >>> read_population([[[1.0, 2.0], [3.0, 2.0]]], None, 0.01).alive.tolist()
        [[True, False]]
    """
    array = as_code_array(codes)
    if array.ndim != 3:
        raise AxiswiseError(
            f"`codes` must have axes (p, n, z), members first: they are compared. Got shape {array.shape}; "
            "stack the codes of several models."
        )
    divergences = None if kl is None else as_code_array(kl, "kl")
    if divergences is not None and divergences.shape != array.shape:
        raise AxiswiseError(
            f"`kl` must have the axes (p, n, z) of `codes`, {array.shape}. Got shape {divergences.shape}."
        )
    gaps = _gaps(array) if divergences is None else _gaps(array) | _gaps(divergences)
    complete = complete_rows(missing, gaps)
    read = as_codes(array[:, complete], remedy=DROPPING)
    alive = np.ptp(read, axis=1) > 0
    if divergences is not None:
        alive &= as_codes(divergences[:, complete], "kl", DROPPING).mean(1) > kl_above
    return PopulationRead(read, alive, _inputs(read, None, array.shape[1] - read.shape[1]))


@checked
def split(
    codes: Array | Table,
    factors: Values,
    kinds: Kind | Sequence[Kind] | None,
    test: Points | None,
    seed: int,
    missing: OnMissing = "raise",
) -> Split:
    """Joins training and test points, or holds out every third point, in an order that the seed decides.

    Arguments:
        codes: Array | Table to fit on, or all codes if `test` is None.
        factors: Their factors.
        kinds: The kinds of the factors.
        test: Codes and factors to test on.
        seed: Decides which points are held out.
        missing: Whether to raise an error if values are missing (NaN), or to leave their rows out.

    Example:
        >>> parts = split(np.eye(6), [0, 1, 0, 1, 0, 1], None, None, seed=0)
        >>> len(parts.train), len(parts.test)
        (4, 2)
    """
    check_row_order(codes, factors, what="`codes` and `factors`")
    if test is None:
        read, known, dropped = _read(codes, as_columns(factors), kinds, missing)
        samples = read.shape[-2]
        if samples < HELD_OUT:
            raise AxiswiseError(f"A score with a held-out part needs at least {HELD_OUT} samples. Got {samples}.")
        tested, trained = np.split(permutation(seed, "split", samples).numpy(), [samples // HELD_OUT])
        return Split(read, known, trained, tested, _inputs(read, known, dropped))
    check_row_order(*test, what="the codes and factors of `test`")
    columns = as_columns_alike(factors, test[1])
    read, known, dropped = _read(codes, columns[0], kinds, missing)
    more, tested_on, also_dropped = _read(test[0], columns[1], known.kinds, missing)
    if (read.shape[:-2], read.shape[-1]) != (more.shape[:-2], more.shape[-1]):
        raise AxiswiseError(
            "`test` must be codes and factors with the same members, latents and factors as those to fit on. "
            f"Got {more.shape} beside {read.shape}."
        )
    values = as_doubles(np.concatenate([known.values, tested_on.values]), 0)
    joined = Factors(values, known.kinds, known.names, known.levels)
    rows, both = np.arange(len(values)), as_doubles(np.concatenate([read, more], -2), -2)
    samples = read.shape[-2]
    return Split(both, joined, rows[:samples], rows[samples:], _inputs(both, joined, dropped + also_dropped))


def _gaps(values: Float[ndarray, "... n k"]) -> Shaped[ndarray, " n"]:
    """Which rows have a missing value, in any member."""
    return np.asarray(np.isnan(values).reshape(-1, *values.shape[-2:]).any((0, 2)))


def _read(
    codes: Array | Table, columns: Columns, kinds: Kind | Sequence[Kind] | None, missing: OnMissing
) -> tuple[Float[ndarray, "... m z"], Factors, int]:
    """Codes and factors without the rows that were dropped, and their number."""
    array = as_code_array(codes)
    samples = array.shape[-2]
    if len(columns.values) == samples:  # else the message below counts the rows as they were given
        complete = complete_rows(missing, _gaps(array) | _gaps(columns.values))
        array, columns = array[..., complete, :], columns.rows(complete)
    read = as_codes(array, remedy=DROPPING)
    left = read.shape[-2]
    return read, as_factors(columns, left, kinds, DROPPING), samples - left


def _inputs(codes: Float[ndarray, "... n z"], factors: Factors | None, dropped: int, least: int = 2) -> Inputs:
    """What the result says; a warning names what has no score. One sample has none, unless it is enough."""
    samples = codes.shape[-2]
    if samples < least:
        rest = f", after {dropped:,} rows with missing values were dropped" if dropped else ""
        raise AxiswiseError(f"`codes` must have at least {least} samples. Got {samples}{rest}.")
    constant = factors.constant if factors else ()
    varying = (np.ptp(codes, axis=-2) > 0).sum(-1)
    if constant and factors and len(constant) < len(factors):  # if all are, the score raises an error
        warn(
            f"{', '.join(constant)}: constant, so that there is no score of it; means are over the other factors.",
            UndefinedScore,
        )
    if samples > 1 and not varying.all():
        whose = f" of members {np.flatnonzero(varying == 0).tolist()}" if varying.ndim else ""
        warn(
            f"`codes`{whose} do not vary in any latent: the model has collapsed, and its score means nothing.",
            UndefinedScore,
        )
    names, levels = (factors.names, factors.levels) if factors else ((), ())
    return Inputs(samples, dropped, names, levels, constant, as_value(varying))
