"""What `axiswise score` reads: codes and factors of files that belong together, and notes on how they were read."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np

from axiswise.cli._tables import Table, read_pair
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # these would import PyTorch or scipy
    from axiswise._columns import Columns
    from axiswise.scores import Inputs as Read
    from axiswise.shapes import Kind, OnMissing


class Inputs(NamedTuple):
    """What was read: codes with members first, factors with their names and levels, and what there is to say."""

    codes: np.ndarray
    factors: "Columns"
    test: "tuple[np.ndarray, Columns] | None"
    kinds: "tuple[Kind, ...]"
    latent_names: tuple[str, ...]
    about: "tuple[Read, ...]"
    """What scores say of the points to fit on, and of those to test on."""
    notes: tuple[str, ...]

    @property
    def factor_names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return self.factors.labels

    @property
    def dropped(self) -> int:
        """Rows with missing values that were left out."""
        return sum(read.dropped for read in self.about)


@contextmanager
def noted() -> Iterator[None]:
    """Silences the warnings of scores about what is constant or in alphabetical order: the notes say it once."""
    from axiswise.scores import UndefinedScore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedScore)
        warnings.filterwarnings("ignore", ".* in the order of the alphabet", UserWarning)
        yield


def names_in(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def read_inputs(
    codes: str,
    factors: str,
    test_codes: str | None,
    test_factors: str | None,
    kinds: str | None,
    named: Mapping[str, str | None],
    missing: "OnMissing",
) -> Inputs:
    """Reads the files, and refuses what no score can be computed from."""
    from axiswise._columns import check_row_order
    from axiswise.scores import read_pair as read_scored

    if (test_codes is None) != (test_factors is None):
        raise AxiswiseError("--test-codes and --test-factors go together. Got one without the other.")
    files = [(codes, factors), *([(test_codes, test_factors)] if test_codes and test_factors else [])]
    tables = [read_pair(code, factor) for code, factor in files]
    for code, factor in tables:
        check_row_order(code.contents, factor.contents, what=f"{code.path} and {factor.path}")
    columns = _factor_columns([factor for _, factor in tables])
    arrays = [code_array(code) for code, _ in tables]
    found = _kinds(columns[0], kinds, named)
    parts, about, notes = [], [], _level_notes(columns[0])
    for array, own, (code, factor) in zip(arrays, columns, tables, strict=True):
        _check_lengths(array, own.values, code.path, factor.path)
        try:
            with noted():
                read = read_scored(array, own, found, missing)
        except AxiswiseError as error:
            listed = ", ".join(own.labels)
            told = "".join(f" Note: {note}." for note in (*code.notes, *factor.notes))
            raise AxiswiseError(f"{error} Read {code.path} and {factor.path} (factors {listed}).{told}") from error
        members = read.codes if read.codes.ndim > 2 else read.codes[None]
        parts.append((members, own._replace(values=read.factors.values)))
        about.append(read.inputs)
        notes += [*code.notes, *factor.notes, *_gap_notes(array, own, read.inputs.dropped, code, factor)]
    notes += constant_notes(about[0])
    latents = tables[0][0].names or tuple(f"z{place}" for place in range(arrays[0].shape[-1]))
    train, values = parts[0]
    notes += _doubts(values, found, train, kinds, named)
    test = parts[1] if len(parts) > 1 else None
    return Inputs(train, values, test, found, latents, tuple(about), tuple(notes))


def code_array(table: Table) -> np.ndarray:
    from axiswise._columns import as_array

    array = as_array(table.contents, str(table.path))
    if array.ndim > 3:
        raise AxiswiseError(f"{table.path} must have axes (n, z), or (members, n, z). Got shape {array.shape}.")
    return array


def _factor_columns(tables: Sequence[Table]) -> "list[Columns]":
    """Factors of training and test alike; without names they are called f0, f1, …."""
    from axiswise._columns import as_columns_alike

    first = tables[0]
    for table in tables[1:]:
        if first.names and table.names and table.names != first.names:
            raise AxiswiseError(
                f"{table.path} must have the factors of {first.path} ({', '.join(first.names)}). "
                f"Got {', '.join(table.names)}."
            )
    read = as_columns_alike(*(table.contents for table in tables), what=" and ".join(str(one.path) for one in tables))
    names = read[0].names or tuple(f"f{place}" for place in range(read[0].values.shape[1]))
    return [columns._replace(names=names) for columns in read]


def _level_notes(columns: "Columns") -> list[str]:
    """How levels with names are numbered."""
    notes = []
    for name, levels in zip(columns.labels, columns.levels, strict=True):
        if levels:
            quoted = (repr(level) if "," in level else level for level in levels[:6])
            first = ", ".join(f"{place} {level}" for place, level in enumerate(quoted))
            notes.append(f"{name}: text, numbered as {len(levels)} levels ({first}{', …' if len(levels) > 6 else ''})")
    return notes


def _gap_notes(codes: np.ndarray, factors: "Columns", dropped: int, code: Table, factor: Table) -> list[str]:
    """How many rows were dropped, and where values were missing."""
    from axiswise._columns import bad_rows

    if not dropped:
        return []
    latents = code.names or tuple(f"z{place}" for place in range(codes.shape[-1]))
    places = [(np.isnan(codes), latents, code), (np.isnan(factors.values), factors.labels, factor)]
    told = [f"{bad_rows(bad, names)} of {table.path}" for bad, names, table in places if bad.any()]
    return [f"{dropped:,} of {len(factors.values):,} rows dropped: values are missing in {'; '.join(told)}"]


def constant_notes(read: "Read") -> list[str]:
    """What has no score or says nothing: factors that are constant or alone, and codes that do not vary."""
    notes = [f"{name}: constant, so that it has no score; means are over the others" for name in read.constant_factors]
    alone = [name for name in read.factor_names if name not in read.constant_factors]
    if len(alone) == 1:
        notes.append(
            f"{alone[0]}: the only factor, which makes dci, modularity, factor_vae and beta_vae 1 of any codes"
        )
    varying = np.atleast_1d(read.varying_latents)
    if not varying.all():
        flat = ", ".join(map(str, np.flatnonzero(varying == 0)))
        whose = f"{'members' if ',' in flat else 'member'} {flat}: " if len(varying) > 1 else ""
        notes.append(f"{whose}codes do not vary in any latent: the model has collapsed, and its scores mean nothing")
    return notes


def _check_lengths(codes: np.ndarray, factors: np.ndarray, code_file: Path, factor_file: Path) -> None:
    if codes.ndim < 2 or codes.shape[-2] == len(factors):
        return
    samples, rows = codes.shape[-2], len(factors)
    hint = "give the factors of the same samples."
    if codes.shape[-1] == rows:
        hint = f"{code_file} seems to have latents before samples: transpose it."
    elif factors.shape[1] == samples:
        hint = f"{factor_file} seems to have factors before samples: transpose it."
    elif abs(samples - rows) == 1:
        hint = "does one of them have a first line of names, and the other not?"
    raise AxiswiseError(
        f"Codes and factors must have as many samples. Got {samples:,} in {code_file} (shape {codes.shape}) and "
        f"{rows:,} in {factor_file} (shape {factors.shape}); {hint}"
    )


def _kinds(columns: "Columns", kinds: str | None, named: Mapping[str, str | None]) -> "tuple[Kind, ...]":
    """The kind of each factor: by name, or by --kinds, or by its type."""
    from axiswise.shapes import Kind

    names = columns.labels
    listed = names_in(kinds)
    if listed and (len(listed) not in (1, len(names)) or not set(listed) <= set(get_args(Kind))):
        raise AxiswiseError(
            f"--kinds must be one of {', '.join(get_args(Kind))}, or one for each of the {len(names)} factors "
            f"({', '.join(names)}). Got {kinds}."
        )
    found = dict(zip(names, listed * len(names) if len(listed) == 1 else listed or columns.kinds, strict=True))
    for kind, chosen in named.items():
        for name in names_in(chosen):
            if name not in names:
                raise AxiswiseError(f"--{kind} must name factors ({', '.join(names)}). Got {name!r}.")
            found[name] = kind
    return tuple(found.values())  # pyright: ignore[reportReturnType] (checked against Kind above)


def _doubts(
    columns: "Columns",
    found: "Sequence[Kind]",
    codes: np.ndarray,
    kinds: str | None,
    named: Mapping[str, str | None],
) -> list[str]:
    """What may have been meant otherwise than it was read."""
    from axiswise._columns import in_alphabet, whole_but_continuous

    notes = [told] if (told := in_alphabet(columns, found)) else []
    explicit = {name for names in named.values() for name in names_in(names)}
    whole = [] if kinds else [name for name in whole_but_continuous(columns, found) if name not in explicit]
    if whole:
        flag = f"--discrete '{','.join(whole)}'"
        notes.append(
            f"{', '.join(whole)}: whole numbers stored as floats, read as continuous; {flag} if they are levels"
        )
    if codes.shape[-2] < codes.shape[-1]:
        notes.append(f"{codes.shape[-2]} samples of {codes.shape[-1]} latents: are the arrays transposed?")
    return notes


def lines_about(inputs: Inputs) -> list[str]:
    members, samples, latents = inputs.codes.shape
    population = f"{members} members, " if members > 1 else ""
    test = f", {inputs.test[0].shape[-2]:,} more to test on" if inputs.test else ""
    kinds = zip(inputs.factor_names, inputs.kinds, inputs.factors.values.T, strict=True)
    factors = (
        f"{name} ({kind}, {len(np.unique(column))} values)" if kind == "discrete" else f"{name} ({kind})"
        for name, kind, column in kinds
    )
    lines = [f"{population}{samples:,} samples{test}, {latents} latents, factors: {', '.join(factors)}"]
    return lines + [f"note: {note}" for note in inputs.notes]
