"""How much faster is the battery than plain algorithms, one code and one classifier at a time, and how far off?

The plain algorithms are those that the tests compare with, ``tests/scores/reference.py`` of a checkout. Without them,
only our side is timed.
"""

import importlib.util
import inspect
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from axiswise import scores

SIZES = (3, 6, 40, 32, 32)  # levels of dSprites: shape, scale, orientation, and both positions
LATENTS = 10
TRAIN, TEST = 10_000, 5_000
FEW = 2  # factors that boosted trees are compared on unless `exact`: the reference takes minutes with all
SAMPLED = 3  # members that the reference scores unless `exact`
POPULATION = ("mig", "sap", "modularity", "irs")
SLOW = 2.0  # seconds above which a timing is not repeated
REPEATS = 3
SETTINGS = {"disentanglement": {"form": "printed"}}  # the forms that the plain algorithms have

Plain = Callable[..., Any]


class Example(NamedTuple):
    """Codes and factors to fit on and to test on."""

    name: str
    codes: np.ndarray
    factors: np.ndarray
    test: tuple[np.ndarray, np.ndarray]


class Timing(NamedTuple):
    """One score of one code, both ways: seconds, and the largest difference of what they found."""

    score: str
    code: str
    about: str
    reference_seconds: float | None
    seconds: float
    ratio: float | None
    reference_value: float | None
    value: float
    difference: float | None


class PopulationTiming(NamedTuple):
    """One score of many members, both ways; the reference is extrapolated from `sampled` members."""

    score: str
    members: int
    sampled: int
    reference_seconds: float | None
    seconds: float
    ratio: float | None
    difference: float | None


def reference(path: Path | None = None) -> dict[str, Plain]:
    """The plain algorithms by the score's name; empty outside a checkout of the repository.

    Arguments:
        path: The file that defines them; that of the checkout if None.
    """
    path = path or Path(__file__).resolve().parents[2] / "tests" / "scores" / "reference.py"
    spec = importlib.util.spec_from_file_location("axiswise_reference", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        return {}
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name.removeprefix("reference_"): value for name, value in vars(module).items() if name.startswith("refer")}
    return {"dci": _reference_dci} | {name: plain for name, plain in found.items() if name in _battery()}


def examples(train: int = TRAIN, test: int = TEST) -> list[Example]:
    """Three codes of factors of dSprites' sizes: a latent for each factor, a rotation of these, a non-linear mixture.

    Example:
        >>> [(example.name, example.codes.shape) for example in examples(100, 50)]
        [('aligned', (100, 10)), ('rotated', (100, 10)), ('mixed', (100, 10))]
    """
    generator = np.random.default_rng(0)
    factors = np.stack([generator.integers(0, size, train + test) for size in SIZES], -1)
    unit = (factors - factors.mean(0)) / factors.std(0)
    noise = generator.normal(size=(train + test, LATENTS))
    rotation = np.linalg.qr(generator.normal(size=(len(SIZES), len(SIZES))))[0]
    mixing = generator.normal(size=(len(SIZES), LATENTS))
    rest = noise[:, len(SIZES) :]
    codes = {
        "aligned": np.concatenate([unit + 0.1 * noise[:, : len(SIZES)], rest], 1),
        "rotated": np.concatenate([unit @ rotation + 0.1 * noise[:, : len(SIZES)], rest], 1),
        "mixed": np.tanh(unit @ mixing) + 0.1 * noise,
    }
    return [
        Example(name, code[:train], factors[:train], (code[train:], factors[train:])) for name, code in codes.items()
    ]


def population(members: int, train: int = TRAIN, test: int = TEST) -> Example:
    """Members between an aligned code and rotations of it.

    Example:
        >>> population(4, 100, 50).codes.shape
        (4, 100, 10)
    """
    generator = np.random.default_rng(1)
    aligned, *_ = examples(train, test)
    rotations = [np.linalg.qr(np.eye(LATENTS) + 0.3 * generator.normal(size=(LATENTS,) * 2))[0] for _ in range(members)]
    test_codes, factors = aligned.test
    return Example(
        "population", np.stack([aligned.codes @ one for one in rotations]), aligned.factors,
        (np.stack([test_codes @ one for one in rotations]), factors),
    )  # fmt: skip


def compare(known: dict[str, Plain], codes: list[Example], *, exact: bool = False) -> Iterator[Timing]:
    """Times every score on every code, ours and the plain algorithm in turn.

    Arguments:
        known: The plain algorithms, from `reference`.
        codes: The codes, from `examples`.
        exact: Whether boosted trees are compared on all factors, which takes minutes a code.
    """
    for name in known or _battery():
        for example in codes:
            few = name == "dci" and not exact
            part = _first_factors(example, FEW) if few else example
            about = f"factors of {' and '.join(map(str, SIZES[:FEW]))} levels only" if few else ""
            ours, plain = partial(_ours, name, part), known.get(name)
            theirs = partial(plain, part.codes, part.factors, *part.test) if plain else None
            times, others, value, other = [], [], 0.0, None
            while len(times) < REPEATS and sum((*times, *others)) < SLOW * max(1, len(times)):
                if theirs:
                    seconds, found = _timed(theirs)
                    others.append(seconds)
                    other = float(found[-1] if isinstance(found, tuple) else found)
                seconds, value = _timed(ours)
                times.append(seconds)
            slow, fast = median(others) if others else None, median(times)
            ratio = slow / fast if slow is not None else None
            difference = abs(value - other) if other is not None else None
            yield Timing(name, example.name, about, slow, fast, ratio, other, value, difference)


def compare_population(known: dict[str, Plain], codes: Example, *, exact: bool = False) -> Iterator[PopulationTiming]:
    """Times scores of all members at once against the plain algorithm, member by member.

    Arguments:
        known: The plain algorithms, from `reference`.
        codes: The members, from `population`.
        exact: Whether the plain algorithm scores all members rather than a few, from which its time is extrapolated.
    """
    members, (test_codes, factors) = len(codes.codes), codes.test
    sampled = members if exact else min(SAMPLED, members)
    for name in (name for name in POPULATION if name in _battery()):
        seconds, values = _timed(partial(_ours, name, codes))
        if name not in known:
            yield PopulationTiming(name, members, 0, None, seconds, None, None)
            continue
        times, differences = [], []
        for member in range(sampled):
            one, found = _timed(partial(known[name], codes.codes[member], codes.factors, test_codes[member], factors))
            times.append(one)
            differences.append(abs(float(found[-1] if isinstance(found, tuple) else found) - values[member]))
        total = sum(times) / sampled * members
        yield PopulationTiming(name, members, sampled, total, seconds, total / seconds, float(max(differences)))


def warm_up(known: dict[str, Plain]) -> None:
    """Runs everything once on little, so that no timing includes the import of a library."""
    for _ in compare(known, examples(600, 300)[:1]):
        continue


def _battery() -> dict[str, Callable[..., Any]]:
    functions = {name: getattr(scores, name) for name in scores.__all__}
    declared = {name: scores.declaration(function) for name, function in functions.items()}
    return {name: functions[name] for name, about in declared.items() if about and not about.compares}


def _ours(name: str, example: Example) -> Any:
    """Our score of an example, given what it takes."""
    function = _battery()[name]
    offered = {"codes": example.codes, "factors": example.factors, "test": example.test, **SETTINGS.get(name, {})}
    parameters = inspect.signature(function).parameters
    return function(**{key: value for key, value in offered.items() if key in parameters}).score


def _reference_dci(codes: np.ndarray, factors: np.ndarray, test_codes: np.ndarray, test_factors: np.ndarray) -> float:
    """scikit-learn's gradient boosting, a classifier a factor."""
    return float(scores.dci(codes, factors, test=(test_codes, test_factors), estimator="reference").score)


def _first_factors(example: Example, count: int) -> Example:
    test_codes, factors = example.test
    return example._replace(factors=example.factors[:, :count], test=(test_codes, factors[:, :count]))


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = function()
    return time.perf_counter() - began, found
