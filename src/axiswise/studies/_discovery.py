"""Finding studies: by name, in a module, or in a file.

Packages announce their studies under the entry-point group ``axiswise.studies``. An entry is either one study, or a
mapping of studies, whose names then follow the entry's and a dot: ``sikka2019 = "axiswise_papers.sikka2019:STUDIES"``
makes ``sikka2019.figure_1``.
"""

import importlib
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

from axiswise.errors import AxiswiseError
from axiswise.studies.objectives import comparison, objectives
from axiswise.studies.quickstart import quickstart
from axiswise.studies.study import Study

GROUP = "axiswise.studies"
OWN: dict[str, Study] = {"quickstart": quickstart, "objectives": objectives, "comparison": comparison}


def all_studies() -> dict[str, Study]:
    """Every study that is installed, by name: axiswise's own, then those of other packages.

    Example:
        >>> list(all_studies())[:3]
        ['quickstart', 'objectives', 'comparison']
    """
    found = dict(OWN)
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        loaded = entry.load()
        found |= (
            {f"{entry.name}.{name}": study for name, study in loaded.items()}
            if isinstance(loaded, Mapping)
            else {entry.name: loaded}
        )
    return found


def find_study(reference: str) -> Study:
    """The study of that name, or the one that a file or module holds.

    Arguments:
        reference: A name that `all_studies` lists, ``package.module:study`` or ``path/to/file.py:study``.

    Raises:
        AxiswiseError: If there is no such study.

    Example:
        >>> find_study("quikstart")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected the name of a study (quickstart, ...). Got 'quikstart'. ...
    """
    if ":" in reference:
        study: Any = load_object(reference)
        if not callable(study):
            raise AxiswiseError(
                f"Expected {reference} to be a study, a function of a scale. Got {type(study).__name__}."
            )
        return cast(Study, study)
    known = all_studies()
    if reference not in known:
        raise AxiswiseError(
            f"Expected the name of a study ({', '.join(known)}). Got {reference!r}. A study of your own is "
            "file.py:function or package.module:function."
        )
    return known[reference]


def load_object(reference: str) -> Any:
    """Imports what ``package.module:name`` or ``path/to/file.py:name`` refers to.

    Modules are found from the current folder, as ``python -m`` finds them. A file is imported under its own name, with
    its folder on the path, so that its neighbours and other processes find it in the same way.

    Raises:
        AxiswiseError: If the reference has another form, or its module or name does not exist.

    Example:
        >>> load_object("math:tau.real")
        6.283185307179586
    """
    place, mark, name = reference.rpartition(":")
    if not mark or not place or not name:
        raise AxiswiseError(f"Expected package.module:name or file.py:name. Got {reference!r}.")
    path = Path(place).resolve() if place.endswith(".py") else None
    if path is not None and not path.is_file():
        raise AxiswiseError(f"Expected a Python file at {place}. There is none.")
    folder = str(path.parent if path else Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = path.stem if path else place
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise AxiswiseError(
            f"Expected a module {module} that can be imported from {folder}. Got {type(error).__name__}: {error}. "
            "Run the command where the module lies, or put its folder on PYTHONPATH."
        ) from error
    if path and Path(getattr(found, "__file__", None) or "").resolve() != path:
        raise AxiswiseError(
            f"{place} has the name of another module, {found.__name__}, which was imported instead. Rename the file."
        )
    for part in name.split("."):
        if not hasattr(found, part):
            raise AxiswiseError(f"Expected {name!r} in {place}. There is none; check the spelling.")
        found = getattr(found, part)
    return found
