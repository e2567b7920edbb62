"""Parts that do not fit together are refused by name, with the fix, before anything is trained or written."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from axiswise import data, distributions, models, objectives, train
from axiswise.errors import AxiswiseError
from axiswise.objectives import Draw, Terms, Trainable
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.population import Member


def refused(member_or_members, dataset, out, message):
    members = member_or_members if isinstance(member_or_members, list) else [member_or_members]
    with pytest.raises(AxiswiseError, match=message):
        train(members, dataset, out=out)
    assert not out.exists()


def test_bernoulli_refuses_data_outside_its_range(tmp_path):
    centred = data.arrays(torch.linspace(-1.0, 1.0, 30).reshape(10, 3))
    model = models.linear(3, 2, likelihood=distributions.Bernoulli())
    refused(
        Member(model, objectives.BetaVAE(), steps=1),
        centred,
        tmp_path / "run",
        r"A Bernoulli likelihood needs observations between 0.0 and 1.0. Got dataset 'arrays' with values from -1 to "
        r"1. Rescale the data, or build the model with likelihood=Gaussian\(\).",
    )


@pytest.mark.parametrize(
    ("objective", "posterior"),
    [(objectives.PCL(), distributions.Deterministic()), (objectives.SlowVAE(), distributions.Diagonal())],
    ids=["PCL", "SlowVAE"],
)
def test_objectives_of_pairs_refuse_data_without_transitions(objective, posterior, square, tmp_path):
    refused(
        Member(models.linear(3, 2, posterior=posterior), objective, steps=1),
        square,
        tmp_path / "run",
        f"{type(objective).__name__} trains on pairs of successive observations. Got dataset 'synth_linear', which has "
        r"no transitions. Train on `data.transitions\(dataset\)`.",
    )


def test_one_unsuitable_member_among_others_is_refused_before_any_trains(square, tmp_path):
    fits = Member(models.linear(3, 2), objectives.BetaVAE(), steps=1)
    full = Member(models.linear(3, 2, posterior=distributions.Full()), objectives.BetaTCVAE(), steps=1)
    refused([fits, full], square, tmp_path / "run", "BetaTCVAE needs a model whose posterior is Diagonal. Got Full")


def test_a_prior_of_other_latents_is_refused():
    with pytest.raises(AxiswiseError, match=r"The prior Mixture is one of 2 latents. Got a network of 3. Give both"):
        models.linear(4, 3, prior=distributions.corners(2))


@dataclass(frozen=True)
class Careless:
    """A loss that does what a traced program cannot repeat."""

    what: str

    def networks(self, model):
        return Trainable(model.modules())

    def draws(self, batch, latents):
        return {"noise": Draw((batch, latents))}

    def loss(self, networks, batch, draws, step):
        terms = elbo_terms(networks, batch.x, draws["noise"])
        total = terms.reconstruction + terms.kl
        if self.what == "draws":
            total = total + torch.randn_like(total)
        elif total > 0:
            total = 2.0 * total
        return Terms(total, terms.parts())


class Bare(Careless):
    """A loss that returns a number and no parts."""

    def loss(self, networks, batch, draws, step) -> Any:
        return elbo_terms(networks, batch.x, draws["noise"]).kl


def test_a_loss_that_is_no_terms_is_named(square):
    message = r"`loss` of Bare must return axiswise.objectives.Terms\(total, parts\). Got Tensor."
    with pytest.raises(AxiswiseError, match=message):
        train([Member(models.linear(3, 2), Bare(""), steps=2)], square)


class Vector(Careless):
    """A loss of a number for each pixel, for the weights of the model or for those of an adversary."""

    def loss(self, networks, batch, draws, step) -> Any:
        error = networks.decode(networks.encode(batch.x).mean) - batch.x
        if self.what == "adversary":
            return Terms(error.square().mean(), {}, adversary=error)
        return Terms(3.0 if self.what == "number" else error, {})


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            "total",
            r"`total` of what `loss` of Vector returns must .* shape \(\)\. Got shape \(64, 3\)\. Add .*\.mean\(\)",
        ),
        ("adversary", r"`adversary` of what `loss` of Vector returns must .* shape \(\)\. Got shape \(64, 3\)\."),
        ("number", r"`total` of what `loss` of Vector returns must be a tensor of shape \(\)\. Got float\."),
    ],
)
def test_a_loss_of_several_numbers_is_refused(what, message, members, square):
    """PyTorch, too, differentiates one number alone; their sum would be trained without a word."""
    several = [Member(models.linear(3, 2), Vector(what), steps=2, seed=seed) for seed in range(members)]
    with pytest.raises(AxiswiseError, match=message):
        train(several, square)


class Forgetful(Careless):
    """A loss that uses what it did not ask for."""

    def loss(self, networks, batch, draws, step) -> Any:
        return elbo_terms(networks, batch.x, draws["nosie"])


@pytest.mark.parametrize("members", [1, 2])
def test_a_draw_that_was_not_asked_for_is_named_with_those_that_were(members, square):
    several = [Member(models.linear(3, 2), Forgetful(""), steps=2, seed=seed) for seed in range(members)]
    with pytest.raises(AxiswiseError, match=r"`loss` of Forgetful must .* its `draws` names: 'noise'\. Got 'nosie'\."):
        train(several, square)


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("what", ["draws", "branches"])
def test_what_cannot_be_vectorised_is_named(what, members, square):
    several = [Member(models.linear(3, 2), Careless(what), steps=2, seed=seed) for seed in range(members)]
    branches = r"branches on the value of a tensor, as `if`, `min` and `float` do; `torch.where` and `clamp` do not\."
    reason = "draws its own random numbers" if what == "draws" else branches
    with pytest.raises(AxiswiseError, match=reason) as refused:
        train(several, square)
    assert ("dropout" in str(refused.value)) is (what == "draws")


@pytest.mark.parametrize("bad", [0, 1])
def test_a_nan_among_the_parameters_is_found_at_the_next_entry_and_told_of_its_member(bad, square):
    """A learning rate that overflows turns one member into NaN: its neighbour ends as if alone."""
    from axiswise import optimizers
    from axiswise.schedules import Linear

    calm, wild = optimizers.SGD(lr=1e-3), optimizers.SGD(lr=Linear(0.0, 1e30, steps=20))
    members = [
        Member(models.linear(3, 2), objectives.BetaVAE(), 40, 8, seed, wild if seed == bad else calm, history=10)
        for seed in range(2)
    ]
    trained = train(members, square).trained
    assert trained[1 - bad].status == "trained"
    assert trained[bad].status == "diverged at step 10"


@dataclass(frozen=True)
class Needy:
    """An objective that names what it needs in another type."""

    needs: ClassVar = {"pairs": True}

    def networks(self, model):
        return Trainable(model.modules())

    def draws(self, batch, latents):
        return {}

    def loss(self, networks, batch, draws, step):
        return Terms(networks.encode(batch.x).mean.square().sum(), {})


def test_needs_of_another_type_are_refused(square, tmp_path):
    message = r"`needs` of an objective must be an axiswise.objectives.Needs. Got dict from Needy."
    refused(Member(models.linear(3, 2), Needy(), steps=1), square, tmp_path / "run", message)
