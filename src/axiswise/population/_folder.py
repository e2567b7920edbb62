"""Run folders: members by content address, and the states of unfinished cohorts.

::

    run.json                      the dataset and floating-point type all members share
    members/ADDRESS.safetensors   a finished member: weights, buffers, history, status
    cohorts/ADDRESS.safetensors   a cohort in training: the whole state, and the layout a resumption repeats
    records.jsonl, arrays/        the results of `evaluate`

The same call resumes, a larger grid trains what is missing, another dataset is refused.
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
from axiswise.records import (
    PARTIAL,
    address,
    locked,
    read_about,
    read_json,
    read_tensors,
    restore,
    versions,
    write_json,
    write_tensors,
)

LOCK = ".lock"
RUN, MEMBER, COHORT = "axiswise-run-1", "axiswise-member-1", "axiswise-cohort-1"


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
        if not (self.path / "run.json").exists():
            if any(path.name != LOCK for path in self.path.iterdir()):
                raise AxiswiseError(
                    f"{self.path} is not a run folder: it has no run.json but is not empty. Choose another `out`."
                )
            write_json(self.path / "run.json", {**about, "versions": versions()})
            return
        found = read_json(self.path / "run.json", RUN)
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
        return self._member(member).exists()

    def write_member(self, trained: Trained) -> None:
        """Stores a finished member."""
        arrays = {f"weights/{name}": tensor.cpu().numpy() for name, tensor in trained.weights.items()}
        arrays |= {f"buffers/{name}": tensor.cpu().numpy() for name, tensor in trained.buffers.items()}
        arrays |= {f"history/{name}": array for name, array in trained.history.items()}
        form = {"member": trained.member.form, "status": trained.status, "seconds": round(trained.seconds, 3)}
        write_tensors(self._member(trained.member.address), arrays, {"format": MEMBER, **form, "about": trained.about})

    def read_member(
        self, member: str, known: Mapping[str, Member] | None = None, factories: Sequence[Factory] = ()
    ) -> Trained:
        """Loads a finished member by its address.

        Arguments:
            member: The address.
            known: Members by address, which are not rebuilt from their stored form.
            factories: The functions that build stored models of a user's own.
        """
        arrays, about = read_tensors(self._member(member), MEMBER)
        described = (known or {}).get(member) or restore(about["member"], catalogue(factories))
        # The address is that of the stored form: names in it may be old ones, which `catalogue` translates.
        if (found := address(about["member"])) != member:
            raise AxiswiseError(f"{self._member(member)} contains member {found}, not {member}: it was renamed.")
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
        return sorted(path.stem for path in (self.path / "members").glob("*.safetensors"))

    def write_state(self, cohort: Cohort, loop: Loop) -> None:
        """Stores an unfinished cohort: its layout, state and history."""
        arrays, about = loop.state()
        layout = {"members": [member.form for member in cohort.members]}
        layout |= {"threads": cohort.threads, "precision": cohort.precision}
        write_tensors(self._cohort(cohort), arrays, {"format": COHORT, **layout, **about})

    def resume(self, cohort: Cohort, loop: Loop) -> None:
        """Resumes a loop from the saved state of its cohort, if there is one.

        Raises:
            AxiswiseError: If the state is of another program.
        """
        if (path := self._cohort(cohort)).exists():
            loop.resume(read_tensors(path, COHORT), str(path))

    def unfinished(self, known: Mapping[str, Member]) -> list[Cohort]:
        """Unfinished cohorts with any of the known members, in the layout they were started with."""
        networks = (member.model.network for member in known.values())
        names = catalogue([network.factory for network in networks if isinstance(network, Custom)])
        found = []
        for path in sorted((self.path / "cohorts").glob("*.safetensors")):
            about = read_about(path, COHORT)
            members = {address(form): form for form in about["members"]}
            if members.keys() & known.keys():  # others may need a factory that this call does not have
                restored = (known.get(key) or restore(form, names) for key, form in members.items())
                found.append(Cohort(tuple(restored), about["threads"], about.get("precision")))
        return found

    def forget(self, cohort: Cohort) -> None:
        """Removes the state of a cohort whose members are all stored."""
        self._cohort(cohort).unlink(missing_ok=True)

    def _member(self, member: str) -> Path:
        return self.path / "members" / f"{member}.safetensors"

    def _cohort(self, cohort: Cohort) -> Path:
        return self.path / "cohorts" / f"{cohort.address}.safetensors"


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
