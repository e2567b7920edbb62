"""Studies of rolinek2019. Each begins with its command, what to expect, and what it costs.

The paper's loss is ‖x − x̂‖² + β·KL, without a half: a Gaussian likelihood of variance ½, so that β here is the paper's.
"""

from functools import partial

from axiswise.data import synth_linear, synth_nonlinear
from axiswise.distributions import Gaussian
from axiswise.evaluation import Run, Scale, kl, loss, reconstruction
from axiswise.geometry import dto, polarization
from axiswise.models import linear, mlp
from axiswise.numerics.optimizers import Adam
from axiswise.numerics.schedules import Cosine
from axiswise.objectives import BetaVAE
from axiswise.population import grid
from axiswise.scores import mig

SQUARED_ERROR = Gaussian(scale=0.5**0.5)
MEASURES = (mig, dto, polarization, loss, reconstruction, kl)
RATIOS = (1.0, 1.2, 1.5, 2.0)
BETAS = (1e-3, 1e-2, 1e-1, 1.0)


def table_s4(scale: Scale) -> list[Run]:
    """Linear VAEs align with the axes only where the data's variances differ (rolinek2019 Table S4, Figure S5).

    A unit square, one side stretched by a ratio, is rotated into three dimensions and given to linear β-VAEs with two
    latents. Published: DtO .49 ± .32, .20 ± .24 and .01 ± .06 at ratios 1.0, 1.2 and 1.5, and .00 at 2.0 (Table 2). At
    ratio 1.0 every rotation of the latents is equally good and each seed finds its own.

    Command: ``axiswise run rolinek2019.table_s4``. Cost: a minute and a half on two cores. At ``--scale paper`` (β =
    1e-4, Adam 1e-3, 600 epochs; the paper gives no batch size, 64 is ours) 375,000 steps for each ratio, hours.

    The default raises β to 1e-2, at which alignment takes ten thousand steps instead of hundreds of thousands.
    """
    beta, batch, steps, rate = {
        "smoke": (1e-2, 512, 100, 0.1),
        "default": (1e-2, 512, 10_000, 0.1),
        "paper": (1e-4, 64, 375_000, 1e-3),
    }[scale]
    members = grid(
        model=linear(3, 2, likelihood=SQUARED_ERROR),
        objective=BetaVAE(beta=beta),
        optimizer=Adam(lr=rate if scale == "paper" else Cosine(rate, 0.0, steps)),
        batch=batch,
        steps=steps,
        seed=range(2 if scale == "smoke" else 10),
    )
    return [
        Run(f"linear/ratio-{ratio}", partial(synth_linear, ratio=ratio), members, MEASURES, held_out=True)
        for ratio in RATIOS
    ]


def figure_s4(scale: Scale) -> list[Run]:
    """Too small a β does nothing, too large a β switches latents off (rolinek2019 Figure S4, right).

    Points of a square, bent into six dimensions by a random network, are given to β-VAEs with two latents. Published
    for β = 1e-3: DtO .18 ± .02 (Table 2). DtO falls as β grows, until latents are switched off; over a single active
    latent it is 0 by definition, so read it beside the number of active latents.

    Command: ``axiswise run rolinek2019.figure_s4``. Cost: half a minute on two cores. At ``--scale paper`` (Adam 1e-3,
    600 epochs; batch size 64 is ours) 375,000 steps, about an hour.
    """
    steps = {"smoke": 100, "default": 6_000, "paper": 375_000}[scale]
    members = grid(
        model=mlp(6, 2, encoder=(60, 40, 20), decoder=(60, 40, 20), likelihood=SQUARED_ERROR),
        objective=[BetaVAE(beta=beta) for beta in BETAS],
        optimizer=Adam(lr=1e-3 if scale == "paper" else Cosine(3e-3, 0.0, steps)),
        batch=64,
        steps=steps,
        seed=range({"smoke": 2, "default": 5, "paper": 10}[scale]),
    )
    return [Run("non-linear/beta", synth_nonlinear, members, MEASURES, held_out=True)]
