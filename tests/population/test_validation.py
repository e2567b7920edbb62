"""Validation: what it computes, that training does not notice it, and how it is stored, reported and refused."""

import shutil
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import nn

from axiswise import data, grid, load, models, objectives, optimizers, train
from axiswise.distributions import Deterministic
from axiswise.distributions.estimators import InclusiveKL
from axiswise.errors import AxiswiseError
from axiswise.numerics import normal, permutation
from axiswise.population import Entry, Member
from axiswise.records import read_json
from axiswise.records._layout import RUN
from axiswise.schedules import Linear
from axiswise.stopping import Plateau


def normed():
    """Networks whose evaluation differs from training: batch norm.

    No bias before it: its gradient is rounding and nothing else, of which Adam makes steps.
    """

    def coder(inputs, outputs):
        return nn.Sequential(nn.Linear(inputs, 5, bias=False), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, outputs))

    return coder(3, 4), coder(2, 3)


KINDS = {
    "linear": lambda: Member(models.linear(3, 2), objectives.BetaVAE(0.5), steps=9, batch=8, history=2),
    "batch norm": lambda: Member(models.custom(normed, (3,), 2), objectives.BetaVAE(), steps=9, batch=8, history=2),
    "whole set": lambda: Member(models.linear(3, 2), objectives.BetaVAE(Linear(0.0, 4.0, 9)), steps=9, batch=None),
}


@pytest.fixture(params=KINDS)
def members(request) -> list[Member]:
    """Three members of one cohort."""
    return [replace(KINDS[request.param](), seed=seed) for seed in range(3)]


@pytest.fixture
def parts(square):
    return square.split()


def test_training_is_the_same_bit_for_bit(members, parts):
    without = train(members, parts.train)
    found = train(members, parts.train, validation=parts.validation, every=4)
    for one, other in zip(found.trained, without.trained, strict=True):
        assert one.validation["step"].tolist() == [4, 8, 9]
        assert other.validation == {}
        for name, weight in {**other.weights, **other.buffers}.items():
            assert torch.equal({**one.weights, **one.buffers}[name], weight), name
        for name, term in other.history.items():
            np.testing.assert_array_equal(one.history[name], term)


def test_members_are_validated_independently(members, parts):
    options = {"validation": parts.validation, "every": 4, "dtype": torch.float64}
    together = train(members, parts.train, **options).trained[1].validation
    alone = train(members[1:2], parts.train, **options).trained[0].validation
    assert together.keys() == alone.keys()
    for name, values in alone.items():
        np.testing.assert_allclose(together[name], values, rtol=1e-10, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("kind", ["linear", "batch norm"])
@pytest.mark.parametrize("batch", [8, None])
def test_terms_are_means_over_the_set_by_networks_in_evaluation_mode(kind, batch, parts):
    members = [replace(KINDS[kind](), batch=batch, seed=seed) for seed in (2, 5)]
    held_out = parts.validation
    population = train(members, parts.train, validation=held_out, every=4, dtype=torch.float64)
    order = permutation(0, "validation", len(held_out))
    batches = order.tensor_split(-(-len(held_out) // batch)) if batch else [order]
    for position, member in enumerate(members):
        model = population[position]
        found = model.validation
        reconstruction, kl = [], []
        for number, rows in enumerate(batches):
            x = held_out.x(rows).double()
            q = model.encode(x)
            noise = normal(member.seed, "validation noise", number, (len(rows), 2), dtype=torch.float64)
            decoded = model.decode(q.mean + torch.exp(q.log_variance / 2) * noise)
            reconstruction.append(-torch.distributions.Normal(decoded, 1.0).log_prob(x).sum(1))
            posterior = torch.distributions.Normal(q.mean, torch.exp(q.log_variance / 2))
            kl.append(torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).sum(1))
        expected = {"reconstruction": torch.cat(reconstruction).mean().item(), "kl": torch.cat(kl).mean().item()}
        expected["elbo"] = -sum(expected.values())
        expected["loss"] = expected["reconstruction"] + member.objective.beta * expected["kl"]
        for name, value in expected.items():
            assert found[name][-1] == pytest.approx(value, rel=1e-12), name
        assert found["kl_per_latent"].shape == (3, 2)


def test_the_noise_is_the_same_at_every_evaluation(parts):
    still = Member(models.linear(3, 2), objectives.BetaVAE(), steps=6, batch=8, optimizer=optimizers.SGD(lr=0.0))
    found = train([still], parts.train, validation=parts.validation, every=2).trained[0].validation
    assert len(set(found["loss"].tolist())) == 1


def test_a_scheduled_hyperparameter_has_its_value_of_the_step(parts):
    optimizer, beta = optimizers.SGD(lr=0.0), Linear(0.0, 4.0, 4)
    member = Member(models.linear(3, 2), objectives.BetaVAE(beta), steps=6, batch=8, optimizer=optimizer)
    found = train([member], parts.train, validation=parts.validation, every=2, dtype=torch.float64).trained[0]
    weights = (found.validation["loss"] - found.validation["reconstruction"]) / found.validation["kl"]
    np.testing.assert_allclose(weights, [beta.at(1), beta.at(3), beta.at(5)], rtol=1e-12)


@pytest.mark.parametrize(
    ("objective", "posterior", "terms"),
    [
        (objectives.BetaTCVAE(), None, {"elbo", "total_correlation"}),
        (objectives.FactorVAE(), None, {"elbo", "total_correlation", "adversary"}),
        (objectives.DeterministicELBO(), None, {"elbo", "regularisation"}),
        (objectives.Decomposed(alpha=1.0, divergence=InclusiveKL()), None, {"elbo"}),
        (objectives.Autoencoder(), Deterministic(), {"reconstruction"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_objectives_of_all_kinds_are_validated(objective, posterior, terms, parts):
    model = models.linear(3, 2, **({"posterior": posterior} if posterior else {}))
    members = grid(model=model, objective=objective, steps=2, batch=8, seed=range(2))
    for one in train(members, parts.train, validation=parts.validation, every=1).trained:
        assert terms | {"loss", "step"} <= one.validation.keys()
        assert all(np.isfinite(values).all() for values in one.validation.values())


def test_pairs_are_drawn_from_the_validation_sets_own_transitions(square):
    def pairs(shift):
        levels = torch.cartesian_prod(torch.arange(5), torch.arange(4))
        x = torch.cat((levels, levels.sum(1, keepdim=True)), 1).float() + shift
        return data.transitions(data.arrays(x, levels, names=["across", "up"]))

    members = grid(model=models.linear(3, 2), objective=objectives.SlowVAE(), steps=2, batch=8, seed=range(2))
    near, far = (train(members, pairs(0.0), validation=pairs(shift), every=1) for shift in (0.0, 100.0))
    for one, other in zip(near.trained, far.trained, strict=True):
        assert (other.validation["reconstruction"] > 100.0 * one.validation["reconstruction"]).all()
    with pytest.raises(AxiswiseError, match=r"SlowVAE trains on pairs .* which has no transitions"):
        train(members, pairs(0.0), validation=square)


def test_about_twenty_evaluations_are_made_unless_told_otherwise(parts):
    member = Member(models.linear(3, 2), objectives.BetaVAE(), steps=45, batch=8)
    found = train([member], parts.train, validation=parts.validation).trained[0]
    assert found.validation["step"].tolist() == [*range(2, 45, 2), 45]
    untrained = train([replace(member, steps=0)], parts.train, validation=parts.validation).trained[0]
    assert untrained.validation["step"].tolist() == [0]


def test_every_evaluation_is_reported(parts):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=5, batch=8, seed=range(2))
    entries: list[Entry] = []
    found = train(members, parts.train, validation=parts.validation, every=2, on_history=entries.append)
    own = [entry for entry in entries if entry.validation]
    assert [(entry.step, entry.member.seed) for entry in own] == [(2, 0), (2, 1), (4, 0), (4, 1), (5, 0), (5, 1)]
    assert [entry.terms["elbo"] for entry in own[::2]] == found.trained[0].validation["elbo"].tolist()
    assert len(entries) - len(own) == 10


RULE = Plateau("elbo", patience=100)


def few(**changes) -> list[Member]:
    choices = {"model": models.linear(3, 2), "objective": objectives.BetaVAE(), "steps": 3, "batch": 8} | changes
    return grid(**choices, seed=range(2))


def test_it_is_stored_with_rule_and_set(parts, tmp_path):
    made = train(few(), parts.train, validation=parts.validation, every=2, stop=RULE, out=tmp_path / "run")
    train(few(), parts.train, validation=parts.validation, every=2, stop=RULE).save(tmp_path / "saved")
    rule = {"type": "Plateau", "term": "elbo", "patience": 100, "least": 0.0, "larger": True}
    about = {"dataset": parts.validation.identity, "every": 2, "stop": rule, "code": {}}
    for folder in (tmp_path / "run", tmp_path / "saved"):
        assert read_json(folder / "run.json", RUN)["validation"] == about
        for found in load(folder).trained:
            assert found.about["validation"] == about
            expected = made.trained[found.member.seed].validation
            assert found.validation.keys() == expected.keys()
            assert all((found.validation[name] == values).all() for name, values in expected.items())
    again = {"validation": parts.validation, "every": 2, "stop": RULE, "out": tmp_path / "run"}
    train(few(), parts.train, **again, on_history=pytest.fail)


def test_another_rule_is_another_result(parts, tmp_path):
    asked = {"validation": parts.validation, "every": 2, "stop": RULE}
    train(few(), parts.train, **asked, out=tmp_path / "run")
    others = {
        r"`stop` .*'patience': 100.* Got .*'patience': 9.* another result: choose another `out`": {
            "stop": Plateau("elbo", patience=9)
        },
        r"`stop` .* Got None": {"stop": None},
        r"`every` 2. Got 3": {"every": 3},
        r"`validation` .*'validation'.* Got .*'test'": {"validation": parts.test},
        r"`validation` .* Got None": {"validation": None, "every": None, "stop": None},
    }
    for message, change in others.items():
        with pytest.raises(AxiswiseError, match=message):
            train(few(), parts.train, **asked | change, out=tmp_path / "run")
    train(few(), parts.train, out=tmp_path / "plain")
    with pytest.raises(AxiswiseError, match=r"trained with `validation` None. Got "):
        train(few(), parts.train, **asked, out=tmp_path / "plain")


def test_a_member_of_another_rule_is_not_taken_for_one_of_this(parts, tmp_path):
    for name, rule in (("one", RULE), ("other", Plateau("loss", patience=7))):
        train(few(), parts.train, validation=parts.validation, every=2, stop=rule, out=tmp_path / name)
    file = sorted((tmp_path / "one" / "members").iterdir())[0]
    shutil.copy(file, tmp_path / "other" / "members" / file.name)
    with pytest.raises(AxiswiseError, match=r"validated or stopped by .*100.* Expected .*7.* copied from another"):
        load(tmp_path / "other")


def test_a_rule_of_ones_own_is_known_by_its_code(parts, tmp_path):
    def rule(threshold):
        @dataclass(frozen=True)
        class Reached:
            def stops(self, history):
                return bool(history["elbo"][-1] > threshold)

        return Reached()

    options = {"validation": parts.validation, "every": 2, "out": tmp_path / "run"}
    train(few(), parts.train, **options, stop=rule(1e9))
    train(few(), parts.train, **options, stop=rule(1e9), on_history=pytest.fail)
    with pytest.raises(AxiswiseError, match=r"validated or stopped by other code: .*threshold.* another name"):
        train(few(), parts.train, **options, stop=rule(1e8))


@dataclass(frozen=True)
class Undecided:
    def stops(self, history):
        return None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validation": None}, r"`every` needs a validation set. Got none. Pass validation=dataset"),
        ({"validation": None, "every": None, "stop": RULE}, r"`stop` needs a validation set"),
        ({"every": 0}, r"`every` must be a whole number of steps, at least 1, or None. Got 0."),
        (
            {"validation": data.synth_nonlinear(samples=50)},
            r"takes observations of shape \(3,\). Got .* of shape \(6,\)",
        ),
        (
            {"stop": Plateau("accuracy", 3)},
            r"one number \(elbo, kl, loss, reconstruction\). Got 'accuracy', which is not",
        ),
        ({"stop": Plateau("kl_per_latent", 3, larger=True)}, r"Got 'kl_per_latent', which is a vector"),
        ({"stop": Undecided()}, r"`stops` of Undecided must return True or False. Got None."),
    ],
)
def test_what_does_not_fit_is_refused_before_training_begins(change, message, parts, tmp_path):
    with pytest.raises(AxiswiseError, match=message):
        train(few(), parts.train, **{"validation": parts.validation, "every": 2} | change, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_fast_path_is_validated_and_does_not_notice(precision):
    parts = data.arrays(torch.rand(40, 1, 64, 64)).to("cuda").split()
    members = grid(model=models.conv64(latents=3), objective=objectives.BetaVAE(), steps=9, batch=4, seed=range(3))
    options = {"precision": precision}
    without = train(members, parts.train, **options)
    found = train(members, parts.train, validation=parts.validation, every=4, **options)
    alone = train(members[1:2], parts.train, validation=parts.validation, every=4, **options)
    for one, other in zip(found.trained, without.trained, strict=True):
        assert all(torch.equal(one.weights[name], weight) for name, weight in other.weights.items())
        assert np.isfinite(one.validation["elbo"]).all()
    np.testing.assert_allclose(found.trained[1].validation["elbo"], alone.trained[0].validation["elbo"], rtol=1e-2)
