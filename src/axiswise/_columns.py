"""What people have, as arrays of numbers: lists, tables of pandas and polars, text, truth values, tensors.

Scores, datasets and the command line read arrays here and nowhere else. Tables are known by what they offer (`columns`,
`to_numpy`), so that neither pandas nor polars is imported.
"""

from collections.abc import Mapping, Sequence, Sized
from decimal import Decimal
from numbers import Integral, Number, Real
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Float, Kind, OnMissing, Shaped, Table, Tensor

NUMBERS = "biuf"  # numpy's letters of the types that are truth values or real numbers
EXACT = 2**53  # the largest integer up to which all are floats
NESTED = (ndarray, Tensor, list, tuple)  # what a list may consist of, besides cells
NAMED = 6  # columns that a message names
FEW = 8  # samples that show that something varies
ROUNDING = 4  # units in the last place by which what is computed in two ways may differ


class Columns(NamedTuple):
    """A table read as numbers, one column for each factor."""

    values: Float[ndarray, "n k"]
    """Numbers; of text and categories the number of the level; NaN where a value is missing."""
    kinds: tuple[Kind, ...]
    """What the type of each column implies: real numbers are continuous, all else is discrete."""
    names: tuple[str, ...] | None
    """Names of the columns, None if they have none."""
    levels: tuple[tuple[str, ...] | None, ...]
    """For each column the names of its levels, None where they are numbers."""

    def rows(self, chosen: Shaped[ndarray, " _"] | slice) -> "Columns":
        """The same columns with some of the rows."""
        return self._replace(values=self.values[chosen])

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the columns, or "factor 0", "factor 1", …."""
        return self.names or tuple(f"factor {place}" for place in range(self.values.shape[1]))


class _Column(NamedTuple):
    """One column before its values are numbers."""

    cells: Shaped[ndarray, " n"]
    categories: tuple[Any, ...] | None = None
    """Of a categorical column, in its own order."""
    numbers: Float[ndarray, " n"] | None = None
    """Of a categorical column, the places of its cells in that order; NaN where they are missing."""
    widened: bool = False
    """Whether integers with gaps are floats here, as numpy's columns in pandas and arrays from polars have it."""


def as_columns(table: Array | Table, what: str = "factors") -> Columns:
    """Reads a table, or an array of one or two axes, by columns: text and categories become levels.

    Levels of text are numbered in the order of the alphabet, categories in their own. Integers, truth values, text and
    categories are discrete, other numbers continuous; columns of tables and nested lists have a type each. In pandas, a
    column of numpy's floats that has gaps and is whole elsewhere is one of integers, which are stored so. Missing are
    None, NaN, masked values, and pandas' NA and NaT.

    Arguments:
        table: An array or tensor, (nested) lists, a mapping of columns, a DataFrame or a Series.
        what: What messages call it.

    Example:
        >>> read = as_columns([["red", 0.5], ["blue", None]])
        >>> read.values.tolist(), read.kinds, read.levels
        ([[1.0, 0.5], [0.0, nan]], ('discrete', 'continuous'), (('blue', 'red'), None))
    """
    (read,) = as_columns_alike(table, what=what)
    return read


def as_columns_alike(*tables: Array | Table, what: str = "factors") -> list[Columns]:
    """Reads tables of the same columns as `as_columns` does; a level has the same number in all of them.

    Example:
        >>> [read.values[:, 0].tolist() for read in as_columns_alike(["b", "c"], ["a", "c"])]
        [[1.0, 2.0], [0.0, 2.0]]
    """
    read = [table for table in tables if isinstance(table, Columns)]
    if len(read) == len(tables):
        return read
    parts = [_split(table, what) for table in tables]
    names, first = parts[0]
    for other, columns in parts[1:]:
        if len(columns) != len(first) or (names and other and names != other):
            raise AxiswiseError(
                f"`{what}` must have the same columns everywhere. Got {', '.join(names or ()) or len(first)} and "
                f"{', '.join(other or ()) or len(columns)}."
            )
    labels = names or tuple(f"factor {place}" for place in range(len(first)))
    alike = zip(*(columns for _, columns in parts), strict=True)
    found = [_numbered(parts_of_one, f"{label} of `{what}`") for label, parts_of_one in zip(labels, alike, strict=True)]
    return [_joined(columns, names) for columns in zip(*found, strict=True)]


def as_array(values: Array | Table, what: str) -> Shaped[ndarray, "..."]:
    """Reads numbers of any shape as numpy: arrays, tensors of any device, (nested) lists and tables of numbers.

    Types stay as they are, but floats that numpy lacks, such as bfloat16, become float32. Missing values are NaN.

    Arguments:
        values: The numbers.
        what: What messages call them.

    Example:
        >>> as_array([[1, 2], [3, None]], "codes").tolist()
        [[1.0, 2.0], [3.0, nan]]
    """
    if _is_table(values):
        names, columns = _split(values, what)
        named = zip(names or (), columns, strict=True)
        return np.stack([_real(column.cells, f"{name} of `{what}`") for name, column in named], -1)
    return _real(_column(values, what).cells, f"`{what}`")


def as_doubles(values: Shaped[ndarray, "..."], axis: int) -> Float[ndarray, "..."]:
    """Numbers in double precision; what is the same along an axis but for rounding is exactly so, and does not vary.

    Rounding is that of the type that the numbers have. Whole numbers have none.

    Arguments:
        values: The numbers; NaN are gaps, and stay.
        axis: The axis of the samples.

    Example:
        >>> as_doubles(np.array([[0.1 + 0.2, 1.0], [0.3, 2.0]]), 0).tolist()
        [[0.3, 1.0], [0.3, 2.0]]
    """
    doubles = values.astype(np.float64, copy=False)
    if values.dtype.kind != "f" or not values.size:
        return doubles
    unit = ROUNDING * float(np.finfo(values.dtype).eps)
    if not _close(doubles.take(range(min(FEW, doubles.shape[axis])), axis), axis, 2 * unit).any():
        return doubles  # as nearly always, and most quickly
    close = _close(doubles, axis, unit) & (doubles != np.floor(doubles)).any(axis, keepdims=True)
    return np.where(close & ~np.isnan(doubles), np.fmin.reduce(doubles, axis, keepdims=True), doubles)


def _close(values: Float[ndarray, "..."], axis: int, unit: float) -> Shaped[ndarray, "..."]:
    """Whether values along an axis differ by less than so much, relative to the largest."""
    low, high = np.fmin.reduce(values, axis, keepdims=True), np.fmax.reduce(values, axis, keepdims=True)
    with np.errstate(invalid="ignore", over="ignore"):  # infinities are never close
        return ~(high - low >= unit * np.maximum(-low, high))


def check_row_order(*tables: Any, what: str) -> None:
    """Refuses tables of pandas whose rows have the same index in different orders: rows belong together by place.

    Arguments:
        tables: What has an index, and what has none.
        what: What messages call them.

    Example:
        >>> import pandas
        >>> codes = pandas.DataFrame({"z": [0.5, 1.5]})
        >>> check_row_order(codes, codes[::-1], what="`codes` and `factors`")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Rows of `codes` and `factors` must be in the same order. Got the same index ...
    """
    columns = [column for table in tables for column in (table.values() if isinstance(table, Mapping) else [table])]
    found: list[Any] = [getattr(column, "index", None) for column in columns]
    indexes = [index for index in found if hasattr(index, "equals")]
    for index in indexes[1:]:
        if not index.equals(indexes[0]) and len(index) == len(set(index)) and set(index) == set(indexes[0]):
            raise AxiswiseError(
                f"Rows of {what} must be in the same order. Got the same index in another order; align them "
                "(`factors.loc[codes.index]`), or, if rows belong together as they stand, drop the index "
                "(`reset_index(drop=True)`)."
            )


def complete_rows(missing: OnMissing, gaps: Shaped[ndarray, " n"]) -> slice | Shaped[ndarray, " n"]:
    """The rows to read, given which have gaps; all of them where a gap is an error.

    Arguments:
        missing: What to do about rows with gaps.
        gaps: Which rows have some.

    Raises:
        AxiswiseError: If no row would be left.

    Example:
        >>> complete_rows("drop", np.array([False, True, False]))
        array([ True, False,  True])
    """
    if missing not in get_args(OnMissing):
        raise AxiswiseError(f'`missing` must be "raise" or "drop". Got {missing!r}.')
    if missing == "raise" or not gaps.any():
        return slice(None)
    if gaps.all():
        raise AxiswiseError(
            f"At least one row must have all its values. Got {len(gaps)} rows, and values missing in each; leave out "
            "the columns, or the members, that lack most."
        )
    return ~gaps


def bad_rows(bad: Shaped[ndarray, "... n k"], labels: Sequence[str]) -> str:
    """Says how many rows are bad and in which columns, given which values are.

    Example:
        >>> bad_rows(np.array([[True, False], [False, False]]), ["shape", "scale"])
        '1 of 2 rows, in shape'
    """
    flat = np.asarray(bad.reshape(-1, *bad.shape[-2:]).any(0))
    named = [label for label, found in zip(labels, np.asarray(flat.any(0)), strict=True) if found]
    rest = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return f"{int(np.asarray(flat.any(1)).sum()):,} of {len(flat):,} rows, in {', '.join(named[:NAMED])}{rest}"


def whole_but_continuous(columns: Columns, kinds: Sequence[Kind]) -> tuple[str, ...]:
    """Columns that count as continuous though all their numbers are whole: they may be levels, stored as floats.

    Arguments:
        columns: The columns.
        kinds: What each counts as.

    Example:
        >>> read = as_columns({"digit": [7.0, 1.0], "angle": [0.5, 1.0], "row": [0, 1]})
        >>> whole_but_continuous(read, read.kinds)
        ('digit',)
    """
    described = zip(columns.labels, kinds, columns.values.T, strict=True)
    return tuple(name for name, kind, own in described if kind == "continuous" and (own == np.floor(own)).all())


def in_alphabet(columns: Columns, kinds: Sequence[Kind]) -> str:
    """Says which levels count as ordered though they are in the order of the alphabet; nothing if there are none.

    Example:
        >>> read = as_columns({"heat": ["low", "mid", "high"], "on": ["yes", "no", "no"]})
        >>> in_alphabet(read, ["continuous", "circular"])
        'heat: text in the order of the alphabet (high, low, mid), read as continuous; number levels to order them'
    """
    found = []
    for name, kind, levels in zip(columns.labels, kinds, columns.levels, strict=True):
        if kind != "discrete" and levels and len(levels) > 2 and list(levels) == sorted(levels):
            told = f"{', '.join(levels[:NAMED])}{', …' if len(levels) > NAMED else ''}"
            found.append(f"{name}: text in the order of the alphabet ({told}), read as {kind}")
    return f"{'; '.join(found)}; number levels to order them" if found else ""


def _is_table(values: Any) -> bool:
    """Whether it has columns with names: a mapping, an array of records, a DataFrame or what else behaves as one."""
    if isinstance(values, ndarray):
        return values.dtype.names is not None
    return isinstance(values, Mapping) or (hasattr(values, "to_numpy") and hasattr(values, "columns"))


def _split(table: Any, what: str) -> tuple[tuple[str, ...] | None, list[_Column]]:
    """Names, if there are any, and columns."""
    if _is_table(table):
        labels = list(table.dtype.names if isinstance(table, ndarray) else getattr(table, "columns", table))
        names = [str(label) for label in labels]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise AxiswiseError(f"Columns of `{what}` must have different names. Got {repeated} more than once.")
        columns = [_column(table[label], f"{label} of `{what}`") for label in labels]
        shapes = {name: column.cells.shape for name, column in zip(names, columns, strict=True)}
        if uneven := [f"shape {shape} of {name}" for name, shape in shapes.items() if len(shape) != 1]:
            raise AxiswiseError(
                f"Columns of `{what}` must have one value in each row. Got {', '.join(uneven[:NAMED])}; make each part "
                "a column of its own."
            )
        if len(set(shapes.values())) > 1:
            raise AxiswiseError(f"Columns of `{what}` must be equally long lists of values. Got shapes {shapes}.")
    else:
        whole = _column(table, what)
        name = getattr(table, "name", None) if hasattr(table, "to_numpy") else None
        names = [str(name)] if name not in (None, "") else None
        cells = whole.cells[:, None] if whole.cells.ndim == 1 else whole.cells
        if cells.ndim != 2 or 0 in cells.shape:
            raise AxiswiseError(
                f"`{what}` must have axes (n, k): samples, then factors, none of them empty; one axis is one factor. "
                f"Got shape {whole.cells.shape}."
            )
        columns = [whole._replace(cells=column) for column in cells.T]
    if not columns or not len(columns[0].cells):
        raise AxiswiseError(f"`{what}` must have at least one column and one row. Got columns {names}.")
    return tuple(names) if names else None, columns


def _column(values: Any, what: str) -> _Column:
    """Anything but a table, as an array of any shape; lists keep the types of their cells."""
    if isinstance(values, Tensor) and values.is_meta:
        raise AxiswiseError(f"{_quoted(what)} must have values. Got a tensor of the device meta, which has none.")
    try:
        if isinstance(values, Tensor):
            return _Column(_of_tensor(values))
        if isinstance(values, ndarray):
            return _Column(_of_array(values, what))
        if hasattr(values, "to_numpy"):
            return _of_series(values, what)
    except AxiswiseError:
        raise
    except Exception as error:  # PyTorch, polars and pyarrow raise anything for a type that numpy lacks
        told = f"{type(values).__name__} of {_type(values)} ({str(error).partition(chr(10))[0].rstrip('.')})"
        raise AxiswiseError(f"{_quoted(what)} must have a type that numpy has. Got a {told}; convert it.") from error
    return _Column(_of_list(values, what) if isinstance(values, list | tuple) else np.asarray(values))


def _of_tensor(values: Tensor) -> Shaped[ndarray, "..."]:
    values = values.detach().cpu().resolve_conj().resolve_neg()
    lacking = values.is_floating_point() and values.dtype not in (torch.float16, torch.float32, torch.float64)
    return (values.float() if lacking else values).numpy()


def _of_array(values: Shaped[ndarray, "..."], what: str) -> Shaped[ndarray, "..."]:
    """A plain array: masked values are missing, and cells that are arrays without axes are numbers."""
    array = np.asarray(values)  # of a matrix, whose columns have two axes
    if np.ma.is_masked(values):
        array = array.astype(array.dtype if array.dtype.kind == "f" else object)
        array[np.ma.getmaskarray(values)] = np.nan if array.dtype.kind == "f" else None
    if array.dtype == object:
        cells = array.ravel().tolist()
        nested = [place for place, cell in enumerate(cells) if isinstance(cell, ndarray | Tensor) and not cell.ndim]
        array = array.copy() if nested else array
        for place in nested:
            array.flat[place] = _column(cells[place], what).cells.item()
    return array


def _of_series(values: Any, what: str) -> _Column:
    """A column of pandas or polars, or an array of pyarrow."""
    kind = _type(values)
    widened = kind.kind == "f" if isinstance(kind, np.dtype) else "int" in str(kind).lower()
    column = _Column(_of_array(np.asarray(values), what), widened=widened)
    categories: Any = getattr(kind, "categories", None)
    # Those of polars' Categorical are of the whole session, in the order in which they appeared: not of the column.
    if not hasattr(categories, "to_numpy"):
        return column
    places = values.to_physical() if hasattr(values, "to_physical") else getattr(values, "cat", values).codes
    numbers = np.array(places, dtype=np.float64)
    numbers[numbers < 0] = np.nan  # as pandas numbers what is missing
    return column._replace(categories=tuple(categories), numbers=numbers)


def _of_list(values: Sequence[Any], what: str) -> Shaped[ndarray, "..."]:
    """A list of arrays as an array of their type, any other as one of objects."""
    parts = _plain(values, what)
    if isinstance(parts, ndarray):
        return parts
    try:
        array = np.array(parts, dtype=object)
    except ValueError as error:
        raise AxiswiseError(f"Rows of {_quoted(what)} must be equally long. Got {error}.") from error
    if ragged := [cell for cell in array.ravel().tolist() if isinstance(cell, list | tuple | ndarray)]:
        raise AxiswiseError(f"Rows of {_quoted(what)} must be equally long. Got rows of {_lengths(ragged)} values.")
    return array


def _plain(part: Any, what: str) -> Any:
    """Arrays for arrays of every kind, and for lists of nothing but such of one shape; other lists as they are."""
    if isinstance(part, ndarray | Tensor):
        return _column(part, what).cells
    parts = [_plain(one, what) if isinstance(one, NESTED) else one for one in part]
    if not any(isinstance(one, ndarray) for one in parts):
        return parts
    if all(isinstance(one, ndarray) for one in parts) and len({one.shape for one in parts}) == 1:
        return np.stack(parts)
    return [one.item() if isinstance(one, ndarray) and not one.ndim else one for one in parts]


def _type(values: Any) -> Any:
    """What kind of cells an array, tensor or column has; pyarrow calls it so."""
    return getattr(values, "dtype", None) or getattr(values, "type", None)


def _lengths(rows: Sequence[Sized]) -> str:
    return " and ".join(map(str, sorted({len(row) for row in rows})))


def _quoted(what: str) -> str:
    return what if "`" in what else f"`{what}`"


def _is_missing(cell: Any) -> bool:
    """None, NaN, and pandas' NA and NaT. What else has a comparison of its own, as arrays do, is no missing value."""
    if isinstance(cell, float | int):  # first, since most are
        return bool(cell != cell)
    if cell is None or type(cell).__name__ == "NAType":
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()
    different = cell != cell
    return isinstance(different, bool | np.bool_) and bool(different)


def _missing(cells: Shaped[ndarray, "..."]) -> Shaped[ndarray, "..."]:
    if cells.dtype == object:
        return np.array([_is_missing(cell) for cell in cells.ravel().tolist()], dtype=bool).reshape(cells.shape)
    return np.isnan(cells) if cells.dtype.kind == "f" else np.zeros(cells.shape, dtype=bool)


def _real(cells: Shaped[ndarray, "..."], what: str) -> Shaped[ndarray, "..."]:
    """Real numbers of any shape; objects as integers if all of them are, else as floats with NaN for gaps."""
    if cells.dtype.kind in NUMBERS:
        if cells.dtype.kind in "iu" and cells.dtype.itemsize == 8 and cells.size:
            _check_exact(what, max(int(cells.max()), -int(cells.min())))
        return cells
    wrong = f"the type {cells.dtype}"
    if cells.dtype == object:
        missing = _missing(cells)
        present = cells[~missing].tolist()
        others = [cell for cell in present if not _is_real(cell)]
        if not others:
            whole = not missing.any() and all(isinstance(cell, int | Integral | np.bool_) for cell in present)
            _check_exact(what, max((abs(int(cell)) for cell in present), default=0) if whole else 0)
            found = np.full(cells.shape, 0 if whole else np.nan, np.int64 if whole else np.float64)
            found[~missing] = present
            return found
        wrong = _told(others[0])
    raise AxiswiseError(f"{what} must contain real numbers. Got {wrong}.")


def _told(cell: Any) -> str:
    """A cell that is of no use, or its type where it is no plain value."""
    return repr(cell) if isinstance(cell, str | bytes | Number) else f"the type {type(cell).__name__}"


def _is_real(cell: Any) -> bool:
    return isinstance(cell, float | int | Real | Decimal | np.bool_) and not isinstance(cell, np.timedelta64)


def _check_exact(what: str, largest: int) -> None:
    """Refuses integers that are not all different as floats."""
    if largest > EXACT:
        raise AxiswiseError(
            f"{what} must contain integers up to 2^53, which floats can tell apart. Got {largest}; number the levels "
            "from 0, or make them text."
        )


def _is_text(column: _Column) -> bool:
    cells = column.cells
    if cells.dtype == object:
        return any(isinstance(cell, str | bytes) for cell in cells.tolist())
    return cells.dtype.kind in "US"


_Numbered = tuple[Float[ndarray, " n"], Kind, tuple[str, ...] | None]


def _numbered(parts: Sequence[_Column], what: str) -> list[_Numbered]:
    """The values, the kind and the names of the levels of one column, in each of several tables."""
    categories = parts[0].categories
    if categories is None and not any(map(_is_text, parts)):
        return [_numbers(part, what) for part in parts]
    if categories is not None and all(part.categories == categories for part in parts):
        levels = _level_names(categories)
        return [(part.numbers, "discrete", levels) for part in parts if part.numbers is not None]
    texts = [[_text(cell, what) for cell in _categorised(part).tolist()] for part in parts]
    known = sorted({text for own in texts for text in own if text is not None})
    number = {None: np.nan, **{level: float(place) for place, level in enumerate(known)}}
    return [(np.array([number[text] for text in own], dtype=np.float64), "discrete", tuple(known)) for own in texts]


def _categorised(part: _Column) -> Shaped[ndarray, " n"]:
    """The cells of a column, those of a categorical one as its categories."""
    if part.numbers is None or part.categories is None:
        return part.cells
    cells = [None if np.isnan(number) else part.categories[int(number)] for number in part.numbers]
    return np.array([*cells, None], dtype=object)[:-1]


def _level_names(known: Sequence[Any]) -> tuple[str, ...]:
    """What levels are called: text as it is, floats to the digits that people write, unless two would be alike.

    Example:
        >>> _level_names([0.1 + 0.2, 1.0, "red"]), _level_names([0.3, 0.1 + 0.2])
        (('0.3', '1', 'red'), ('0.3', '0.30000000000000004'))
    """
    exact = tuple(_decoded(level) for level in known)
    short = tuple(
        _digits(level) if isinstance(level, float | np.floating) else name
        for level, name in zip(known, exact, strict=True)
    )
    return short if len(set(short)) == len(short) else exact


def _decoded(level: Any) -> str:
    return level.decode(errors="backslashreplace") if isinstance(level, bytes) else str(level)


def _digits(number: Any) -> str:
    """A number as people write it: 0.1 + 0.2 is 0.3, and 1.0 is 1.

    Example:
        >>> [_digits(number) for number in (0.1 + 0.2, Decimal("0.30"), 1.0, 1e12 + 1, 1e300)]
        ['0.3', '0.3', '1', '1000000000001', '1e+300']
    """
    if not abs(number) <= EXACT:
        return str(number)
    return str(int(number)) if number == int(number) else f"{float(number):.15g}"


def _text(cell: Any, what: str) -> str | None:
    """A cell of a column in which there is text; None if it is missing."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bytes | bool | np.bool_):
        return _decoded(cell)
    if _is_missing(cell):
        return None
    if not _is_real(cell):
        raise AxiswiseError(f"{what} must contain numbers, truth values or text. Got {_told(cell)}.")
    return _digits(cell)


def _numbers(column: _Column, what: str) -> _Numbered:
    """A column without text; its kind follows from the type of its cells."""
    cells, missing = column.cells, _missing(column.cells)
    try:
        whole = _real(cells[~missing], what).dtype.kind != "f"
        values = as_doubles(_real(cells, what), 0)
    except AxiswiseError as error:
        raise AxiswiseError(f"{str(error).replace('real numbers', 'numbers, truth values or text')}") from error
    present = values[~missing]
    if not whole and column.widened and 0 < len(present) < len(values) and np.isfinite(present).all():
        whole = bool((present == np.floor(present)).all())
        _check_exact(what, int(np.abs(present).max()) if whole else 0)
    return values, "discrete" if whole else "continuous", None


def _joined(columns: Sequence[_Numbered], names: tuple[str, ...] | None) -> Columns:
    values, kinds, levels = zip(*columns, strict=True)
    return Columns(np.stack(values, -1), kinds, names, levels)
