"""Writes a page of the reference for every public package: what its `__all__` names, each described once."""

import importlib
import inspect
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from functools import cache, reduce
from operator import or_
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, get_args, get_origin

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer

import axiswise

FOLDER = "reference"
INDEX = """Reference
=========

Every public name, by package. Axes have the letters of :doc:`axiswise.shapes <axiswise.shapes>`.

.. toctree::
   :maxdepth: 1
"""


def public_modules() -> Iterator[ModuleType]:
    """Every module of axiswise that declares public names, in the order of their paths."""
    for found in pkgutil.walk_packages(axiswise.__path__, "axiswise."):
        if any(part.startswith("_") for part in found.name.split(".")) or "triton" in found.name:
            continue
        module = importlib.import_module(found.name)
        if "__all__" in vars(module):
            yield module


def public_objects() -> dict[str, Any]:
    """Every public function and class of axiswise, once, by the first name that it has."""
    found: dict[int, tuple[str, Any]] = {}
    for module in public_modules():
        for name in module.__all__:
            value = getattr(module, name)
            if (inspect.isroutine(value) or inspect.isclass(value)) and value.__module__.startswith("axiswise."):
                found.setdefault(id(value), (f"{module.__name__}.{name}", value))
    return dict(found.values())


def public_values() -> dict[str, str]:
    """What is said of every public name that is neither a function nor a class: a type, a constant, an application."""
    found: dict[str, str] = {}
    for module in public_modules():
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)):
                found[f"{module.__name__}.{name}"] = said_of(name, value)
    return found


def returned_by(objects: dict[str, Any]) -> dict[Any, list[str]]:
    """For each class that public functions return, alone or as part of something, the names of these."""
    found: dict[Any, list[str]] = {}
    for name, value in objects.items():
        if inspect.isroutine(value):
            for part in dict.fromkeys(_parts(inspect.signature(value).return_annotation)):
                found.setdefault(part, []).append(name)
    return found


def _parts(annotation: Any) -> Iterator[Any]:
    part = get_origin(annotation) or annotation
    if inspect.isclass(part):
        yield part
    for part in get_args(annotation):
        yield from _parts(part)


def said_of(name: str, value: Any) -> str:
    """The string that stands below a constant where it is assigned, or nothing."""
    for path, module in list(sys.modules.items()):
        if path.split(".")[0] == "axiswise" and vars(module).get(name) is value:
            said = ModuleAnalyzer.for_module(path).find_attr_docs().get(("", name))
            if said:
                return "\n".join(said).strip()
    return ""


def write_pages(app: Sphinx) -> None:
    """A page a module, and the page that lists them; only what changed is written, so that builds are incremental."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(exist_ok=True)
    home: dict[int, str] = {}
    pages = {f"{module.__name__}.rst": _page(module, home) for module in public_modules()}
    rows = [f"   {name.removesuffix('.rst')}" for name in pages]
    pages["index.rst"] = "\n".join([INDEX, *rows, ""])
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in set(folder.glob("*.rst")) - {folder / name for name in pages}:
        path.unlink()


def _page(module: ModuleType, home: dict[int, str]) -> str:
    """The names of one module: functions, then classes, by their docstrings; values by what stands below them."""
    title = module.__name__
    sections: dict[str, list[str]] = {"Functions": [], "Classes": [], "Values": [], "Described elsewhere": []}
    for name in module.__all__:
        value = getattr(module, name)
        kind = "Functions" if inspect.isroutine(value) else "Classes" if inspect.isclass(value) else "Values"
        if inspect.ismodule(value):
            continue
        if kind == "Values" or value.__module__.split(".")[0] != "axiswise":
            said = textwrap.indent(said_of(name, value), "   ")
            sections["Values"] += [f".. py:data:: {title}.{name}", "", said, ""]
        elif id(value) in home:
            sections["Described elsewhere"].append(f"* :py:obj:`{home[id(value)]}`")
        else:
            home[id(value)] = f"{title}.{name}"
            directive = "autofunction" if kind == "Functions" else "autoclass"
            sections[kind] += [f".. {directive}:: {title}.{name}", "   :members:" if kind == "Classes" else "", ""]
    lines = [title, "=" * len(title), "", f".. automodule:: {title}", "   :no-members:", ""]
    for heading, body in sections.items():
        if body:
            lines += [heading, "-" * len(heading), "", *body, ""]
    return "\n".join(lines)


def hide_limits(app: Sphinx) -> None:
    """Shows ``int`` for ``Annotated[int, Between(1)]``: errors and the text say the limits, and types stay short."""
    for value in public_objects().values():
        for part in [value, *vars(value).values()] if inspect.isclass(value) else [value]:
            part = inspect.unwrap(getattr(part, "fget", None) or getattr(part, "__func__", part))
            if inspect.isclass(part) or inspect.isfunction(part):
                own = inspect.get_annotations(part)  # changed in place, since a function and what wraps it share them
                part.__annotations__.update({name: _without_limits(hint) for name, hint in own.items()})


def _without_limits(annotation: Any) -> Any:
    """An annotation without what `Annotated` adds to it, or to a part of it."""
    if get_origin(annotation) is Annotated:
        return _without_limits(annotation.__origin__)
    parts = getattr(annotation, "__args__", ())
    plain = tuple(_without_limits(part) for part in parts)
    if plain == parts:
        return annotation
    if isinstance(annotation, UnionType):
        return reduce(or_, plain)
    return get_origin(annotation)[plain]


@cache
def _returned_by() -> dict[Any, list[str]]:
    return returned_by(public_objects())


def link_functions(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Says of a class without an example which functions return it: theirs show it."""
    if what == "class" and ">>>" not in "\n".join(lines) and (functions := _returned_by().get(value)):
        lines += ["", f"Returned by {', '.join(f':py:func:`{function}`' for function in functions)}.", ""]


def keep_sentence(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Remembers what is said of an attribute, since napoleon takes the words before a colon for its type."""
    if what in ("attribute", "property"):
        app.env.temp_data[f"said of {name}"] = list(lines)


def restore_sentence(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Puts it back, unless there is more than a paragraph, which napoleon must read."""
    said = app.env.temp_data.pop(f"said of {name}", lines)
    if "" not in said[:-1]:
        lines[:] = said


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", hide_limits)
    app.connect("autodoc-process-docstring", link_functions)
    app.connect("autodoc-process-docstring", keep_sentence, priority=400)  # before napoleon, which has 500
    app.connect("autodoc-process-docstring", restore_sentence, priority=600)
    return {"parallel_read_safe": True}
