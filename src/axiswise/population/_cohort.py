"""Which members share one tensor program."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import nn

from axiswise.distributions import Learnable
from axiswise.models import VAE
from axiswise.population.member import Member
from axiswise.population.program import Precision
from axiswise.records import address, describe
from axiswise.schedules import hyperparameters

LARGEST = 64  # members of one cohort: more gain no speed, and lose more when a run is stopped
SMALL = 200_000  # weights of a member up to which stacking pays on a CPU: a larger one keeps all cores busy
LIGHT = 10_000_000  # weights times observations of a step up to which one thread does: others gain it little, and wait


@dataclass(frozen=True)
class Cohort:
    """Members that train as one tensor program, and how: what a resumed run must repeat to be bit-equal.

    Arguments:
        members: The members, in the order of the stack.
        threads: Threads that PyTorch computes with.
        precision: Type of products on the fast path; None is the plain path.
        runs: Of a cohort that crosses runs of a study, the name of each member's run; else none.
    """

    members: tuple[Member, ...]
    threads: int
    precision: Precision | None = None
    runs: tuple[str, ...] = ()

    @cached_property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """The run of each member, "" where there is only one, and the member's address."""
        runs = self.runs or ("",) * len(self.members)
        return tuple((run, member.address) for run, member in zip(runs, self.members, strict=True))

    def part(self, rows: Sequence[int]) -> "Cohort":
        """The members in some rows of the stack."""
        own = tuple(self.runs[row] for row in rows) if self.runs else ()
        return replace(self, members=tuple(self.members[row] for row in rows), runs=own)

    @property
    def address(self) -> str:
        """Content address of the cohort."""
        return address_of(self.keys)


def address_of(keys: Sequence[tuple[str, str]]) -> str:
    """The address of a cohort, from the runs and the addresses of its members."""
    return address([[run, member] if run else member for run, member in keys])


def pools(device: torch.device) -> bool:
    """Whether cohorts take what they can get on this device: members of other runs, and with other distributions.

    On a CPU a cohort of one run keeps the cores busy.
    """
    return device.type == "cuda"


def cohorts(
    members: Sequence[Member], device: torch.device, precision: Precision | None = None, runs: Sequence[str] = ()
) -> list[Cohort]:
    """Groups members that can share a program, in order of first appearance.

    Members share a program when they differ in seed and hyperparameters only; where it `pools`, also in numbers of
    their prior and likelihood. On a CPU, each member with convolutions
    or many weights is a cohort: one of them fills the machine, and stacking only adds memory traffic. A cohort whose
    steps are light has one thread: two that share them wait for each other at every operation, and where another
    program keeps a core busy, they wait for that.

    Example:
        >>> from axiswise import models, objectives
        >>> from axiswise.population import grid
        >>> either = [models.linear(3, 2), models.mlp(3, 2)]
        >>> members = grid(model=either, objective=objectives.BetaVAE(), steps=1, seed=range(4))
        >>> [len(cohort.members) for cohort in cohorts(members, torch.device("cpu"))]
        [4, 4]
    """
    groups: dict[str, list[int]] = {}
    for place, member in enumerate(members):
        groups.setdefault(address(structure(member, any_number=pools(device))), []).append(place)
    found = []
    for group in groups.values():
        size = LARGEST if stacking_pays(members[group[0]].model, device) else 1
        for start in range(0, len(group), size):
            part = tuple(members[place] for place in group[start : start + size])
            own = tuple(runs[place] for place in group[start : start + size] if runs)
            found.append(Cohort(part, _threads(part, device), precision, own))
    return found


def structure(member: Member, *, any_number: bool = False) -> dict[str, Any]:
    """What must be equal within a cohort: the member's form without its seed and its hyperparameters' values.

    Arguments:
        member: The member.
        any_number: Whether it is also without the numbers of its prior and likelihood.
    """
    form = describe(member)
    for name in numbers(member) if any_number else ():
        _, part, field = name.split(".")
        del form["model"][part][field]
    del form["seed"]
    for name in ("objective", "optimizer"):
        for hyperparameter in hyperparameters(getattr(member, name)):
            del form[name][hyperparameter]
    return form


def numbers(member: Member) -> dict[str, float]:
    """The numbers of a member's prior and likelihood that may differ within a cohort, by their path.

    Learned ones are initial values, which the modules are built with.

    Example:
        >>> from axiswise import distributions, models, objectives
        >>> prior = distributions.StudentT(3.0)
        >>> numbers(Member(models.linear(3, 2, prior=prior), objectives.BetaVAE(), steps=1))
        {'model.prior.df': 3.0, 'model.likelihood.scale': 1.0}
    """
    parts = {"prior": member.model.prior, "likelihood": member.model.likelihood}
    return {
        f"model.{part}.{name}": getattr(own, name)
        for part, own in parts.items()
        for name in getattr(own, "stacks", ())
        if not (isinstance(own, Learnable) and own.initial())
    }


def stacking_pays(model: VAE, device: torch.device) -> bool:
    """Whether members of this model are faster as one stacked program than one after another, on this device."""
    if device.type != "cpu":
        return True
    modules = list(model.modules().values())
    return not convolves(modules) and count_weights(modules) <= SMALL


def _threads(members: Sequence[Member], device: torch.device) -> int:
    """Threads for the steps of a cohort: a pure function of its members, up to the number that PyTorch has."""
    first, threads = members[0], torch.get_num_threads()
    modules = list(first.model.modules().values())
    if device.type != "cpu" or first.batch is None or convolves(modules):
        return threads
    return 1 if count_weights(modules) * len(members) * first.batch <= LIGHT else threads


def count_weights(modules: Iterable[nn.Module]) -> int:
    """How many weights some modules have."""
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


IN_FLOAT32 = (  # layers of networks that products in bfloat16 changed, or that were not measured
    *(nn.GroupNorm, nn.LayerNorm, nn.RMSNorm, nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
    *(nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase),
)


def takes_bfloat16(modules: Iterable[nn.Module]) -> bool:
    """Whether products in bfloat16 are the default for these modules: what was measured, and did not change.

    That is convolutions, with batch norm or without (``benchmarks/precision.py``).
    """
    modules = list(modules)
    layers = (layer for module in modules for layer in module.modules())
    return convolves(modules) and not any(isinstance(layer, IN_FLOAT32) for layer in layers)


def convolves(modules: Iterable[nn.Module]) -> bool:
    """Whether any of the modules has a convolution."""
    return any(isinstance(layer, nn.Conv2d | nn.ConvTranspose2d) for module in modules for layer in module.modules())
