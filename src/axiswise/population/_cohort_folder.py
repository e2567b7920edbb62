"""Cohorts that are not finished, on disk: the plan, and the state of each; those that cross runs in the study's folder.

The plan says which members train together, so that a resumption repeats them bit for bit. Finished members are stored
elsewhere: whoever opens the folder says which.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from axiswise.errors import AxiswiseError
from axiswise.population._catalogue import catalogue, own_parts
from axiswise.population._code import Code
from axiswise.population._cohort import Cohort, address_of
from axiswise.population._stored import built, check_code, check_home
from axiswise.population.member import Member
from axiswise.records import Tensors, address, read_json, read_tensors, restore, versions, write_json, write_tensors
from axiswise.records._files import Json, read_about
from axiswise.records._forms import CohortForm, PlanForm
from axiswise.records._layout import COHORT, PLAN, PLAN_FILE, cohort_file, matching

Key = tuple[str, str]
"""The name of a run, "" in the run's own folder, and the address of a member."""
LAYOUT = ("members", "threads", "precision")


@dataclass(frozen=True)
class CohortFolder:
    """The unfinished cohorts of a folder.

    Arguments:
        path: The folder.
        homes: What files say of each run, so that none is taken for one of another: "dataset", and "validation" if
            there is any. The run of a run folder is called "".
        holds: Whether a finished member is stored.
    """

    path: Path
    homes: Mapping[str, Json]
    holds: Callable[[Key], bool]

    def plan(
        self,
        missing: Mapping[Key, Member],
        rest: Callable[[dict[Key, Member]], Sequence[Cohort]],
        waiting: Collection[str] = ("",),
    ) -> list[Cohort]:
        """The cohorts to train, which are written down: unfinished ones as they were begun, then new ones.

        Arguments:
            missing: The members to train.
            rest: Makes cohorts of those that have not begun.
            waiting: Runs that may lack members which are not among the missing ones.
        """
        planned = self._planned()
        for name, form in [*planned.items()]:
            wanted = not missing.keys().isdisjoint(_keys(form)) or not _runs(form).isdisjoint(waiting)
            # Killed after the last of its members was written; or of members or runs that are not there any more.
            if not wanted or self._is_elsewhere(form) or all(map(self.holds, _keys(form))):
                cohort_file(self.path, name).unlink(missing_ok=True)
                del planned[name]
        begun = [self._cohort(form, missing) for form in planned.values() if not missing.keys().isdisjoint(_keys(form))]
        started = {key for cohort in begun for key in cohort.keys}
        fresh = rest({key: member for key, member in missing.items() if key not in started})
        self._write({**planned, **{cohort.address: layout_of(cohort) for cohort in fresh}})
        return [*begun, *fresh]

    def planned(self) -> set[Key]:
        """The members of all unfinished cohorts."""
        return {key for form in self._planned().values() for key in _keys(form)}

    def adopt(self, layout: Json) -> None:
        """Plans one cohort as a folder of the same run on another machine does."""
        self._write({address_of(_keys(layout)): layout})

    def finish(self, cohort: Cohort, *, failed: bool = False) -> bool:
        """Removes plan and state of a cohort whose members are all stored; or, of a failed one, a plan without a state.

        A cohort that failed before it stored anything may be planned anew: nothing of it must be repeated.

        Returns:
            Whether it was removed.
        """
        stored = cohort_file(self.path, cohort.address).exists()
        if failed and (stored or any(map(self.holds, cohort.keys))):
            return False
        self._write({name: form for name, form in self._planned().items() if name != cohort.address})
        cohort_file(self.path, cohort.address).unlink(missing_ok=True)
        return True

    def write_state(self, cohort: Cohort, code: Code, state: Tensors) -> None:
        """Stores an unfinished cohort: its layout, state and history."""
        about = {"format": COHORT, **layout_of(cohort), **state.about, **self._home(cohort.runs), "code": dict(code)}
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
            if (found := address_of(_keys(saved.about))) != cohort.address:
                raise AxiswiseError(f"{path} contains cohort {found}, not {cohort.address}: it was renamed.")
            self._check(path, saved.about)
            check_code(path, saved.about, code)
        except AxiswiseError as error:
            if not again:
                raise AxiswiseError(f"{error} Choose another `out`, or start again with retrain=True.") from error
            path.unlink()
            return None
        stopped = saved.about.get("stopped", ())
        return saved if all(self.holds(key) for key in cohort.keys if key[1] in stopped) else None

    def _planned(self) -> dict[str, Json]:
        """The layouts of all unfinished cohorts by their addresses, in the order of the plan."""
        path, found = self.path / PLAN_FILE, {}
        if path.exists():
            plan = read_json(path, PLAN, PlanForm)
            if "" in self.homes:
                self._check(path, plan)
            homes = plan.get("homes", {})
            found = {address_of(_keys(form)): {**form, "homes": homes} for form in plan["cohorts"]}
        for path in states(self.path):
            if path.stem not in found:  # version 0.1 had no plans
                found[path.stem] = read_about(path, COHORT, CohortForm)
        return found

    def _write(self, planned: Mapping[str, Json]) -> None:
        path = self.path / PLAN_FILE
        if planned:
            names = [*LAYOUT, *(["runs"] if "" not in self.homes else [])]
            layouts = [{name: form.get(name) for name in names} for form in planned.values()]
            home = self._home(run for form in planned.values() for run in form.get("runs") or ())
            write_json(path, {"format": PLAN, **home, "cohorts": layouts})
        else:
            path.unlink(missing_ok=True)

    def _home(self, runs: Iterable[str]) -> Json:
        """What a file says of its runs."""
        return self.homes[""] if "" in self.homes else {"homes": {run: self.homes[run] for run in dict.fromkeys(runs)}}

    def _is_elsewhere(self, form: Json) -> bool:
        """Whether a cohort crosses a run that is not there any more, or that has begun anew on other data."""
        homes = form.get("homes") or {}
        return any(run not in self.homes or homes.get(run, self.homes[run]) != self.homes[run] for run in _runs(form))

    def _check(self, path: Path, about: Mapping[str, Any]) -> None:
        """Raises if a file says that it is of other datasets, or was validated otherwise."""
        for run, stored in ({"": about} if "" in self.homes else about.get("homes", {})).items():
            if run in self.homes:
                check_home(path, stored, self.homes[run], self.path / run)

    def _cohort(self, form: Json, known: Mapping[Key, Member]) -> Cohort:
        """A stored cohort. Of its members, those that are not known are like those that are."""
        names, keys = catalogue(own_parts(known.values())), _keys(form)
        try:
            stored = zip(keys, form["members"], strict=True)
            restored = tuple(known.get(key) or restore(member, names) for key, member in stored)
            for key, member in zip(keys, restored, strict=True):
                if key not in known:
                    built(member)
        except Exception as error:  # a plan that was forged may be of anything
            raise AxiswiseError(f"{self.path / PLAN_FILE} plans members that nobody can train: {error}") from error
        return Cohort(restored, form["threads"], form.get("precision"), tuple(form.get("runs") or ()))


def states(folder: Path) -> list[Path]:
    """The states of unfinished cohorts in a folder."""
    return matching(cohort_file(folder, "*"))


def begun(folder: Path) -> bool:
    """Whether a folder has cohorts that are not finished."""
    return (folder / PLAN_FILE).exists() or bool(states(folder))


def layout_of(cohort: Cohort) -> Json:
    """What a resumption repeats, and an `adopt`ing folder on another machine, as JSON."""
    forms = [member.form for member in cohort.members]
    layout: Json = dict(zip(LAYOUT, (forms, cohort.threads, cohort.precision), strict=True))
    return layout | ({"runs": list(cohort.runs)} if cohort.runs else {})


def _runs(layout: Json) -> set[str]:
    """The names of the runs of a stored cohort."""
    return set(layout.get("runs") or [""])


def _keys(layout: Json) -> tuple[Key, ...]:
    """The keys of the members of a stored cohort."""
    members = layout["members"]
    runs = layout.get("runs") or [""] * len(members)
    if len(runs) != len(members):
        raise AxiswiseError(f"A cohort must name the run of each of {len(members)} members. Got {len(runs)} names.")
    return tuple((run, address(form)) for run, form in zip(runs, members, strict=True))
