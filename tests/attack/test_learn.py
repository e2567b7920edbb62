"""Learning the change: against a plain loop, bounded, resumable, and refused where it makes no sense."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
import torch
from torch import nn

from axiswise import attack as package
from axiswise import data, models, objectives
from axiswise.attack import Choice, Learning, attack, learn, learning_for, load_change
from axiswise.attack._latent import following, most_mixed
from axiswise.attack.manipulation import ranges, scaled_factors
from axiswise.distributions import Bernoulli
from axiswise.errors import AxiswiseError
from axiswise.models import initialise
from axiswise.numerics import integers, normal
from axiswise.optimizers import Adam
from axiswise.population import Population, grid, loop, train

QUICK = Learning(0.2, steps=4, batch=8, samples=3, renderer="dense", hidden=16, optimizer=Adam(lr=1e-2, eps=1e-7))


def plainly_learned(population, dataset, choice, learning):
    """The paper's procedure with modules, two of torch's optimizers and nothing stacked."""
    chosen = [population[position] for position in (*choice.entangled, *choice.disentangled)]
    for model in chosen:
        model.requires_grad_()
    pattern = package.manipulation(dataset, learning.renderer, hidden=learning.hidden)
    network = pattern.build().double()
    initial = initialise(network, "change", torch.tensor([learning.seed]), torch.float64)
    network.load_state_dict({name: stack[0] for name, stack in initial.items()})
    if learning.follow is not None:
        rows = integers(learning.seed, "attack follow", 0, (8192,), len(dataset))
        noise = normal(learning.seed, "attack follow noise", 0, (8192, 3), dtype=torch.float64)
        with torch.no_grad():
            q = chosen[0].encode(dataset.x(rows).double())
        z = q.mean + q.variance.sqrt() * noise
        w = scaled_factors(dataset.factors(rows), *ranges(dataset)).double()
        narrow, latent = network[:3], learning.follow
        if latent == "mixed":
            latent = most_mixed(q.mean, dataset.factors(rows), ["discrete"] * 3)
        narrow.load_state_dict(following(narrow, narrow.state_dict(), w, z[:, latent]))
    if learning.start is not None:
        rows = integers(learning.seed, "attack start", 0, (1024,), len(dataset))
        scale_layers(network, scaled_factors(dataset.factors(rows), *ranges(dataset)).double(), learning.start)
    settings = {"lr": learning.optimizer.lr, "betas": (0.9, 0.999), "eps": learning.optimizer.eps}
    for_decoders = [torch.optim.Adam(model.decoder.parameters(), **settings) for model in chosen]
    for_change = torch.optim.Adam(network.parameters(), **settings)
    gaps = []
    for step in range(learning.steps):
        rows = integers(learning.seed, "attack index", step, (3, learning.batch), len(dataset))
        shape = (3, len(chosen), learning.samples, learning.batch, 3)
        noise = normal(learning.seed, "attack noise", step, shape, dtype=torch.float64)
        for batch in range(3):
            x = dataset.x(rows[batch]).double()
            w = scaled_factors(dataset.factors(rows[batch]), *ranges(dataset)).double()
            changed = x + learning.epsilon * network(w)
            changed = changed - 2 * (changed - 1).relu() + 2 * (-changed).relu()
            losses = []
            for model, own in zip(chosen, noise[batch], strict=True):
                with torch.no_grad():
                    q = model.encode(x)
                logits = torch.stack([model.decode(q.mean + q.variance.sqrt() * sample, raw=True) for sample in own])
                pixels = nn.functional.binary_cross_entropy_with_logits(
                    logits, changed.expand_as(logits), reduction="none"
                )
                losses.append(pixels.sum((-3, -2, -1)).mean())
            half = len(chosen) // 2
            gap = sum(losses[:half]) / half - sum(losses[half:]) / half
            if batch == 2:
                gaps.append(gap.item())
                if learning.centred:
                    (force,) = torch.autograd.grad(gap, changed, retain_graph=True)
                    gap = (changed * (force - force.mean(0, keepdim=True))).sum()
                moves = torch.autograd.grad(gap, list(network.parameters()), retain_graph=True)
            for loss, model, optimizer in zip(losses, chosen, for_decoders, strict=True):
                parameters = list(model.decoder.parameters())
                for parameter, gradient in zip(
                    parameters, torch.autograd.grad(loss, parameters, retain_graph=True), strict=True
                ):
                    parameter.grad = gradient
                optimizer.step()
        for parameter, gradient in zip(network.parameters(), moves, strict=True):
            parameter.grad = gradient
        if learning.follow is not None:  # what the change follows is fixed
            for parameter in network[:3].parameters():
                parameter.grad = None
        if step >= learning.warm_up:
            for_change.step()
    return {name: parameter.detach() for name, parameter in network.named_parameters()}, gaps


def scale_layers(network, factors, size):
    """Every layer so that its outputs have standard deviation 1, the last `size`, by running all before it anew."""
    layers = [position for position, layer in enumerate(network) if list(layer.parameters())]
    with torch.no_grad():
        for position in layers:
            layer = network[position]
            if layer.weight.shape[1] == 1:  # unit i bends where the number is linspace(-2, 2)[i]
                layer.bias.copy_(-layer.weight[:, 0] * torch.linspace(-2, 2, len(layer.bias)))
            spread = network[: position + 1](factors).std() / (size if position == layers[-1] else 1.0)
            layer.weight /= spread
            layer.bias /= spread


HELPED = replace(QUICK, warm_up=2, start=0.5, centred=True)


@pytest.mark.parametrize(
    ("count", "learning"),
    [
        (1, QUICK),
        (2, QUICK),
        (1, HELPED),
        (2, HELPED),
        (1, replace(QUICK, warm_up=1)),
        (1, replace(QUICK, start=1.0)),
        (1, replace(QUICK, centred=True)),
        (2, replace(QUICK, follow=1)),
        (1, replace(HELPED, follow=0)),
        (1, replace(QUICK, follow="mixed")),
    ],
)
def test_it_equals_a_plain_loop(population, sprites, choice, count, learning):
    chosen = choice._replace(entangled=choice.entangled[:count], disentangled=choice.disentangled[:count])
    weights, gaps = plainly_learned(population, sprites, chosen, learning)
    learned = learn(population, sprites, chosen, learning, dtype=torch.float64)
    np.testing.assert_allclose(learned.history["gap"], gaps, rtol=0, atol=1e-10)
    for name, weight in weights.items():  # the change is stored in float32
        torch.testing.assert_close(learned.change.tensors[name], weight.float(), rtol=0, atol=1e-6)
    assert learned.history["reconstruction"].shape == (4, 2 * count)


def test_what_the_change_follows_is_fixed(population, sprites, choice):
    """Only its rendering is learned; without the option, both are."""
    for follow in (None, 1, "mixed"):
        short, long = (
            learn(population, sprites, choice, replace(QUICK, follow=follow, steps=steps)).change for steps in (1, 6)
        )
        moved = {name for name, tensor in long.tensors.items() if not tensor.equal(short.tensors[name])}
        assert ("0.weight" in moved, "2.bias" in moved, "3.weight" in moved) == (follow is None, follow is None, True)


def test_black_and_white_images_are_helped(sprites):
    binary = data.arrays((sprites.x(torch.arange(60)) > 0.5).float(), sprites.factors(torch.arange(60)))
    assert learning_for(binary, 0.1, steps=30) == Learning(
        0.1, steps=30, warm_up=2, start=0.5, follow="mixed", centred=True, optimizer=Adam(lr=1e-3, eps=1e-7)
    )
    assert learning_for(sprites, 0.1, steps=30) == Learning(0.1, steps=30, optimizer=Adam(lr=1e-3, eps=1e-7))


def test_decoders_one_after_another_are_those_at_once(population, sprites, choice, monkeypatch):
    at_once = learn(population, sprites, choice, QUICK, dtype=torch.float64)
    module = import_module("axiswise.attack.learn")  # as an attribute of the package that name is the function
    monkeypatch.setattr(module, "stacking_pays", lambda model, device: False)
    in_turn = learn(population, sprites, choice, QUICK, dtype=torch.float64)
    np.testing.assert_allclose(at_once.history["gap"], in_turn.history["gap"], rtol=0, atol=1e-10)


def test_the_gap_falls_and_the_bound_holds(population, sprites, choice):
    learning = replace(QUICK, steps=100)
    learned = learn(population, sprites, choice, learning)
    gap = learned.history["gap"]
    assert gap[-10:].mean() < gap[:10].mean() - 0.1
    rows = torch.arange(len(sprites))
    changed = data.manipulated(sprites, learned.change)
    assert (changed.x(rows) - sprites.x(rows)).abs().max() <= 0.2 + 2**-23
    assert torch.equal(changed.factors(rows), sprites.factors(rows))


def test_resuming_is_invisible(population, sprites, choice, tmp_path, monkeypatch):
    whole = learn(population, sprites, choice, QUICK, out=tmp_path / "whole")
    monkeypatch.setattr(loop, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 1)
    saved = []

    class Interrupted(Exception):
        pass

    class Stopping:
        def begin(self, title, total):
            assert (title, total) == ("learning the change", 4)

        def advance(self, units):
            saved.append(units)
            if sum(saved) > 2:
                raise Interrupted

        def end(self):
            pass

    with pytest.raises(Interrupted):
        learn(population, sprites, choice, QUICK, out=tmp_path / "broken", progress=Stopping())
    assert (tmp_path / "broken" / "learning.safetensors").exists()
    resumed = learn(population, sprites, choice, QUICK, out=tmp_path / "broken")
    assert all(torch.equal(resumed.change.tensors[name], own) for name, own in whole.change.tensors.items())
    assert all(np.array_equal(resumed.history[name], own) for name, own in whole.history.items())
    assert sorted(path.name for path in (tmp_path / "broken").iterdir()) == [".lock", "change.safetensors"]
    again = learn(population, sprites, choice, QUICK, out=tmp_path / "broken")
    assert all(torch.equal(again.change.tensors[name], own) for name, own in whole.change.tensors.items())
    assert again.history.keys() == whole.history.keys()
    stored = load_change(tmp_path / "broken" / "change.safetensors")
    one, other = (data.manipulated(sprites, change).identity for change in (stored, whole.change))
    assert one == other


def test_another_learning_in_the_folder_is_refused(population, sprites, choice, tmp_path):
    learn(population, sprites, choice, QUICK, out=tmp_path)
    with pytest.raises(AxiswiseError, match=r"was learned with learning .*'epsilon': 0.2.* Got .*'epsilon': 0.1"):
        learn(population, sprites, choice, replace(QUICK, epsilon=0.1), out=tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("years of work")
    with pytest.raises(AxiswiseError, match=r"is not the folder of an attack: .* Choose another `out`"):
        learn(population, sprites, choice, QUICK, out=other)


def test_convolutional_members_and_buffers_take_part():
    """A decoder with batch norm: its statistics are part of the state."""
    levels = data.FactorSpace((data.Factor("a", 3), data.Factor("b", 4)), grid=True).levels(torch.arange(12))
    images = data.arrays(torch.rand(12, 3, 64, 64), levels, names=["a", "b"])
    members = grid(
        model=models.dcgan64(latents=2, likelihood=Bernoulli()),
        objective=objectives.BetaVAE(1.0),
        steps=1,
        batch=2,
        seed=range(2),
    )
    population = train(members, images)
    chosen = Choice((0,), (1,), (), (), "mig")
    learned = learn(population, images, chosen, replace(QUICK, steps=1, batch=2, samples=1, renderer="convolutional"))
    assert np.isfinite(learned.history["gap"]).all()


def test_bad_requests_are_refused_before_anything_is_trained(population, sprites, choice, tmp_path):
    members = list(population.members)
    bare = data.arrays(sprites.x(torch.arange(60)))
    single = data.subset(sprites, down=0, size=0)
    for dataset, found in ((bare, "none"), (single, r"\['across'\]")):
        with pytest.raises(AxiswiseError, match=rf"at least two of which vary.* Got dataset .* with {found}. Give the"):
            attack(dataset, members, QUICK, out=tmp_path / "run")
    with pytest.raises(AxiswiseError, match=r"`epsilon` must be less than half the range .* Got 0.5"):
        attack(sprites, members, replace(QUICK, epsilon=0.5), out=tmp_path / "run")
    for epsilon in (0.0, -0.1, float("nan")):
        with pytest.raises(AxiswiseError, match=r"`epsilon` must be positive and finite"):
            Learning(epsilon)
    with pytest.raises(AxiswiseError, match=r"needs 6 to choose from, and gains by more. Got 4. Add seeds"):
        attack(sprites, members, QUICK, count=3, out=tmp_path / "run")
    few = [replace(member, model=models.mlp((1, 16, 16), 2)) for member in members]
    with pytest.raises(AxiswiseError, match=r"a latent for each of 3 factors.* Got 2 latents"):
        attack(sprites, few, QUICK, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(AxiswiseError, match=r"`samples` must be at least 1. Got 0"):
        replace(QUICK, samples=0)
    with pytest.raises(AxiswiseError, match=r"`warm_up` must be at least 0 and less than the 4 steps.* Got 4"):
        replace(QUICK, warm_up=4)
    with pytest.raises(AxiswiseError, match=r"`start` must be positive and finite, or None. Got 0.0"):
        replace(QUICK, start=0.0)
    for latent in (3, -1):
        with pytest.raises(AxiswiseError, match=rf"`follow` must be a latent .* 0 to 2, or .mixed.* Got {latent}"):
            learn(population, sprites, choice, replace(QUICK, follow=latent))
    with pytest.raises(AxiswiseError, match=r"as many entangled as disentangled members.* Got positions \(\) and"):
        learn(population, sprites, choice._replace(entangled=()), QUICK)


def test_members_that_cannot_be_attacked_are_refused(population, sprites, choice):
    other = grid(model=models.mlp((1, 16, 16), 3), objective=objectives.BetaVAE(1.0), steps=0, seed=7)
    mixed = Population([*population.trained[:3], *train(other, sprites).trained])
    with pytest.raises(AxiswiseError, match=r"must share one model.* Got 2 models at positions \(2, 1, 0, 3\)"):
        learn(mixed, sprites, choice, QUICK)
    blind = [
        replace(trained, weights={k: v for k, v in trained.weights.items() if k.startswith("encoder")})
        for trained in population.trained
    ]
    with pytest.raises(AxiswiseError, match=r"must have a decoder that was trained here.* Got member 2 \(BetaVAE\)"):
        learn(Population(blind), sprites, choice, QUICK)


def test_a_change_that_diverges_is_not_stored(population, sprites, choice, tmp_path):
    wild = replace(QUICK, optimizer=Adam(lr=1e38))
    with pytest.raises(AxiswiseError, match=r"diverged within 4 steps.* Lower the learning rate"):
        learn(population, sprites, choice, wild, out=tmp_path)
    assert not (tmp_path / "change.safetensors").exists()


def test_the_whole_attack_resumes(sprites, population, tmp_path):
    members, lines = list(population.members), []
    first = attack(sprites, members, QUICK, apart=0.0, out=tmp_path, dtype=torch.float64, log=lines.append)
    again = attack(sprites, members, QUICK, apart=0.0, out=tmp_path, dtype=torch.float64)
    assert first.choice == again.choice
    assert all(torch.equal(again.learned.change.tensors[n], t) for n, t in first.learned.change.tensors.items())
    assert lines[0] == "training on cpu"
    assert "disentangled" in lines[1]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "change.safetensors", "population"]
