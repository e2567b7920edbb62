"""Calls every public function with one argument that is wrong, and counts what comes back.

    python tests/fuzz/campaign.py --calls 10000 --seed 0

The calls are generated from the public API itself: names from ``__all__``, valid arguments from annotations (see
``examples.py``), wrong ones from a pool of hostile values and from changes of the valid one. Allowed answers are a
result whose headline is finite and in its declared range, and an `AxiswiseError` that names an argument.

``test_api.py`` runs it with fewer calls.
"""

import argparse
import datetime
import faulthandler
import importlib
import inspect
import math
import os
import pkgutil
import random
import re
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

import examples

import axiswise
from axiswise.errors import AxiswiseError
from axiswise.scores import declaration

SECONDS = 20  # of one call
BYTES = 8 * 2**30  # of address space

# Public callables that are not called, and why.
LEFT_OUT = {
    "cli.main": "reads the command line, which has a campaign of its own",
    "cli.app": "reads the command line, which has a campaign of its own",
    "cli.interrupted": "ends the command line",
    "cli.add_command": "adds to the command line",
    "attack.attack": "trains for minutes: `train` and `learn` after `choose`",
    "attack.learn": "trains for minutes",
    "attack.judge": "trains for minutes",
    "attack.choose": "needs members that were trained until they differ",
    "attack.verdicts": "reads the folder of a judgement, which trains for minutes",
    "engines.run_study": "starts processes",
    "data.celeba": "its files are not public",
    "data.shapes3d": "its files are not everywhere",
    "data.stored": "renders every batch: part of the training step",
    "objectives.elbo_terms": "part of the training step",
    "population.program.bind": "part of the training step",
    "population.program.over_members": "part of the training step",
    "schedules.value_at": "part of the training step",
    "distributions.priors.kl_at": "part of the training step",
    "distributions.estimators.aggregate_log_density": "part of the training step",
    "distributions.estimators.total_correlation": "part of the training step",
    "geometry.curvature_term": "part of the training step",
    "data.subset": "takes any keyword",
    "population.grid": "takes any keyword",
    "trackers.mlflow": "writes to another program",
    "trackers.wandb": "writes to another program",
    "trackers.tensorboard": "writes to another program",
}


# Arguments that are types, written in code: no value of a user's.
ANNOTATIONS = {"records.read_json.form", "records.read_tensors.form"}


def doors() -> dict[str, Callable[..., Any]]:
    """Every public function and every public class that is constructed by users, by its public name."""
    found: dict[int, tuple[str, Any]] = {}
    modules = [name for _, name, _ in pkgutil.walk_packages(axiswise.__path__, "axiswise.")]
    for module in sorted(modules, key=lambda name: (name.count("."), name)):
        if any(part.startswith("_") for part in module.split(".")):
            continue
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", ()):
            value = getattr(loaded, name)
            if _is_door(value):
                found.setdefault(id(value), (f"{module.removeprefix('axiswise.')}.{name}", value))
    return dict(sorted(found.values()))


def _is_door(value: Any) -> bool:
    """Functions and dataclasses; named tuples, protocols and errors hold what they are given."""
    if isinstance(value, type):
        return is_dataclass(value) and not getattr(value, "_is_protocol", False)
    return inspect.isroutine(value) or (callable(value) and hasattr(value, "__wrapped__"))


def arguments(place: str, door: Callable[..., Any]) -> dict[str, Any]:
    """A valid call; what is an annotation itself, and no data, is left as it is."""
    collecting = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(door).parameters.values()
    return {one.name: examples.valid(place, one) for one in parameters if one.kind not in collecting}


def call(door: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Calls with arguments by name, or by position where they have none."""
    parameters = inspect.signature(door).parameters
    first = [given[name] for name, one in parameters.items() if one.kind is one.POSITIONAL_ONLY]
    rest = {
        name: value for name, value in given.items() if parameters[name].kind is not inspect.Parameter.POSITIONAL_ONLY
    }
    result = door(*first, **rest)
    return list(result) if isinstance(result, Iterator) else result


class Unshowable:
    """What cannot even be printed."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


def pool() -> list[Any]:
    """Values that are wrong almost anywhere."""
    return [
        None, math.nan, math.inf, -math.inf, 0, -1, -0.5, 0.5, True, 2**31, 2**63, 10**400, 1e308, -1e308, 5e-324, 1j,
        "", "x", b"x", object(), Unshowable(), lambda: 0, int, (), [], {}, [[1.0], [1.0, 2.0]], [None], ["a", 1],
        {1: 2}, datetime.datetime(2026, 1, 1),
        np.float64("nan"), np.int64(3), np.array(3.0), np.array([]), np.zeros((0, 3)),
        np.zeros((2, 2, 2, 2)), np.array(["a", "b"]), np.array([1j, 2.0]), np.array(["2026-01-01"], "datetime64[D]"),
        np.array([object()]), np.array([2**63], np.uint64), torch.tensor(math.nan), torch.tensor([]), torch.zeros(0, 3),
        torch.ones(2, 2, 2, 2), torch.tensor([1j]), torch.ones(12, 3, dtype=torch.bool),
        torch.ones(3, dtype=torch.int64), torch.ones(1, device="meta"), Path("nowhere/at/all"), range(3), iter([1]),
    ]  # fmt: skip


def changed(value: Any) -> list[Any]:
    """Damaged copies of a valid value."""
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [type(value)(-value), value * 10**9, value + 0.5, str(value), [value], np.array([value]), complex(value)]
    if isinstance(value, str):
        return [value + "?", value.upper(), value * 1000, [value]]
    if isinstance(value, np.ndarray | torch.Tensor):
        return _damaged(value)
    if hasattr(value, "_fields"):
        return [value._replace(**{name: bad}) for name in value._fields for bad in changed(getattr(value, name))]
    if isinstance(value, list | tuple) and value:
        return [
            type(value)([*value, None]),
            list(value)[:-1],
            (*value, value[0]),
            [None] * len(value),
            [math.nan] * len(value),
        ]
    if isinstance(value, dict) and value:
        key = next(iter(value))
        return [{key: None}, {**value, 3: None}, {**value, key: math.nan}, list(value.items())]
    # The class in place of its instance; those of numpy end the process when they are called.
    return [] if type(value).__module__.startswith("numpy") else [type(value)]


def _damaged(value: Any) -> list[Any]:
    array = value.detach().numpy() if isinstance(value, torch.Tensor) else value
    back = (lambda part: torch.from_numpy(np.array(part))) if isinstance(value, torch.Tensor) else np.array
    found = []
    if array.dtype.kind in "iuf" and array.size:
        real = array.astype(np.float64)
        for bad in (math.nan, math.inf, -math.inf, 1e308, -1e308, 1e155, 1e-200, 5e-324, 0.0, -1.0):
            one = real.copy()
            one.reshape(-1)[0] = bad
            found += [back(one), back(np.full_like(real, bad))]
        signs = np.where(np.arange(real.size) % 2, 1.0, -1.0).reshape(real.shape)
        found += [back(signs * size) for size in (1e308, 1e155, 1e-200, 5e-324)]
        signs = np.random.default_rng(0).choice([-1.0, 1.0], real.shape)
        found += [back(signs * size) for size in (1e308, 9e304, 1e155, 1e-200, 5e-324)]
        found += [back(real * size) for size in (1e155, 1e-200, 1e30)]
    kinds = (np.float32, np.int64, bool, np.complex128)
    found += [back(array.astype(kind)) for kind in kinds if array.dtype.kind in "iufb"]
    found += [back(array[..., None].copy()), back(array[None].copy()), array.tolist()]
    if array.ndim:
        found += [
            back(array[:0].copy()),
            back(array[:1].copy()),
            back(array[:2].copy()),
            back(np.concatenate([array, array[:1]])),
            back(array[0].copy() if array.ndim > 1 else array),
        ]
        found += [back(np.ascontiguousarray(array.T)), back(array[..., :0].copy()), back(array[..., :1].copy())]
    found.append(
        array
        if isinstance(value, torch.Tensor)
        else torch.from_numpy(np.array(array))
        if array.dtype.kind in "iufb"
        else array
    )
    if isinstance(value, np.ndarray):
        found.append(array.astype(object))
    elif value.is_floating_point():
        found += [value.clone().requires_grad_(), value.half()]
    return found


def headline(result: Any) -> Any:
    """The first number of a result: its score, its value, or itself."""
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        result = result[0]
    if isinstance(result, float | np.floating):
        return torch.tensor(float(result), dtype=torch.float64)
    if isinstance(result, np.ndarray | torch.Tensor):
        return (
            torch.as_tensor(result).detach()
            if not isinstance(result, np.ndarray) or result.dtype.kind in "iufb"
            else None
        )
    return None


def _is_finite(value: Any) -> bool:
    """Whether a wrong argument is at least finite: arrays of results may then be too large, as any arithmetic's."""
    try:
        return bool(torch.as_tensor(value, dtype=torch.float64).isfinite().all())
    except Exception:  # no array at all
        return False


@dataclass
class Report:
    """What came back."""

    calls: int = 0
    refused: int = 0
    answered: int = 0
    problems: Counter = field(default_factory=Counter)
    shown: dict[str, str] = field(default_factory=dict)

    def add(self, kind: str, place: str, parameter: str, value: Any, detail: str) -> None:
        self.problems[kind] += 1
        key = f"{kind} | {place}({parameter}) | {detail}"
        self.problems[key] += 0
        self.shown.setdefault(key, describe(value))


def describe(value: Any) -> str:
    if isinstance(value, np.ndarray | torch.Tensor):
        held = value.dtype != object and "meta" not in str(getattr(value, "device", ""))
        first = str(value.reshape(-1)[:2].tolist())[:60] if held else ""
        return f"{type(value).__name__}{tuple(value.shape)} {value.dtype} {first}"
    try:
        return repr(value)[:60]
    except Exception:
        return type(value).__name__


def names_argument(message: str, parameters: Iterable[str], value: Any) -> bool:
    """Whether a message names an argument: its name, or the wrong value itself."""
    names = [*parameters, *getattr(value, "_fields", ())]
    named = any(re.search(rf"\b{name.removesuffix('s')}s?\b", message.replace("_", " _ ") + message) for name in names)
    return named or (isinstance(value, str) and repr(value)[:20] in message) or _is_path_in(value, message)


def _is_path_in(value: Any, message: str) -> bool:
    return isinstance(value, str | Path) and (str(Path(value)) in message or str(Path(value).absolute()) in message)


class TooLong(BaseException):
    """A call that runs until patience ends."""


def _stop(*_: Any) -> None:
    if calling:
        raise TooLong


calling: list[str] = []  # the door that is being called


# Headlines that may be infinite or missing by what their documentation says, and why.
MAY_BE_UNDEFINED = {
    "analytic.allocation_objective": "−∞ where a column of a Jacobian vanishes",
    "analytic.direction_alignment": "NaN where a column of the decoder vanishes",
    "analytic.latent_scale": "infinite for a latent that is always 0",
    "analytic.solve_noise_allocation": "−∞ where a column of a Jacobian vanishes",
    "geometry.axis_alignment": "NaN without active latents, or where columns vanish",
    "geometry.dto": "NaN without active latents",
    "geometry.optimal_variance": "NaN where the information is",
    "geometry.second_derivatives": "NaN where the weights are",
    "geometry.encoder_law": "NaN without an active latent",
    "geometry.regime": "NaN for codes without noise",
    "geometry.column_coherence": "NaN where columns vanish",
    "geometry.cross_dependence": "infinite where a column vanishes",
    "geometry.hadamard_defect": "infinite where columns are dependent or vanish",
    "geometry.local_pca": "NaN where columns vanish",
    "geometry.log_length_gradients": "NaN where a column vanishes",
    "geometry.pushforward": "infinite where a column vanishes",
    "analytic.annealed_elbo": "NaN for points whose posterior is",
    "distributions.estimators.aggregate_covariance": "NaN where a posterior is",
    "records.describe": "a number as it is",
    "report.figures.distinct": "curves as they are",
    "records.restore": "a number as it is",
    "statistics.bootstrap": "NaN without values, and the method says so",
    "statistics.mean_interval": "NaN without values, and the method says so",
    "scores.gaussian_total_correlation": "infinite where one latent is a linear function of others",
}
# Scores are shares of 1, but for these.
RANGES = {
    "scores.gaussian_total_correlation": (0.0, math.inf),
    "scores.gaussian_wasserstein_correlation": (0.0, math.inf),
    "scores.latent_mutual_information": (0.0, math.inf),
    "scores.udr": (0.0, 500.0),  # 1 / 2α of the Lasso's least penalty
}


def judge(report: Report, place: str, door: Callable[..., Any], given: dict[str, Any], parameter: str) -> None:
    """Makes one call and says what was wrong with the answer."""
    value = given[parameter]
    report.calls += 1
    calling.append(place)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    faulthandler.dump_traceback_later(5 * SECONDS, exit=True)
    try:
        try:
            result = call(door, given)
        finally:
            calling.clear()
    except AxiswiseError as error:
        report.refused += 1
        if not names_argument(str(error), inspect.signature(door).parameters, value):
            report.add("unnamed", place, parameter, value, str(error)[:150])
        if len(str(error).splitlines()) > 1:
            report.add("several lines", place, parameter, value, str(error)[:150])
        return
    except TooLong:
        report.add("too long", place, parameter, value, f"more than {SECONDS} s")
        return
    except BaseException as error:
        if any(frame.filename == examples.__file__ for frame in traceback.extract_tb(error.__traceback__)):
            report.refused += 1  # by the caller's own function, whose errors are its own
            return
        own = "<lambda>()" in str(error) or value is int
        if own or (callable(value) and callable(arguments(place, door)[parameter])):
            report.refused += 1  # likewise
            return
        where = traceback.extract_tb(error.__traceback__)[-1]
        ours = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "axiswise" in frame.filename and "fuzz" not in frame.filename
        ]
        at = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else where.name
        report.add("cryptic", place, parameter, value, f"{type(error).__name__} at {at}: {str(error)[:70]!r}")
        return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
    report.answered += 1
    found = headline(result)
    if found is None or found.is_meta or found.dtype not in (torch.float32, torch.float64) or place in MAY_BE_UNDEFINED:
        return
    if not found.isfinite().all() and (found.ndim == 0 or not _is_finite(value)):
        report.add("silent NaN", place, parameter, value, str(found.reshape(-1)[:3].tolist()))
    elif place in RANGES or declaration(door):
        low, high = RANGES.get(place, (0.0, 1.0))
        if found.numel() and not (low - 1e-9 <= found.min() and found.max() <= high + 1e-9):
            report.add("out of range", place, parameter, value, str(found.reshape(-1)[:3].tolist()))


def campaign(calls: int, seed: int, only: str = "") -> Report:
    """Goes round all doors, a wrong argument at a time, until there were so many calls."""
    choose, report = random.Random(seed), Report()
    found = {place: door for place, door in doors().items() if place not in LEFT_OUT and re.search(only, place)}
    plans = []
    for place, door in found.items():
        try:
            given = arguments(place, door)
            call(door, dict(given))
        except BaseException as error:
            report.add("no valid call", place, "", None, f"{type(error).__name__}: {str(error)[:200]}")
            continue
        for parameter in given:
            if f"{place}.{parameter}" in ANNOTATIONS:
                continue
            wrong = [*range(len(pool())), *(-1 - i for i in range(len(changed(given[parameter]))))]
            choose.shuffle(wrong)
            plans.append((place, door, parameter, wrong))
    while report.calls < calls and any(wrong for *_, wrong in plans):
        for place, door, parameter, wrong in plans:
            if not wrong or report.calls >= calls:
                continue
            given, number = arguments(place, door), wrong.pop()
            given[parameter] = pool()[number] if number >= 0 else changed(given[parameter])[-1 - number]
            judge(report, place, door, given, parameter)
    return report


def main() -> int:
    """Prints a report; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=int(os.environ.get("AXISWISE_FUZZ_CALLS", "10000")))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a regular expression of doors, such as ^scores")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        report = campaign(options.calls, options.seed, options.only)
        os.chdir("/")
    for key, value in sorted(report.shown.items()):
        print(f"{key} | {value}")
    kinds = {kind: count for kind, count in report.problems.items() if " | " not in kind}
    print(f"{report.calls:,} calls of {len(doors())} doors: {report.refused:,} refused, {report.answered:,} answered")
    print("problems:", ", ".join(f"{count:,} {kind}" for kind, count in kinds.items()) or "none")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
