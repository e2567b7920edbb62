"""Finding studies: by name, in a module, or in a file.

Packages announce their studies under the entry-point group ``axiswise.studies``. An entry is either one study, or a
mapping of studies, whose names then follow the entry's and a dot: ``sikka2019 = "axiswise_papers.sikka2019:STUDIES"``
makes ``sikka2019.figure_1``.
"""

import importlib
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError, suggestion
from axiswise.studies.objectives import comparison, objectives
from axiswise.studies.quickstart import quickstart
from axiswise.studies.study import Study

GROUP = "axiswise.studies"
OWN: dict[str, Study] = {"quickstart": quickstart, "objectives": objectives, "comparison": comparison}


@checked
def all_studies(log: Callable[[str], None] = warnings.warn) -> dict[str, Study]:
    """Every study that is installed, by name: axiswise's own, then those of other packages.

    Arguments:
        log: Called with one line for each package whose studies cannot be loaded; they are left out.

    Example:
        >>> list(all_studies())[:3]
        ['quickstart', 'objectives', 'comparison']
    """
    found = dict(OWN)
    for entry in _entries():
        try:
            studies = _studies(entry)
        except AxiswiseError as error:
            log(str(error))
        else:
            found |= {name: study for name, study in studies.items() if name not in found}
    return found


@checked
def find_study(reference: str) -> Study:
    """The study of that name, or the one of a file or module.

    Arguments:
        reference: A name that `all_studies` lists, ``package.module:study`` or ``path/to/file.py:study``.

    Raises:
        AxiswiseError: If there is no such study, or its module cannot be imported.

    Example:
        >>> find_study("quikstart")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected ... Got 'quikstart'. Did you mean 'quickstart'? ...
    """
    if ":" in reference:
        return _checked(load_object(reference), reference)
    if reference in OWN:
        return OWN[reference]
    for entry in _entries():  # only the package that is meant is imported
        if reference == entry.name or reference.startswith(f"{entry.name}."):
            studies = _studies(entry)
            if reference in studies:
                return studies[reference]
    known = all_studies(log=lambda line: None)
    raise AxiswiseError(
        f"Expected the name of a study ({', '.join(known)}). Got {reference!r}.{suggestion(reference, known)} A study "
        "of your own is file.py:function or package.module:function."
    )


@checked
def load_object(reference: str) -> Any:
    """Imports what ``package.module:name`` or ``path/to/file.py:name`` refers to.

    Modules are found from the current folder, as ``python -m`` finds them. A file is imported under its own name, with
    its folder on the path, so that its neighbours and other processes find it in the same way.

    Raises:
        AxiswiseError: If the reference has another form, its module cannot be imported, or the name does not exist.

    Example:
        >>> load_object("math:tau.real")
        6.283185307179586
    """
    place, _, name = reference.rpartition(":")
    path = Path(place) if place.endswith(".py") else None
    module = path.stem if path else place
    if not name or not module or not (path or all(part.isidentifier() for part in module.split("."))):
        raise AxiswiseError(f"Expected package.module:name or file.py:name. Got {reference!r}.")
    if path is not None and not path.is_file():
        raise AxiswiseError(f"Expected a Python file at {place}. There is none.")
    path = path.resolve() if path is not None else None
    if "." in module and path is not None:
        raise AxiswiseError(f"Expected a file name without dots before .py, as modules have. Got {place}.")
    folder = str(path.parent if path else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            reason = "Run the command in the folder of the module, or put that folder on PYTHONPATH."
            raise AxiswiseError(
                f"Expected a module {module} in {folder} or on the path, for {reference!r}. {reason}"
            ) from error
        raise AxiswiseError(f"{place} cannot be imported: {describe_error(error)}.") from error
    if path and Path(getattr(found, "__file__", None) or "").resolve() != path:
        raise AxiswiseError(
            f"{place} has the name of another module, {found.__name__}, which was imported instead. Rename the file."
        )
    for part in name.split("."):
        if not hasattr(found, part):
            home, contents = getattr(found, "__name__", ""), getattr(found, "__dict__", {})
            own = (key for key, value in contents.items() if getattr(value, "__module__", "") == home)
            known = ", ".join(key for key in own if not key.startswith("_"))
            raise AxiswiseError(
                f"Expected {name!r} in {place}. There is none; check the spelling. It defines: {known or 'nothing'}."
            )
        found = getattr(found, part)
    return found


@checked
def describe_error(error: BaseException) -> str:
    """An error of somebody else's code in one line: its type, its message, and where it was raised.

    Example:
        >>> describe_error(KeyError("weights"))
        "KeyError: 'weights'"
    """
    message = " ".join(str(error).split()).rstrip(".")
    words = f"{type(error).__name__}: {message}" if message else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or isinstance(error, SyntaxError | ImportError):  # whose messages name the place
        return words
    return f"{words} ({frames[-1].filename}, line {frames[-1].lineno})"


def _entries() -> list[Any]:
    """The entry points of studies, by name; of another class once ``importlib_metadata`` has been imported."""
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _studies(entry: Any) -> dict[str, Study]:
    """The studies of an entry point, by name.

    Raises:
        AxiswiseError: If they cannot be imported, or are no studies.
    """
    package = entry.dist.name if entry.dist else "an unnamed package"
    try:
        loaded = entry.load()
    except (Exception, SystemExit) as error:  # somebody else's code may raise anything
        raise AxiswiseError(
            f"The studies {entry.name} of {package} cannot be imported from {entry.value}: {describe_error(error)}."
        ) from error
    if not isinstance(loaded, Mapping):
        return {entry.name: _checked(loaded, f"{entry.value} of {package}")}
    return {f"{entry.name}.{name}": _checked(study, f"{entry.value}[{name!r}]") for name, study in loaded.items()}


def _checked(study: Any, reference: str) -> Study:
    if not callable(study):
        raise AxiswiseError(f"Expected {reference} to be a study, a function of a scale. Got {type(study).__name__}.")
    return cast(Study, study)
