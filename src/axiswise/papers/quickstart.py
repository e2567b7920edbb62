"""The study that a newcomer runs first."""

from dataclasses import replace

from torch import nn

from axiswise.data import FactorDataset, downsampled, dsprites, materialized, subset
from axiswise.distributions import Bernoulli
from axiswise.evaluation import Run, Scale
from axiswise.models import mlp
from axiswise.numerics.optimizers import Adam
from axiswise.numerics.schedules import Cosine
from axiswise.objectives import BetaVAE
from axiswise.papers.rolinek2019 import studies as rolinek2019
from axiswise.population import grid

HEART, UPRIGHT, MIDDLE = 2, 0, tuple(range(8, 24))
BETAS = (2.0, 8.0)


def hearts() -> FactorDataset:
    """The hearts of dSprites, upright, in the middle half of the height, at 32 × 32 pixels.

    Six sizes at 32 × 16 places, 3,072 images of three factors. The heart moves twice as far sideways as up and down:
    over the full square both directions would vary equally, and no rotation of them would be better than another.
    """
    return materialized(downsampled(subset(dsprites(), shape=HEART, orientation=UPRIGHT, posY=MIDDLE), 2))


def quickstart(scale: Scale) -> list[Run]:
    """What do the latent axes of a VAE find?

    Three small populations. Linear VAEs on a stretched square align their axes with it, but only where its two sides
    differ in length. Non-linear VAEs on a bent square do so more the larger β is, until latents are switched off. And
    VAEs on pictures of a heart use a latent each for its two positions and its size when β is large; the traversals
    show how well.

    Command: ``axiswise run quickstart``. Cost: under five minutes on two cores.
    """
    bent = [run for run in rolinek2019.figure_s4(scale) if run.name.startswith("non-linear/")]
    return [*_fewer(rolinek2019.table_s4(scale), 10), *_fewer(bent, 5), _sprites(scale)]


def _fewer(runs: list[Run], seeds: int) -> list[Run]:
    """The runs with the members of the first seeds alone: the papers' tables want more than a newcomer does."""
    return [replace(run, members=[member for member in run.members if member.seed < seeds]) for run in runs]


def _sprites(scale: Scale) -> Run:
    steps = {"smoke": 100, "default": 4_000, "paper": 50_000}[scale]
    members = grid(
        model=mlp((1, 32, 32), 5, encoder=(128, 128), decoder=(128, 128), activation=nn.ReLU, likelihood=Bernoulli()),
        objective=[BetaVAE(beta=beta) for beta in BETAS],
        optimizer=Adam(lr=Cosine(2e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(1 if scale == "smoke" else 3),
    )
    return Run("sprites/hearts", hearts, members, rolinek2019.MEASURES)
