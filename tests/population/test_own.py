"""What users bring: factories with arguments, methods and objects, own objectives and distributions, stored by name."""

import json
import subprocess
import sys
import types
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from axiswise import data, evaluate, grid, load, models, objectives, scores, train
from axiswise.errors import AxiswiseError
from axiswise.models import custom
from axiswise.population import Member
from axiswise.population._cohort import cohorts
from axiswise.records import describe, read_json
from axiswise.records._layout import RUN
from axiswise.schedules import Linear, hyperparameters
from axiswise.statistics import grouped

SQUARE = data.synth_linear(samples=100)
BETA = objectives.BetaVAE(0.1)


def nets(hidden, latents, depth=1, widths=()):
    layers = [nn.Linear(3, hidden), *(nn.Linear(hidden, hidden) for _ in range(depth - 1)), nn.Tanh()]
    if not isinstance(widths, tuple):  # lists arrive as tuples, here as when they are loaded
        raise TypeError
    return nn.Sequential(*layers, nn.Linear(hidden, 2 * latents)), nn.Linear(latents, 3)


class Whole(nn.Module):
    """A VAE as one module."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(2, 3)


class Pair(nn.Linear):
    """An encoder that returns mean and log-variance apart."""

    def __init__(self):
        super().__init__(3, 4)

    def forward(self, x):
        return super().forward(x).chunk(2, 1)


class Builder:
    """An object whose values are plain."""

    def __init__(self, hidden, widths=(1, 2)):
        self.hidden, self.widths = hidden, widths

    def __call__(self, latents):
        return nets(self.hidden, latents)

    def deep(self, latents, depth):
        return nets(self.hidden, latents, depth, self.widths)

    @classmethod
    def usual(cls, latents):
        return nets(4, latents)

    @staticmethod
    def still(latents):
        return nets(5, latents)


class Wider(Builder):
    """A class that inherits what builds."""

    def __call__(self, latents):
        return nets(2 * self.hidden, latents)


@dataclass(frozen=True)
class Frozen:
    """A frozen dataclass that builds."""

    hidden: int
    latents: int = 2

    def __call__(self):
        return nets(self.hidden, self.latents)


def widths_of(population):
    return [model.encoder[0].out_features for model in population]


def trained(factory, latents=2, *, out=None, **settings):
    members = grid(model=custom(factory, 3, latents, **settings), objective=BETA, steps=3, seed=range(2))
    return train(members, SQUARE, out=out)


def equal(first, second):
    x = SQUARE.x(torch.arange(7))
    return torch.equal(first.encode(x).mean, second.encode(x).mean)


# Factories.


def test_a_sweep_over_widths_and_latents_is_one_grid(tmp_path, capsys):
    sizes = [custom(nets, 3, latents, arguments={"hidden": hidden}) for hidden in (4, 8) for latents in (1, 2)]
    members = grid(model=sizes, objective=BETA, steps=3, seed=range(2))
    population = train(members, SQUARE, out=tmp_path / "run")
    said = capsys.readouterr().err
    assert f"run, pass what is yours: axiswise.load('{tmp_path / 'run'}', own=[nets])\n" in said
    assert widths_of(population) == [4, 4, 4, 4, 8, 8, 8, 8]
    assert [member.model.latents for member in population.members] == [1, 1, 2, 2, 1, 1, 2, 2]
    assert len({member.address for member in members}) == 8
    rows = evaluate(population, SQUARE, [scores.active_units], points=50)
    assert [(row.arguments, row.latents) for row in rows[::2]] == [
        ({"hidden": hidden}, latents) for hidden in (4, 8) for latents in (1, 2)
    ]
    assert set(grouped(rows, "active_units", by=["hidden", "latents"])) == {(4, 1), (4, 2), (8, 1), (8, 2)}
    assert list(population.table()["hidden"]) == [4] * 4 + [8] * 4
    again = load(tmp_path / "run", own=[nets])
    assert again.members == population.members  # in the order they were trained in
    assert equal(again.where(latents=2), population.where(latents=2))
    more = train([replace(members[0], seed=7), *members], SQUARE, out=tmp_path / "run")
    assert load(tmp_path / "run", own=nets).members == (*more.members[1:], more.members[0])
    stored = f"axiswise: 8 of 9 members were stored in {tmp_path / 'run'}\n"
    # The rest was said when it was made.
    assert capsys.readouterr().err == f"{stored}axiswise: training 1 member on cpu\n"


def test_a_partial_is_its_function_with_arguments():
    plain = custom(nets, 3, 2, arguments={"hidden": 8, "depth": 2})
    for other in (partial(nets, 8, depth=2), partial(partial(nets, hidden=8, depth=3), depth=2)):
        assert custom(other, 3, 2) == plain
    assert custom(partial(nets, depth=2), 3, 2, arguments={"hidden": 8}) == plain
    assert describe(plain.network)["arguments"] == {"hidden": 8, "depth": 2}


@pytest.mark.parametrize(
    ("factory", "own", "arguments", "width", "name"),
    [
        (Builder(6), Builder, {}, 6, "Builder"),
        (Wider(3), Wider, {}, 6, "Wider"),
        (Frozen(7), Frozen, {}, 7, "Frozen"),
        (Builder(6, [1, 2]).deep, Builder, {"depth": 2}, 6, "Builder.deep"),
        (partial(Builder(6).deep, depth=2), Builder(3), {}, 6, "Builder.deep"),
        (Builder.usual, Builder, {}, 4, "Builder.usual"),
        (Builder.still, Builder.still, {}, 5, "Builder.still"),
        (nets, nets, {"hidden": 9, "widths": [1, [2]]}, 9, "nets"),
    ],
    ids=["object", "subclass", "dataclass", "method", "partial of a method", "classmethod", "staticmethod", "function"],
)
def test_methods_and_objects_of_plain_values_are_stored_and_loaded(tmp_path, factory, own, arguments, width, name):
    population = trained(factory, out=tmp_path / "run", arguments=arguments)
    assert widths_of(population) == [width, width]
    assert {member.model.network.name for member in population.members} == {name}
    again = load(tmp_path / "run", own=[own])
    assert widths_of(again) == [width, width]
    assert equal(again, population)
    assert [member.address for member in again.members] == [member.address for member in population.members]
    resumed = trained(factory, out=tmp_path / "run", arguments=arguments)
    assert equal(resumed, population)


def test_a_factory_of_any_keywords_gets_the_latents_that_it_is_given():
    def free(**sizes):
        return nets(**sizes)

    model = custom(free, 3, 2, arguments={"hidden": 4, "latents": 2})
    assert model.network.arguments == {"hidden": 4, "latents": 2}
    assert model.modules()["decoder"].in_features == 2


def test_changes_of_an_object_after_the_model_was_made_do_not_count():
    builder = Builder(6)
    model = custom(builder, 3, 2)
    builder.hidden = 60
    assert train(grid(model=model, objective=BETA, steps=1), SQUARE)[0].encoder[0].out_features == 6


def closure(hidden):
    def inner(latents):
        return nets(hidden, latents)

    return inner


def test_lambdas_and_closures_train_in_memory_and_are_told_apart(tmp_path):
    factories = [closure(4), closure(8), lambda latents: nets(5, latents)]
    members = grid(model=[custom(each, 3, 2) for each in factories], objective=BETA, steps=2)
    assert len({member.address for member in members}) == 3
    assert custom(closure(4), 3, 2).network.factory is not factories[0]
    assert Member(custom(closure(4), 3, 2), BETA, steps=2).address == members[0].address
    population = train(members, SQUARE)
    assert widths_of(population) == [4, 8, 5]
    for member, name in zip(members, ("closure.<locals>.inner", "closure.<locals>.inner", r".*<lambda>"), strict=True):
        message = rf"names its factory, and '{name}' has no name by which it could be found again: it is a lambda, or"
        with pytest.raises(AxiswiseError, match=message):
            train([member], SQUARE, out=tmp_path / "run")
        assert not (tmp_path / "run").exists()
    with pytest.raises(AxiswiseError, match=r"has no name by which it could be found again"):
        population.save(tmp_path / "saved")


@pytest.mark.parametrize(
    ("factory", "settings", "message"),
    [
        (nn.Linear(3, 4), {}, r"`factory` must be a function that returns a fresh encoder and .*\. Got Linear\. Build"),
        (7, {}, r"`factory` must be a function\. Got 7\."),
        (
            nets,
            {},
            r"nets\(hidden, latents, .*\) must be callable with the arguments latents\. Got no 'hidden': change",
        ),
        (nets, {"arguments": {"width": 3}}, r"the arguments width, latents\. Got no 'hidden' and an unknown 'width'"),
        (
            nets,
            {"arguments": {"hidden": nn.ReLU}},
            r"Expected a plain value, .* Got <class .*ReLU'> as argument",
        ),
        (nets, {"arguments": {"hidden": float("nan")}}, r"a finite number.* Got nan as argument 'hidden' of nets"),
        (nets, {"arguments": {"hidden": {"type": 3}}}, r"but not 'type'\)\. Got {'type': 3} as argument 'hidden'"),
        (nets, {"arguments": {"hidden": 3, "latents": 5}}, r"The model has 2 latents\. Got arguments with latents = 5"),
        (Builder(torch.ones(1)), {}, r"Expected a plain value, .* Got tensor\(\[1\.\]\) as `hidden` of Builder"),
        (lambda latents: "ab", {}, r"must return a pair of torch.nn.Modules, encoder and decoder\. Got str 'ab'"),
        (lambda latents: nn.Linear(3, 4), {}, r"must return a pair of torch.nn.Modules, .* Got Linear"),
        (
            lambda latents: nn.ModuleDict(),
            {},
            r"must return a pair of torch.nn.Modules, .* Got ModuleDict ModuleDict\(\)",
        ),
        (lambda latents: Whole(), {}, r"encoder and decoder\. Got Whole: return its encoder and its decoder\."),
        (
            lambda latents: (Pair(), nn.Linear(2, 3)),
            {},
            r"Got tuple\. Join its parts: torch.cat\(\[mean, log_variance\], 1\)",
        ),
        (partial(lambda *sizes: nets(*sizes), 3, 2), {}, r"Arguments of a partial must have names, by which they are"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_factories_that_cannot_build_say_why(factory, settings, message):
    with pytest.raises(AxiswiseError, match=message):
        custom(factory, 3, 2, **settings)


def test_a_model_without_arguments_has_the_address_it_always_had():
    def small():
        raise AssertionError

    small.__qualname__, small.__module__ = "small", "networks"
    form = describe(models.Custom(small, (3,), 2, (4, 1)))
    assert form == {"type": "Custom", "factory": "networks.small", "inputs": [3], "latents": 2, "outputs": [4, 1]}


# Objectives and distributions.


@dataclass(frozen=True)
class Weighted(objectives.BetaVAE):
    """An objective with a float, a whole number, a flag and a nested description of its own."""

    strength: float = 1.0
    kernels: int = 3
    centred: bool = False
    late: "Linear | None" = None

    def loss(self, networks, batch, draws, step):
        if not isinstance(self.strength, torch.Tensor) or not isinstance(self.kernels, int):
            raise TypeError
        terms = super().loss(networks, batch, draws, step)
        return terms._replace(total=terms.total * self.strength, parts={**terms.parts, "strength": self.strength + 0.0})


def test_floats_are_hyperparameters_and_appear_in_rows_with_all_else_that_is_plain():
    schedule = Linear(0.0, 2.0, steps=2)
    objective = [Weighted(strength=strength) for strength in (0.5, schedule)]
    members = grid(model=models.linear(3, 2), objective=objective, steps=2, batch=8, history=1)
    assert hyperparameters(members[0].objective) == {"beta": 1.0, "strength": 0.5}
    assert [len(cohort.members) for cohort in cohorts(members, torch.device("cpu"))] == [2]  # they share a program
    population = train(members, SQUARE)
    assert [list(model.history["strength"]) for model in population] == [[0.5, 0.5], [0.0, 1.0]]
    rows = evaluate(population, SQUARE, [scores.active_units], points=20)
    assert [row.hyperparameters for row in rows] == [
        {"beta": 1.0, "strength": 0.5, "kernels": 3, "centred": False, "late": None},
        {"beta": 1.0, "strength": repr(schedule), "kernels": 3, "centred": False, "late": None},
    ]
    apart = [Weighted(kernels=3), Weighted(kernels=4)]
    assert len(cohorts(grid(model=models.linear(3, 2), objective=apart, steps=2), torch.device("cpu"))) == 2


def test_annotations_may_be_strings():
    """As in a module that begins with ``from __future__ import annotations``."""
    source = """
from __future__ import annotations
from dataclasses import dataclass
from axiswise.schedules import Hyperparameter, Schedule
@dataclass(frozen=True)
class Mine:
    a: float
    b: float | Schedule
    c: Hyperparameter
    d: int
    e: float | None
    f: tuple[float, float] = (1.0, 2.0)
"""
    module = types.ModuleType("strings")
    sys.modules["strings"] = module
    exec(compile(source, "strings.py", "exec"), vars(module))
    assert list(hyperparameters(module.Mine(1.0, 2.0, 3.0, 4, None))) == ["a", "b", "c"]
    del sys.modules["strings"]


class NotFrozen:
    """An objective that is no dataclass."""

    networks = draws = loss = staticmethod(lambda: None)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"objective": NotFrozen()}, r"`objective` of a member must be a frozen dataclass, .* Got NotFrozen\. Put"),
        ({"objective": objectives.BetaVAE}, r"`objective` of a member must be an object\. Got the class BetaVAE: call"),
        ({"objective": 3}, r"must have the methods networks, draws, loss\. Got int without networks, draws, loss"),
        ({"objective": "betavae"}, r"must be an object\. Got 'betavae': write axiswise.objectives.BetaVAE\(\)\."),
        ({"optimizer": "adam"}, r"must be an object\. Got 'adam': write axiswise.optimizers.Adam\(\)\."),
        (
            {"optimizer": "lion"},
            r"Got 'lion': write an object of axiswise.optimizers: SGD\(\), AdaGrad\(\) or Adam\(\)\.",
        ),
        ({"model": nn.Linear(3, 2)}, r"`model` of a member must be a VAE .* Got Linear\. Your own modules become one"),
        (
            {"optimizer": torch.optim.Adam},
            r"must be one of axis.* Got torch.optim.Adam: write axiswise.optimizers.Adam\(",
        ),
        ({"optimizer": torch.optim.SGD([torch.zeros(1)])}, r"Got torch.optim.SGD: write axiswise.optimizers.SGD\(\)\."),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_members_are_made_of_what_they_need(settings, message):
    with pytest.raises(AxiswiseError, match=message):
        grid(**{"model": models.linear(3, 2), "objective": BETA, "steps": 1, **settings})


@dataclass(frozen=True)
class BetaVAE(objectives.BetaVAE):
    """An own objective of the same name as one of axiswise's."""


def test_own_parts_are_not_taken_for_axiswises(tmp_path):
    members = grid(model=models.linear(3, 2), objective=BetaVAE(), steps=1)
    train(members, SQUARE)
    with pytest.raises(AxiswiseError, match=r"axiswise has a BetaVAE of its own\. Got .*test_own\.BetaVAE\. Give it"):
        train(members, SQUARE, out=tmp_path / "run")


def test_a_folder_says_which_parts_it_needs_all_at_once(tmp_path):
    first = grid(model=custom(nets, 3, 2, arguments={"hidden": 4}), objective=BETA, steps=1)
    second = grid(model=models.linear(3, 2), objective=Weighted(), steps=1)
    third = grid(model=custom(Builder(3), 3, 2), objective=BETA, steps=1)
    train([*first, *second, *third], SQUARE, out=tmp_path / "run")
    home = __name__.replace(".", r"\.")
    message = (
        rf"run has members made of your own parts, which are stored by name only: {home}\.nets, Weighted, "
        rf"{home}\.Builder\.__call__\. Got none of yours\. Pass them"
    )
    with pytest.raises(AxiswiseError, match=message):
        load(tmp_path / "run")
    with pytest.raises(
        AxiswiseError, match=r"by name only: Weighted\. Got nets, Builder\. .* own=\[Weighted\]\), .* --own FILE"
    ):
        load(tmp_path / "run", own=[nets, Builder])
    with pytest.raises(AxiswiseError, match=r"`own` must be your own functions and classes\. Got 'nets'\."):
        load(tmp_path / "run", own="nets")
    again = load(tmp_path / "run", own=[nets, Builder, Weighted])
    assert [type(member.objective).__name__ for member in again.members] == ["BetaVAE", "Weighted", "BetaVAE"]
    assert len(read_json(tmp_path / "run/run.json", RUN)["members"]) == 3


# A population is a sequence of models.


@pytest.fixture(scope="module")
def population():
    betas = [objectives.BetaVAE(beta) for beta in (1.0, 4.0)]
    model = custom(nets, 3, 2, arguments={"hidden": 4}, likelihood=models.vae.Gaussian(0.5))
    return train(grid(model=model, objective=betas, steps=3, seed=range(3)), SQUARE)


def test_positions_slices_and_filters(population):
    seeds = [0, 1, 2, 0, 1, 2]
    assert [model.member.seed for model in population] == seeds
    assert population[-1].member == population.members[-1]
    assert population[1:3].members == population.members[1:3]
    assert population.where(beta=4.0).members == population.members[3:]
    assert population.where(beta=4, seed=[0, 2], hidden=4, status="trained").members == population.members[3::2]
    with pytest.raises(IndexError, match=r"Positions of this population are 0 to 5\. Got 6\."):
        population[6]
    with pytest.raises(AxiswiseError, match=r"Members have the settings member, .*beta, .*seed.*\. Got 'bets'\."):
        population.where(bets=1)
    with pytest.raises(AxiswiseError, match=r"No member has all of {'beta': 3}\. The values there are: beta: 1.0, 4.0"):
        population.where(beta=3)
    table = population.table()
    assert list(table["seed"]) == seeds
    assert list(table["beta"]) == [1.0] * 3 + [4.0] * 3
    html = population._repr_html_()
    assert html.count("<tr>") == 7
    assert "hidden 4" in html


def test_a_model_is_an_ordinary_module(population):
    x, model = SQUARE.x(torch.arange(5)), population[4]
    encoder, decoder = nets(4, 2)
    assert list(model.encoder.state_dict()) == list(encoder.state_dict())
    encoder.load_state_dict(model.encoder.state_dict())
    decoder.load_state_dict(model.decoder.state_dict())
    mean, _ = encoder(x).chunk(2, -1)
    assert torch.equal(model.encode(x).mean, mean)
    assert torch.equal(model.reconstruct(x), decoder(mean))
    assert torch.equal(model(x), model.reconstruct(x))
    assert torch.allclose(model.encode(x).mean, population.encode(x).mean[4], atol=1e-6)  # which stacks
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert model.double().encode(x.double()).mean.dtype == torch.float64
    with pytest.raises(AxiswiseError, match=r"`x` must have shape \(n, 3\)\. Got \(5, 2\)\."):
        model.encode(x[:, :2])


def test_traversals_and_samples_are_those_of_the_decoder(population):
    x, model = SQUARE.x(torch.arange(5)), population[0]
    moved = model.traverse(x, 1, [-2.0, 0.0, 3.0])
    assert moved.shape == (5, 3, 3)
    codes = model.encode(x).mean.clone()
    codes[:, 1] = 3.0
    assert torch.equal(moved[:, 2], model.decode(codes))
    with pytest.raises(AxiswiseError, match=r"`latent` must be between 0 and 1\. Got 2\."):
        model.traverse(x, 2, [0.0])
    many = model.sample(20_000, seed=1)
    assert torch.equal(many, model.sample(20_000, seed=1))
    assert not torch.equal(many[:5], model.sample(5, seed=2))
    weight, bias = model.decoder.weight, model.decoder.bias
    covariance = weight @ weight.T  # of W z + b with standard normal z
    assert (torch.cov(many.T) - covariance).abs().max() < 0.05 * covariance.diagonal().max()
    assert (many.mean(0) - bias).abs().max() < 0.05


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(5, 3, dtype=torch.uint8), r"`x` must be a floating-point .* Got torch.uint8; x / 255 makes grey"),
        (
            torch.zeros(5, 3, dtype=torch.int64),
            r"`x` must be a floating-point .* Got torch.int64; its \.float\(\) is one",
        ),
        (np.zeros((5, 3)), r"`x` must be a floating-point .* Got ndarray; torch.as_tensor\(x, dtype=torch.float32\)"),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_observations_of_another_type_are_refused(population, x, message):
    """The codes of bytes from 0 to 255 would be wrong, and nothing would show it."""
    calls = (
        population.encode,
        population[0].encode,
        population[0].reconstruct,
        lambda x: population[0].traverse(x, 0, [1]),
    )
    for call in calls:
        with pytest.raises(AxiswiseError, match=message):
            call(x)


@pytest.mark.parametrize(
    ("z", "message"),
    [
        (np.zeros((5, 2)), r"`z` must be a floating-point tensor of codes \(n, z\)\. Got ndarray; torch.as_tensor\("),
        (torch.zeros(5, 2, dtype=torch.int64), r"`z` must be a floating-point .* Got torch.int64; its \.float\(\)"),
        (torch.zeros(5, 3), r"`z` must have shape \(n, 2\), a row of latents for each code\. Got \(5, 3\)\."),
    ],
)
@pytest.mark.usefixtures("as_installed")
def test_codes_that_are_none_are_refused(population, z, message):
    for call in (population.decode, population[0].decode):
        with pytest.raises(AxiswiseError, match=message):
            call(z)


@pytest.mark.usefixtures("as_installed")
def test_codes_for_another_number_of_members_are_refused(population):
    assert population.decode(torch.zeros(6, 5, 2)).shape == (6, 5, 3)
    assert population.decode(torch.zeros(5, 2, dtype=torch.float64)).dtype == torch.float32  # as `encode` does
    with pytest.raises(AxiswiseError, match=r"or \(6, n, z\), a block for each\. Got \(4, 5, 2\)\."):
        population.decode(torch.zeros(4, 5, 2))


@pytest.mark.usefixtures("as_installed")
def test_traversals_and_samples_say_what_they_take(population):
    x, model = SQUARE.x(torch.arange(5)), population[0]
    assert model.traverse(x, 1, torch.tensor([1, 2])).shape == (5, 2, 3)
    with pytest.raises(AxiswiseError, match=r"`values` must be a sequence of numbers .* Got 3\."):
        model.traverse(x, 0, 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"`latent` must be a whole number\. Got 'a'\."):
        model.traverse(x, "a", [0.0])  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"`count` must be a whole number of at least 0\. Got -1\."):
        model.sample(-1)


def test_learned_scales_are_part_of_the_model():
    from axiswise.distributions import LearnedGaussian

    model = models.linear(3, 2, likelihood=LearnedGaussian())
    trained = train(grid(model=model, objective=BETA, steps=50, seed=[3]), SQUARE)[0]
    (name,) = [name for name, _ in trained.named_parameters() if "likelihood" in name]
    assert torch.equal(torch.as_tensor(trained.likelihood.scale).flatten(), trained.get_parameter(name).exp().flatten())


SCRIPT = """
import sys, torch, test_own
from axiswise import load
population = load(sys.argv[1], own=[test_own.nets, test_own.Weighted])
x = test_own.SQUARE.x(torch.arange(7))
print([member.address for member in population.members], population.encode(x).mean.double().sum().item().hex())
"""


def test_another_process_loads_them(tmp_path, monkeypatch):
    for part in (nets, Weighted, Weighted.loss):  # as the other process imports them
        monkeypatch.setattr(part, "__module__", "test_own")
    model = custom(nets, 3, 2, arguments={"hidden": 4})
    population = train(grid(model=model, objective=Weighted(), steps=3, seed=range(2)), SQUARE, out=tmp_path / "run")
    total = population.encode(SQUARE.x(torch.arange(7))).mean.double().sum().item().hex()
    call = [sys.executable, "-c", SCRIPT, str(tmp_path / "run")]
    found = subprocess.run(call, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout
    assert json.loads(found.split("] ")[0].replace("'", '"') + "]") == [each.address for each in population.members]
    assert found.split()[-1] == total
