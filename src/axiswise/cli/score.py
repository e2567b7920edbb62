"""`axiswise score`: every score of codes and factors in files."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args, get_type_hints

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from axiswise.cli._agreement import print_agreement
from axiswise.cli._outputs import LAST_SEED, Force, as_json, check_drawing, check_output
from axiswise.cli._score_inputs import Inputs, lines_about, names_in, noted, read_inputs
from axiswise.errors import AxiswiseError, suggestion

if TYPE_CHECKING:  # these would import PyTorch or scipy
    from axiswise.statistics import Interval

WIDE = 150  # columns of a table that goes to a file or a pipe
SHOWN = 4  # members whose matrices are drawn


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
    factors: Annotated[
        str | None,
        typer.Argument(
            help="Their factors (n, k), or (n) for one, in any of these formats; with --agreement, other codes."
        ),
    ] = None,
    more: Annotated[list[str] | None, typer.Argument(help="With --agreement, more codes.")] = None,
    agreement: Annotated[
        bool,
        typer.Option("--agreement", help="Compare models at the same points, without factors: all files are codes."),
    ] = False,
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
    and codes that do not vary. With --agreement, score instead how far models agree on their latents.
    """
    missing = "drop" if drop_missing else "raise"
    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDE)
    named = {"discrete": discrete, "continuous": continuous, "circular": circular}
    if agreement:
        of_factors = {"scores": scores, "kinds": kinds, **named, "out": out}
        of_factors |= {"test-codes": test_codes, "test-factors": test_factors}
        if unused := [f"--{name}" for name, value in of_factors.items() if value is not None]:
            raise AxiswiseError(f"--agreement compares codes, without factors. Leave out {', '.join(unused)}.")
        files = [codes, *([] if factors is None else [factors]), *(more or [])]
        check_output(json_file, force=force, inputs=files)
        print_agreement(files, missing, json_file, console)
        return
    if factors is None:
        raise AxiswiseError("Expected codes and their factors. Got codes alone; --agreement compares codes of models.")
    if more:
        raise AxiswiseError(
            f"Expected codes and their factors. Got {1 + len(more)} files besides; --agreement compares codes."
        )
    chosen = _named(scores)
    check_output(json_file, force=force, inputs=(codes, factors, test_codes, test_factors))
    if out:
        check_drawing("--out")
    inputs = read_inputs(codes, factors, test_codes, test_factors, kinds, named, missing)
    for line in lines_about(inputs):
        console.print(Text(line), soft_wrap=True)
    results = []
    for name, function in chosen.items():
        with console.status(f"{name} …"), noted():  # on a terminal only
            results.append(_compute(name, function, inputs, seed))
    console.print(_grid(results, len(inputs.codes)))
    if json_file:
        from axiswise.records import write_json

        write_json(json_file, _form(inputs, results, codes, factors, seed))
    if out:
        with noted():
            pictures = _pictures(inputs, results, out)
        for picture in pictures:
            console.print(Text(f"picture: {picture}"))


def catalogue() -> dict[str, Callable[..., Any]]:
    """Every score of single codes that the package exports, by name."""
    from axiswise import scores

    functions = {name: getattr(scores, name) for name in scores.__all__}
    declared = {name: scores.declaration(function) for name, function in functions.items()}
    return {name: functions[name] for name, about in declared.items() if about and not about.compares}


def _named(names: str | None) -> dict[str, Callable[..., Any]]:
    """The scores of these names; by default those that need nothing but codes and factors."""
    known = catalogue()
    if names is None:
        return {name: function for name, function in known.items() if not _lacks(function)}
    chosen = [name.lower().replace("-", "_") for name in names_in(names)]
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        meant = "".join(suggestion(name, known) for name in unknown)
        got = ", ".join(unknown) or "nothing"
        raise AxiswiseError(f"--scores must name some of {', '.join(known)}. Got {got}.{meant}")
    return {name: known[name] for name in chosen}


def _lacks(function: Callable[..., Any]) -> list[str]:
    """What a score needs besides codes and factors."""
    parameters = inspect.signature(function).parameters.items()
    return [name for name, one in parameters if one.default is one.empty and name not in ("codes", "factors")]


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
        chance = chance(sizes, inputs.codes.shape[-1]) if sizes else None
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
    return as_json(
        {**about, **samples, **names, "seed": seed, "notes": inputs.notes, "versions": versions(), "rows": rows}
    )


def _pictures(inputs: Inputs, results: Sequence[ScoreResult], out: Path) -> list[Path]:
    """Draws matrices of factors by latents: mutual information, and the importances of DCI where computed."""
    from axiswise.report import heat_map_sheet
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
        heat_map_sheet(
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
