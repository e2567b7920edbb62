"""Law 1 over the whole catalogue: every objective with every posterior and prior it takes, against a plain loop.

A combination trains in a cohort of members that differ in seed and hyperparameters, alone, and in a plain PyTorch loop:
ordinary modules, `torch.optim`, no vectorisation, no tracing, the same draws. What each loss should be is tested in
tests/objectives; here it is that a population trains it as a plain loop does.
"""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from torch.func import jvp

from axiswise import data, models, optimizers, train
from axiswise.distributions import (
    Anisotropic,
    DecodedGaussian,
    Deterministic,
    Diagonal,
    Full,
    Gaussian,
    Laplace,
    LearnedGaussian,
    Mixture,
    OptimalGaussian,
    Posterior,
    Prior,
    Sparse,
    StandardNormal,
    StudentT,
)
from axiswise.distributions.estimators import MMD, ExclusiveKL, InclusiveKL, MomentMatching
from axiswise.models import Networks
from axiswise.numerics import integers, normal, uniform
from axiswise.objectives import (
    DIPVAE,
    PCL,
    AnnealedVAE,
    Autoencoder,
    Batch,
    BetaTCVAE,
    BetaVAE,
    Decomposed,
    DeterministicELBO,
    EntropyRegularised,
    FactorVAE,
    Objective,
    SlowVAE,
)
from axiswise.objectives.objective import needs_of
from axiswise.population import Member

STEPS, BATCH, RATE = 50, 6, 1e-3
# Far above rounding, so that gradients that are pure rounding (a bias before batch norm) make no steps.
EPS = 1e-4
PRIORS: dict[str, Prior] = {
    "standard": StandardNormal(),
    "anisotropic": Anisotropic((1.0, 0.0)),
    "learned": Anisotropic((1.0, 0.0), learned=True),
    "student": StudentT(5.0),
    "mixture": Mixture(((0.0, 0.0), (1.0, 0.0), (0.0, 1.0)), 0.3),
    "sparse": Sparse(0.5, 0.2),
}
POSTERIORS: dict[str, Posterior] = {"diagonal": Diagonal(), "full": Full()}

# Two of each kind, which differ in hyperparameters alone: they share a cohort.
ANY_POSTERIOR: dict[str, tuple[Objective, Objective]] = {
    "beta": (BetaVAE(0.5), BetaVAE(4.0)),
    "entropy": (EntropyRegularised(0.5), EntropyRegularised(2.0)),
    "annealed": (AnnealedVAE(10.0, 2.0, 20), AnnealedVAE(3.0, 5.0, 40)),
    "dip-i": (DIPVAE(1.0, 2.0), DIPVAE(3.0, 1.0)),
    "dip-ii": (DIPVAE(1.0, 2.0, variant="II"), DIPVAE(3.0, 1.0, variant="II")),
    "inclusive": tuple(Decomposed(alpha, 0.5, InclusiveKL(second=5)) for alpha in (0.0, 2.0)),
    "exclusive": tuple(Decomposed(alpha, 0.5, ExclusiveKL()) for alpha in (0.5, 2.0)),
    "mmd": tuple(Decomposed(alpha, 0.5, MMD()) for alpha in (0.5, 2.0)),
    "moments": tuple(Decomposed(alpha, 0.5, MomentMatching()) for alpha in (0.5, 2.0)),
}
DIAGONAL: dict[str, tuple[Objective, Objective]] = {
    "tc": (BetaTCVAE(2.0), BetaTCVAE(6.0)),
    "tc-stratified": (BetaTCVAE(2.0, stratified=True), BetaTCVAE(6.0, stratified=True)),
    "slow": (SlowVAE(1.0, 2.0, 6.0), SlowVAE(2.0, 5.0, 3.0)),
}
DETERMINISTIC_ELBO: dict[str, tuple[Objective, Objective]] = {
    "elbo-gn": (DeterministicELBO(0.5), DeterministicELBO(2.0)),
    "elbo-full": (DeterministicELBO(0.5, "full"), DeterministicELBO(2.0, "full")),
}


class Combination(NamedTuple):
    """Two objectives of one kind and the parts of the model they train."""

    objectives: tuple[Objective, Objective]
    parts: dict[str, Any]


def catalogue() -> dict[str, Combination]:
    """Every combination that makes sense, by name."""
    found = {}
    for kind, pair in ANY_POSTERIOR.items():
        for posterior in POSTERIORS:
            for prior in PRIORS:
                parts = {"posterior": POSTERIORS[posterior], "prior": PRIORS[prior]}
                found[f"{kind}, {posterior}, {prior}"] = Combination(pair, parts)
    for kind, pair in DIAGONAL.items():
        for prior in PRIORS:
            found[f"{kind}, {prior}"] = Combination(pair, {"prior": PRIORS[prior]})
    for kind, pair in DETERMINISTIC_ELBO.items():
        for posterior in POSTERIORS:
            for prior in ("standard", "anisotropic", "learned"):
                parts = {"posterior": POSTERIORS[posterior], "prior": PRIORS[prior]}
                found[f"{kind}, {posterior}, {prior}"] = Combination(pair, parts)
    factor = (FactorVAE(2.0), FactorVAE(20.0))  # its discriminator has five million weights: fewer combinations
    found["factor, diagonal, standard"] = Combination(factor, {})
    found["factor, full, mixture"] = Combination(factor, {"posterior": Full(), "prior": PRIORS["mixture"]})
    for kind, objective in (("autoencoder", Autoencoder()), ("pcl", PCL())):
        found[kind] = Combination((objective, objective), {"posterior": Deterministic()})
    for likelihood in (LearnedGaussian(0.5), OptimalGaussian(), DecodedGaussian(), Laplace(0.5), Gaussian(0.3)):
        found[f"beta, {type(likelihood).__name__}"] = Combination(ANY_POSTERIOR["beta"], {"likelihood": likelihood})
    return found


COMBINATIONS = catalogue()


def square() -> data.FactorDataset:
    """A grid of forty points with three factors, on a plane in three dimensions, with transitions."""
    levels = torch.cartesian_prod(torch.arange(5), torch.arange(4), torch.arange(2))
    x = torch.stack((levels[:, 0] / 4.0, levels[:, 1] / 3.0, levels.sum(1) / 8.0), 1) + 0.1 * levels[:, 2:]
    return data.transitions(data.arrays(x, levels, names=["across", "up", "side"]))


def plain_loop(member: Member, dataset: data.FactorDataset) -> dict[str, torch.Tensor]:
    """The member in plain PyTorch, from the same initial weights and draws."""
    objective, model, seed = member.objective, member.model, member.seed
    initial = train([replace(member, steps=0)], dataset, dtype=torch.float64).trained[0]
    trainable, needs = objective.networks(model), needs_of(objective)
    modules = {name: module.double() for name, module in {**trainable.model, **trainable.adversary}.items()}
    stored = {**initial.weights, **initial.buffers}
    for name, module in modules.items():
        module.load_state_dict({key: stored[f"{name}.{key}"].clone() for key in module.state_dict()})
    groups = [
        [p for name in group for p in modules[name].parameters()] for group in (trainable.model, trainable.adversary)
    ]
    optimizers_ = [torch.optim.Adam(groups[0], lr=RATE, eps=EPS)]
    if trainable.adversary:
        optimizers_.append(torch.optim.Adam(groups[1], lr=1e-4, betas=(0.5, 0.9)))
    for step in range(member.steps):
        index = integers(seed, "index", step, (BATCH,), len(dataset))
        others = {}
        if needs.pairs:
            count = dataset.transition.draws(dataset.space)
            others["pair"] = dataset.successors(index, uniform(seed, "pair", step, (BATCH, count), dtype=torch.float64))
        if needs.second:
            others["second"] = integers(seed, "second", step, (needs.second,), len(dataset))
        others = {name: dataset.x(rows).double() for name, rows in others.items()}
        draws = {
            name: (uniform if draw.uniform else normal)(seed, name, step, draw.shape, dtype=torch.float64)
            for name, draw in objective.draws(BATCH, model.latents).items()
        }
        batch = Batch(dataset.x(index).double(), index, len(dataset), **others)
        terms = objective.loss(Networks(model, modules), batch, draws, torch.tensor(float(step), dtype=torch.float64))
        losses = [terms.total, terms.adversary][: len(optimizers_)]
        gradients = [
            torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            for loss, parameters in zip(losses, groups, strict=False)
        ]
        for optimizer, parameters, found in zip(optimizers_, groups, gradients, strict=False):
            for parameter, gradient in zip(parameters, found, strict=True):
                parameter.grad = torch.zeros_like(parameter) if gradient is None else gradient
            optimizer.step()
    return {f"{name}.{key}": tensor for name, module in modules.items() for key, tensor in module.state_dict().items()}


def assert_close(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        scale = tensor.double().abs().max().clamp_min(RATE)  # one step of the optimizer
        assert ((found[name] - tensor).abs().max() / scale).item() < 1e-10, name


@pytest.mark.parametrize("name", COMBINATIONS)
def test_members_are_independent(name):
    """Together, alone and in a plain loop, to 1e-10 in float64 after fifty steps."""
    dataset, (pair, parts) = square(), COMBINATIONS[name]
    steps = 10 if name.startswith("factor") else STEPS
    model = models.linear(3, 2, **parts)
    members = [
        Member(
            model, objective, steps, batch=BATCH, seed=seed, optimizer=optimizers.Adam(lr=RATE, eps=EPS), history=steps
        )
        for objective, seed in ((pair[0], 3), (pair[1], 11))
    ]
    together = train(members, dataset, dtype=torch.float64)
    assert [trained.status for trained in together.trained] == ["trained", "trained"]
    alone = train(members[1:], dataset, dtype=torch.float64).trained[0]
    for trained, expected in (
        (together.trained[0], plain_loop(members[0], dataset)),
        (together.trained[1], {**alone.weights, **alone.buffers}),
    ):
        assert_close({**trained.weights, **trained.buffers}, expected)


class Attending(nn.Module):
    """A decoder whose code becomes two tokens that attend to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.pixels = nn.Linear(2, 8), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(4, nhead=2, dim_feedforward=8, dropout=0.0, batch_first=True)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return self.pixels(self.layer(self.tokens(z).unflatten(-1, (2, 4))).flatten(-2))


def normalising(norm: nn.Module, *shape: int) -> nn.Module:
    """A decoder with a norm of eight hidden units in that shape."""
    hidden = [nn.Linear(2, 8), nn.Unflatten(1, shape), norm, nn.Tanh(), nn.Flatten(1)]
    return nn.Sequential(*hidden, nn.Linear(8, 3))


DECODERS = {
    "attention": Attending,
    "layer norm": lambda: normalising(nn.LayerNorm(8), 8),
    "group norm": lambda: normalising(nn.GroupNorm(2, 8), 8),
    "instance norm": lambda: normalising(nn.InstanceNorm1d(2, affine=True), 2, 4),
}
SECOND_DERIVATIVES = [
    pytest.param(name, hessian, marks=pytest.mark.slow if hessian == "full" else ())
    for name in DECODERS
    for hessian in ("gauss-newton", "full")
]


@pytest.mark.parametrize(("name", "hessian"), SECOND_DERIVATIVES)
def test_members_are_independent_where_decoders_are_differentiated_twice(name, hessian):
    """Norms and attention, of which PyTorch's own second derivatives differ between stacked and plain networks."""
    model = models.custom(lambda: (nn.Linear(3, 4), DECODERS[name]()), inputs=3, latents=2)
    adam = optimizers.Adam(lr=RATE, eps=EPS)
    members = [
        Member(model, DeterministicELBO(beta, hessian), 20, batch=BATCH, seed=seed, optimizer=adam, history=20)
        for beta, seed in ((0.5, 3), (2.0, 11))
    ]
    together = train(members, square(), dtype=torch.float64)
    for member, trained in zip(members, together.trained, strict=True):
        assert_close(trained.weights, plain_loop(member, square()))


class NormByHand(nn.LayerNorm):
    """A layer norm by its formula, of which PyTorch has no derivative of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + self.eps).sqrt() * self.weight + self.bias


@dataclass(frozen=True)
class Smooth(BetaVAE):
    """A user's objective, which differentiates the decoder in forward mode, and asks nothing of its norms."""

    def loss(self, networks, batch, draws, step):
        terms, mean = super().loss(networks, batch, draws, step), networks.encode(batch.x).mean
        slope = jvp(networks.decode, (mean,), (torch.ones_like(mean),))[1]
        return terms._replace(total=terms.total + slope.square().mean())


def test_members_are_independent_where_an_objective_differentiates_by_itself():
    """Together and alone, against a plain loop with a norm that was written by hand."""
    own = models.custom(lambda: (nn.Linear(3, 4), normalising(nn.LayerNorm(8), 8)), inputs=3, latents=2)
    by_hand = models.custom(lambda: (nn.Linear(3, 4), normalising(NormByHand(8), 8)), inputs=3, latents=2)
    adam = optimizers.Adam(lr=RATE, eps=EPS)
    members = [Member(own, Smooth(), 5, batch=BATCH, seed=seed, optimizer=adam, history=5) for seed in (3, 11)]
    together = train(members, square(), dtype=torch.float64)
    alone = train(members[:1], square(), dtype=torch.float64)
    expected = [plain_loop(replace(member, model=by_hand), square()) for member in members]
    for found, wanted in zip((*together.trained, *alone.trained), (*expected, expected[0]), strict=True):
        assert_close(found.weights, wanted)
