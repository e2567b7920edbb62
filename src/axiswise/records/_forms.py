"""What JSON files hold: a type for each, and the one check of a file's contents against it.

Whoever can write a file can write its digest, too. So a reader trusts neither names nor types: what it reads must fit
the type that it declares, and is refused by name where it does not.
"""

import types
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

LARGEST = 2**63  # whole numbers are smaller, on either side of 0


class PlannedRun(TypedDict):
    """A run as a study's header plans it: addresses of members, and names of measures."""

    members: list[str]
    measures: list[str]


class FailureForm(TypedDict):
    """What ended a part of a run; the fields of :class:`axiswise.population.Failure`."""

    reason: str
    members: list[str]


class StudyForm(TypedDict, total=False):
    """``study.json``."""

    study: str
    title: str
    summary: str
    scale: str
    command: str
    seeds_from: int
    versions: dict[str, str]
    runs: list[str]
    skipped: dict[str, str]
    failed: dict[str, list[FailureForm]]
    running: list[str]
    planned: dict[str, PlannedRun]
    seconds: float


class ValidationForm(TypedDict):
    """How members were validated and stopped."""

    dataset: Any
    every: int
    stop: Any
    code: dict[str, str]


class DatasetForm(TypedDict, total=False):
    """The name of a dataset, and its arguments."""

    name: str
    arguments: dict[str, Any]


class RunForm(TypedDict, total=False):
    """``run.json``."""

    dataset: DatasetForm
    dtype: str
    code: dict[str, str]
    validation: ValidationForm
    members: list[str]
    versions: dict[str, str]


class WholeRunForm(RunForm):
    """``run.json`` of a run whose members are read: what they share must be there."""

    dataset: DatasetForm  # pyright: ignore[reportGeneralTypeIssues] (required here, optional in its base)
    dtype: str  # pyright: ignore[reportGeneralTypeIssues] (as above)


class OutcomeForm(TypedDict, total=False):
    """``outcome.json``."""

    run: str
    skipped: str | None
    failures: list[FailureForm]


class NodeForm(TypedDict):
    """A node of a cluster."""

    node: str
    cores: int
    gpus: int


class TaskForm(TypedDict):
    """A task of a cluster: a cohort in training, or a run that is measured."""

    run: str
    what: str
    members: int
    node: str
    process: int
    device: str
    step: int
    rate: float


class ClusterForm(TypedDict):
    """``cluster.json``."""

    nodes: list[NodeForm]
    tasks: list[TaskForm]
    waiting: int
    received: int
    again: int
    bytes: int
    unpacked: int


class DescribedMember(TypedDict):
    """A member's description; `restore` checks what else it has."""

    type: str
    steps: int


class LayoutForm(TypedDict):
    """A cohort of a plan."""

    members: list[DescribedMember]
    threads: int
    precision: NotRequired[str | None]


class PlanForm(TypedDict):
    """``plan.json``."""

    cohorts: list[LayoutForm]


class CohortForm(LayoutForm):
    """The state of a cohort in training."""

    step: int
    seconds: float
    stack: NotRequired[list[str]]
    stopped: NotRequired[dict[str, Any]]
    share: NotRequired[float]
    divided: NotRequired[float]
    code: NotRequired[dict[str, str]]
    versions: NotRequired[dict[str, str]]


class MadeForm(TypedDict, total=False):
    """What a member was made with."""

    dataset: DatasetForm
    dtype: str
    code: dict[str, str]
    validation: ValidationForm | None
    versions: dict[str, str]


class MemberForm(TypedDict):
    """A finished member."""

    member: DescribedMember
    status: str
    seconds: float
    about: MadeForm


class ArraysForm(TypedDict, total=False):
    """Arrays that a report draws."""

    name: str


def misfit(value: Any, kind: Any, name: str = "it") -> str | None:
    """What of a JSON value does not fit a type, in words; None if all does.

    Arguments:
        value: The value.
        kind: A type of JSON, a union of such, a list or dictionary of them, or a `TypedDict`. Fields that a `TypedDict`
            does not have may have any value.
        name: What the value is called.

    Example:
        >>> misfit({"runs": ["a", 3]}, StudyForm)
        '`runs[1]` must be str. Got 3'
        >>> misfit({"members": []}, PlannedRun, "planned.one")
        '`planned.one` must have `measures`. Got members'
    """
    if kind is Any:
        return None
    if is_typeddict(kind):
        return _fields_misfit(value, kind, name)
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        found = [misfit(value, part, name) for part in parts]
        return None if None in found else next((each for each in found if each and "must have" in each), found[0])
    if origin is list and isinstance(value, list):
        return next((wrong for n, each in enumerate(value) if (wrong := misfit(each, parts[0], f"{name}[{n}]"))), None)
    if origin is dict and isinstance(value, Mapping):
        return next((wrong for key, each in value.items() if (wrong := misfit(each, parts[1], _part(name, key)))), None)
    if origin is Literal:
        return (
            None if isinstance(value, str) and value in parts else f"`{name}` must be one of {parts}. Got {value!r:.60}"
        )
    plain = origin or kind
    if plain in (int, float):
        accepted = isinstance(value, int if plain is int else int | float) and not isinstance(value, bool)
        fits = accepted and (isinstance(value, float) or abs(value) < LARGEST)
    else:
        fits = isinstance(value, plain)
    return None if fits else f"`{name}` must be {_words(kind)}. Got {value!r:.60}"


def plain_types(kind: Any) -> frozenset[type]:
    """The types whose values fit as they are, without a look into them: a quick check of many rows.

    Example:
        >>> sorted(each.__name__ for each in plain_types(float | None)), plain_types(dict[str, str])
        (['NoneType', 'float', 'int'], frozenset())
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return frozenset[type]().union(*map(plain_types, parts))
    if origin is not None:
        return frozenset({origin} if parts[-1] is Any else ())
    return frozenset({int, float} if kind is float else {kind})


def _fields_misfit(value: Any, kind: Any, name: str) -> str | None:
    if not isinstance(value, Mapping):
        return f"`{name}` must be an object. Got {value!r:.60}"
    for field, part in _hints(kind).items():
        if field in value:
            if wrong := misfit(value[field], part, _part(name, field)):
                return wrong
        elif field in kind.__required_keys__:
            return f"`{name}` must have `{field}`. Got {', '.join(map(str, value)) or 'nothing':.60}"
    return None


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _part(name: str, key: str) -> str:
    return key if name == "it" else f"{name}.{key}"


def _words(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")
