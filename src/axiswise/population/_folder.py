"""Run folders: members by content address, and the states of unfinished cohorts; `records._layout` has the names.

A member is stored with its weights, buffers, history and status, a cohort in training with its whole state and the
layout that a resumption repeats. The same call resumes, a larger grid trains what is missing, another dataset is
refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axiswise.errors import AxiswiseError
from axiswise.models import Custom, Factory
from axiswise.population._catalogue import catalogue
from axiswise.population._cohort import Cohort
from axiswise.population._trained import Trained
from axiswise.population.loop import Loop
from axiswise.population.member import Member
from axiswise.records import address, locked, read_json, read_tensors, restore, versions, write_json, write_tensors
from axiswise.records._files import read_about
from axiswise.records._layout import (
    COHORT,
    LOCK,
    MEMBER,
    OUTCOME_FILE,
    PARTIAL,
    RUN,
    RUN_FILE,
    cohort_file,
    matching,
    member_file,
)


@dataclass(frozen=True)
class RunFolder:
    """A folder of the members trained on one dataset.

    Arguments:
        path: Its path.
    """

    path: Path

    def open(self, dataset: Mapping[str, Any], dtype: str) -> None:
        """Makes the folder, or checks that its members are of the same dataset and type.

        Raises:
            AxiswiseError: If it contains something else.
        """
        about = {"format": RUN, "dataset": dict(dataset), "dtype": dtype}
        file = self.path / RUN_FILE
        if not file.exists():
            if any(path.name not in (LOCK, OUTCOME_FILE) for path in self.path.iterdir()):
                raise AxiswiseError(
                    f"{self.path} is not a run folder: it has no {RUN_FILE} but is not empty. Choose another `out`."
                )
            write_json(file, {**about, "versions": versions()})
            return
        found = read_json(file, RUN)
        for name in ("dataset", "dtype"):
            if found.get(name) != about[name]:
                raise AxiswiseError(
                    f"{self.path} contains members trained with {name} {found.get(name)}. Got {about[name]}. "
                    "Choose another `out`, or train with the same as before."
                )

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from training in the folder; a killed process leaves no lock behind."""
        if self.path.exists() and not self.path.is_dir():
            raise AxiswiseError(f"Expected a folder, or nothing yet, at {self.path}. Got a file. Choose another `out`.")
        refusal = f"Another process is training in {self.path}. Wait for it, or choose another `out`."
        with locked(self.path / LOCK, refusal):
            for partial in self.path.rglob(f".*{PARTIAL}"):  # of a process that was killed while writing
                partial.unlink()
            yield

    def holds(self, member: str) -> bool:
        """Whether a finished member of that address is here."""
        return member_file(self.path, member).exists()

    def write_member(self, trained: Trained) -> None:
        """Stores a finished member."""
        arrays = {f"weights/{name}": tensor.cpu().numpy() for name, tensor in trained.weights.items()}
        arrays |= {f"buffers/{name}": tensor.cpu().numpy() for name, tensor in trained.buffers.items()}
        arrays |= {f"history/{name}": array for name, array in trained.history.items()}
        form = {"member": trained.member.form, "status": trained.status, "seconds": round(trained.seconds, 3)}
        path = member_file(self.path, trained.member.address)
        write_tensors(path, arrays, {"format": MEMBER, **form, "about": trained.about})

    def read_member(
        self, member: str, known: Mapping[str, Member] | None = None, factories: Sequence[Factory] = ()
    ) -> Trained:
        """Loads a finished member by its address.

        Arguments:
            member: The address.
            known: Members by address, which are not rebuilt from their stored form.
            factories: The functions that build stored models of a user's own.
        """
        path = member_file(self.path, member)
        arrays, about = read_tensors(path, MEMBER)
        described = (known or {}).get(member) or restore(about["member"], catalogue(factories))
        # The address is that of the stored form: names in it may be old ones, which `catalogue` translates.
        if (found := address(about["member"])) != member:
            raise AxiswiseError(f"{path} contains member {found}, not {member}: it was renamed.")
        weights = {name: torch.from_numpy(array) for name, array in _under("weights", arrays).items()}
        if isinstance(described.model.network, Custom):
            _check_built(described, weights)
        return Trained(
            described,
            weights,
            {name: torch.from_numpy(array) for name, array in _under("buffers", arrays).items()},
            _under("history", arrays),
            about["status"],
            about["seconds"],
            about["about"],
        )

    def members(self) -> list[str]:
        """Addresses of all finished members."""
        return [path.stem for path in matching(member_file(self.path, "*"))]

    def write_state(self, cohort: Cohort, loop: Loop) -> None:
        """Stores an unfinished cohort: its layout, state and history."""
        arrays, about = loop.state()
        layout = {"members": [member.form for member in cohort.members]}
        layout |= {"threads": cohort.threads, "precision": cohort.precision}
        write_tensors(cohort_file(self.path, cohort.address), arrays, {"format": COHORT, **layout, **about})

    def resume(self, cohort: Cohort, loop: Loop) -> None:
        """Resumes a loop from the saved state of its cohort, if there is one.

        Raises:
            AxiswiseError: If the state is of another program.
        """
        if (path := cohort_file(self.path, cohort.address)).exists():
            loop.resume(read_tensors(path, COHORT), str(path))

    def unfinished(self, known: Mapping[str, Member]) -> list[Cohort]:
        """Unfinished cohorts with any of the known members, in the layout they were started with."""
        networks = (member.model.network for member in known.values())
        names = catalogue([network.factory for network in networks if isinstance(network, Custom)])
        found = []
        for path in matching(cohort_file(self.path, "*")):
            about = read_about(path, COHORT)
            members = {address(form): form for form in about["members"]}
            if members.keys() & known.keys():  # others may need a factory that this call does not have
                restored = (known.get(key) or restore(form, names) for key, form in members.items())
                found.append(Cohort(tuple(restored), about["threads"], about.get("precision")))
        return found

    def forget(self, cohort: Cohort) -> None:
        """Removes the state of a cohort whose members are all stored."""
        cohort_file(self.path, cohort.address).unlink(missing_ok=True)


def _check_built(member: Member, weights: Mapping[str, torch.Tensor]) -> None:
    """Raises unless a user's factory builds what is stored: a function of the same name may have changed."""
    trainable = member.objective.networks(member.model)
    built = {
        f"{module}.{name}": tuple(parameter.shape)
        for module, contents in (trainable.model | trainable.adversary).items()
        for name, parameter in contents.named_parameters()
    }
    stored = {name: tuple(weight.shape) for name, weight in weights.items()}
    unlike = [name for name in {**stored, **built} if stored.get(name) != built.get(name)]
    if unlike:
        expected, found = (shapes.get(unlike[0], "none") for shapes in (stored, built))
        raise AxiswiseError(
            f"{member.model.network.name} must build the parameters that are stored: {unlike[0]!r} has shape "
            f"{expected}. Got {found}. Pass the function as it was when the member was trained."
        )


def _under(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with "prefix/", under the rest of their names."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}
