"""What JSON files hold: a type for each, against which their contents are checked.

Whoever can write a file can write its digest, too. So a reader trusts neither names nor types: what it reads must fit
the type that it declares, and is refused by name where it does not.
"""

import types
from typing import Any, NotRequired, TypedDict, Union, get_args, get_origin


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
    runs: NotRequired[list[str] | None]


class PlanForm(TypedDict):
    """``plan.json``."""

    cohorts: list[LayoutForm]
    homes: NotRequired[dict[str, RunForm]]


class CohortForm(LayoutForm):
    """The state of a cohort in training."""

    step: int
    seconds: float
    homes: NotRequired[dict[str, RunForm]]
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
