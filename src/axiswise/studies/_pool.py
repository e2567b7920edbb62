"""The runs of a study trained together: members that can share a program do so, whatever run they belong to.

Finished members and records stay in the folder of their run. The plan and the states of cohorts that are not finished
are in the study's.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.objectives.objective import needs_of
from axiswise.population import Failure, Member, Precision, Progress, _cohort
from axiswise.population._code import code_of
from axiswise.population._cohort import Cohort, cohorts
from axiswise.population._cohort_folder import CohortFolder, Key, begun
from axiswise.population._folder import RunFolder
from axiswise.population._preparation import Prepared, fast_precision, opened
from axiswise.population._training import train_cohorts
from axiswise.records import address, read_json
from axiswise.records._files import Json
from axiswise.records._fingerprint import fingerprint
from axiswise.records._forms import PlanForm
from axiswise.records._layout import PLAN, PLAN_FILE
from axiswise.shapes import Tensor
from axiswise.studies._folder import RunData, StudyFolder, complete, data_of, dataset_of, refuse_changed_measures
from axiswise.studies.study import Run

SHARE = 0.5  # of a GPU's memory, at most, is for the data of all runs


class Pool:
    """The runs of a study that are trained together, each of them opened, so that no other process trains there.

    A run that cannot be opened is left out: trained by itself, it says why.

    Arguments:
        folder: The study's folder.
        precision: What products are computed in on CUDA.
        retrain: Whether to train again what cannot be used.
    """

    def __init__(self, folder: StudyFolder, precision: Precision | None, *, retrain: bool) -> None:
        self._folder, self._retrain = folder, retrain
        self._precision: Precision | None = precision
        self.jobs: dict[str, Prepared] = {}
        self.datasets: dict[str, FactorDataset] = {}  # of each run, on the device
        self.failures: dict[str, list[Failure]] = {}
        self._missing: dict[Key, Member] = {}
        self._locks: dict[str, ExitStack] = {}
        self._tried: set[str] = set()
        self._wholes: list[FactorDataset] = []
        self._parts: dict[tuple[int, bool, bool], RunData] = {}  # by the number of the whole, and of which parts

    def open(self, number: int) -> bool:
        """Opens a run, and returns whether it is in the pool now."""
        run, lock = self._folder.runs[number], ExitStack()
        self._tried.add(run.name)
        place, device = self._folder.path / run.name, self._folder.device
        try:
            whole, (data, _, validation) = self._data_of(run, device)
            options: dict[str, Any] = {"device": device, "retrain": self._retrain, "validation": validation}
            options["precision"] = fast_precision(self._precision, torch.float32, device, run.members)
            refuse_changed_measures(run, place, self._retrain)
            job, missing = lock.enter_context(
                opened(run.members, data, place, every=run.every, stop=run.stop, **options)
            )
            own = RunFolder(place)
            apart = own.cohorts.planned()  # what the run has begun by itself, it ends by itself
            missing = [member for member in missing if ("", member.address) not in apart]
            own.forget([member.address for member in missing])
        except (Exception, SystemExit):  # of datasets and members, which may be anybody's
            lock.close()
            return False
        except BaseException:
            lock.close()
            raise
        self.jobs[run.name], self.datasets[run.name], self._locks[run.name] = job, whole, lock
        self._missing |= {(run.name, member.address): member for member in missing}
        return True

    def train(self, progress: Progress | None, ready: Callable[[str], None]) -> None:
        """Trains the members of all runs that are open.

        Arguments:
            progress: Receives how far training is.
            ready: Called with the name of each run of which nothing is left to be trained here.
        """
        closed = self._closed()
        homes = closed | {name: job.home for name, job in self.jobs.items()}
        place = CohortFolder(self._folder.path, homes, self._holds)
        planned = []
        for cohort in place.plan(self._missing, self._cohorts, closed):
            if others := closed.keys() & set(cohort.runs):
                self._fail(cohort, Failure(_waiting(others), (), ""))
            else:
                planned.append(cohort)
        left = {name: sum(name in cohort.runs for cohort in planned) for name in self.jobs}

        def end(cohort: Cohort, failure: Failure | None) -> None:
            if failure and place.planned() & set(cohort.keys):  # else its members are trained by their own runs
                self._fail(cohort, failure)
            for run in dict.fromkeys(cohort.runs):
                left[run] -= 1
                if not left[run]:
                    self._locks.pop(run).close()
                    ready(run)

        for name in [name for name, count in left.items() if not count]:
            self._locks.pop(name).close()
            ready(name)
        if planned:
            train_cohorts(
                planned, self.jobs, place, torch.float32, progress=progress, retrain=self._retrain, on_cohort=end
            )

    def close(self) -> None:
        """Releases the folders of all runs, and the memory of their data."""
        for lock in self._locks.values():
            lock.close()
        self._locks.clear()
        for held in (self.jobs, self.datasets, self._wholes, self._parts):
            held.clear()
        if self._folder.device.type == "cuda":
            torch.cuda.empty_cache()  # which those need who measure

    def _fail(self, cohort: Cohort, failure: Failure) -> None:
        """Notes what went wrong with a cohort for each of its runs, with the members of that run."""
        for run in dict.fromkeys(cohort.runs):
            members = tuple(key for name, key in cohort.keys if name == run)
            self.failures.setdefault(run, []).append(failure._replace(members=members))

    def _closed(self) -> dict[str, Json]:
        """What the plan says of runs of this study that have begun, and are not open: left alone, or not to be opened.

        What began with the latter is given up where all is made anew.
        """
        own = {run.name for run in self._folder.runs} - self.jobs.keys() - (self._tried if self._retrain else set())
        return {name: home for name, home in homes_of_plan(self._folder.path).items() if name in own}

    def _holds(self, key: Key) -> bool:
        job = self.jobs.get(key[0])
        return job is not None and job.folder is not None and job.folder.holds(key[1])

    def _cohorts(self, missing: dict[Key, Member]) -> list[Cohort]:
        """New cohorts: of members whose data can be rendered together, those that can share a program."""
        kinds: dict[str, list[Key]] = {}
        for key, member in missing.items():
            kinds.setdefault(address(_kind(key[0], self.jobs[key[0]], member)), []).append(key)
        found = []
        for keys in kinds.values() if _cohort.pools(self._folder.device) else ():  # on a CPU, runs do it by themselves
            precision = self.jobs[keys[0][0]].precision
            members, runs = [missing[key] for key in keys], [run for run, _ in keys]
            found += cohorts(members, self._folder.device, precision, runs)
        order = {key: place for place, key in enumerate(missing)}
        return sorted(found, key=lambda cohort: order[cohort.keys[0]])

    def _data_of(self, run: Run, device: torch.device) -> tuple[FactorDataset, RunData]:
        """The data of a run and its parts; where another has the same, that one's, so that they are in memory once."""
        made = dataset_of(run).to(device)
        place = next((place for place, known in enumerate(self._wholes) if _is_same(known, made)), len(self._wholes))
        if place == len(self._wholes):
            if self._wholes and _is_full(device):
                raise MemoryError("The data of all runs are too large to be in memory at once.")
            self._wholes.append(made)
        whole, key = self._wholes[place], (place, run.held_out, run.validated)
        if key not in self._parts:
            self._parts[key] = data_of(run, whole)
        return whole, self._parts[key]


def _is_same(one: FactorDataset, other: FactorDataset) -> bool:
    """Whether two datasets are the same in all that they are made of, and not by what they are called alone."""
    if (one.identity, one.space, one.transition) != (other.identity, other.space, other.transition):
        return False
    if fingerprint(one.render) != fingerprint(other.render) or one.tensors.keys() != other.tensors.keys():
        return False
    pairs = [(tensor, other.tensors[name]) for name, tensor in one.tensors.items()]
    return all(
        mine is theirs or (mine is not None and theirs is not None and _are_equal(mine, theirs))
        for mine, theirs in [*pairs, (one.levels, other.levels), (one.rows, other.rows)]
    )


def _are_equal(one: Tensor, other: Tensor) -> bool:
    return one.dtype == other.dtype and torch.equal(one, other)


def _is_full(device: torch.device) -> bool:
    """Whether data take more than their share of a GPU's memory."""
    return device.type == "cuda" and torch.cuda.memory_allocated(device) > SHARE * torch.cuda.mem_get_info(device)[1]


def _kind(name: str, job: Prepared, member: Member) -> Any:
    """What must be equal for members of two runs to train together, apart from the structure of the members.

    Classes of two modules may have one name, so that own code is part of it.
    """
    if job.validation:
        return name
    one = job.precision, len(job.dataset), job.dataset.shape, job.code[member.address]
    if member.batch is None or needs_of(member.objective).pairs:  # all see one tensor, or follow one transition
        return *one, id(job.dataset)
    return one


def pools(folder: StudyFolder, gpus: int) -> bool:
    """Whether runs of a study are trained together: if several are to be trained on one GPU, or if it began so."""
    several = sum(not folder.complete(number) for number in folder.chosen) > 1
    alone = gpus == 1 and _cohort.pools(folder.device)
    return not folder.read_only and (begun(folder.path) or (several and alone))


def train_together(
    folder: StudyFolder,
    precision: Precision | None,
    progress: Progress | None,
    retrain: bool,
    log: Callable[[str], None],
    ready: Callable[[int, FactorDataset | None, Sequence[Failure]], None],
) -> None:
    """Trains all runs of a study as far as they can be trained together.

    Arguments:
        folder: The study's folder.
        precision: What products are computed in on CUDA.
        progress: Receives how far training is.
        retrain: Whether to train again what cannot be used.
        log: Called with a line for each run that begins.
        ready: Called once for each run, with its number, as soon as nothing is left to be trained here; its data, if
            they were made; and what went wrong. Its folder is open to others then.
    """
    needed = begun_with(folder.path, [folder.runs[number].name for number in folder.chosen])
    numbers = {
        run.name: number for number, run in enumerate(folder.runs) if number in folder.chosen or run.name in needed
    }
    pool, waiting = Pool(folder, precision, retrain=retrain), dict(numbers)

    def tell(name: str) -> None:
        ready(waiting.pop(name), pool.datasets.pop(name, None), pool.failures.get(name, ()))

    try:
        for name, number in numbers.items():
            run = folder.runs[number]
            if name in needed or not untouched(run, RunFolder(folder.path / name)):
                folder.start(number, log)
                if pool.open(number):
                    continue
            tell(name)
        pool.train(progress, tell)
    except (OSError, AxiswiseError) as error:  # of the study's folder, or of one of a run
        for name in [*waiting]:
            pool.failures.setdefault(name, []).append(Failure.of(error, folder.runs[waiting[name]].members))
            tell(name)
    finally:
        pool.close()


def begun_with(folder: Path, chosen: Iterable[str]) -> set[str]:
    """The runs of the unfinished cohorts of some runs, which go on with these, chosen or not."""
    cohorts, found, known = _plan(folder).get("cohorts", ()), set[str](), set(chosen)
    while found != known:
        found = known
        known = found.union(*(runs for form in cohorts if not found.isdisjoint(runs := form.get("runs") or ())))
    return {run for form in cohorts for run in form.get("runs") or () if run in found}


def homes_of_plan(folder: Path) -> dict[str, Json]:
    """The runs that unfinished cohorts of a study have members of, by their names, and what is said of each."""
    return _plan(folder).get("homes", {})


def _plan(folder: Path) -> Json:
    path = folder / PLAN_FILE
    return read_json(path, PLAN, PlanForm) if path.exists() else {}


def _waiting(runs: Iterable[str]) -> str:
    """Why members are not trained that have begun with those of other runs."""
    return (
        f"These members train together with some of {', '.join(sorted(runs))}, which cannot be opened and says why. "
        "What was trained is kept: mend that, and the same command goes on; or train them anew with --retrain."
    )


def untouched(run: Run, folder: RunFolder) -> bool:
    """Whether a run is trained and measured, and by the present code."""
    try:
        return complete(run, folder.path) and folder.tidy and folder.made_by(code_of(run.members))
    except AxiswiseError:  # an unreadable file, which the run itself will report
        return False
