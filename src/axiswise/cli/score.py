"""`axiswise score`: every score of codes and factors in files."""

import inspect
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from axiswise.cli._outputs import LAST_SEED, Force, check_output
from axiswise.cli._tables import Table, read_table
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # these would import PyTorch or scipy
    from axiswise._columns import Columns
    from axiswise.scores import Inputs as Read
    from axiswise.shapes import Kind, OnMissing
    from axiswise.statistics import Interval

WIDE = 150  # columns of a table that goes to a file or a pipe
SHOWN = 4  # members whose matrices are drawn


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


class ScoreResult(NamedTuple):
    """One score: numbers by name with an interval each, or the reason why there are none."""

    name: str
    values: dict[str, list[float]]
    intervals: "dict[str, Interval]"
    chance: float | None
    best: float | None
    settings: dict[str, Any]
    detail: dict[str, Any]
    reason: str | None


def score(
    codes: Annotated[
        str, typer.Argument(help="Codes (n, z), or (members, n, z): .npy, .npz or file.npz:key, .csv, .tsv, .parquet.")
    ],
    factors: Annotated[str, typer.Argument(help="Their factors (n, k), or (n) for one, in any of these formats.")],
    scores: Annotated[
        str | None, typer.Option(help="Names of scores, in any case, separated by commas; all that apply if not given.")
    ] = None,
    kinds: Annotated[
        str | None, typer.Option(help="discrete, continuous or circular: one for all factors, or one for each.")
    ] = None,
    discrete: Annotated[str | None, typer.Option(help="Names of factors that have levels.")] = None,
    continuous: Annotated[str | None, typer.Option(help="Names of factors that are real numbers.")] = None,
    circular: Annotated[
        str | None, typer.Option(help="Names of factors that are angles, or levels on a circle.")
    ] = None,
    test_codes: Annotated[
        str | None, typer.Option(help="Codes to test on; a third of CODES is held out if not given.")
    ] = None,
    test_factors: Annotated[str | None, typer.Option(help="Factors to test on.")] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing values instead of refusing them.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=LAST_SEED, help="Decides what is drawn or held out.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write numbers and details to this file, too.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for heat maps of factors by latents (PNG).")] = None,
    force: Force = False,
) -> None:
    """Score codes against factors in files. Integers, truth values and text are levels of a discrete factor, other
    numbers are continuous, unless an option overrides that. A population gives the mean over its members ± its 95 %
    Student t interval. A score that cannot be computed is a line with the reason; notes name factors that are constant
    and codes that do not vary.
    """
    chosen = _named(scores)
    check_output(json_file, force=force, inputs=(codes, factors, test_codes, test_factors))
    draw = _drawing() if out else None
    named = {"discrete": discrete, "continuous": continuous, "circular": circular}
    inputs = _read_inputs(codes, factors, test_codes, test_factors, kinds, named, "drop" if drop_missing else "raise")
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    for line in _about(inputs):
        console.print(Text(line), soft_wrap=True)
    results = []
    for name, function in chosen.items():
        with console.status(f"{name} …"), _noted():  # on a terminal only
            results.append(_compute(name, function, inputs, seed))
    console.print(_grid(results, len(inputs.codes)))
    if json_file:
        from axiswise.records import write_json

        write_json(json_file, _form(inputs, results, codes, factors, seed))
    if out and draw:
        with _noted():
            pictures = _pictures(inputs, results, out, draw)
        for picture in pictures:
            console.print(Text(f"picture: {picture}"))


@contextmanager
def _noted() -> Iterator[None]:
    """Silences the warnings of scores about what is constant: the notes say it once."""
    from axiswise.scores import UndefinedScore

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedScore)
        yield


def catalogue() -> dict[str, Callable[..., Any]]:
    """Every score that the package exports, by name."""
    from axiswise import scores

    functions = {name: getattr(scores, name) for name in scores.__all__}
    return {name: function for name, function in functions.items() if scores.declaration(function)}


def _named(names: str | None) -> dict[str, Callable[..., Any]]:
    """The scores of these names; by default those that need nothing but codes and factors."""
    known = catalogue()
    if names is None:
        return {name: function for name, function in known.items() if not _lacks(function)}
    chosen = [name.lower().replace("-", "_") for name in _list(names)]
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise AxiswiseError(f"--scores must name some of {', '.join(known)}. Got {', '.join(unknown) or 'nothing'}.")
    return {name: known[name] for name in chosen}


def _lacks(function: Callable[..., Any]) -> list[str]:
    """What a score needs besides codes and factors."""
    parameters = inspect.signature(function).parameters.items()
    return [name for name, one in parameters if one.default is one.empty and name not in ("codes", "factors")]


def _list(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _read_inputs(
    codes: str,
    factors: str,
    test_codes: str | None,
    test_factors: str | None,
    kinds: str | None,
    named: Mapping[str, str | None],
    missing: "OnMissing",
) -> Inputs:
    """Reads the files, and refuses what no score can be computed from."""
    from axiswise.scores import read_pair

    if (test_codes is None) != (test_factors is None):
        raise AxiswiseError("--test-codes and --test-factors go together. Got one without the other.")
    files = [(codes, factors), *([(test_codes, test_factors)] if test_codes and test_factors else [])]
    tables = [(read_table(code), read_table(factor)) for code, factor in files]
    columns = _factor_columns([factor for _, factor in tables])
    arrays = [_codes(code) for code, _ in tables]
    found = _kinds(columns[0], kinds, named)
    parts, about, notes = [], [], _level_notes(columns[0])
    for array, own, (code, factor) in zip(arrays, columns, tables, strict=True):
        _check_lengths(array, own.values, code.path, factor.path)
        try:
            with _noted():
                read = read_pair(array, own, found, missing)
        except AxiswiseError as error:
            listed = ", ".join(own.labels)
            raise AxiswiseError(f"{error} Read {code.path} and {factor.path} (factors {listed}).") from error
        members = read.codes if read.codes.ndim > 2 else read.codes[None]
        parts.append((members, own._replace(values=read.factors.values)))
        about.append(read.inputs)
        notes += [*code.notes, *factor.notes, *_gap_notes(array, own, read.inputs.dropped, code, factor)]
    notes += _constant_notes(about[0])
    latents = tables[0][0].names or tuple(f"z{place}" for place in range(arrays[0].shape[-1]))
    train, values = parts[0]
    notes += _doubts(values, found, train, kinds, named)
    test = parts[1] if len(parts) > 1 else None
    return Inputs(train, values, test, found, latents, tuple(about), tuple(notes))


def _codes(table: Table) -> np.ndarray:
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
            first = ", ".join(f"{place} {level}" for place, level in enumerate(levels[:6]))
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


def _constant_notes(read: "Read") -> list[str]:
    """What has no score: factors that are constant, and codes that do not vary."""
    notes = [f"{name}: constant, so that it has no score; means are over the others" for name in read.constant_factors]
    varying = np.atleast_1d(read.varying_latents)
    if not varying.all():
        whose = f"members {', '.join(map(str, np.flatnonzero(varying == 0)))}: " if len(varying) > 1 else ""
        notes.append(f"{whose}codes do not vary in any latent: the model has collapsed, and its scores mean nothing")
    return notes


def _check_lengths(codes: np.ndarray, factors: np.ndarray, code_file: Path, factor_file: Path) -> None:
    if codes.ndim < 2 or codes.shape[-2] == len(factors):
        return
    samples, rows = codes.shape[-2], len(factors)
    hint = "give the factors of the same samples"
    if codes.shape[-1] == rows:
        hint = f"{code_file} seems to have latents before samples: transpose it"
    elif factors.shape[1] == samples:
        hint = f"{factor_file} seems to have factors before samples: transpose it"
    elif abs(samples - rows) == 1:
        hint = "does one of them have a first line of names, and the other not?"
    raise AxiswiseError(
        f"Codes and factors must have as many samples. Got {samples:,} in {code_file} (shape {codes.shape}) and "
        f"{rows:,} in {factor_file} (shape {factors.shape}); {hint}."
    )


def _kinds(columns: "Columns", kinds: str | None, named: Mapping[str, str | None]) -> "tuple[Kind, ...]":
    """The kind of each factor: by name, or by --kinds, or by its type."""
    from axiswise.shapes import Kind

    names = columns.labels
    listed = _list(kinds)
    if listed and (len(listed) not in (1, len(names)) or not set(listed) <= set(get_args(Kind))):
        raise AxiswiseError(
            f"--kinds must be one of {', '.join(get_args(Kind))}, or one for each of the {len(names)} factors "
            f"({', '.join(names)}). Got {kinds}."
        )
    found = dict(zip(names, listed * len(names) if len(listed) == 1 else listed or columns.kinds, strict=True))
    for kind, chosen in named.items():
        for name in _list(chosen):
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
    notes = []
    explicit = {name for names in named.values() for name in _list(names)}
    whole = [
        name
        for name, column, kind in zip(columns.labels, columns.values.T, found, strict=True)
        if kind == "continuous" and not kinds and name not in explicit and (column == np.floor(column)).all()
    ]
    if whole:
        flag = f"--discrete '{','.join(whole)}'"
        notes.append(
            f"{', '.join(whole)}: whole numbers stored as floats, read as continuous; {flag} if they are levels"
        )
    if codes.shape[-2] < codes.shape[-1]:
        notes.append(f"{codes.shape[-2]} samples of {codes.shape[-1]} latents: are the arrays transposed?")
    return notes


def _about(inputs: Inputs) -> list[str]:
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


def _compute(name: str, function: Callable[..., Any], inputs: Inputs, seed: int) -> ScoreResult:
    """Computes one score of all members, or gives the reason why it cannot."""
    from axiswise.scores import as_factors, declaration
    from axiswise.scores._value import Value
    from axiswise.statistics import mean_interval

    declared = declaration(function)
    chance = declared.chance if declared else None
    if callable(chance):
        read = as_factors(inputs.factors, len(inputs.factors.values), inputs.kinds)
        sizes = [len(np.unique(column)) for column in read.values.T[np.ptp(read.values, axis=0) > 0]]
        chance = chance(sizes, inputs.codes.shape[-1]) if sizes and read.levelled.all() else None
    empty = ScoreResult(name, {}, {}, chance, declared.best if declared else None, {}, {}, None)
    if lacking := _lacks(function):
        return empty._replace(reason=f"needs {', '.join(lacking)} besides codes and factors: use it from Python")
    available = {**inputs._asdict(), "seed": seed}
    parameters = inspect.signature(function).parameters
    try:
        result = function(**{key: value for key, value in available.items() if key in parameters and value is not None})
    except AxiswiseError as error:
        return empty._replace(reason=str(error))
    hints = get_type_hints(type(result))
    values, settings, detail = {}, {}, {}
    for field, value in zip(result._fields, result, strict=True):
        hint = hints.get(field)
        if field == "score" or hint is Value or float in get_args(hint):  # one number a member
            values[field] = np.atleast_1d(np.asarray(value, dtype=np.float64)).tolist()
        elif field == "inputs":  # said once, for all scores
            continue
        elif _setting(value):
            settings[field] = value
        else:
            detail[field] = value
    intervals = {field: mean_interval(found) for field, found in values.items()}
    return empty._replace(values=values, intervals=intervals, settings=settings, detail=detail)


def _setting(value: Any) -> bool:
    """Whether a field is a setting of a score rather than a result."""
    plain = str | int | float | None
    return isinstance(value, plain) or (isinstance(value, tuple) and all(isinstance(part, plain) for part in value))


def _grid(results: Sequence[ScoreResult], members: int) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("score", no_wrap=True)
    grid.add_column(f"mean ± 95 % of {members}" if members > 1 else "value", justify="right", no_wrap=True)
    for heading in ("chance", "best"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("how")
    for result in results:
        if result.reason is not None:
            grid.add_row(result.name, "–", *_ends(result), Text(result.reason, style="italic"))
            continue
        for place, (field, interval) in enumerate(result.intervals.items()):
            if place == 0:
                grid.add_row(result.name, _number(interval), *_ends(result), Text(_how(result.settings)))
            else:
                grid.add_row(f"  {field.replace('_', ' ')}", _number(interval), "", "", "")
    return grid


def _ends(result: ScoreResult) -> tuple[str, str]:
    chance, best = ("–" if value is None else f"{value:.3f}" for value in (result.chance, result.best))
    return chance, best


def _number(interval: "Interval") -> str:
    if math.isnan(interval.estimate):
        return "undefined"
    half = interval.high - interval.estimate
    counted = f" ({interval.known} of {interval.known + interval.left_out})" if interval.left_out else ""
    return f"{interval.estimate:.3f}" + (f" ± {half:.3f}" if math.isfinite(half) else "") + counted


def _how(settings: Mapping[str, Any]) -> str:
    """The estimator, then its settings."""
    rest = (
        f"{name.replace('_', ' ')} {' + '.join(map(_plain, value if isinstance(value, tuple) else (value,)))}"
        for name, value in settings.items()
        if name != "estimator" and value is not None
    )
    return "; ".join(part for part in (str(settings.get("estimator", "")), ", ".join(rest)) if part)


def _plain(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {True: "yes", False: "no"}.get(value, str(value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _form(inputs: Inputs, results: Sequence[ScoreResult], codes: str, factors: str, seed: int) -> dict[str, Any]:
    from axiswise.records import versions

    rows = [
        {
            "score": result.name,
            "value": result.intervals["score"].estimate if result.intervals else None,
            "values": result.values,
            "intervals": {field: interval._asdict() for field, interval in result.intervals.items()},
            "reason": result.reason,
            "chance": result.chance,
            "best": result.best,
            "settings": result.settings,
            "detail": result.detail,
        }
        for result in results
    ]
    about = {"format": "axiswise-scores-1", "codes": codes, "factors": factors, "members": len(inputs.codes)}
    names = {"factor_names": inputs.factor_names, "latent_names": inputs.latent_names, "kinds": inputs.kinds}
    read = inputs.about[0]
    names |= {"levels": inputs.factors.levels, "constant_factors": read.constant_factors, "dropped": inputs.dropped}
    names |= {"varying_latents": np.atleast_1d(read.varying_latents)}
    samples = {"samples": inputs.codes.shape[-2], "test_samples": inputs.test[0].shape[-2] if inputs.test else None}
    return _json(
        {**about, **samples, **names, "seed": seed, "notes": inputs.notes, "versions": versions(), "rows": rows}
    )


def _json(value: Any) -> Any:
    """Arrays as lists and NaN as null, at any depth."""
    if isinstance(value, dict):
        return {str(key): _json(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_json(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return _json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _drawing() -> Callable[..., Path]:
    """The function that draws heat maps, imported before anything is computed."""
    try:
        from axiswise.report import heat_map_sheet
    except ImportError as error:
        raise AxiswiseError("--out needs matplotlib. Install it: pip install 'axiswise[report]'.") from error
    return heat_map_sheet


def _pictures(inputs: Inputs, results: Sequence[ScoreResult], out: Path, draw: Callable[..., Path]) -> list[Path]:
    """Draws matrices of factors by latents: mutual information, and the importances of DCI where computed."""
    from axiswise.scores import mig

    found = mig(inputs.codes, inputs.factors, kinds=inputs.kinds)
    with np.errstate(invalid="ignore"):
        shares = found.information / found.entropies[:, None]
    matrices: list[tuple[str, Any, str, float | None]] = [
        ("information", shares, "mutual information, as a share of the factor's entropy", 1.0)
    ]
    importance = next((one.detail["importance"] for one in results if one.name == "dci" and one.detail), None)
    if importance is not None:
        quantity = "importance of the latent in the prediction of the factor (DCI)"
        matrices.append(("importance", np.swapaxes(importance, -2, -1), quantity, 1.0))
    score = np.asarray(found.score)
    members = np.argsort(-score, kind="stable")
    shown = members[np.unique(np.linspace(0, len(members) - 1, min(SHOWN, len(members))).round().astype(int))]
    titles = [f"MIG {score[member]:.3f}" + (f", member {member}" if len(members) > 1 else "") for member in shown]
    paths = []
    for name, stack, quantity, top in matrices:
        path = out / f"{name}.png"
        draw(
            [np.asarray(stack)[member] for member in shown],
            path,
            factors=inputs.factor_names,
            latents=inputs.latent_names,
            quantity=quantity,
            titles=titles,
            top=top,
        )
        paths.append(path)
    return paths
