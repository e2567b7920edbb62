"""Run folders: members by content address, and plan and states of unfinished cohorts; `records._layout` names files.

A member is stored with its weights, buffers, history and status, and with the own code it was made with. The plan says
in which cohorts the members without a file are trained, so that a resumption repeats them bit for bit; a cohort in
training has its whole state. What is read is what was asked for: the member, of this dataset, in these shapes, made by
this code. All else is refused.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from axiswise.errors import AxiswiseError
from axiswise.models import Custom
from axiswise.population._catalogue import MissingParts, catalogue, missing_parts, own_parts
from axiswise.population._code import Code, changes, code_of
from axiswise.population._cohort import Cohort, cohorts, structure
from axiswise.population._trained import Trained
from axiswise.population.member import Member
from axiswise.population.program import Precision
from axiswise.records import (
    Tensors,
    address,
    locked,
    read_json,
    read_tensors,
    restore,
    versions,
    write_json,
    write_tensors,
)
from axiswise.records._files import Json, read_about
from axiswise.records._fingerprint import differences
from axiswise.records._forms import CohortForm, MemberForm, PlanForm, WholeRunForm
from axiswise.records._layout import (
    COHORT,
    LOCK,
    MEMBER,
    OUTCOME_FILE,
    PLAN,
    PLAN_FILE,
    RECORDS_LOCK,
    RUN,
    RUN_FILE,
    cohort_file,
    matching,
    member_file,
    partial_files,
)
from axiswise.records._record import drop_records


class OtherCode(AxiswiseError):
    """A stored file was made by other code of a user than there is now."""


@dataclass(frozen=True)
class RunFolder:
    """A folder of the members trained on one dataset.

    Arguments:
        path: Its path.
    """

    path: Path

    @cached_property
    def run(self) -> Json:
        """What all members share: "dataset", "dtype", the "code" of the dataset, and "validation" if there was any."""
        return read_json(self.path / RUN_FILE, RUN, WholeRunForm)

    def begun_on(self, default: torch.device) -> str | None:
        """The type of the device that the folder was begun on, None if it was not; earlier ones do not say it."""
        path = self.path / RUN_FILE
        return read_json(path, RUN).get("device", default.type) if path.exists() else None

    def open(
        self,
        dataset: Mapping[str, Any],
        dtype: str,
        code: Code | None = None,
        validation: Json | None = None,
        *,
        device: torch.device | None = None,
    ) -> None:
        """Makes the folder, or checks that its members are of the same dataset, type and validation.

        The device of a new folder is noted: bits depend on it, and members that are added are trained there.

        Raises:
            AxiswiseError: If it contains something else.
        """
        if not (self.path / RUN_FILE).exists():
            if any(path.name not in (LOCK, RECORDS_LOCK, OUTCOME_FILE) for path in self.path.iterdir()):
                raise AxiswiseError(
                    f"{self.path} is not a run folder: it has no {RUN_FILE} but is not empty. Choose another `out`."
                )
            about = {"format": RUN, "dataset": dict(dataset), "dtype": dtype, "code": dict(code or {})}
            about |= {"validation": validation} if validation else {}
            about |= {"device": device.type} if device else {}
            write_json(self.path / RUN_FILE, {**about, "versions": versions()})
        self.check(dataset, dtype, code, validation)

    def check(
        self, dataset: Mapping[str, Any], dtype: str, code: Code | None = None, validation: Json | None = None
    ) -> None:
        """Raises unless the members of the folder are of that dataset, type and validation."""
        for name, value in (("dataset", dict(dataset)), ("dtype", dtype)):
            if self.run.get(name) != value:
                raise AxiswiseError(
                    f"{self.path} contains members trained with {name} {self.run.get(name)}. Got {value}. "
                    "Choose another `out`, or train with the same as before."
                )
        before = self.run.get("validation")
        for name, argument in (("dataset", "validation"), ("every", "every"), ("stop", "stop")):
            stored, given = (own and own[name] for own in (before, validation))
            if stored != given:
                raise AxiswiseError(
                    f"{self.path} contains members trained with `{argument}` {stored}. Got {given}. Members that are "
                    "validated or stopped otherwise are another result: choose another `out`, or train with the same "
                    "as before."
                )
        if before and validation and (changed := differences(before["code"], validation["code"])):
            raise AxiswiseError(
                f"{self.path} contains members validated or stopped by other code: {'; '.join(changed)}. Choose "
                "another `out`, or give what changed another name."
            )
        if changed := differences(self.run.get("code", code or {}), code or {}):
            raise AxiswiseError(
                f"{self.path} contains members trained on data that other code made: {'; '.join(changed)}. Choose "
                "another `out`, or give the dataset another name."
            )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from training in the folder; a killed process leaves no lock behind."""
        if self.path.exists() and not self.path.is_dir():
            raise AxiswiseError(f"Expected a folder, or nothing yet, at {self.path}. Got a file. Choose another `out`.")
        refusal = f"Another process is training in {self.path}. Wait for it, or choose another `out`."
        with locked(self.path / LOCK, refusal):
            for left in self._partial_files():
                left.unlink()
            yield

    @property
    def tidy(self) -> bool:
        """Whether no killed process has left anything that a training would remove."""
        return not (self._partial_files() or (self.path / PLAN_FILE).exists() or self._states())

    def _partial_files(self) -> list[Path]:
        places = (self.path, member_file(self.path, "").parent, cohort_file(self.path, "").parent)
        return partial_files(*places)  # those of arrays belong to whoever measures

    def _states(self) -> list[Path]:
        return matching(cohort_file(self.path, "*"))

    def holds(self, member: str) -> bool:
        """Whether a finished member of that address is here."""
        return member_file(self.path, member).exists()

    def members(self) -> list[str]:
        """Addresses of all finished members, in the order in which they were asked for."""
        finished = [path.stem for path in matching(member_file(self.path, "*"))]
        listed = {member: place for place, member in enumerate(self.run.get("members", ()))}
        return sorted(finished, key=lambda member: (listed.get(member, len(listed)), member))

    def enlist(self, members: Sequence[str]) -> None:
        """Notes the order of members, after those that are known already."""
        known = list(self.run.get("members", ()))
        if new := [member for member in dict.fromkeys(members) if member not in set(known)]:
            self.run["members"] = known + new
            write_json(self.path / RUN_FILE, self.run)

    def missing_parts(self, own: Sequence[Any]) -> list[str]:
        """The names of a user's own parts that stored members are made of, without those that are passed."""
        names = catalogue(own)
        forms = (read_about(member_file(self.path, member), MEMBER, MemberForm)["member"] for member in self.members())
        return list(dict.fromkeys(name for form in forms for name in missing_parts(form, names)))

    def write_member(self, trained: Trained) -> None:
        """Stores a finished member."""
        arrays = {f"weights/{name}": tensor.cpu().numpy() for name, tensor in trained.weights.items()}
        arrays |= {f"buffers/{name}": tensor.cpu().numpy() for name, tensor in trained.buffers.items()}
        arrays |= {f"history/{name}": array for name, array in trained.history.items()}
        arrays |= {f"validation/{name}": array for name, array in trained.validation.items()}
        form = {"member": trained.member.form, "status": trained.status, "seconds": round(trained.seconds, 3)}
        path = member_file(self.path, trained.member.address)
        write_tensors(path, arrays, {"format": MEMBER, **form, "about": trained.about})

    def read_members(
        self,
        wanted: Sequence[str],
        known: Mapping[str, Member] | None = None,
        own: Sequence[Any] = (),
        *,
        code: Mapping[str, Code] | None = None,
        changed: bool = False,
    ) -> Iterator[tuple[str, Trained | AxiswiseError]]:
        """Loads finished members, or says why one cannot be used.

        Arguments:
            wanted: Their addresses.
            known: Members by address, which are not rebuilt from their stored form.
            own: The user's own functions and classes that stored members are made of.
            code: The own code of members by address, where it is known.
            changed: Whether members are used although the own code they were made with has changed.

        Returns:
            Each address, with the member or the error.
        """
        names, shapes, memory, dtype = catalogue(own), {}, {}, self.run["dtype"]
        for member in wanted:
            path = member_file(self.path, member)
            try:
                arrays, about = read_tensors(path, MEMBER, MemberForm)
                # The address is that of the stored form: names in it may be old ones, which `catalogue` translates.
                if (found := address(about["member"])) != member:
                    raise AxiswiseError(f"{path} contains member {found}, not {member}: it was renamed.")
                described = (known or {}).get(member)
                if described is None:
                    if missing := [*dict.fromkeys(missing_parts(about["member"], names))]:
                        raise MissingParts(missing)
                    described = _restored(path, about["member"], names)
                weights = {name: torch.from_numpy(array) for name, array in _under("weights", arrays).items()}
                self._check_run(path, about["about"])
                if not changed:
                    now = code_of([described], memory)[described.address] if code is None else code[member]
                    _check_code(path, about["about"], now)
                if (kind := address(structure(described))) not in shapes:
                    shapes[kind] = _built(described)
                _check_shapes(path, weights, shapes[kind], dtype)
            except AxiswiseError as error:
                yield member, error
                continue
            except Exception as error:  # a description that was forged may be of anything, and own code raise anything
                yield member, AxiswiseError(f"{path} describes no member ({type(error).__name__}: {error}).")
                continue
            buffers = {name: torch.from_numpy(array) for name, array in _under("buffers", arrays).items()}
            history, validation = _under("history", arrays), _under("validation", arrays)
            made = (about["status"], about["seconds"], about["about"])
            yield member, Trained(described, weights, buffers, history, *made, validation=validation)

    def made_by(self, code: Mapping[str, Code]) -> bool:
        """Whether stored members, by their addresses, were made by that code. Only their headers are read."""
        try:
            for member, own in code.items():
                path = member_file(self.path, member)
                _check_code(path, read_about(path, MEMBER, MemberForm)["about"], own)
        except AxiswiseError:
            return False
        return True

    def discard(self, members: Sequence[str]) -> None:
        """Removes stored members, which are to be trained again."""
        for member in members:
            member_file(self.path, member).unlink(missing_ok=True)

    def plan(self, missing: Sequence[Member], device: torch.device, precision: Precision | None) -> list[Cohort]:
        """The cohorts to train, which are written down: unfinished ones as they were begun, then new ones for the rest.

        What was measured of the missing members, before their files were lost, is removed with it.
        """
        known = {member.address: member for member in missing}
        planned = self._planned()
        for key, form in [*planned.items()]:
            if all(map(self.holds, _addresses(form))):  # killed after the last of its members was written
                cohort_file(self.path, key).unlink(missing_ok=True)
                del planned[key]
        begun = [self._cohort(form, known) for form in planned.values() if _addresses(form) & known.keys()]
        started = {member.address for cohort in begun for member in cohort.members}
        fresh = cohorts([member for member in missing if member.address not in started], device, precision)
        if missing:
            with locked(self.path / RECORDS_LOCK, "", math.inf):
                drop_records(self.path, known.keys())
        self._write_plan({**planned, **{cohort.address: layout_of(cohort) for cohort in fresh}})
        return begun + fresh

    def adopt(self, layout: Json) -> None:
        """Plans one cohort as a folder of the same run on another machine does."""
        self._write_plan({_address(layout): layout})

    def finish(self, cohort: Cohort, *, failed: bool = False) -> None:
        """Removes plan and state of a cohort whose members are all stored; or, of a failed one, a plan without a state.

        A cohort that failed before it stored anything may be planned anew: nothing of it must be repeated.
        """
        stored = cohort_file(self.path, cohort.address).exists()
        if failed and (stored or any(self.holds(member.address) for member in cohort.members)):
            return
        self._write_plan({key: form for key, form in self._planned().items() if key != cohort.address})
        cohort_file(self.path, cohort.address).unlink(missing_ok=True)

    def write_state(self, cohort: Cohort, code: Code, state: Tensors) -> None:
        """Stores an unfinished cohort: its layout, state and history."""
        about = {"format": COHORT, **layout_of(cohort), **state.about, **self._shared, "code": dict(code)}
        write_tensors(cohort_file(self.path, cohort.address), state.arrays, {**about, "versions": versions()})

    def read_state(self, cohort: Cohort, code: Code, *, again: bool = False) -> Tensors | None:
        """The saved state of a cohort, if there is one that leads to all members.

        Members that had stopped are no longer in it. If the file of one is lost, the cohort starts again.

        Arguments:
            cohort: The cohort.
            code: The own code of its members.
            again: Whether a state that cannot be used is removed.

        Raises:
            AxiswiseError: If it is damaged, or of other members, another dataset or other code.
        """
        if not (path := cohort_file(self.path, cohort.address)).exists():
            return None
        try:
            saved = read_tensors(path, COHORT, CohortForm)
            if (found := _address(saved.about)) != cohort.address:
                raise AxiswiseError(f"{path} contains cohort {found}, not {cohort.address}: it was renamed.")
            self._check_run(path, saved.about)
            _check_code(path, saved.about, code)
        except AxiswiseError as error:
            if not again:
                raise AxiswiseError(f"{error} Choose another `out`, or start again with retrain=True.") from error
            path.unlink()
            return None
        return saved if all(map(self.holds, saved.about.get("stopped", ()))) else None

    def _planned(self) -> dict[str, Json]:
        """The layouts of all unfinished cohorts by their addresses, in the order of the plan."""
        path, found = self.path / PLAN_FILE, {}
        if path.exists():
            plan = read_json(path, PLAN, PlanForm)
            self._check_run(path, plan)
            found = {_address(form): form for form in plan["cohorts"]}
        for path in self._states():
            if path.stem not in found:  # version 0.1 had no plans
                found[path.stem] = read_about(path, COHORT, CohortForm)
        return found

    def _write_plan(self, planned: Mapping[str, Json]) -> None:
        path = self.path / PLAN_FILE
        if planned:
            layouts = [{name: form.get(name) for name in LAYOUT} for form in planned.values()]
            write_json(path, {"format": PLAN, **self._shared, "cohorts": layouts})
        else:
            path.unlink(missing_ok=True)

    def _cohort(self, form: Json, known: Mapping[str, Member]) -> Cohort:
        """A stored cohort. Of its members, those that are not known are like those that are."""
        names = catalogue(own_parts(known.values()))
        stored = ((known.get(address(member)), member) for member in form["members"])
        try:
            restored = tuple(own or restore(member, names) for own, member in stored)
            for member in restored:
                if member.address not in known:
                    _built(member)
        except Exception as error:  # a plan that was forged may be of anything
            raise AxiswiseError(f"{self.path / PLAN_FILE} plans members that nobody can train: {error}") from error
        return Cohort(restored, form["threads"], form.get("precision"))

    @property
    def _shared(self) -> Json:
        """What members and states say of their run, so that no file is taken for one of another run."""
        return {name: self.run[name] for name in ("dataset", "validation") if name in self.run}

    def _check_run(self, path: Path, about: Mapping[str, Any]) -> None:
        """Raises if a file says that it is of another dataset, or was validated otherwise, than this folder."""
        if about.get("dataset", self.run["dataset"]) != self.run["dataset"]:
            raise AxiswiseError(
                f"{path} is of a member trained on {about['dataset']}. Expected {self.run['dataset']}, as all of "
                f"{self.path}: it was copied from another folder."
            )
        if (found := about.get("validation")) != self.run.get("validation"):
            raise AxiswiseError(
                f"{path} is of a member validated or stopped by {found}. Expected {self.run.get('validation')}, as all "
                f"of {self.path}: it was copied from another folder."
            )


LAYOUT = ("members", "threads", "precision")


def layout_of(cohort: Cohort) -> Json:
    """What a resumption repeats, and an `adopt`ing folder on another machine, as JSON."""
    forms = [member.form for member in cohort.members]
    return dict(zip(LAYOUT, (forms, cohort.threads, cohort.precision), strict=True))


def _address(layout: Json) -> str:
    """The address of a stored cohort."""
    return address([address(form) for form in layout["members"]])


def _addresses(layout: Json) -> set[str]:
    """The addresses of the members of a stored cohort."""
    return {address(form) for form in layout["members"]}


def _check_code(path: Path, about: Mapping[str, Any], code: Code) -> None:
    """Raises if a stored file was made by other own code; warns if it does not say by which."""
    changed = changes(about, code)
    if changed is None and code:
        warnings.warn(
            f"{path} was stored by version 0.1, without the code it was made with. Whether {', '.join(code)} changed "
            "since is unknown.",
            stacklevel=2,
        )
    if changed:
        raise OtherCode(f"{path} was made with other code: {'; '.join(changed)}.")


def _restored(path: Path, form: Json, names: Mapping[str, Any]) -> Member:
    """The member that a file describes."""
    try:
        return restore(form, names)
    except MissingParts:
        raise
    except AxiswiseError as error:
        raise AxiswiseError(f"{path} describes no member: {error}") from error


class Built(NamedTuple):
    """The shapes of the parameters that a member's networks have, by "module.parameter"."""

    model: dict[str, tuple[int, ...]]
    adversary: dict[str, tuple[int, ...]]


def _built(member: Member) -> Built:
    # What a file describes may be of any size, so it takes no memory; own factories may not know the device.
    with nullcontext() if isinstance(member.model.network, Custom) else torch.device("meta"):
        trainable = member.objective.networks(member.model)
    return Built(_shapes(trainable.model), _shapes(trainable.adversary))


def _shapes(modules: Mapping[str, nn.Module]) -> dict[str, tuple[int, ...]]:
    return {
        f"{module}.{name}": tuple(parameter.shape)
        for module, contents in modules.items()
        for name, parameter in contents.named_parameters()
    }


def _check_shapes(path: Path, weights: Mapping[str, torch.Tensor], built: Built, dtype: str) -> None:
    """Raises unless weights are of the shapes and the type that were asked for.

    An adversary may be left out as a whole: it is large, and only the training that is over needed it.
    """
    stored = {name: tuple(weight.shape) for name, weight in weights.items()}
    wanted = built.model | (built.adversary if stored.keys() & built.adversary.keys() else {})
    if unlike := [name for name in {**stored, **wanted} if stored.get(name) != wanted.get(name)]:
        raise AxiswiseError(
            f"{path} has {unlike[0]!r} of shape {stored.get(unlike[0], 'none')}. Got networks in which it is "
            f"{wanted.get(unlike[0], 'none')}. Build them as they were when the member was trained."
        )
    expected = getattr(torch, dtype.split()[0])
    if unlike := [name for name, weight in weights.items() if weight.is_floating_point() and weight.dtype != expected]:
        raise AxiswiseError(f"{path} has {unlike[0]!r} of {weights[unlike[0]].dtype}. Expected {expected}.")


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with "prefix/", under the rest of their names."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}
