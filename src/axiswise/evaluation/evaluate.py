"""`evaluate`: measures in, records out."""

import inspect
import math
import os
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.data.dataset import whole_identity
from axiswise.errors import AxiswiseError, NotDefined, warn
from axiswise.evaluation._arrays import store_arrays
from axiswise.evaluation._quantities import QUANTITIES, Quantities, at_same_points, by_member
from axiswise.geometry.activity import active_latents
from axiswise.numerics import permutation, repeatable
from axiswise.population import Population
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Group, Trained, settings_of
from axiswise.population.population import device_for
from axiswise.records import Record, address, locked, read_json, versions
from axiswise.records._files import append_rows
from axiswise.records._fingerprint import fingerprint
from axiswise.records._forms import WholeRunForm
from axiswise.records._layout import RECORDS_FILE, RECORDS_LOCK, RUN, RUN_FILE, arrays_file, partial_files
from axiswise.scores import Inputs, UndefinedScore

PACKAGE = Path(__file__).parents[1]
Measure = Callable[..., Any]
"""A function whose parameters name the quantities that it needs."""


@repeatable()
@checked
def evaluate(
    population: Population,
    dataset: FactorDataset,
    measures: Sequence[Measure],
    *,
    points: int = 10_000,
    seed: int = 0,
    out: str | Path | None = None,
    store: bool = True,
    device: str | torch.device | None = None,
) -> list[Record]:
    """Computes measures for every member and returns a record for each pair, ready for ``pandas.DataFrame``.

    A measure is any function. The names of its parameters are the quantities it needs, of: `x`, `factors`, `kinds`,
    `codes` (posterior means), `samples`, `variance`, `kl`, `posterior`, `decode` (E[x | z]), `decode_raw` (the
    decoder's own output), `jacobians`, `gram` (JᵀJ), `information` (Fisher's, of the latents), `prior`, `likelihood`,
    `beta`, `history`. Each is computed once for all members and passed with the member axis first; what all members
    share (`x`, `factors`) has no member axis. Parameters with a default that are not in that list are settings; fix
    them with `functools.partial`. The result has one value a member: an array or list of that length, or a named tuple
    whose first field is the value and whose other fields become detail; where the first is of the whole group, as in
    `scores.agreement`, the field `per_member` has the values. Wrap a function written for one model in `each`.

    Jacobians are taken at the codes of as many points as memory allows, and codes, variances and samples are cut to
    these in a measure that needs them. One with a default for `jacobians`, and for `gram` or `information` in their
    place, is called with the latter alone, at ten times as many points.

    What a member cannot give (a diverged one gives nothing, one without decoder no Jacobians, codes without noise no
    density) is a record with the reason, and so is a measure that raises :class:`~axiswise.errors.NotDefined`.

    The detail of a score has the number of `active_latents`, those whose mean posterior variance is below 0.8. At 0 the
    model has collapsed: its means still vary a little, and their score looks like one of a model that works. Factors
    that are constant at these points are named (`constant_factors`).

    Arguments:
        population: The members.
        dataset: Where to measure them.
        measures: What to measure.
        points: How many points of the dataset to use, drawn without replacement; all if it has fewer.
        seed: Decides which points.
        out: A run folder. The records are added to its own, and what a report draws (histories, codes, reconstructions,
            traversals) is stored in its ``arrays/``. None is the population's own folder, if it has one and the dataset
            is the one it was trained on, or another part of its split; what is measured elsewhere is not stored.
        store: Whether to store anything.
        device: Where to compute: "cpu", "cuda", …. None is where dataset or population were moved to, else where the
            members were trained. Models of your own stay where they are: name the device that they are on.

    Example:
        >>> from axiswise import data, models, objectives, scores
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(2))
        >>> def spread(codes):
        ...     return codes.std(dim=(1, 2))
        >>> records = evaluate(train(members, square), square, [scores.mig, spread], points=500)
        >>> [(record.measure, record.seed) for record in records]
        [('mig', 0), ('mig', 1), ('spread', 0), ('spread', 1)]
    """
    if points < 1:
        raise AxiswiseError(f"`points` must be at least 1. Got {points}.")
    needs = [_needs(measure) for measure in measures]
    target = (_own_folder(population, dataset) if out is None else Path(out)) if store else None
    if target is not None:
        _check_home(population, target)
    dataset = dataset.to(device_for(population, dataset.device, device))
    population = population if population.trained[0].external else population.to(dataset.device)
    chosen = permutation(seed, "evaluation", len(dataset))[:points]
    settings = {"points": len(chosen), "points_seed": seed, "versions": versions(), "device": str(dataset.device)}
    found: list[tuple[int, int, Record]] = []
    for group in _alike(population):
        together = [Quantities(group, dataset, chosen.to(dataset.device))]
        parts = _parts(group, lambda trained: trained.history["step"].tobytes())
        # Histories stack only where they have the same steps, which members that a rule stopped need not.
        by_history = together if len(parts) == 1 else [replace(together[0], group=part) for part in parts]
        for order, needed in enumerate(needs):
            for quantities in by_history if "history" in (*needed.required, *needed.optional) else together:
                began = time.perf_counter()
                results = _measure(needed, quantities)
                seconds = round((time.perf_counter() - began) / len(results), 6)
                own = quantities.group
                for position, trained, result in zip(own.positions, own.trained, results, strict=True):
                    about = {**describe_member(trained, dataset), "measure": needed.name, **result._asdict()}
                    found.append((order, position, Record(**about, code=needed.code, **settings, seconds=seconds)))
    records = [record for _, _, record in sorted(found, key=lambda entry: entry[:2])]
    if target is not None:
        if any(trained.external for trained in population.trained):
            # Models that were trained elsewhere have no run folder yet, which a report needs.
            folder = RunFolder(target)
            with folder.locked():
                folder.open(dataset.identity, "their own")
        with locked(target / RECORDS_LOCK, "", math.inf):  # of others who measure
            for left in partial_files(arrays_file(target, "").parent):
                left.unlink()
            store_arrays(population, dataset, target, seed=seed)
            append_rows(target / RECORDS_FILE, records)
    return records


def _own_folder(population: Population, dataset: FactorDataset) -> Path | None:
    """The folder of a population, if the dataset is what its members were trained on, or another part of that."""
    folder = population.folder
    if folder is None or whole_identity(population.trained[0].about["dataset"]) != whole_identity(dataset.identity):
        return None
    if not (folder / RUN_FILE).is_file():
        raise AxiswiseError(
            f"Expected the run folder {folder}, which the population was stored in. It is gone. Pass another `out`, or "
            "store=False."
        )
    if not os.access(folder, os.W_OK):
        warn(f"{folder} is read-only: what is measured is not stored. Pass an `out` to store it.")
        return None
    return folder


def _check_home(population: Population, folder: Path) -> None:
    """Raises if a folder is of members that were trained on other data: its records would belong to two runs."""
    home = read_json(folder / RUN_FILE, RUN, WholeRunForm)["dataset"] if (folder / RUN_FILE).is_file() else None
    for trained in population.trained:
        if home is not None and not trained.external and trained.about["dataset"] != home:
            raise AxiswiseError(
                f"{folder} has members that were trained on {home}. Got member {trained.member.address}, which was "
                f"trained on {trained.about['dataset']}. Choose another `out`."
            )


@checked
def each(measure: Measure) -> Measure:
    """A measure of whole populations from one written for a single model: it is called for each member in turn.

    Example:
        >>> def range_of(codes):
        ...     return float(codes.max() - codes.min())
        >>> each(range_of)(codes=torch.tensor([[[0.0], [1.0]], [[0.0], [5.0]]]))
        [1.0, 5.0]
    """

    def looped(**quantities: Any) -> Any:
        shares = [by_member(name, value) for name, value in quantities.items()]
        if all(isinstance(share, repeat) for share in shares):
            raise AxiswiseError(
                f"A measure in `each` must need what differs between members. Got {', '.join(quantities)}."
            )
        results = [measure(**dict(zip(quantities, own, strict=True))) for own in zip(*shares, strict=False)]
        if hasattr(results[0], "_fields"):
            return type(results[0])(*(list(column) for column in zip(*results, strict=True)))
        return results

    looped.__name__ = name_of(measure)
    looped.__signature__ = inspect.signature(measure)  # pyright: ignore[reportFunctionMemberAccess] (inspect honours it)
    return looped


@checked
def name_of(measure: Measure) -> str:
    """What rows call a measure: its function's name, with the settings fixed by `functools.partial`.

    Example:
        >>> from axiswise import geometry
        >>> name_of(geometry.dto), name_of(partial(geometry.dto, latents="all"))
        ('dto', 'dto(latents=all)')
    """
    if isinstance(measure, partial):
        settings = ", ".join(f"{name}={getattr(value, '__name__', value)}" for name, value in measure.keywords.items())
        return f"{name_of(measure.func)}({settings})" if settings else name_of(measure.func)
    return getattr(measure, "__name__", type(measure).__name__)


def describe_member(trained: Trained, dataset: FactorDataset) -> dict[str, Any]:
    """The fields that identify a record's member and what it was measured on."""
    about, known = settings_of(trained), not trained.external
    measured_on = {
        "dataset": dataset.name,
        "data": {name: value for name, value in dataset.arguments.items() if name != "changes"},
        "changes": dataset.arguments.get("changes", []),
        "factors": list(dataset.space.names),
    }
    trained_on = address(trained.about["dataset"]) if known else None
    made = {"trained_on": trained_on, "hardware": trained.about.get("hardware")}
    return {"member": about.pop("member"), **measured_on, **about, **made}


class Signature(NamedTuple):
    """A measure, its name and own code, and which quantities it needs and can do without."""

    measure: Measure
    name: str
    code: dict[str, str]
    required: tuple[str, ...]
    optional: tuple[str, ...]


class MeasureResult(NamedTuple):
    """A measure of one member: its value, or the reason why it has none. The fields are those of a record."""

    value: float | None
    reason: str | None
    detail: dict[str, Any]


def _needs(measure: Measure) -> Signature:
    """Reads from a measure's signature which quantities it needs."""
    required, optional = [], []
    for name, parameter in inspect.signature(measure).parameters.items():
        without_default = parameter.default is parameter.empty
        if name in QUANTITIES:
            (required if without_default else optional).append(name)
        elif without_default:
            raise AxiswiseError(
                f"Measure {name_of(measure)!r} needs {name!r}. A measure may need {', '.join(QUANTITIES)}; "
                "fix other parameters with functools.partial."
            )
    return Signature(measure, name_of(measure), fingerprint(measure), tuple(required), tuple(optional))


def _alike(population: Population) -> list[Group]:
    """Groups whose members are measured together: one model, one history's length, all trained or all diverged.

    The length is the planned one: members that a rule stopped belong together, wherever they stopped.
    """

    def kind(trained: Trained) -> tuple[int, int, bool]:
        return trained.member.steps, trained.member.interval, trained.diverged

    return [part for group in population.groups for part in _parts(group, kind)]


def _parts(group: Group, key: Callable[[Trained], Any]) -> list[Group]:
    """The members of a group that have the same key, in order of first appearance."""
    parts: dict[Any, list[int]] = {}
    for row, trained in enumerate(group.trained):
        parts.setdefault(key(trained), []).append(row)
    return [
        Group(tuple(group.positions[row] for row in rows), tuple(group.trained[row] for row in rows))
        for rows in parts.values()
    ]


def _measure(needs: Signature, quantities: Quantities) -> list[MeasureResult]:
    """The results of one measure for all members of a group."""
    members = quantities.group.trained
    if members[0].diverged:
        return [MeasureResult(None, trained.status, {}) for trained in members]
    # A measure that takes either gets products instead of Jacobians, at more points.
    product = next((name for name in needs.optional if QUANTITIES[name].replaces in needs.optional), None)
    arguments = {}
    for name in (*needs.required, *needs.optional):
        if product and name == QUANTITIES[product].replaces:
            continue
        try:
            arguments[name] = quantities[name]
        except NotDefined as reason:
            if name in needs.required or name == product:  # the measure has a default for others
                return [MeasureResult(None, str(reason), {})] * len(members)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndefinedScore)  # the records say it
            result = needs.measure(**at_same_points(arguments))
    except NotDefined as reason:  # such as a term of the history that this objective does not record
        return [MeasureResult(None, str(reason), {})] * len(members)
    except (AxiswiseError, MemoryError):
        raise
    except Exception as error:  # a measure may be anybody's
        words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
        raise AxiswiseError(f"Measure {needs.name!r} raised {words} ({_line_of(error)}).") from error
    fields = dict(zip(result._fields, result, strict=True)) if hasattr(result, "_fields") else {"value": result}
    about = _about_inputs(fields.pop("inputs"), quantities) if _has_inputs(fields) else {}
    # A score of the whole group has a value of each member besides.
    first = "per_member" if "per_member" in fields else next(iter(fields))
    others = [name for name in fields if name != first]
    values = _array(fields[first])
    if values.shape != (len(members),):
        raise AxiswiseError(
            f"Measure {needs.name!r} must return one value for each of {len(members)} members. "
            f"Got shape {values.shape}. If it is written for one model, wrap it in axiswise.evaluation.each."
        )
    results = []
    for row, value in enumerate(values.tolist()):
        detail = {name: _own(fields[name], row, len(members), _is_shared(result, name)) for name in others}
        detail |= {name: own[row] for name, own in about.items()}
        known = isinstance(value, bool | int) or math.isfinite(value)
        reason = None if known else _why_not_finite(value, detail)
        results.append(MeasureResult(value if known else None, reason, detail))
    return results


def _line_of(error: Exception) -> str:
    """Where a measure raised an error: the last line of code that is neither axiswise's nor an installed package's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        each
        for each in frames
        if "site-packages" not in each.filename and not Path(each.filename).is_relative_to(PACKAGE)
    ]
    last = own[-1:] or frames[-1:]
    return f"{last[0].filename}, line {last[0].lineno}"


def _why_not_finite(value: float, detail: Mapping[str, Any]) -> str:
    """Why a member has no value of a measure, as far as the other fields of its result tell."""
    if 0 in (detail.get("active"), detail.get("active_latents")):
        return "no latent is active"
    return f"the measure gave {value}"


def _has_inputs(fields: Mapping[str, Any]) -> bool:
    """Whether these are the fields of a score; from `each`, lists of those of each member."""
    inputs = fields.get("inputs")
    return isinstance(inputs[0] if isinstance(inputs, list) and inputs else inputs, Inputs)


def _about_inputs(inputs: Inputs | list[Inputs], quantities: Quantities) -> dict[str, list[Any]]:
    """What a score says about its inputs, for each member: active latents, by the posteriors, and constant factors.

    Codes alone do not show that a model has collapsed: the means of inactive latents still vary a little.
    """
    inputs = inputs[0] if isinstance(inputs, list) else inputs
    active = active_latents(quantities["variance"], quantities["codes"].shape).sum(-1).tolist()
    named = dict(zip(inputs.factor_names, quantities.dataset.space.names, strict=False))
    constant = [named[name] for name in inputs.constant_factors]
    return {"active_latents": active} | ({"constant_factors": [constant] * len(active)} if constant else {})


def _array(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, torch.Tensor) else np.asarray(value)


def _own(field: Any, row: int, members: int, shared: bool) -> Any:
    """A member's share of a field: its row where there is one for each member, else all of it; NaN as None."""
    if hasattr(field, "_asdict"):  # such as an interval
        return {name: _own(value, row, members, shared) for name, value in field._asdict().items()}
    if isinstance(field, str | bool | int | float) or field is None:
        return None if isinstance(field, float) and not math.isfinite(field) else field
    array = _array(field)
    array = np.asarray(array[row] if array.ndim and len(array) == members and not shared else array)
    if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
        known, array = np.isfinite(array), array.astype(object)
        array = np.where(known, array, np.array(None, dtype=object))
    return array.tolist()


def _is_shared(result: Any, name: str) -> bool:
    """Whether a field is declared without an axis of members, so that its length is not their number."""
    axes = getattr(getattr(type(result), "__annotations__", {}).get(name), "dim_str", "...")
    return axes.split()[:1] not in (["..."], ["p"])
