"""Fingerprints of a user's own code: what a stored result was made with, so that other code is not taken for it.

Own code is what lies outside axiswise, the standard library and installed packages; scripts, notebooks and editable
installs are own, and so is `axiswise_papers`. A fingerprint follows what own code reads: own functions, classes and
modules, and values. Comments, formatting, line numbers, docstrings and annotations do not count. The syntax tree does,
so that a fingerprint is the same on every version of Python; a function whose source cannot be read, or is no longer
that of the function, is known by its bytecode, which is not.
"""

import ast
import dis
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import re
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

OWN_PACKAGES = ("axiswise_papers",)  # own wherever they lie: results depend on them as on any study's code
INSTALLED = {"site-packages", "dist-packages"}
LIBRARIES = {
    Path(folder).resolve()
    for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), Path(__file__).parents[1])
}
IGNORED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind"}  # fields of syntax without effect
BYTECODE = "bytecode"
LOADS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"}
LONGEST = 60  # characters of a value that is stored as it is
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
GENERATED = "<string>"  # the file of methods that dataclasses and named tuples are given
OWN_FLAGS = 0x3FF  # of code, without those of `from __future__`
MACHINERY = {"_abc_impl", "_is_protocol", "_is_runtime_protocol", "__annotate__", "__annotate_func__"}  # of classes


def fingerprint(*roots: Any) -> dict[str, str]:
    """The parts of a user's own code that some objects are made of, each with a digest; values as they are, if short.

    Arguments:
        roots: Functions, classes, partials, or frozen dataclasses of these and of values. Whatever is not own is
            looked through, so that objects of axiswise alone have no parts.

    Example:
        >>> fingerprint(len, np.mean, "text", 3)
        {}
    """
    reader = _Reader()
    for root in roots:
        reader.text(root)
    return dict(sorted(reader.parts.items()))


def value_text(value: Any) -> str:
    """A value as a text that is equal in another process; of an array its type, shape and a digest.

    Example:
        >>> value_text({"width": 3, "sizes": (1, 2)})
        "{'width': 3, 'sizes': tuple(1, 2)}"
    """
    return _Reader().text(value)


def differences(stored: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What changed between two fingerprints, in words.

    Example:
        >>> differences({"nets": "code 1a", "WIDTH": "64", "old": "code 2"}, {"nets": "code 1b", "WIDTH": "128"})
        ['WIDTH was 64 and is 128', 'nets changed', 'old is no longer used']
    """
    return [_difference(name, stored.get(name), found.get(name)) for name in sorted({**stored, **found})
            if stored.get(name) != found.get(name)]  # fmt: skip


def _difference(name: str, before: str | None, after: str | None) -> str:
    if before is None:
        return f"{name} is used now"
    if after is None:
        return f"{name} is no longer used"
    if before.startswith(BYTECODE) and after.startswith(BYTECODE) and before.split()[1] != after.split()[1]:
        return f"{name} has no source and is known by its bytecode, which is that of Python {before.split()[1]}"
    digests = ("code ", "value ", BYTECODE)
    if before.startswith(digests) or after.startswith(digests):
        return f"{name} changed"
    return f"{name} was {before} and is {after}"


def without_source(parts: Mapping[str, str]) -> list[str]:
    """The parts that are known by their bytecode."""
    return [name for name, part in parts.items() if part.startswith(BYTECODE)]


def is_own(thing: Any) -> bool:
    """Whether a function, class or module is a user's own.

    Example:
        >>> is_own(fingerprint), is_own(np.mean), is_own(ast)
        (False, False, False)
    """
    module = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None) or ""
    if (package := module.partition(".")[0]) in OWN_PACKAGES:
        return not isinstance(thing, types.FunctionType) or package in Path(thing.__code__.co_filename).parts
    if package in ("axiswise", ""):  # a decorator's function may lie in another file, or in no module
        return False
    if isinstance(thing, types.FunctionType):
        file = thing.__code__.co_filename
    elif isinstance(thing, type | types.ModuleType):
        if module in sys.builtin_module_names:
            return False
        file = getattr(sys.modules.get(module), "__file__", None) or ""
    else:
        return False
    return not is_installed(file)


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python, to axiswise or to an installed package."""
    if file.startswith(("<frozen", "<__array_function__")):  # of Python and of NumPy
        return True
    return bool(INSTALLED.intersection(Path(file).parts) or LIBRARIES.intersection(Path(file).resolve().parents))


def module_name(module: str) -> str:
    """The name under which others import a module; for a running script, that of its file."""
    if module not in ("__main__", "__mp_main__"):
        return module
    main = sys.modules[module]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return spec.name
    return Path(file).stem if file else module


def digest(text: str) -> str:
    """Sixteen digits that stand for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class _Reader:
    """Collects the parts of what it is asked to describe."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self._followed: dict[int, Any] = {}  # the objects themselves, too: an identity may be used again

    def text(self, value: Any) -> str:
        """Describes a value in a text that is equal in another process, and collects the own code in it."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes | range | slice):
            return repr(value)
        if isinstance(value, Enum):
            return f"{self.text(type(value))}.{value.name}"
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type | types.FunctionType):
            return self._definition(value)
        if isinstance(value, partial):
            return f"partial{self._texts((value.func, *value.args))}{self.text(value.keywords)}"
        if isinstance(value, types.MethodType | staticmethod | classmethod):
            owner = self.text(value.__self__) if isinstance(value, types.MethodType) else type(value).__name__
            return f"{owner} {self.text(value.__func__)}"
        if isinstance(value, property):
            return f"property{self._texts((value.fget, value.fset))}"
        if isinstance(value, cached_property):
            return f"property{self._texts((value.func,))}"
        if isinstance(value, np.generic):
            return repr(value.item())
        if _is_array(value):
            array = np.asarray(value.detach().cpu()) if hasattr(value, "detach") else np.asarray(value)
            contents = hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()[:16]
            return f"{array.dtype} {array.shape} {contents}"
        if id(value) in self._followed:  # a list that has itself as an entry
            return type(value).__name__
        return self._object(value)

    def _object(self, value: Any) -> str:
        self._followed[id(value)] = value
        try:
            if isinstance(value, list | tuple):
                return f"{type(value).__name__}{self._texts(value)}"
            if isinstance(value, set | frozenset):
                return f"{type(value).__name__}{sorted(map(self.text, value))}"
            if isinstance(value, Mapping):
                return f"{{{', '.join(f'{self.text(key)}: {self.text(entry)}' for key, entry in value.items())}}}"
            name = self.text(type(value))
            if is_dataclass(value):
                return f"{name}{ {field.name: self.text(getattr(value, field.name)) for field in fields(value)} }"
            if is_own(type(value)):
                return f"{name}{ {key: self.text(entry) for key, entry in getattr(value, '__dict__', {}).items()} }"
            if (wrapped := getattr(value, "__wrapped__", None)) is not None:  # functools.lru_cache and others
                return f"{name} {self.text(wrapped)}"
            shown = repr(value)
            return name if ADDRESS.search(shown) else f"{name} {shown}"
        finally:
            del self._followed[id(value)]

    def _texts(self, values: Sequence[Any]) -> str:
        return f"({', '.join(map(self.text, values))})"

    def _module(self, module: types.ModuleType) -> str:
        """A module itself, not an attribute of it: if it is own, all that it contains counts."""
        if is_own(module) and id(module) not in self._followed:
            self._followed[id(module)] = module
            named = {name: value for name, value in vars(module).items() if not name.startswith("__")}
            self._read_names([(name,) for name in named], named, module_name(module.__name__))
        return f"module {module_name(module.__name__)}"

    def _definition(self, thing: Any) -> str:
        """A function or class: by its name, and if it is own by what it is made of, too."""
        name = f"{module_name(thing.__module__ or '')}.{thing.__qualname__}"
        if not is_own(thing):
            if isinstance(thing, types.FunctionType):  # what a package wraps around an own function
                for within in (getattr(thing, "__wrapped__", None), *map(_contents, thing.__closure__ or ())):
                    if callable(within):
                        self.text(within)
            # The module in which a package defines a thing may be another in the package's next version.
            return f"{(thing.__module__ or '').partition('.')[0]} {thing.__qualname__}"
        if id(thing) not in self._followed:
            self._followed[id(thing)] = thing
            part = self._class(name, thing) if isinstance(thing, type) else self._function(name, thing)
            # Two functions of one name, such as two closures of one function, are one part.
            self.parts[name] = part if name not in self.parts else f"code {digest(self.parts[name] + part)}"
        return name

    def _class(self, name: str, own: type) -> str:
        declared = getattr(own, "__dataclass_fields__", {})
        about = [self.text(base) for base in own.__bases__]
        about += [f"{field.name}: {getattr(field.type, '__name__', field.type)}" for field in declared.values()]
        if issubclass(own, Enum):
            about += [f"{member.name} = {self.text(member.value)}" for member in own]
        about += getattr(own, "_fields", ())  # of a named tuple
        for key, value in vars(own).items():
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType | type | property | cached_property):
                if not (key in MACHINERY or (key.startswith("_") and _is_given(own, function))):
                    about.append(f"{key}: {self.text(value)}")
            elif not (key.startswith("__") or key in {*declared, *about, *MACHINERY} or issubclass(own, Enum)):
                self.parts[f"{name}.{key}"] = _short(self.text(value))  # defaults of fields are in an instance
        return f"code {digest(repr(about))}"

    def _function(self, name: str, function: types.FunctionType) -> str:
        self.text(getattr(function, "__wrapped__", None))
        code = function.__code__
        about = [self._texts((function.__defaults__, function.__kwdefaults__))]
        cells = dict(zip(code.co_freevars, map(_contents, function.__closure__ or ()), strict=True))
        cells.pop("__class__", None)  # the class that a method is of, which is followed from above
        chains, imported = _names_read(code), _imports(code, function.__globals__.get("__package__"))
        home = module_name(function.__module__ or "")
        read = self._read_names((chain for chain in chains if chain[0] in cells), cells, name)
        read |= self._read_names((chain for chain in chains if chain[0] not in cells), function.__globals__, home)
        read |= {self._resolved(module, attributes) for module, attributes in imported}
        about += sorted(read)
        node = _source_of(code)
        if node is None:
            version = ".".join(map(str, sys.version_info[:2]))
            return f"{BYTECODE} {version} {digest(repr((_normal(code), about)))}"
        return f"code {digest(repr((node, about)))}"

    def _read_names(self, chains: Iterable[Sequence[str]], values: Mapping[str, Any], home: str) -> set[str]:
        """What names mean that own code reads; values become parts of their own, named after their home."""
        about = set()
        for name, *attributes in chains:
            if name not in values:  # a name of Python itself
                continue
            value = values[name]
            if isinstance(value, types.ModuleType):
                about.add(f"{name}: {self._resolved(value, attributes)}")
            elif callable(value):
                about.add(f"{name}: {self.text(value)}")
            else:
                self.parts[f"{home}.{name}"] = _short(self.text(value))
        return about

    def _resolved(self, module: types.ModuleType, attributes: Sequence[str]) -> str:
        """A module's attribute, an attribute of that and so on, as far as these are own modules; then what it is."""
        if not is_own(module) or not attributes or not hasattr(module, attributes[0]):
            return self._module(module)
        return "".join(self._read_names([attributes], vars(module), module_name(module.__name__)))


def _is_given(own: type, function: Any) -> bool:
    """Whether Python gave a method to a class, whose source does not have it; other versions give others."""
    if not callable(function):
        return False
    function = inspect.unwrap(function)
    generated = getattr(getattr(function, "__code__", None), "co_filename", None) == GENERATED
    return not is_own(function) or (generated and (is_dataclass(own) or hasattr(own, "_fields")))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (hasattr(value, "detach") and hasattr(value, "dtype"))


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty: the name is not yet bound
        return None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"value {digest(text)}"


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code and that of all functions within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _names_read(code: types.CodeType) -> list[tuple[str, ...]]:
    """The global and enclosing names that code reads, each with the attributes that are taken of it.

    A name that the code itself assigns is its state, and no part of what it is.
    """
    chains, assigned = [], set()
    for own in _codes(code):
        instructions = list(dis.get_instructions(own))
        for number, instruction in enumerate(instructions):
            if instruction.opname == "STORE_GLOBAL":
                assigned.add(instruction.argval)
            if instruction.opname in LOADS:
                chain = [instruction.argval]
                for following in instructions[number + 1 :]:
                    if following.opname not in ("LOAD_ATTR", "LOAD_METHOD"):
                        break
                    chain.append(following.argval)
                chains.append(tuple(chain))
    return [chain for chain in chains if chain[0] not in assigned]


def _imports(code: types.CodeType, package: str | None) -> list[tuple[types.ModuleType, tuple[str, ...]]]:
    """The own modules that code imports when it runs, each with the name that is taken from it, if one is."""
    found = []
    for own in _codes(code):
        instructions = list(dis.get_instructions(own))
        for number, instruction in enumerate(instructions):
            if instruction.opname != "IMPORT_NAME":
                continue
            level, names = (before.argval for before in instructions[number - 2 : number])
            name = importlib.util.resolve_name("." * level + instruction.argval, package)
            module = sys.modules.get(name) or _own_module(name)
            if module is not None and is_own(module):
                found += [(module, (taken,)) for taken in names] if names and "*" not in names else [(module, ())]
    return found


def _own_module(name: str) -> types.ModuleType | None:
    """The module of that name, imported if it is own, as the code that names it would."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    file = spec.origin if spec else None
    return None if not file or is_installed(file) else importlib.import_module(name)


def _source_of(code: types.CodeType) -> str | None:
    """The syntax of a function as a text, if its source can be read and is that of the function."""
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    compiled, nodes = _definitions("".join(lines))
    for line in compiled.get((code.co_qualname, _normal(code)), ()):
        return nodes.get((code.co_name, line))
    return None


@lru_cache(maxsize=64)
def _definitions(source: str) -> tuple[dict[Any, list[int]], dict[tuple[str, int], str]]:
    """The functions of a source: the lines they begin in, by their names and code; their syntax, by name and line."""
    compiled: dict[Any, list[int]] = {}
    nodes: dict[tuple[str, int], str] = {}
    try:
        tree = ast.parse(source)
        module = compile(source, "", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError):
        return compiled, nodes
    for code in _codes(module):
        compiled.setdefault((code.co_qualname, _normal(code)), []).append(code.co_firstlineno)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            name = getattr(node, "name", "<lambda>")
            line = min([node.lineno, *(entry.lineno for entry in getattr(node, "decorator_list", ()))])
            # Two lambdas of one line are told apart by neither: both count.
            nodes[name, line] = nodes.get((name, line), "") + canonical(node)
    return compiled, nodes


def canonical(node: Any) -> str:
    """A syntax tree as a text that is the same for every version of Python, and for every layout of the source.

    Example:
        >>> canonical(ast.parse("f( 1,b )  # why")) == canonical(ast.parse("f(1, b)"))
        True
        >>> canonical(ast.parse("x + 1").body[0].value)
        "BinOp(left=Name(id='x'), op=Add(), right=1)"
    """
    if isinstance(node, list):
        return f"[{', '.join(map(canonical, node))}]"
    if not isinstance(node, ast.AST) or isinstance(node, ast.Constant):
        return repr(node.value if isinstance(node, ast.Constant) else node)
    parts = []
    for name, value in ast.iter_fields(node):
        if (
            name == "body"
            and isinstance(value, list)
            and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        ):
            value = value[1:] if ast.get_docstring(node, clean=False) is not None else value
        if isinstance(node, ast.JoinedStr) and name == "values":
            value = _joined(value)
        # What a field is without a value differs between versions, and so do the fields that there are.
        if name not in IGNORED and value is not None and value != []:
            parts.append(f"{name}={canonical(value)}")
    return f"{type(node).__name__}({', '.join(parts)})"


def _joined(values: list[ast.expr]) -> list[ast.expr]:
    """The parts of an f-string, texts side by side as one and empty ones left out: versions divide them differently."""
    joined: list[ast.expr] = []
    for value in values:
        if isinstance(value, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(f"{joined[-1].value}{value.value}")
        else:
            joined.append(value)
    return [value for value in joined if not (isinstance(value, ast.Constant) and value.value == "")]


def _normal(code: types.CodeType) -> tuple[Any, ...]:
    """What code computes, without where it stands."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & OWN_FLAGS)
    return (code.co_name, *counts, code.co_code, names, tuple(map(_constant, code.co_consts)))


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return _normal(value)
    # The order of a set depends on the process.
    shown = sorted(map(repr, value)) if isinstance(value, frozenset) else repr(value)
    return type(value).__name__, str(shown)
