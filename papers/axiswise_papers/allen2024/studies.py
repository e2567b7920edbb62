"""Studies of allen2024. Each docstring gives what to expect, the command, and the cost.

The paper trains nothing and prints no numbers of its own; Figure 2 is taken from Rezende and Viola (2018). The studies
train the models of its theorems. Data, networks and schedules are ours.
"""

import math
from functools import partial

import torch

from axiswise.analytic import Rotated, Separable
from axiswise.data import Factor, FactorDataset, FactorSpace, arrays, circles, linear_gaussian, stored, synth_nonlinear
from axiswise.distributions import Diagonal, Full, Gaussian, Posterior
from axiswise.geometry import deterministic_elbo, encoder_law
from axiswise.models import VAE, mlp
from axiswise.models import linear as linear_model
from axiswise.numerics import normal
from axiswise.objectives import BetaVAE, DeterministicELBO, Objective
from axiswise.optimizers import SGD, Adam, Optimizer
from axiswise.population import Member, grid
from axiswise.schedules import Cosine
from axiswise.shapes import Float, Tensor
from axiswise.studies import Run, Scale, Study
from axiswise_papers.allen2024.measures import (
    active_units,
    outputs,
    principal,
    reconstructions,
    recovery,
    rotation,
    side_by_side,
    slopes,
    turned_recovery,
)

OBSERVED, LINEAR_LATENTS = 6, 3
SPECTRA = {"distinct": (3.0, 2.0, 1.2), "equal": (2.0, 2.0, 2.0)}  # singular values of the mixing
LINEAR_NOISE = 0.5  # variance, of data and model
COLLAPSE_VALUES = (0.8, 0.5, 0.25)  # eigenvalues of the covariance, all below the model's noise of 1
COLLAPSE_REST = 0.05
COLLAPSE_BETAS = (0.1, 0.35, 0.65, 1.0)  # 3, 2, 1 and 0 eigenvalues above β
ALONE_BETAS = (0.25, 0.5, 0.75, 1.0, 1.5)
BENT_SCALES, BENT_BENDS = (1.5, 0.7), (0.2, 0.2)
BENT_NOISES = (0.4, 0.2, 0.1)  # standard deviations of data and model
FIGURE_2_BETAS = (0.55, 2.2, 3.8, 12.0, 60.0)  # 12 is ours: between the thresholds 4.5 and 54.5 of `circles`
RADII = {"circles": 3.0, "small-circles": 2.25}  # of the small circles, by run
THEOREM_3_BETA, THEOREM_3_SCALE = 3.0, 0.5
PLATEAUS = {"few": (6, "ReLU"), "many": (60, "ReLU"), "smooth": (6, "Tanh")}  # points, and the networks' activation
PLATEAU_SCALE = 0.2
LINEAR_MEASURES = (principal, recovery, side_by_side, encoder_law)
BENT_MEASURES = (turned_recovery, side_by_side, encoder_law, partial(deterministic_elbo, draws=50))


def linear(scale: Scale) -> list[Run]:
    """Linear VAEs find principal directions, and lose them to noise (allen2024 eq 4, corollaries 1.1 and 3.1).

    Six values are mixed from three normal sources by W = USVᵀ under noise that the model knows. Expected: with distinct
    singular values the decoder's columns are ± s_i u_i and the latents Vᵀz, whatever V is, and z itself only if V is
    the identity; with equal ones, or with a posterior of full covariance, neither. Where the model's noise exceeds
    every eigenvalue of the data, latents collapse at β = 1, and come back for β < 1, as many as have an eigenvalue
    above βσ². Where data are the model's noise, a decoder can model them alone, without latents; so it does at β = 1,
    and at β < 1 an MLP uses them all. The paper prints no numbers.

    Command: ``axiswise run allen2024.linear``. Cost: two minutes on two cores.
    """
    steps, fewer = {"smoke": (60, 60), "default": (5000, 3000), "paper": (50_000, 30_000)}[scale]
    runs = [
        Run(
            f"linear/{name}",
            dataset,
            # Some two in ten get stuck: of forty, thirteen may before the interval of their median shows it.
            _trained(model, BetaVAE(1.0), steps, scale, batch=128, rate=2e-2, seeds=4 * _seeds(scale)),
            measures,
        )
        for name, dataset, model, measures in (
            ("distinct", partial(mixed, "distinct"), _linear_vae(), LINEAR_MEASURES),
            ("untwisted", partial(mixed, "distinct", twisted=False), _linear_vae(), LINEAR_MEASURES),
            ("equal", partial(mixed, "equal"), _linear_vae(), LINEAR_MEASURES),
            ("full", partial(mixed, "distinct"), _linear_vae(Full()), LINEAR_MEASURES),
        )
    ]
    network = mlp(OBSERVED, LINEAR_LATENTS, encoder=(32,), decoder=(32,))
    for name, dataset, model, betas in (
        ("collapse/linear", weak, linear_model(OBSERVED, LINEAR_LATENTS), COLLAPSE_BETAS),
        ("collapse/alone", noise_alone, network, ALONE_BETAS),
    ):
        objectives = [BetaVAE(beta) for beta in betas]
        members = _trained(model, objectives, fewer, scale, batch=128, rate=1e-2)
        runs.append(Run(name, dataset, members, (active_units,)))
    return runs


def bent(scale: Scale) -> list[Run]:
    """VAEs find the coordinates in which columns are orthogonal (allen2024 §2, §3.1, corollary 2.1, §3.2.3).

    Two normal sources are bent, each by itself, turned into six dimensions and observed under noise σ: a map with
    orthogonal columns, or the same map after a rotation of the sources by 0.6. Expected: latents are the sources, the
    better the smaller σ; after the rotation they are Rz and not z; posterior variances follow the encoder law with the
    Jacobian at each point; columns are more orthogonal than with a full covariance; the deterministic ELBO is close to
    the sampled one, the closer the smaller σ, and training it gives as good a model. The paper prints no numbers.

    Command: ``axiswise run allen2024.bent``. Cost: a minute and a quarter on two cores.

    Networks have two hidden layers of SiLU: with a single one of tanh, which the first run had, they did not learn the
    bend, and stayed below probabilistic PCA. The smallest noise gets three times the steps: with as few as the others,
    in the second run, its gain over PCA was 0.16 nats, where the others had reached 0.23.
    """
    steps = {"smoke": 40, "default": 6000, "paper": 100_000}[scale]
    wide, *_, narrow = BENT_NOISES
    plans: list[tuple[str, float, bool, Posterior, Objective, int]] = [
        (f"straight-{narrow}", narrow, False, Diagonal(), BetaVAE(1.0), 3 * steps),  # first, since it takes longest
        *((f"straight-{noise}", noise, False, Diagonal(), BetaVAE(1.0), steps) for noise in BENT_NOISES[:-1]),
        ("turned", wide, True, Diagonal(), BetaVAE(1.0), steps),
        ("full", wide, False, Full(), BetaVAE(1.0), steps),
        ("deterministic", wide, False, Diagonal(), DeterministicELBO(1.0), steps // 2),
    ]
    return [
        Run(
            f"bent/{name}",
            partial(bent_sources, noise, turned=turned),
            _trained(_bent_vae(noise, posterior), objective, own, scale, batch=64, rate=1e-2),
            BENT_MEASURES,
        )
        for name, noise, turned, posterior, objective, own in plans
    ]


def theorem_3(scale: Scale) -> list[Run]:
    """A β-VAE of noise σ² trains as a VAE of noise βσ² (allen2024 theorem 3).

    The same networks, seeds, batches and noise: β = 3 with σ = ½, and β = 1 with σ = ½√3. Expected: with gradient
    descent and three times the rate the two models are the same at any time, and with the same rate they are not; with
    Adam they are the same at the same rate. Equal here means up to what float32 rounds. The paper prints no numbers.

    Command: ``axiswise run allen2024.theorem_3``. Cost: twenty seconds on two cores.
    """
    times = {"smoke": [20], "default": [200, 2000], "paper": [200, 20_000]}[scale]
    beta, narrow = THEOREM_3_BETA, THEOREM_3_SCALE
    rate, adaptive = 1e-3, 1e-3
    plans: dict[str, tuple[float, float, Optimizer]] = {
        "sgd/beta-vae": (narrow, beta, SGD(rate)),
        "sgd/vae": (narrow * math.sqrt(beta), 1.0, SGD(beta * rate)),
        "sgd/vae-same-rate": (narrow * math.sqrt(beta), 1.0, SGD(rate)),
        "adam/beta-vae": (narrow, beta, Adam(adaptive)),
        "adam/vae": (narrow * math.sqrt(beta), 1.0, Adam(adaptive)),
    }
    return [
        Run(
            name,
            partial(synth_nonlinear, samples=2000),
            grid(
                model=mlp(6, 2, encoder=(20,), decoder=(20,), likelihood=Gaussian(likelihood)),
                objective=BetaVAE(weight),
                optimizer=optimizer,
                batch=64,
                steps=times,
                seed=range(_seeds(scale)),
            ),
            (outputs,),
        )
        for name, (likelihood, weight, optimizer) in plans.items()
    ]


def figure_2(scale: Scale) -> list[Run]:
    """As β grows, a VAE reconstructs points, averages of neighbours, circles, and at last one point (allen2024 Fig. 2).

    96 points of the plane on six small circles, noise of variance 1. Published: β = 0.55 reconstructs closely, at 2.2
    and 3.8 neighbours map to their means, then circles to their centres, at 60 everything to the centroid. Neither
    radii nor numbers are published: those of `circles` put the thresholds of a linear decoder between these β. Then
    neighbours draw together at 2.2 without merging (nearly all reconstructions stay distinct), and some merge at 3.8;
    at 12, which is ours, circles are flattened about their centres. In pilots of one seed neither wider networks nor
    four times the steps merged them. Smaller circles come nearer to the caption, but for β = 3.8. Their radius, 2.25,
    is the nearest of nine between 1.7 and 3, tried with up to four of the seeds 100 to 103, which are not run here.

    Command: ``axiswise run allen2024.figure_2``. Cost: a minute on one core.
    """
    steps = {"smoke": 60, "default": 3000, "paper": 50_000}[scale]
    objectives = [BetaVAE(beta) for beta in FIGURE_2_BETAS]
    members = _trained(mlp(2, 2, encoder=(32, 32), decoder=(32, 32)), objectives, steps, scale, batch=None, rate=5e-3)
    return [
        Run(name, partial(circles, small_radius=radius), members, (reconstructions,)) for name, radius in RADII.items()
    ]


def plateau(scale: Scale) -> list[Run]:
    """Decoders are flatter at the few points they were trained on than between them (allen2024 §4, "Optimal S").

    Points evenly on a line of length 5, one latent, noise 0.2. Expected: with six points a flexible decoder (ReLU) is
    flatter at their codes than between; with sixty the difference is smaller ("mitigated by training on more data").
    A smooth decoder of the same size (tanh) is drawn beside it: it forms no plateaus. The paper prints no numbers.

    Command: ``axiswise run allen2024.plateau``. Cost: twenty seconds on two cores.
    """
    steps = {"smoke": 60, "default": 4000, "paper": 50_000}[scale]
    runs = []
    for name, (points, activation) in PLATEAUS.items():
        likelihood = Gaussian(PLATEAU_SCALE)
        model = mlp(1, 1, encoder=(32, 32), decoder=(32, 32), activation=activation, likelihood=likelihood)
        members = _trained(model, BetaVAE(1.0), steps, scale, batch=128, rate=1e-2)
        runs.append(Run(f"plateau/{name}", partial(line, points), members, (slopes,)))
    return runs


def mixed(spectrum: str, *, twisted: bool = True, samples: int = 4000, seed: int = 0) -> FactorDataset:
    r"""Draws x = USVᵀz + ε with three sources, six values, and singular values by name.

    Arguments:
        spectrum: "distinct" or "equal", of `SPECTRA`.
        twisted: Whether V is a random rotation, or the identity.
        samples: How many observations to draw.
        seed: Seed of the sources and of the noise; U and V are always the same.

    Example:
        >>> len(mixed("equal", samples=100)), mixed("equal", samples=100).space.names
        (100, ('source 0', 'source 1', 'source 2'))
    """
    left = _orthonormal("left", OBSERVED, LINEAR_LATENTS)
    right = _orthonormal("right", LINEAR_LATENTS, LINEAR_LATENTS)
    mixing = left * torch.tensor(SPECTRA[spectrum], dtype=torch.float64)
    return linear_gaussian(mixing @ right.T if twisted else mixing, LINEAR_NOISE, samples=samples, seed=seed)


def weak(*, samples: int = 4000, seed: int = 0) -> FactorDataset:
    """Draws normal observations with eigenvalues of `COLLAPSE_VALUES`, all below 1, and `COLLAPSE_REST`.

    Example:
        >>> weak(samples=100).shape
        (6,)
    """
    excess = torch.tensor([value - COLLAPSE_REST for value in COLLAPSE_VALUES], dtype=torch.float64)
    mixing = _orthonormal("left", OBSERVED, LINEAR_LATENTS) * excess.sqrt()
    return linear_gaussian(mixing, COLLAPSE_REST, samples=samples, seed=seed)


def noise_alone(*, samples: int = 4000) -> FactorDataset:
    """Draws standard normal observations, with mean 0 and covariance I exactly: the noise of a model with σ = 1.

    Example:
        >>> x = noise_alone(samples=100).x(torch.arange(100))
        >>> bool((x.T @ x / 100 - torch.eye(6)).abs().max() < 1e-5)
        True
    """
    drawn = normal(0, "noise alone", 0, (samples, OBSERVED), dtype=torch.float64)
    whitened = math.sqrt(samples) * torch.linalg.qr(drawn - drawn.mean(0)).Q
    return arrays(whitened.float(), name="noise_alone")


def bent_sources(noise: float, *, turned: bool = False, samples: int = 4000, seed: int = 0) -> FactorDataset:
    r"""Draws two normal sources, bends each by itself, turns them into six dimensions and adds noise.

    .. math:: x = Q \left(g_1(z_1), g_2(z_2)\right)^\top + \epsilon, \qquad g_i(z) = a_i (z + b_i z^3),

    with Rz in place of z if `turned`. The factors are z.

    Arguments:
        noise: Standard deviation of the noise.
        turned: Whether the sources are rotated first.
        samples: How many observations to draw.
        seed: Seed of the sources and of the noise; the map is always the same.

    Example:
        >>> bent_sources(0.4, samples=100).shape
        (6,)
    """
    plain = Separable(
        _orthonormal("bent", OBSERVED, 2), torch.tensor(BENT_SCALES).double(), torch.tensor(BENT_BENDS).double()
    )
    sources = normal(seed, "sources", 0, (samples, 2), dtype=torch.float64)
    added = normal(seed, "observation noise", 0, (samples, OBSERVED), dtype=torch.float64)
    decode = Rotated(plain, rotation()) if turned else plain
    return FactorDataset(
        name="bent_sources",
        arguments={"noise": float(noise), "turned": turned, "samples": samples, "seed": seed},
        space=FactorSpace(tuple(Factor(f"source {column}", None, "continuous") for column in range(2))),
        shape=(OBSERVED,),
        tensors={"x": (decode(sources) + noise * added).to(torch.float32)},
        render=stored,
        levels=sources,
    )


def line(points: int) -> FactorDataset:
    """Points evenly on a line from −2.5 to 2.5.

    Example:
        >>> line(6).x(torch.arange(6)).flatten().tolist()
        [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]
    """
    return arrays(torch.linspace(-2.5, 2.5, points)[:, None], name="line")


def _linear_vae(posterior: Posterior = Diagonal()) -> VAE:
    likelihood = Gaussian(math.sqrt(LINEAR_NOISE))
    return linear_model(OBSERVED, LINEAR_LATENTS, posterior=posterior, likelihood=likelihood)


def _bent_vae(noise: float, posterior: Posterior) -> VAE:
    return mlp(
        OBSERVED,
        2,
        encoder=(32, 32),
        decoder=(32, 32),
        activation="SiLU",
        posterior=posterior,
        likelihood=Gaussian(noise),
    )


def _trained(
    model: VAE,
    objective: Objective | list[BetaVAE],
    steps: int,
    scale: Scale,
    *,
    batch: int | None,
    rate: float,
    seeds: int | None = None,
) -> list[Member]:
    """Members of every seed, their rate on a cosine to 0."""
    optimizer = Adam(lr=Cosine(rate, 0.0, steps))
    seed = range(seeds or _seeds(scale))
    return grid(model=model, objective=objective, optimizer=optimizer, batch=batch, steps=steps, seed=seed)


def _seeds(scale: Scale) -> int:
    return {"smoke": 2, "default": 10, "paper": 50}[scale]


def _orthonormal(name: str, rows: int, columns: int) -> Float[Tensor, "x z"]:
    """A matrix with orthonormal columns that is always the same."""
    return torch.linalg.qr(normal(0, f"allen2024 {name}", 0, (rows, columns), dtype=torch.float64))[0]


STUDIES: dict[str, Study] = {
    "linear": linear,
    "bent": bent,
    "theorem_3": theorem_3,
    "figure_2": figure_2,
    "plateau": plateau,
}
