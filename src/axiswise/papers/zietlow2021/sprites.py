"""The attack on dSprites: who is attacked, and what the change is judged by.

The learned change lies beside this file. It was learned by ``benchmarks/attack_on_gpu.py``.
"""

from importlib.resources import as_file, files

from axiswise.attack import judgement, load_change
from axiswise.data import Change, dsprites
from axiswise.distributions import Deterministic, Diagonal
from axiswise.evaluation import Run, Scale, kl, loss, reconstruction
from axiswise.models import conv64
from axiswise.numerics.optimizers import Adam
from axiswise.objectives import PCL, Autoencoder, BetaTCVAE, BetaVAE, FactorVAE, Objective, SlowVAE
from axiswise.population import Member, grid
from axiswise.scores import active_units, dci, factor_vae, mig, sap

EPSILON = 0.1
FACTORS = 5
CHANGE = "dsprites_change.safetensors"
STEPS = {"smoke": 2, "default": 50_000, "paper": 300_000}
OBJECTIVES: dict[str, Objective] = {
    "beta-vae": BetaVAE(8.0),
    "factor-vae": FactorVAE(35.0),
    "beta-tcvae": BetaTCVAE(6.0),
    "slow-vae": SlowVAE(1.0),
    "pcl": PCL(),
    "autoencoder": Autoencoder(),
}
MEASURES = (mig, dci, factor_vae, sap, active_units, loss, reconstruction, kl)


def members(objective: Objective, steps: int, seeds: int = 10) -> list[Member]:
    """Restarts of one objective with a latent for each factor, as the paper trains them."""
    posterior = Deterministic() if isinstance(objective, Autoencoder | PCL) else Diagonal()
    model = conv64(latents=FACTORS, posterior=posterior)
    return grid(model=model, objective=objective, optimizer=Adam(lr=1e-4), steps=steps, batch=64, seed=range(seeds))


def to_choose_from(steps: int, seeds: int = 10) -> list[Member]:
    """The β-VAEs that the attack chooses from: those of Table 1, and as many with half their β, which prune less."""
    return [member for beta in (8.0, 4.0) for member in members(BetaVAE(beta), steps, seeds)]


def dsprites_change() -> Change:
    """The change that was learned for dSprites."""
    with as_file(files("axiswise.papers.zietlow2021").joinpath(CHANGE)) as path:
        return load_change(path)


def table_1(scale: Scale) -> list[Run]:
    """A small change of dSprites makes VAEs entangle it (zietlow2021 Table 1, and Tables 3 to 5).

    Six objectives on the original images, on images changed by at most 0.1 as a function of their factors, and on
    images with uniform noise of the same size. Published MIG of β-VAEs: .23 ± .08, .07 ± .09 on changed images, .14 ±
    .07 on noisy ones; PCL, which has no decoder, does not drop.

    Command: ``axiswise run zietlow2021.table_1 --device cuda``. Cost: 180 members of 50,000 steps, half an hour on one
    H200; ``--scale paper``, with 300,000 steps, six times that.

    SlowVAE and PCL train on Laplace transitions (`data.transitions`). The paper gives neither the number of steps nor
    the transitions; batches of 64 and a rate of 1e-4 are those of the reference study.
    """
    steps, seeds = STEPS[scale], 2 if scale == "smoke" else 10
    arms = {name: members(objective, steps, seeds) for name, objective in OBJECTIVES.items()}
    return judgement(dsprites, dsprites_change, arms, epsilon=EPSILON, measures=MEASURES)
