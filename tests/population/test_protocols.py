"""The protocols against what later objectives need: an adversary, no decoder, Jacobians in the loss, buffers, UDR.

Each stand-in is as small as its kind allows; what is tested is that the population trains it as a plain loop would.
"""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn
from torch.func import jacfwd, vmap

from axiswise import data, evaluate, geometry, grid, models, objectives, optimizers, scores, train
from axiswise.distributions import Diagonal, Gaussian, StandardNormal
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.models import VAE
from axiswise.numerics import integers, normal, uniform
from axiswise.objectives import Draw, Needs, Terms, Trainable
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.population import Member, Population, load
from axiswise.schedules import Hyperparameter

RATE = 1e-3
DISCRIMINATOR = optimizers.Adam(lr=1e-2, beta1=0.5, beta2=0.9)


@dataclass(frozen=True)
class Adversarial:
    """As FactorVAE: a discriminator tells codes from codes permuted over the batch, with an optimizer of its own."""

    gamma: Hyperparameter = 2.0
    adversary_optimizer: optimizers.Adam = DISCRIMINATOR

    def networks(self, model):
        discriminator = nn.Sequential(nn.Linear(model.latents, 5), nn.Tanh(), nn.Linear(5, 1))
        return Trainable(model.modules(), {"discriminator": discriminator})

    @property
    def needs(self):
        return Needs(adversary=self.adversary_optimizer)

    def draws(self, batch, latents):
        return {"noise": Draw((batch, latents)), "order": Draw((batch, latents), uniform=True)}

    def loss(self, networks, batch, draws, step):
        terms = elbo_terms(networks, batch.x, draws["noise"])
        code = terms.sample
        real = networks["discriminator"](code).mean()
        # Nothing is detached: it is the step that keeps either loss from moving the other's weights.
        permuted = code.gather(0, draws["order"].argsort(0))
        discriminate = networks["discriminator"]
        adversary = nn.functional.softplus(-discriminate(code)).mean()
        adversary = adversary + nn.functional.softplus(discriminate(permuted)).mean()
        return Terms(terms.reconstruction + terms.kl + self.gamma * real, terms.parts(), adversary)


def test_an_adversary_is_moved_by_its_own_term_alone():
    square = data.synth_linear(samples=200)
    members = grid(
        model=models.linear(3, 2),
        objective=[Adversarial(1.0), Adversarial(5.0)],
        steps=15,
        batch=8,
        seed=[4],
        optimizer=optimizers.Adam(lr=RATE),
    )
    trained = train(members, square, dtype=torch.float64)
    assert "adversary" in trained.trained[0].history
    for position, member in enumerate(members):
        start = train([Member(member.model, member.objective, steps=0, seed=4)], square, dtype=torch.float64).trained[0]
        weights = {name: tensor.clone().requires_grad_() for name, tensor in start.weights.items()}
        model = [name for name in weights if not name.startswith("discriminator")]
        adversary = [name for name in weights if name.startswith("discriminator")]
        first = torch.optim.Adam([weights[name] for name in model], lr=RATE)
        second = torch.optim.Adam([weights[name] for name in adversary], lr=1e-2, betas=(0.5, 0.9))
        for step in range(15):
            x = square.x(integers(4, "index", step, (8,), 200)).double()
            noise = normal(4, "noise", step, (8, 2), dtype=torch.float64)
            order = uniform(4, "order", step, (8, 2), dtype=torch.float64).argsort(0)

            def discriminate(code, weights=weights):
                hidden = torch.tanh(code @ weights["discriminator.0.weight"].T + weights["discriminator.0.bias"])
                return hidden @ weights["discriminator.2.weight"].T + weights["discriminator.2.bias"]

            mean, log_variance = (x @ weights["encoder.1.weight"].T + weights["encoder.1.bias"]).chunk(2, -1)
            z = mean + (log_variance / 2).exp() * noise
            output = z @ weights["decoder.0.weight"].T + weights["decoder.0.bias"]
            kl = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(1).mean()
            total = -torch.distributions.Normal(output, 1.0).log_prob(x).sum(1).mean() + kl
            total = total + member.objective.gamma * discriminate(z).mean()
            separate = nn.functional.softplus(-discriminate(z.detach())).mean()
            separate = separate + nn.functional.softplus(discriminate(z.detach().gather(0, order))).mean()
            for optimizer, loss, names in ((first, total, model), (second, separate, adversary)):
                for name in names:
                    weights[name].grad = None
                for name, found in zip(
                    names, torch.autograd.grad(loss, [weights[n] for n in names], retain_graph=True), strict=True
                ):
                    weights[name].grad = found
                del optimizer
            first.step()
            second.step()
        for name, weight in weights.items():
            assert (trained.trained[position].weights[name] - weight).abs().max() < 1e-10, name


@dataclass(frozen=True)
class Contrastive:
    """As PCL: an encoder and a scorer, no decoder."""

    def networks(self, model):
        return Trainable({"encoder": model.modules()["encoder"], "scorer": nn.Linear(2 * model.latents, 1)})

    def draws(self, batch, latents):
        return {}

    def loss(self, networks, batch, draws, step):
        code = networks.encode(batch.x).mean
        near = networks["scorer"](torch.cat((code, code), -1))
        far = networks["scorer"](torch.cat((code, code.flip(0)), -1))
        return Terms(nn.functional.softplus(-near).mean() + nn.functional.softplus(far).mean(), {})


def test_a_model_without_a_decoder_trains_and_says_what_it_cannot_give():
    square = data.synth_linear(samples=200)
    trained = train(grid(model=models.linear(3, 2), objective=Contrastive(), steps=5, seed=range(2)), square)
    with pytest.raises(NotDefined, match=r"Expected a model with a decoder. Got one of Contrastive, which has none"):
        _ = trained[0].decoder
    rows = evaluate(trained, square, [scores.mig, geometry.dto])
    assert {row["measure"]: row["reason"] for row in rows} == {"mig": None, "dto": "the model has no decoder"}
    assert all(row["value"] is None for row in rows if row["measure"] == "dto")


@dataclass(frozen=True)
class WithJacobian:
    """As the deterministic ELBO: the loss contains the decoder's Jacobian at the codes."""

    weight: Hyperparameter = 0.1

    def networks(self, model):
        return Trainable(model.modules())

    def draws(self, batch, latents):
        return {}

    def loss(self, networks, batch, draws, step):
        q = networks.encode(batch.x)
        jacobians = vmap(jacfwd(lambda z: networks.decode(z[None])[0]))(q.mean)
        spread = (jacobians.square().sum(1) * q.variance).sum(-1).mean()
        error = (networks.decode(q.mean) - batch.x).square().sum(-1).mean()
        return Terms(error + self.weight * spread, {"spread": spread})


def test_jacobians_in_the_loss_are_differentiated():
    square = data.synth_linear(samples=200)
    members = grid(
        model=models.linear(3, 2),
        objective=[WithJacobian(0.1), WithJacobian(1.0)],
        steps=10,
        batch=8,
        optimizer=optimizers.Adam(lr=RATE),
    )
    trained = train(members, square, dtype=torch.float64)
    for position, member in enumerate(members):
        start = train([Member(member.model, member.objective, steps=0)], square, dtype=torch.float64).trained[0]
        weights = {name: tensor.clone().requires_grad_() for name, tensor in start.weights.items()}
        optimizer = torch.optim.Adam(weights.values(), lr=RATE)
        for step in range(10):
            x = square.x(integers(0, "index", step, (8,), 200)).double()
            mean, log_variance = (x @ weights["encoder.1.weight"].T + weights["encoder.1.bias"]).chunk(2, -1)
            W = weights["decoder.0.weight"]  # the Jacobian of a linear decoder
            error = (mean @ W.T + weights["decoder.0.bias"] - x).square().sum(1).mean()
            loss = error + member.objective.weight * (W.square().sum(0) * log_variance.exp()).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for name, weight in weights.items():
            assert (trained.trained[position].weights[name] - weight).abs().max() < 1e-10, name


@dataclass(frozen=True)
class Normalised:
    """A network with batch norm, as mathieu2019 Table 1c has."""

    latents: int = 2
    name: str = "normalised"

    @property
    def shape(self):
        return (3,)

    def build_encoder(self, outputs):
        return nn.Sequential(nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, outputs))

    def build_decoder(self, outputs):
        return nn.Linear(self.latents, 3 * outputs)


def test_buffers_are_part_of_the_state():
    square = data.synth_linear(samples=200)
    model = VAE(Normalised(), Diagonal(), StandardNormal(), Gaussian())
    member = Member(model, objectives.BetaVAE(0.5), steps=12, batch=16, optimizer=optimizers.Adam(lr=RATE))
    other = Member(model, objectives.BetaVAE(0.5), steps=12, batch=16, seed=1, optimizer=optimizers.Adam(lr=RATE))
    trained = train([member, other], square, dtype=torch.float64)
    plain = train([Member(model, objectives.BetaVAE(), steps=0)], square, dtype=torch.float64)[0]
    plain.requires_grad_().train()
    optimizer = torch.optim.Adam(plain.parameters(), lr=RATE)
    for step in range(12):
        x = square.x(integers(0, "index", step, (16,), 200)).double()
        q = plain.encode(x)
        z = q.sample(normal(0, "noise", step, (16, 2), dtype=torch.float64))
        kl = 0.5 * (q.mean**2 + q.variance - q.log_variance - 1).sum(1).mean()
        loss = -torch.distributions.Normal(plain.decode(z), 1.0).log_prob(x).sum(1).mean() + 0.5 * kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    for name, tensor in plain.encoder.state_dict().items():
        found = (trained.trained[0].weights | trained.trained[0].buffers)[f"encoder.{name}"]
        assert (found - tensor).abs().max() < 1e-10, name
    assert trained.trained[0].buffers["encoder.1.num_batches_tracked"] == 12
    x = square.x(torch.arange(50)).double()
    assert (trained.encode(x).mean[0] - plain.eval().encode(x).mean).abs().max() < 1e-10


def test_a_measure_may_compare_members():
    """As UDR: one call sees the codes of all members, and gives each its own number."""
    square = data.synth_linear(samples=200)
    trained = train(grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=3, seed=range(3)), square)
    shapes = []

    def likeness(codes):
        shapes.append(codes.shape)
        return torch.stack([torch.corrcoef(torch.stack([codes[i, :, 0], codes[0, :, 0]]))[0, 1] for i in range(3)])

    rows = evaluate(trained, square, [likeness], points=100)
    assert shapes == [torch.Size([3, 100, 2])]
    assert abs(rows[0]["value"] - 1.0) < 1e-6


def test_members_are_of_use_without_their_adversaries_which_only_training_needs(tmp_path):
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=Adversarial(1.0), steps=5, batch=8, seed=range(2))
    whole = train(members, square)

    def without(trained, *names):
        return replace(trained, weights={name: each for name, each in trained.weights.items() if name not in names})

    adversary = [name for name in whole.trained[0].weights if name.startswith("discriminator")]
    first, second = whole.trained
    small = Population([without(first, *adversary), second])
    small.save(tmp_path)
    whole.save(tmp_path)  # which changes nothing
    found = load(tmp_path, own=[Adversarial])
    assert [len(each.weights) for each in found.trained] == [len(first.weights) - len(adversary), len(first.weights)]
    x = square.x(torch.arange(4))
    assert torch.equal(found.encode(x).mean, whole.encode(x).mean)
    Population([without(first, adversary[0])]).save(tmp_path / "torn")
    with pytest.raises(AxiswiseError, match=rf"has '{adversary[0]}' of shape none"):
        load(tmp_path / "torn", own=[Adversarial])
