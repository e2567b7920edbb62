"""Studies of rolinek2019. Each begins with its command, what to expect, and what it costs.

The paper's loss is ‖x − x̂‖² + β·KL, without a half: a Gaussian likelihood of variance ½, so that β here is the paper's.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch

from axiswise.data import FactorDataset, synth_linear, synth_nonlinear
from axiswise.distributions import Deterministic, Full, Gaussian
from axiswise.evaluation import Run, Scale, Study, kl, loss, reconstruction
from axiswise.geometry import dto, polarization
from axiswise.models import VAE, linear, mlp
from axiswise.numerics import uniform
from axiswise.numerics.optimizers import Adam
from axiswise.numerics.schedules import Cosine
from axiswise.objectives import Autoencoder, BetaVAE
from axiswise.population import grid
from axiswise.scores import disentanglement, mig
from axiswise.shapes import Tensor

SQUARED_ERROR = Gaussian(scale=0.5**0.5)
MEASURES = (mig, dto, polarization, loss, reconstruction, kl)
RATIOS = (1.0, 1.2, 1.5, 2.0)
BETAS = (1e-3, 1e-2, 1e-1, 1.0)
COLUMNS = ("beta-vae", "vae", "autoencoder", "full-covariance", "random", "ten-latents")
TABLE_MEASURES = (
    disentanglement,
    partial(disentanglement, form="printed"),
    dto,
    partial(dto, latents="all"),
    polarization,
    loss,
    reconstruction,
    kl,
)
NOISELESS_MEASURES = tuple(measure for measure in TABLE_MEASURES if measure not in (polarization, kl))
RECORDED = 500  # batches between two looks at the polarized regime, as in section 5.2


class Task(NamedTuple):
    """One synthetic task of Table S3, at one scale."""

    name: str
    dataset: Callable[[], FactorDataset]
    model: Callable[..., VAE]
    """Takes the number of latents, `posterior` and `likelihood`."""
    beta: float
    rate: float | Cosine
    steps: int


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


def table_2(scale: Scale) -> list[Run]:
    """Diagonal posteriors turn decoders orthogonal (rolinek2019 Tables 1 and 2, synthetic rows).

    A square in space, stretched or bent, is given to β-VAEs, to plain VAEs (β = 1), to autoencoders, to β-VAEs whose
    posterior has a full covariance, and to decoders as they were initialised; and to β-VAEs of ten latents. Published
    DtO of the stretched square: .00 ± .00 for β-VAEs against .33 ± .18 for autoencoders and .34 ± .35 with full
    covariance; of the bent one .18 ± .02 against .54 ± .13 and .55 ± .02. Plain VAEs switch latents off, and their
    cells are blank. Published share of training in the polarized regime: 96.7 % and more.

    Command: ``axiswise run rolinek2019.table_2``, then ``python -m axiswise.papers.rolinek2019.figures
    runs/rolinek2019.table_2-default OUT`` for the verdicts. Cost: about ten minutes on two cores. At ``--scale
    paper`` (Adam 1e-3, 600 epochs, β = 1e-4 and 1e-3) 375,000 steps for each of fifteen populations, hours.

    The paper gives neither batch size nor likelihood: batches of 64 and squared errors are ours. Nor does it give the
    law of the weights that bend the square. The task is here twice: with standard normal weights, as in
    `figure_s4`, and gently bent, with weights as networks are initialised with.

    The default takes fewer and larger steps, on a cosine to 0: 30,000 from 0.1 on the stretched square, with β raised
    to 1e-3, since alignment takes a time that goes as 1/β; 20,000 and 12,000 from 3e-3 on the bent ones, with the
    paper's β. A share of training is a share of fewer batches than the paper's, so it comes out lower; and with ten
    latents a rate of 0.1 keeps passive latents noisy for longer than the paper's rate does.
    """
    runs = []
    for task in tasks(scale):
        model = partial(task.model, likelihood=SQUARED_ERROR)
        members = partial(
            grid,
            optimizer=Adam(lr=task.rate),
            batch=64,
            seed=range(2 if scale == "smoke" else 10),
            history=RECORDED,
        )
        columns = {
            "beta-vae": members(model=model(2), objective=BetaVAE(task.beta), steps=task.steps),
            "vae": members(model=model(2), objective=BetaVAE(1.0), steps=task.steps),
            "autoencoder": members(
                model=model(2, posterior=Deterministic()), objective=Autoencoder(), steps=task.steps
            ),
            "full-covariance": members(
                model=model(2, posterior=Full()), objective=BetaVAE(task.beta), steps=task.steps
            ),
            "random": members(model=model(2, posterior=Deterministic()), objective=Autoencoder(), steps=0),
            "ten-latents": members(model=model(10), objective=BetaVAE(task.beta), steps=task.steps),
        }
        for column in COLUMNS:
            measures = NOISELESS_MEASURES if column in ("autoencoder", "random") else TABLE_MEASURES
            runs.append(Run(f"{task.name}/{column}", task.dataset, columns[column], measures, held_out=True))
    return runs


def tasks(scale: Scale) -> tuple[Task, ...]:
    """The synthetic tasks with the settings of Table S3, or those that a small machine can afford.

    Example:
        >>> [(task.name, task.beta, task.rate, task.steps) for task in tasks("paper")]
        [('linear', 0.0001, 0.001, 375000), ('non-linear', 0.001, 0.001, 375000), ('gently-bent', 0.001, 0.001, 375000)]
    """
    beta, rate, bent_rate = (1e-4, 1e-3, 1e-3) if scale == "paper" else (1e-3, 0.1, 3e-3)
    steps, bent_steps, gentle_steps = {
        "smoke": (100, 100, 100),
        "default": (30_000, 20_000, 12_000),
        "paper": (375_000, 375_000, 375_000),
    }[scale]

    def schedule(start: float, steps: int) -> float | Cosine:
        return start if scale == "paper" else Cosine(start, 0.0, steps)

    return (
        Task("linear", synth_linear, partial(linear, 3), beta, schedule(rate, steps), steps),
        Task("non-linear", synth_nonlinear, partial(mlp, 6), 1e-3, schedule(bent_rate, bent_steps), bent_steps),
        Task("gently-bent", gently_bent, partial(mlp, 6), 1e-3, schedule(bent_rate, gentle_steps), gentle_steps),
    )


def gently_bent(*, samples: int = 50_000, seed: int = 0) -> FactorDataset:
    r"""The non-linear task with the weights that networks are initialised with instead of standard normal ones.

    .. math:: x = W_2 \tanh(W_1 v + b_1) + b_2, \qquad W \sim \mathcal{U}\left(\pm\sqrt{6 / (n_{in} + n_{out})}\right),
        \quad b \sim \mathcal{U}\left(\pm 1 / \sqrt{n_{in}}\right)

    The paper says "random initialization" and no more. This surface is smaller and flatter than that of
    :func:`~axiswise.data.synth_nonlinear`, and more like what is published of theirs: there a VAE of β = 1 switches off
    every latent, where of ours it keeps one.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.5. The weights: Glorot and Bengio, *Understanding the difficulty of training deep feedforward
        neural networks*, AISTATS 2010, equation 16.

    Arguments:
        samples: How many points to draw.
        seed: Seed of the points and of the network.

    Example:
        >>> gently_bent(samples=1000).arguments
        {'samples': 1000, 'seed': 0, 'weights': 'glorot'}
    """
    dataset = synth_nonlinear(samples=samples, seed=seed)
    hidden, inputs, outputs = 10, len(dataset.space.names), dataset.numel

    def drawn(stream: str, bound: float, *shape: int) -> Tensor:
        return (2.0 * uniform(seed, stream, 0, shape, dtype=torch.float64) - 1.0) * bound

    first = drawn("glorot hidden weights", (6 / (inputs + hidden)) ** 0.5, hidden, inputs)
    second = drawn("glorot output weights", (6 / (hidden + outputs)) ** 0.5, outputs, hidden)
    first_bias = drawn("glorot hidden biases", inputs**-0.5, hidden)
    second_bias = drawn("glorot output biases", hidden**-0.5, outputs)
    square = dataset.factors(torch.arange(samples)).to(torch.float64)
    x = (square @ first.T + first_bias).tanh() @ second.T + second_bias
    return replace(dataset, arguments={**dataset.arguments, "weights": "glorot"}, tensors={"x": x.to(torch.float32)})


STUDIES: dict[str, Study] = {"table_2": table_2, "table_s4": table_s4, "figure_s4": figure_s4}
