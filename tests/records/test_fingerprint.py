"""Fingerprints of own code: every change that can change a result changes them, and nothing else does."""

import importlib.util
import json
import os
import subprocess
import sys
import textwrap
from functools import partial

import numpy as np
import pytest
import torch

from axiswise import models, objectives, scores
from axiswise.records._fingerprint import differences, fingerprint, is_own, without_source

SAMPLE = '''
"""A module of a user's own."""
import functools
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import torch
from torch import nn
from torch.nn import ReLU as Activation

import neighbour
from neighbour import shifted

WIDTH = 64
SIZES = {"hidden": [3, 4], "latent": 2}
MEAN = torch.tensor([0.5, 0.25])
LAYER = nn.LeakyReLU(0.2)


class Kind(Enum):
    PLAIN = 1
    BENT = 2


def helper(x, scale=2.0):
    """Says nothing that matters."""
    return x * scale  # nor this


def deep(x):
    return helper(x) + 1


class Block(nn.Module):
    slope = 0.1

    def forward(self, x):
        return self.bent(x) if self.slope else x

    def bent(self, x):
        return torch.where(x > 0, x, self.slope * x)


class Wide(Block):
    def forward(self, x):
        return super().forward(2 * x)


@dataclass(frozen=True)
class Loss:
    beta: float = 1.0

    def terms(self, x: torch.Tensor) -> torch.Tensor:
        return self.beta * deep(x)


class Pair(NamedTuple):
    first: int
    second: float = 2.0

    @property
    def both(self):
        return self.first + self.second


class Answers(Protocol):
    def __call__(self, x) -> float: ...


def chosen(value, *rest, key=None, **more):
    match value:
        case {"a": [first, *others]} if (total := len(others)) > 1:
            text = f"{first!r} {total:>{len(rest)}d} {{}} {more['key']}" "and" f"{value=}"
        case Pair(first=1) | None:
            text = ""
        case _:
            text = lambda: [x for y in rest for x in y if x not in {"b", "c", "a"}]
    try:
        return text, {**more}, [*rest], (yield), -1.5e-3, b"", 1j, ...
    except (ValueError, KeyError) as error:
        raise error from None
    finally:
        del value


def counted(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments) + 0
    return wrapper


@counted
def decorated(x):
    return x - 3


def nets(width: int = 5):
    from neighbour import late

    layers = [nn.Linear(WIDTH, width) for _ in range(2)]
    text = f"{width!r:>{WIDTH}} of {SIZES['latent']:d}" "!"
    return layers, text, Activation(), Wide(), shifted(1), neighbour.ORIGIN, late(), MEAN, LAYER, Kind.BENT


def many():
    return nets(), Loss(), decorated(1), (lambda x: x * 7)(2), Pair(1), chosen, Answers
'''
NEIGHBOUR = """
ORIGIN = 1.5
UNUSED = 0


def shifted(x):
    return x + ORIGIN


def late():
    return 3


def unused():
    return UNUSED
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Imports the two modules, changed in some way, and returns the first."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(*changes, name="sample"):
        texts = {name: SAMPLE, "neighbour": NEIGHBOUR}
        for old, new in changes:
            assert sum(old in text for text in texts.values()) == 1
            texts = {key: text.replace(old, new) for key, text in texts.items()}
        for key, text in texts.items():
            (tmp_path / f"{key}.py").write_text(text)
        importlib.invalidate_caches()
        for key in ("neighbour", name):
            spec = importlib.util.spec_from_file_location(key, tmp_path / f"{key}.py")
            module = importlib.util.module_from_spec(spec)
            monkeypatch.setitem(sys.modules, key, module)
            exec(compile((tmp_path / f"{key}.py").read_text(), tmp_path / f"{key}.py", "exec"), vars(module))
        return module

    return imported


CHANGES = {
    "activation": ("import ReLU as", "import Tanh as"),
    "number in a helper": ("x * scale", "x * scale * 1.5"),
    "default": ("scale=2.0", "scale=2.5"),
    "global": ("WIDTH = 64", "WIDTH = 65"),
    "global in a container": ("[3, 4]", "[3, 5]"),
    "global tensor": ("[0.5, 0.25]", "[0.5, 0.2]"),
    "global layer": ("LeakyReLU(0.2)", "LeakyReLU(0.3)"),
    "enumeration": ("BENT = 2", "BENT = 3"),
    "class attribute": ("slope = 0.1", "slope = 0.2"),
    "method of a base": ("x > 0", "x > 1"),
    "method": ("forward(2 * x)", "forward(3 * x)"),
    "base": ("class Wide(Block)", "class Wide(nn.Module)"),
    "loss": ("self.beta * deep(x)", "self.beta + deep(x)"),
    "type of a field": ("beta: float", "beta: int"),
    "decorator": ("+ 0", "+ 1"),
    "decorated": ("x - 3", "x - 4"),
    "lambda": ("x * 7", "x * 8"),
    "f-string": ("of {SIZES", "off {SIZES"),
    "comprehension": ("range(2)", "range(3)"),
    "function of a neighbour": ("x + ORIGIN", "x - ORIGIN"),
    "value of a neighbour": ("ORIGIN = 1.5", "ORIGIN = 1.25"),
    "named tuple": ("self.first + self.second", "self.first - self.second"),
    "pattern": ("Pair(first=1)", "Pair(first=2)"),
    "set": ('{"b", "c", "a"}', '{"b", "c"}'),
    "import within a function": ("return 3", "return 4"),
    "order of layers": ("Activation(), Wide()", "Wide(), Activation()"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_can_change_a_result_changes_the_fingerprint(own, change):
    before, after = fingerprint(own().many), fingerprint(own(change).many)
    assert before != after
    assert differences(before, after)


def test_what_changes_no_result_changes_no_fingerprint(own):
    before = fingerprint(own().many)
    changes = [
        ("# nor this", ""),
        ('"""Says nothing that matters."""', '"""Says something else."""\n    '),
        ("x: torch.Tensor) -> torch.Tensor", "x)"),
        ("width: int = 5", "width: 'a number' = 5"),
        ("return self.bent(x) if self.slope else x", "return (\n            self.bent(x)\n if self.slope else x )"),
        ("WIDTH = 64\n", "# a comment\n\n\nWIDTH = 64\n"),
        ("SIZES['latent']", "SIZES[ 'latent' ]"),
        ("UNUSED = 0", "UNUSED = 1"),
        ("return UNUSED", "return 2 * UNUSED"),
    ]
    for change in changes:
        assert fingerprint(own(change).many) == before, change
    assert fingerprint(own(*changes).many) == before


def test_parts_are_named_and_short_values_shown(own):
    parts = fingerprint(own().nets)
    assert {"sample.nets", "sample.Wide", "sample.Block", "sample.Block.bent", "neighbour.shifted"} <= parts.keys()
    assert (parts["sample.WIDTH"], parts["neighbour.ORIGIN"], parts["sample.Block.slope"]) == ("64", "1.5", "0.1")
    assert "sample.Loss" not in parts
    assert "neighbour.unused" not in parts
    after = fingerprint(own(("WIDTH = 64", "WIDTH = 65"), ("x > 0", "x > 1")).nets)
    assert differences(parts, after) == ["sample.Block.bent changed", "sample.WIDTH was 64 and is 65"]
    assert not without_source(parts)


KNOWN = {
    "neighbour.ORIGIN": "1.5",
    "neighbour.late": "code 29828f264bd5d469",
    "neighbour.shifted": "code b2f80437f84b81fc",
    "sample.Answers": "code 50c7c2977ed573cc",
    "sample.Answers.__call__": "code d0bca16674a0f6e2",
    "sample.Block": "code f500d357b89d8155",
    "sample.Block.bent": "code 23bd5d3c7252f2fa",
    "sample.Block.forward": "code 260bf31bf1d4f44a",
    "sample.Block.slope": "0.1",
    "sample.Kind": "code 2df8073d1934e5f4",
    "sample.Loss": "code 68493508183fe43a",
    "sample.Loss.terms": "code 6b5b83f71f4c403a",
    "sample.MEAN": "float32 (2,) bfa5538a8f3284f3",
    "sample.Pair": "code 202b3a5791016256",
    "sample.Pair._field_defaults": "{'second': 2.0}",
    "sample.Pair._fields": "tuple('first', 'second')",
    "sample.Pair.both": "code 6b02ea0870bbf37a",
    "sample.SIZES": "{'hidden': list(3, 4), 'latent': 2}",
    "sample.WIDTH": "64",
    "sample.Wide": "code f89108985d01e9b3",
    "sample.Wide.forward": "code a0a5d1000491202f",
    "sample.chosen": "code 7183a055c2b7144b",
    "sample.decorated": "code 574bd108f8664471",
    "sample.deep": "code ef0c060a2d695b5f",
    "sample.helper": "code 13652299ddf3383f",
    "sample.many": "code 84c2bffe5cd01226",
    "sample.nets": "code 71cc244a005bec81",
}


def test_a_fingerprint_is_that_of_this_text_on_every_python(own):
    """These digests were made by Python 3.11. Python 3.12 and 3.13 find the same."""
    assert fingerprint(own().many) == KNOWN


def test_the_parts_of_axiswise_and_of_packages_are_no_own_code():
    assert fingerprint(models.conv64(), objectives.BetaVAE(), scores.mig, np.mean, torch.nn.ReLU, json.dumps) == {}
    assert not is_own(len)
    assert not is_own(torch.nn.Module)


def test_papers_are_own_code_wherever_they_are_installed():
    from axiswise_papers.rolinek2019 import measures

    function = next(value for value in vars(measures).values() if getattr(value, "__module__", "") == measures.__name__)
    assert is_own(function)
    assert fingerprint(function)


def test_own_functions_within_partials_and_closures_of_packages_are_found(own):
    module = own()
    wrapped = torch.no_grad()(module.helper)
    assert "sample.helper" in fingerprint(wrapped)
    assert "sample.helper" in fingerprint(partial(partial(module.helper, scale=1.0)))
    assert fingerprint(partial(max, module.helper)) != {}


def test_source_that_is_newer_than_the_function_is_not_taken_for_it(own, tmp_path):
    module = own()
    before = fingerprint(module.helper)
    (tmp_path / "sample.py").write_text(SAMPLE.replace("x * scale", "x / scale"))
    after = fingerprint(module.helper)
    assert after != before  # the function is as it was, but nothing says so to another version of Python
    assert without_source(after) == ["sample.helper"]
    (tmp_path / "sample.py").write_text("# moved down\n" + SAMPLE)
    assert fingerprint(module.helper) == before


def test_a_function_without_source_is_known_by_its_bytecode():
    def made(text):
        space = {"__name__": "nowhere"}
        exec(text, space)
        return fingerprint(space["f"])

    one, same, other = (
        made("def f(x): return x + 1"),
        made("def f(x):\n\n  return x + 1 # why"),
        made("def f(x): return x"),
    )
    assert one == same != other
    assert without_source(one) == ["nowhere.f"]
    assert next(iter(one.values())).startswith("bytecode 3.")
    older = {"nowhere.f": one["nowhere.f"].replace("bytecode 3.", "bytecode 2.")}
    assert "is known by its bytecode, which is that of Python 2." in differences(older, one)[0]


def test_closures_and_own_objects_count_with_their_values():
    def power(exponent):
        return lambda x: x**exponent

    assert fingerprint(power(2)) != fingerprint(power(3))
    assert fingerprint(power(2)) == fingerprint(power(2))

    class Scaled:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return self.by * x

    twice, thrice = Scaled(2), Scaled(3)

    def uses():
        return twice(1)

    before = fingerprint(uses)
    twice.by = 4
    assert differences(before, fingerprint(uses))
    assert fingerprint(partial(max, key=twice)).keys() == fingerprint(partial(max, key=thrice)).keys()


def test_what_code_assigns_itself_is_its_state(tmp_path, own):
    module = own(
        ("def late():\n    return 3", "CALLS = 0\n\ndef late():\n    global CALLS\n    CALLS += 1\n    return 3")
    )
    before = fingerprint(module.nets)
    module.neighbour.late()
    assert fingerprint(module.nets) == before


def test_things_that_refer_to_themselves_end():
    loop = []
    loop.append(loop)

    def again(n):
        return loop if n else again(n - 1)

    assert fingerprint(again)


def test_fingerprints_are_equal_in_another_process_and_in_a_script(own, tmp_path):
    parts = fingerprint(own(name="script").many)
    program = textwrap.dedent(
        """
        if __name__ == "__main__":
            import json
            from axiswise.records._fingerprint import fingerprint
            print(json.dumps(fingerprint(many)))
        """
    )
    (tmp_path / "script.py").write_text(SAMPLE + program)
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    printed = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, check=True, env=environment)
    assert json.loads(printed.stdout) == parts
