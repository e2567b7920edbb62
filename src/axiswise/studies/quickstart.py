"""The study to run first."""

from dataclasses import replace
from functools import partial
from typing import Literal

from torch import nn

from axiswise._arguments import checked
from axiswise.data import FactorDataset, small_sprites, synth_linear, synth_nonlinear
from axiswise.distributions import Bernoulli, Gaussian
from axiswise.evaluation import kl, loss, reconstruction
from axiswise.geometry import dto, polarization
from axiswise.models import linear, mlp
from axiswise.objectives import BetaVAE
from axiswise.optimizers import Adam
from axiswise.population import grid
from axiswise.schedules import Cosine
from axiswise.scores import disentanglement, mig
from axiswise.studies.study import Run, Scale

SQUARED_ERROR = Gaussian(scale=0.5**0.5)  # −log p(x | z) is ‖x − x̂‖², up to a constant
MEASURES = (mig, disentanglement, dto, polarization, loss, reconstruction, kl)
RATIOS = (1.0, 1.2, 1.5, 2.0)
BENT_BETAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
DISC_BETAS = (0.01, 0.1, 0.5, 1.0)

Bend = Literal["along the axes", "askew"]
EMBEDDINGS: dict[Bend, int] = {"along the axes": 27, "askew": 0}
"""Seeds of the networks that bend the square: of sixty the one whose principal directions are nearest to the axes, and
the first, whose are not near."""


def bent_square(bend: Bend) -> FactorDataset:
    """The bent square of Rolinek et al. (2019), by one of two random networks.

    What a VAE can find in a surface is where it is stretched most and least: its local principal directions. Those of
    the first network are 4° from the square's axes on average (a DtO of 0.11, taken of the network's own Jacobians),
    those of the second 31° (0.75; directions at random have 0.55). The networks were chosen by this alone.

    Arguments:
        bend: Which of the two.

    Example:
        >>> bent_square("askew").arguments
        {'samples': 50000, 'seed': 0, 'bend': 'askew'}
    """
    dataset = synth_nonlinear(seed=EMBEDDINGS[bend])
    return replace(dataset, arguments={**dataset.arguments, "bend": bend})


def discs() -> FactorDataset:
    """Soft discs that move across, half as far down, and grow; were both ways equal, so would be their rotations."""
    return small_sprites(travel=(8.0, 4.0))


@checked
def quickstart(scale: Scale) -> list[Run]:
    """What do the latent axes of a VAE find?

    Its principal directions: those in which the data varies most and least. The KL term of the loss, which β weighs,
    prefers them to rotated ones. Where the factors that made the data lie along these directions, each gets a latent of
    its own. Three small populations of VAEs, eight or ten seeds of each setting, show how far this goes. Linear VAEs on
    a stretched square find its axes where its sides differ enough in length: at ratios of 1.5 and 2, at 1.2 not always.
    Non-linear VAEs on a bent square come nearest to its local principal directions at β = 0.1, which disentangles where
    the square is bent along its axes, and does not where it is bent askew; at β = 1 one latent is left. And of VAEs on
    pictures of a disc, five of eight use a latent each for its place across, its place down and its size at β = 0.5.
    With a smaller β all of them mix some of these; with β = 1 most have a latent less than there are factors.

    Command: ``axiswise run quickstart``. Cost: one to three minutes on two cores.

    Settings were chosen with seeds from 100 on; the page shows those from 0.

    Example:
        >>> sum(len(run.members) for run in quickstart("default"))
        152
    """
    return [*_stretched(scale), *_bent(scale), _discs(scale)]


def _stretched(scale: Scale) -> list[Run]:
    """Linear VAEs on a square whose sides have a ratio, a run for each ratio."""
    steps = {"smoke": 100, "default": 10_000, "paper": 100_000}[scale]
    members = grid(
        model=linear(3, 2, likelihood=SQUARED_ERROR),
        objective=BetaVAE(beta=1e-2),
        optimizer=Adam(lr=Cosine(0.1, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(2 if scale == "smoke" else 10),
    )
    return [
        Run(f"linear/ratio-{ratio}", partial(synth_linear, ratio=ratio), members, MEASURES, held_out=True)
        for ratio in RATIOS
    ]


def _bent(scale: Scale) -> list[Run]:
    """Non-linear VAEs on the two bent squares, over four orders of magnitude of β."""
    steps = {"smoke": 100, "default": 5_000, "paper": 50_000}[scale]
    betas = BENT_BETAS[::2] if scale == "smoke" else BENT_BETAS
    members = grid(
        model=mlp(6, 2, likelihood=SQUARED_ERROR),
        objective=[BetaVAE(beta=beta) for beta in betas],
        optimizer=Adam(lr=Cosine(3e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(2 if scale == "smoke" else 8),
    )
    return [
        Run(f"bent/{bend.replace(' ', '-')}", partial(bent_square, bend), members, MEASURES, held_out=True)
        for bend in EMBEDDINGS
    ]


def _discs(scale: Scale) -> Run:
    """Small networks on pictures of a disc: five latents for three factors."""
    steps = {"smoke": 100, "default": 2_500, "paper": 25_000}[scale]
    members = grid(
        model=mlp((1, 16, 16), 5, encoder=(64, 64), decoder=(64, 64), activation=nn.Tanh, likelihood=Bernoulli()),
        objective=[BetaVAE(beta=beta) for beta in (DISC_BETAS[1:3] if scale == "smoke" else DISC_BETAS)],
        optimizer=Adam(lr=Cosine(3e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(1 if scale == "smoke" else 8),
    )
    return Run("discs/beta", discs, members, MEASURES)
