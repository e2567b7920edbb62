"""The study that trains every objective of the catalogue on the same images."""

from axiswise._arguments import checked
from axiswise.data import FactorDataset, dsprites, transitions
from axiswise.distributions import Deterministic, Diagonal, Full
from axiswise.distributions.estimators import MMD
from axiswise.evaluation import kl, loss, reconstruction
from axiswise.geometry import dto, elbo
from axiswise.models import conv64
from axiswise.objectives import (
    DIPVAE,
    PCL,
    AnnealedVAE,
    Autoencoder,
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
from axiswise.optimizers import Adam
from axiswise.population import grid
from axiswise.scores import active_units, dci, factor_vae, mig
from axiswise.studies.study import Run, Scale

STEPS = {"smoke": 2, "default": 5_000, "paper": 300_000}
MEASURES = (mig, dto, loss, reconstruction, kl)
POSTERIORS = {
    "autoencoder": Deterministic(),
    "pcl": Deterministic(),
    "beta-vae-full-covariance": Full(),
}  # of others Diagonal


def successive_sprites() -> FactorDataset:
    """The sprites with Laplace transitions, for objectives that train on pairs."""
    return transitions(dsprites(), "laplace")


def catalogue(steps: int) -> dict[str, Objective]:
    """Every objective by name, at weights that studies of it have used on dSprites; the capacity rises to half-time."""
    return {
        "autoencoder": Autoencoder(),
        "beta-vae": BetaVAE(4.0),
        "beta-vae-full-covariance": BetaVAE(4.0),
        "entropy-regularised": EntropyRegularised(4.0),
        "annealed-vae": AnnealedVAE(gamma=100.0, capacity=25.0, until=max(1, steps // 2)),
        "factor-vae": FactorVAE(35.0),
        "beta-tcvae": BetaTCVAE(6.0),
        "dip-vae-i": DIPVAE(10.0, 100.0, "I"),
        "dip-vae-ii": DIPVAE(10.0, 10.0, "II"),
        "decomposed-mmd": Decomposed(alpha=100.0, beta=1.0, divergence=MMD(constant=20.0)),
        "deterministic-elbo": DeterministicELBO(4.0),
        "slow-vae": SlowVAE(1.0, 10.0, 6.0),
        "pcl": PCL(),
    }


@checked
def objectives(scale: Scale) -> list[Run]:
    """Does every objective train?

    Ten convolutional models of each objective on dSprites, a section each: the terms of the loss while training, what
    the models reconstruct and what their latents do. Five thousand steps show that losses fall and nothing diverges;
    they are too few to compare how well objectives disentangle.

    Command: ``axiswise run objectives --device cuda``; ``benchmarks/study_on_gpu.py`` trains several runs at a
    time, in about eleven minutes on one H200. On a CPU it takes days.

    Batches of 32 (the reference study has 64) keep it short; the learning rate is the reference study's 1e-4.

    Example:
        >>> len(objectives("smoke")), objectives("smoke")[0].name
        (13, 'autoencoder/sprites')
    """
    steps = STEPS[scale]
    runs = []
    for name, objective in catalogue(steps).items():
        members = grid(
            model=conv64(latents=10, posterior=POSTERIORS.get(name, Diagonal())),
            objective=objective,
            optimizer=Adam(lr=1e-4),
            steps=steps,
            batch=32,
            seed=range(1 if scale == "smoke" else 10),
        )
        made = successive_sprites if needs_of(objective).pairs else dsprites
        runs.append(Run(f"{name}/sprites", made, members, MEASURES))
    return runs


COMPARED = ("autoencoder", "beta-vae", "annealed-vae", "factor-vae", "beta-tcvae", "dip-vae-ii")
COMPARISON_STEPS = {"smoke": 2, "default": 30_000, "paper": 300_000}


@checked
def comparison(scale: Scale) -> list[Run]:
    """How well do six objectives disentangle dSprites?

    Ten convolutional models of each of six objectives, batch 64: scores that need the factors, how orthogonal the
    decoders are, and how well the data is modelled, with intervals over seeds. The reference study trains for 300,000
    steps. After a tenth of them all losses but that of AnnealedVAE still fall, and scores may still change.

    Command: ``axiswise run comparison --device cuda``. Cost: about ten minutes on one H200 with
    ``benchmarks/study_on_gpu.py``, which trains several runs at a time.

    Weights are those of the study `objectives`; the learning rate is the reference study's 1e-4.

    Example:
        >>> len(comparison("smoke")), comparison("smoke")[0].name
        (6, 'sprites/autoencoder')
    """
    steps = COMPARISON_STEPS[scale]
    runs = []
    for name, objective in catalogue(steps).items():
        if name in COMPARED:
            posterior = POSTERIORS.get(name, Diagonal())
            members = grid(
                model=conv64(latents=10, posterior=posterior),
                objective=objective,
                optimizer=Adam(lr=1e-4),
                steps=steps,
                batch=64,
                seed=range(1 if scale == "smoke" else 10),
            )
            measures = (mig, dci, factor_vae, dto, elbo, active_units, loss, reconstruction, kl)
            runs.append(Run(f"sprites/{name}", dsprites, members, measures))
    return runs
