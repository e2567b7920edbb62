"""The study to run first."""

from functools import partial

from torch import nn

from axiswise.data import FactorDataset, downsampled, dsprites, materialized, subset, synth_linear, synth_nonlinear
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

HEART, UPRIGHT, MIDDLE = 2, 0, tuple(range(8, 24))
SQUARED_ERROR = Gaussian(scale=0.5**0.5)  # −log p(x | z) is ‖x − x̂‖², up to a constant
MEASURES = (mig, disentanglement, dto, polarization, loss, reconstruction, kl)
RATIOS = (1.0, 1.2, 1.5, 2.0)
BENT_BETAS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
HEART_BETAS = (2.0, 8.0)


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
    return [*_stretched(scale), _bent(scale), _hearts(scale)]


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


def _bent(scale: Scale) -> Run:
    """Non-linear VAEs on a bent square, over five orders of magnitude of β."""
    steps = {"smoke": 100, "default": 5_000, "paper": 50_000}[scale]
    betas = BENT_BETAS[::2] if scale == "smoke" else BENT_BETAS
    members = grid(
        model=mlp(6, 2, likelihood=SQUARED_ERROR),
        objective=[BetaVAE(beta=beta) for beta in betas],
        optimizer=Adam(lr=Cosine(3e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(2 if scale == "smoke" else 5),
    )
    return Run("non-linear/beta", synth_nonlinear, members, MEASURES, held_out=True)


def _hearts(scale: Scale) -> Run:
    """Small networks on pictures of a heart, at two values of β."""
    steps = {"smoke": 100, "default": 4_000, "paper": 50_000}[scale]
    members = grid(
        model=mlp((1, 32, 32), 5, encoder=(128, 128), decoder=(128, 128), activation=nn.ReLU, likelihood=Bernoulli()),
        objective=[BetaVAE(beta=beta) for beta in HEART_BETAS],
        optimizer=Adam(lr=Cosine(2e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range(1 if scale == "smoke" else 3),
    )
    return Run("sprites/hearts", hearts, members, MEASURES)
