"""Laws 1, 2 and 6: members are independent, order and grouping are irrelevant, resuming is invisible.

With ``-m gpu`` the laws of every architecture are tested on a GPU, too.
"""

import random

import pytest
import torch

from axiswise import grid, models, objectives, optimizers, train
from axiswise.distributions import Gaussian
from axiswise.numerics import integers, normal
from axiswise.population import Member, Population
from axiswise.population import _cohort as cohort
from axiswise.schedules import Linear

STEPS = 50
# AdaGrad's first step divides by |g| + ε: an ε far above rounding keeps gradients that are rounding and nothing else
# (those of dead units, about 1e-19) from becoming steps.
OPTIMIZERS = {"Adam": optimizers.Adam(lr=1e-3), "AdaGrad": optimizers.AdaGrad(lr=1e-2, eps=1e-6)}


def members_of(model, batch=4, steps=STEPS, optimizer=None) -> list[Member]:
    return grid(
        model=model,
        objective=[objectives.BetaVAE(0.1), objectives.BetaVAE(4.0)],
        steps=steps,
        batch=batch,
        seed=[3, 11],
        optimizer=optimizer or optimizers.Adam(lr=1e-3),
    )


def plain_loop(member: Member, dataset, beta=None) -> dict[str, torch.Tensor]:
    """The member trained as any PyTorch script would, from the same initial weights and the same draws."""
    initial = train([Member(member.model, member.objective, steps=0, seed=member.seed)], dataset, dtype=torch.float64)
    model = initial[0].requires_grad_()
    parameters = dict(model.named_parameters())
    kind, options = {
        "Adam": (torch.optim.Adam, {"lr": 1e-3}),
        "AdaGrad": (torch.optim.Adagrad, {"lr": 1e-2, "eps": 1e-6}),
    }[type(member.optimizer).__name__]
    optimizer = kind(parameters.values(), **options)
    size, everything = member.batch or len(dataset), torch.arange(len(dataset), device=dataset.device)
    seed = torch.tensor(member.seed, device=dataset.device)  # draws are made where the seed is
    for step in range(member.steps):
        index = integers(seed, "index", step, (size,), len(dataset)) if member.batch else everything
        x = dataset.x(index).double()
        q = model.encode(x)
        z = q.mean + torch.exp(q.log_variance / 2) * normal(
            seed, "noise", step, (size, member.model.latents), dtype=torch.float64
        )
        output = model.decode(z, raw=True)
        if isinstance(member.model.likelihood, Gaussian):
            log_density = torch.distributions.Normal(output, member.model.likelihood.scale).log_prob(x)
        else:
            log_density = torch.distributions.Bernoulli(logits=output, validate_args=False).log_prob(x)
        kl = torch.distributions.kl_divergence(
            torch.distributions.Normal(q.mean, torch.exp(q.log_variance / 2)), torch.distributions.Normal(0.0, 1.0)
        )
        weight = beta(step) if beta else member.objective.beta
        loss = -log_density.flatten(1).sum(1).mean() + weight * kl.sum(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: parameter.detach() for name, parameter in parameters.items()}


def assert_equal_to(weights, reference, tolerance=1e-10):
    assert weights.keys() == reference.keys()
    for name, expected in reference.items():
        scale = expected.abs().max().clamp_min(1e-6)
        assert ((weights[name] - expected).abs().max() / scale).item() < tolerance, name


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_members_are_independent(architecture, optimizer):
    """Law 1, on the path that training takes here: alone, among others, and in a plain loop, to 1e-10."""
    model, dataset = architecture
    members = members_of(model, optimizer=optimizer)[:3]
    together = train(members, dataset, dtype=torch.float64)
    for position, member in enumerate(members):
        alone = train([member], dataset, dtype=torch.float64).trained[0]
        assert_equal_to(together.trained[position].weights, alone.weights)
        assert_equal_to(alone.weights, plain_loop(member, dataset))


def test_stacked_members_are_independent_for_every_architecture(architecture, monkeypatch):
    """Law 1 for stacks, also where a CPU would not stack (convolutions)."""
    model, dataset = architecture
    members = members_of(model, steps=10)[:2]
    alone = [train([member], dataset, dtype=torch.float64).trained[0] for member in members]
    monkeypatch.setattr(cohort, "stacking_pays", lambda model, device: True)
    stacked = train(members, dataset, dtype=torch.float64)
    for trained, single in zip(stacked.trained, alone, strict=True):
        assert_equal_to(trained.weights, single.weights)


def test_whole_set_batches_are_independent(square):
    members = members_of(models.linear(3, 2), batch=None, steps=20)
    together = train(members, square, dtype=torch.float64)
    assert_equal_to(together.trained[2].weights, plain_loop(members[2], square))


def test_order_and_grouping_are_irrelevant(architecture, monkeypatch):
    """Law 2: shuffled, and cut into cohorts of two instead of four."""
    model, dataset = architecture
    members = members_of(model, steps=10)
    reference = {t.member: t.weights for t in train(members, dataset, dtype=torch.float64).trained}
    shuffled = random.Random(0).sample(members, len(members))
    monkeypatch.setattr(cohort, "LARGEST", 2)
    for trained in train(shuffled, dataset, dtype=torch.float64).trained:
        assert_equal_to(trained.weights, reference[trained.member])


class Stop(Exception):
    """Ends a training, as a killed process would."""


def interrupted(members, dataset, out, at_step):
    """Trains until a step is reached, saving at every block, and stops as if killed there."""

    def check(entry):
        if entry.step >= at_step:
            raise Stop

    with pytest.raises(Stop):
        train(members, dataset, out=out, on_history=check)


@pytest.mark.parametrize("at_step", [1, 7, 30])
def test_resuming_is_invisible(architecture, tmp_path, monkeypatch, at_step):
    """Law 6: stopped at any moment and resumed, weights and history are bit-equal."""
    from axiswise.population import loop

    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 3)
    model, dataset = architecture
    members = grid(model=model, objective=objectives.BetaVAE(), steps=36, batch=4, seed=range(2), history=1)
    whole = train(members, dataset, out=tmp_path / "whole")
    interrupted(members, dataset, tmp_path / "stopped", at_step)
    interrupted(members, dataset, tmp_path / "stopped", at_step + 5)
    resumed = train(members, dataset, out=tmp_path / "stopped")
    assert_bit_equal(resumed, whole)
    assert not list((tmp_path / "stopped" / "cohorts").glob("*"))


def assert_bit_equal(population: Population, reference: Population):
    for found, expected in zip(population.trained, reference.trained, strict=True):
        for name, weight in expected.weights.items():
            assert torch.equal(found.weights[name], weight), name
        for name, term in expected.history.items():
            assert (found.history[name] == term).all(), name


def test_a_resumed_cohort_keeps_its_layout(square, tmp_path, monkeypatch):
    """A larger grid resumes a cohort in the layout it was started with, and trains the rest beside it."""
    from axiswise.population import loop

    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 3)
    few = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=40, batch=8, seed=range(2), history=1)
    more = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=40, batch=8, seed=range(4), history=1)
    whole = train(few, square)
    interrupted(few, square, tmp_path / "run", 20)
    resumed = train(more, square, out=tmp_path / "run")
    assert len(resumed) == 4
    assert_bit_equal(Population(resumed.trained[:2]), whole)


def test_a_diverging_member_diverges_alone(square):
    calm = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=60, batch=8, seed=range(3), history=10)
    wild = Member(
        calm[0].model, calm[0].objective, steps=60, batch=8, seed=9, history=10, optimizer=optimizers.Adam(lr=1e20)
    )
    together = train([*calm, wild], square, dtype=torch.float64)
    assert [trained.status for trained in together.trained[:3]] == ["trained"] * 3
    assert together.trained[3].status.startswith("diverged at step ")
    reference = train(calm, square, dtype=torch.float64)
    for found, expected in zip(together.trained[:3], reference.trained, strict=True):
        assert_equal_to(found.weights, expected.weights)


def test_schedules_follow_each_members_own(square):
    """A schedule of β is the same as changing β by hand in a plain loop, also beside constants in one cohort."""
    optimizer = optimizers.Adam(lr=1e-3)
    warm, flat = (
        Member(models.linear(3, 2), objectives.BetaVAE(beta), steps=20, batch=8, optimizer=optimizer)
        for beta in (Linear(0.0, 4.0, steps=10), 4.0)
    )
    assert len(cohort.cohorts([warm, flat], torch.device("cpu"))) == 1
    together = train([warm, flat], square, dtype=torch.float64)
    by_hand = plain_loop(warm, square, beta=lambda step: 4.0 * min(step / 10, 1.0))
    assert_equal_to(together.trained[0].weights, by_hand)
    assert_equal_to(together.trained[1].weights, plain_loop(flat, square))
