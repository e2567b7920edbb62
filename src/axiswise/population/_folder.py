"""Run folders: members by content address, and their unfinished cohorts; `records._layout` names files.

A member is stored with its weights, buffers, history and status, and with the own code it was made with. What is read
is what was asked for: the member, of this dataset, in these shapes, made by this code. All else is refused.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axiswise.errors import AxiswiseError
from axiswise.population._catalogue import MissingParts, catalogue, missing_parts
from axiswise.population._code import Code, code_of
from axiswise.population._cohort import Cohort, cohorts, structure
from axiswise.population._cohort_folder import CohortFolder, Key, begun
from axiswise.population._stored import Built, built, check_code, check_home
from axiswise.population._trained import Trained
from axiswise.population.member import Member
from axiswise.population.program import Precision
from axiswise.records import (
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
from axiswise.records._forms import MemberForm, WholeRunForm
from axiswise.records._layout import (
    LOCK,
    MEMBER,
    OUTCOME_FILE,
    RECORDS_LOCK,
    RUN,
    RUN_FILE,
    cohort_file,
    matching,
    member_file,
    partial_files,
)
from axiswise.records._record import drop_records


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
        return not (self._partial_files() or begun(self.path))

    def _partial_files(self) -> list[Path]:
        places = (self.path, member_file(self.path, "").parent, cohort_file(self.path, "").parent)
        return partial_files(*places)  # those of arrays belong to whoever measures

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
                check_home(path, about["about"], self.home, self.path)
                if not changed:
                    now = code_of([described], memory)[described.address] if code is None else code[member]
                    check_code(path, about["about"], now)
                if (kind := address(structure(described))) not in shapes:
                    shapes[kind] = built(described)
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
                check_code(path, read_about(path, MEMBER, MemberForm)["about"], own)
        except AxiswiseError:
            return False
        return True

    def discard(self, members: Sequence[str]) -> None:
        """Removes stored members, which are to be trained again."""
        for member in members:
            member_file(self.path, member).unlink(missing_ok=True)

    def plan(self, missing: Sequence[Member], device: torch.device, precision: Precision | None) -> list[Cohort]:
        """The cohorts to train, which are written down: unfinished ones as they were begun, then new ones."""

        def rest(members: dict[Key, Member]) -> list[Cohort]:
            return cohorts([*members.values()], device, precision)

        self.forget([member.address for member in missing])
        return self.cohorts.plan({("", member.address): member for member in missing}, rest)

    def forget(self, missing: Sequence[str]) -> None:
        """Removes what was measured of members, before their files were lost."""
        if missing:
            with locked(self.path / RECORDS_LOCK, "", math.inf):
                drop_records(self.path, set(missing))

    @property
    def cohorts(self) -> CohortFolder:
        """The unfinished cohorts."""
        return CohortFolder(self.path, {"": self.home}, lambda key: self.holds(key[1]))

    @property
    def home(self) -> Json:
        """What members and states say of their run, so that no file is taken for one of another run."""
        return {name: self.run[name] for name in ("dataset", "validation") if name in self.run}


def _restored(path: Path, form: Json, names: Mapping[str, Any]) -> Member:
    """The member that a file describes."""
    try:
        return restore(form, names)
    except MissingParts:
        raise
    except AxiswiseError as error:
        raise AxiswiseError(f"{path} describes no member: {error}") from error


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
