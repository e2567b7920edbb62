"""Descriptions as JSON and back, for everything a member is made of; loading never executes."""

import json
import math
from dataclasses import dataclass, field, is_dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from axiswise import distributions, objectives
from axiswise.distributions import Bernoulli, Gaussian, estimators
from axiswise.errors import AxiswiseError
from axiswise.models import conv64, custom, dcgan64, linear, mlp
from axiswise.objectives import BetaVAE, Decomposed
from axiswise.optimizers import SGD, AdaGrad, Adam
from axiswise.population import Member
from axiswise.population._catalogue import CATALOGUE, catalogue
from axiswise.records import address, describe, restore
from axiswise.records._identity import stored_as
from axiswise.schedules import Cosine, Linear

RUN_TIME = {"Batch", "Networks", "Trainable"}  # dataclasses of tensors and modules, which no stored member contains


def small():
    return nn.Linear(3, 4), nn.Linear(2, 3)


def defaults(package) -> list:
    """Every description that a package exports, made without arguments."""
    exported = [getattr(package, name) for name in package.__all__ if name not in RUN_TIME]
    return [kind() for kind in exported if isinstance(kind, type) and is_dataclass(kind)]


PRIORS = [
    distributions.Anisotropic((1.0, 0.5), learned=True),
    distributions.Mixture(((0.0, 1.0), (1.0, 0.0)), 0.03),
    distributions.Sparse(0.9, 0.05),
    distributions.StudentT(3.0),
]
POSTERIORS = [distributions.Deterministic(), distributions.Full(), distributions.Isotropic()]
LIKELIHOODS = [
    distributions.DecodedGaussian(),
    distributions.Laplace(0.1),
    distributions.LearnedGaussian(2.0),
    distributions.OptimalGaussian(),
]

# Between them they use every description that a member can be made of. A new one is tested by being used here.
MEMBERS = [
    Member(linear(3, 2), BetaVAE(1), steps=10),
    Member(linear((1, 4, 4), 2, likelihood=Gaussian(0.1)), BetaVAE(Linear(0.0, 4.0, steps=5)), steps=0, batch=None),
    Member(
        mlp(6, 2, activation=(nn.ReLU, nn.Tanh)),
        BetaVAE(Cosine(1.0, 0.0, steps=9)),
        steps=7,
        seed=2**32 - 1,
        optimizer=AdaGrad(lr=Linear(0.0, 0.1, steps=3)),
        history=2,
    ),
    Member(conv64(3, 4, likelihood=Bernoulli()), BetaVAE(), steps=1, optimizer=Adam(lr=1, beta1=0)),
    Member(linear(3, 2), BetaVAE(), steps=1, optimizer=SGD(lr=0.1, momentum=0.9)),
    Member(conv64(dense=128, dense_activation=False, decoder=(64, 64, 32)), BetaVAE(), steps=1),
    Member(dcgan64(), BetaVAE(), steps=1),
    Member(custom(small, 3, 2), BetaVAE(), steps=1),
    *(Member(linear(3, 2), objective, steps=1) for objective in defaults(objectives)),
    *(Member(linear(3, 2), Decomposed(divergence=divergence), steps=1) for divergence in defaults(estimators)),
    *(Member(linear(3, 2, prior=prior), BetaVAE(), steps=1) for prior in PRIORS),
    *(Member(linear(3, 2, posterior=posterior), BetaVAE(), steps=1) for posterior in POSTERIORS),
    *(Member(linear(3, 2, likelihood=likelihood), BetaVAE(), steps=1) for likelihood in LIKELIHOODS),
]


def types_in(form) -> set[str]:
    if isinstance(form, dict):
        return {form["type"]}.union(*(types_in(entry) for entry in form.values()))
    return set().union(*(types_in(entry) for entry in form)) if isinstance(form, list) else set()


@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: f"{member.model.network.name} {member.objective}")
def test_members_come_back_from_json(member):
    stored = json.loads(json.dumps(describe(member), allow_nan=False))
    restored = restore(stored, catalogue([small]))
    assert restored == member
    assert type(restored) is Member
    assert describe(restored) == stored
    assert restored.address == member.address
    assert hash(restored) == hash(member)


def test_every_description_is_among_them():
    assert set().union(*(types_in(describe(member)) for member in MEMBERS)) == catalogue().keys()


@given(
    beta=st.one_of(
        st.floats(0.0, 1e6),
        st.integers(0, 2**40),
        st.builds(Linear, st.floats(0.0, 1e3), st.floats(0.0, 1e3), steps=st.integers(1, 10**6)),
    ),
    inputs=st.lists(st.integers(1, 64), min_size=1, max_size=3).map(tuple),
    widths=st.lists(st.integers(1, 100), max_size=3).map(tuple),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_member_comes_back(beta, inputs, widths, seed):
    member = Member(mlp(inputs, 2, encoder=widths), BetaVAE(beta), steps=1, seed=seed)
    restored = restore(json.loads(json.dumps(member.form)), CATALOGUE)
    assert restored == member
    assert restored.address == member.address


def test_the_form_names_the_class_and_its_arguments():
    assert describe(BetaVAE(Linear(0.0, 4.0, steps=10))) == {
        "type": "BetaVAE",
        "beta": {"type": "Linear", "start": 0.0, "end": 4.0, "steps": 10},
    }
    assert describe(linear(3, 2)) == {
        "type": "VAE",
        "network": {
            "type": "MLP",
            "inputs": [3],
            "latents": 2,
            "encoder": [],
            "decoder": [],
            "activations": ["Tanh", "Tanh"],
        },
        "posterior": {"type": "Diagonal"},
        "prior": {"type": "StandardNormal"},
        "likelihood": {"type": "Gaussian", "scale": 1.0},
    }


def test_whole_numbers_are_floats_where_floats_are_meant_and_only_there():
    assert json.dumps(describe(BetaVAE(1))) == json.dumps(describe(BetaVAE(1.0)))
    assert json.dumps(describe(Adam(lr=1))) == json.dumps(describe(Adam(lr=1.0)))
    ones, floats = (Member(linear(3, 2), BetaVAE(beta), steps=10) for beta in (1, 1.0))
    assert ones.address == floats.address
    assert type(describe(ones)["steps"]) is int
    assert type(describe(ones)["batch"]) is int


@dataclass(frozen=True)
class Points:
    """A description with floats inside tuples."""

    corners: tuple[tuple[float, ...], ...] | float
    counts: tuple[int, ...] = (1, 2)


def test_whole_numbers_are_floats_inside_tuples_too():
    assert json.dumps(describe(Points(((0, 1), (2.5, 3))))) == json.dumps(describe(Points(((0.0, 1.0), (2.5, 3.0)))))
    assert type(describe(Points(1))["corners"]) is float
    assert [type(count) for count in describe(Points(1))["counts"]] == [int, int]


@dataclass(frozen=True)
class Named:
    """A description of something that is stored by name."""

    function: object = field(metadata=stored_as(lambda function: function.__name__))


def test_a_field_may_be_stored_by_name():
    assert describe(Named(len)) == {"type": "Named", "function": "len"}
    assert restore({"type": "Named", "function": "len"}, {"Named": lambda function: (function,)}) == ("len",)


def test_a_users_function_is_stored_by_name_and_handed_back_by_the_caller():
    form = describe(custom(small, 3, 2).network)
    name = f"{small.__module__}.small"
    assert form == {"type": "Custom", "factory": name, "inputs": [3], "latents": 2, "outputs": [4, 1]}
    assert restore(form, catalogue([small])).factory is small
    with pytest.raises(AxiswiseError, match=rf"Stored by name only: {name}\."):
        restore(form, catalogue())
    with pytest.raises(AxiswiseError, match=r"Expected the name of a known description \(.*\)\. Got 'Custom'\."):
        restore(form, CATALOGUE)
    with pytest.raises(AxiswiseError, match="Stored arguments do not fit Custom: "):
        restore({"type": "Custom", "factory": name}, catalogue([small]))


def test_addresses_are_frozen():
    """Run folders name their files by these: a change would orphan every folder there is."""
    assert address({"type": "BetaVAE", "beta": 1.0}) == "7eea419e42a2389f"
    assert address(describe(BetaVAE(beta=1))) == "7eea419e42a2389f"
    assert address(["β", None, True, 0.1]) == "9882b38ae0ea6c82"


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False), max_size=6))
def test_addresses_ignore_the_order_of_keys_and_nothing_else(form):
    found = address(form)
    assert found == address(dict(reversed(form.items())))
    assert len(found) == 16
    assert set(found) <= set("0123456789abcdef")
    assert address({**form, "\0another": 1}) != found


def test_every_field_of_a_member_is_part_of_its_address():
    member = MEMBERS[0]
    others = [
        replace(member, model=linear(3, 1)),
        replace(member, model=linear(3, 2, likelihood=Gaussian(0.5))),
        replace(member, objective=BetaVAE(math.nextafter(1.0, 2.0))),
        replace(member, steps=11),
        replace(member, batch=None),
        replace(member, seed=1),
        replace(member, optimizer=Adam(lr=1e-3)),
        replace(member, history=1),
    ]
    assert len({one.address for one in [member, *others]}) == 9


def test_addresses_refuse_what_json_has_no_word_for():
    with pytest.raises(ValueError, match="Out of range float values are not JSON compliant"):
        address({"beta": math.nan})


@dataclass(frozen=True)
class Holder:
    """A description of whatever is put in."""

    value: object


@pytest.mark.parametrize("value", [{1: "a"}, {"type": 1}, {1, 2}, 1j, b"bytes", len, nn.Tanh, BetaVAE], ids=repr)
def test_describes_values_only(value):
    message = r"`value` must be a number, a string, a tuple, dictionary or frozen dataclass of these, so that it can"
    with pytest.raises(AxiswiseError, match=message) as caught:
        describe(Holder((1, value)))
    assert str(caught.value).endswith("Got the function len." if value is len else f"Got {value!r}.")


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "Member.__init__",
        "axiswise.objectives.BetaVAE",
        "betavae",
        "",
        None,
        3,
        ["Adam"],
        {},
    ],
    ids=repr,
)
def test_restores_no_name_outside_the_catalogue(name):
    with pytest.raises(AxiswiseError, match=r"Expected the name of a known description \(AdaGrad, Adam, .*\)\. Got "):
        restore({"type": name, "command": "true"}, CATALOGUE)
    with pytest.raises(AxiswiseError, match=r"Expected the name of a known description \(none\)\. Got "):
        restore([{"type": name}], {})


def test_a_form_without_a_type_is_refused():
    with pytest.raises(AxiswiseError, match=r"form of a description, with its `type`\. Got only \{'beta': 1\.0\}\."):
        restore({"beta": 1.0}, CATALOGUE)


def test_restoring_never_executes(tmp_path):
    """A hostile name is refused wherever it stands, and strings that look like code stay strings."""
    witness = tmp_path / "executed"
    code = f"__import__('pathlib').Path({str(witness)!r}).touch()"
    hostile = describe(MEMBERS[0])
    hostile["objective"]["beta"] = {"type": "eval", "source": code}
    with pytest.raises(AxiswiseError, match=r"known description \(.*\)\. Got 'eval'\."):
        restore(hostile, CATALOGUE)
    assert restore(
        {"type": "Holder", "value": [code, f"!!python/object/apply:os.system ['{code}']"]}, {"Holder": Holder}
    )
    assert restore({"type": "Holder", "value": code}, {"Holder": Holder}).value == code
    assert not witness.exists()


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ({"type": "BetaVAE", "gamma": 1.0}, r"Stored arguments do not fit BetaVAE: .*unexpected.*'?gamma'?"),
        ({"type": "Linear", "start": 0.0}, r"Stored arguments do not fit Linear: .*missing.*"),
        (
            {"type": "BetaVAE", "beta": -1.0},
            r"`beta` of BetaVAE must be a finite number of at least 0\.0\. Got -1\.0\.",
        ),
        (
            {"type": "Gaussian", "scale": 0.0},
            r"`scale` of a Gaussian likelihood must be a positive number\. Got 0\.0\.",
        ),
    ],
)
def test_stored_arguments_are_checked_as_a_callers_are(form, message):
    with pytest.raises(AxiswiseError, match=message):
        restore(form, CATALOGUE)


def test_lists_come_back_as_tuples():
    assert restore([1, [2.5, ["a", None]], True], {}) == (1, (2.5, ("a", None)), True)
