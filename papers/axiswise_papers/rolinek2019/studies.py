"""Studies of rolinek2019. Each docstring gives what to expect, the command, and the cost.

The paper's loss is ‖x − x̂‖² + β·KL, without a half: a Gaussian likelihood of variance ½, so that β here is the
paper's. It gives neither batch sizes nor, for images, the likelihood: batches of 64 and Bernoulli pixels are ours.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from axiswise.data import (
    FactorDataset,
    dsprites,
    fashion_mnist,
    mnist,
    small_sprites,
    synth_linear,
    synth_nonlinear,
)
from axiswise.distributions import Bernoulli, Deterministic, Full, Gaussian
from axiswise.evaluation import kl, loss, reconstruction
from axiswise.geometry import dto, polarization, reconstruction_split
from axiswise.models import VAE, linear, mlp
from axiswise.numerics import uniform
from axiswise.objectives import Autoencoder, BetaVAE, Objective
from axiswise.optimizers import AdaGrad, Adam
from axiswise.population import Member, grid
from axiswise.schedules import Cosine
from axiswise.scores import disentanglement, mig
from axiswise.shapes import Tensor
from axiswise.studies import Run, Scale, Study
from axiswise_papers.rolinek2019.measures import axis_angle, polarized_regime

SQUARED_ERROR = Gaussian(scale=0.5**0.5)
MEASURES = (mig, disentanglement, dto, polarization, loss, reconstruction, kl)
RATIOS = (1.0, 1.2, 1.5, 2.0)
BETAS = {
    "linear": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 0.3, 1.0),
    "non-linear": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "sprites": (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0),
}
"""Values of β of Figure S4, of which the paper prints none."""
COLUMNS = ("beta-vae", "vae", "autoencoder", "full-covariance", "random")
THRESHOLDS = (0.5, 0.8, 0.9)
"""Mean posterior variances below which a latent counts as active; 0.8 everywhere else."""
NOISELESS_MEASURES = (
    disentanglement,
    partial(disentanglement, form="printed"),
    dto,
    partial(dto, latents="all"),
    loss,
    reconstruction,
)
TABLE_MEASURES = (*NOISELESS_MEASURES, kl, reconstruction_split)
REGIME_MEASURES = (
    *(partial(polarization, active_below=threshold) for threshold in THRESHOLDS),
    *(partial(polarized_regime, active_below=threshold) for threshold in THRESHOLDS),
    loss,
    kl,
)
RECORDED = 500  # batches between two measurements of the polarized regime, as in section 5.2
BATCH = 64
WIDE = 10  # latents of the second column of Table 1
LENGTHS = (10, 30, 50)  # epochs of Figure 3


class Task(NamedTuple):
    """One synthetic task of Table S3, at one scale."""

    name: str
    dataset: Callable[[], FactorDataset]
    model: Callable[..., VAE]
    """Takes the number of latents, `posterior` and `likelihood`."""
    beta: float
    rate: float | Cosine
    steps: int
    pruning_steps: int
    """Steps of plain VAEs, which are done once their latents are switched off."""


class Images(NamedTuple):
    """One task of images of Table S3."""

    name: str
    dataset: Callable[[], FactorDataset]
    latents: int
    encoder: tuple[int, ...]
    decoder: tuple[int, ...]
    beta: float
    epochs: int
    samples: int
    """Of the training split, 80 % of all."""


IMAGES = (
    Images("dsprites", dsprites, 5, (1200, 1200), (1200, 1200, 1200), 4.0, 50, 589_824),
    Images("mnist", mnist, 6, (400,), (500, 500), 1.0, 400, 56_000),
    Images("fashion-mnist", fashion_mnist, 6, (400,), (500, 500), 1.0, 500, 56_000),
)


def table_1(scale: Scale) -> list[Run]:
    """Training soon polarizes latents into precise ones and pure noise (rolinek2019 Table 1, synthetic rows).

    β-VAEs of two and of ten latents on a square in space, stretched or bent. Published: the share of training from
    which on ΔKL < 3 % until the end is 99.8 % with two latents and 96.7 % with ten on the stretched square, 99.9 % and
    98.5 % on the bent one. The conditions of Definition 1 are measured at the end, for three thresholds of activity.

    Command: ``axiswise run rolinek2019.table_1``. Cost: three minutes on two cores. At ``--scale paper`` (600 epochs)
    375,000 steps for each of four populations: four minutes of an H200, side by side (``--workers 4``).

    Learning rate and β are the paper's at every scale, since they decide when latents settle; only training is
    shorter, 40,000 batches, so that a share comes out lower: of 80,000, which took six minutes, shares were .95 and .99
    with two latents, .80 and .79 with ten. Compare the number of batches instead: ten latents are polarized after some
    16,000, where the published shares mean 12,400 and 5,600 if batches were of 64.
    """
    steps = {"smoke": 200, "default": 40_000, "paper": 375_000}[scale]
    runs = []
    for task in tasks("paper")[:2]:
        for column, latents in (("beta-vae", 2), ("ten-latents", WIDE)):
            members = grid(
                model=task.model(latents, likelihood=SQUARED_ERROR),
                objective=BetaVAE(task.beta),
                optimizer=Adam(lr=task.rate),
                batch=BATCH,
                steps=steps,
                seed=range(2 if scale == "smoke" else 10),
                history=RECORDED,
            )
            runs.append(Run(f"{task.name}/{column}", task.dataset, members, REGIME_MEASURES, held_out=True))
    return runs


def table_2(scale: Scale) -> list[Run]:
    """Diagonal posteriors turn decoders orthogonal (rolinek2019 Table 2, synthetic rows).

    On a square in space, stretched or bent: β-VAEs, plain VAEs (β = 1), autoencoders, β-VAEs whose posterior has a full
    covariance, and decoders as they were initialised. Published DtO of the stretched square:
    .00 ± .00 for β-VAEs against .33 ± .18 for autoencoders and .34 ± .35 with full covariance; of the bent one
    .18 ± .02 against .54 ± .13 and .55 ± .02. Plain VAEs switch latents off, and their cells are blank.

    Command: ``axiswise run rolinek2019.table_2``. Cost: four minutes on two cores. At ``--scale paper`` (Adam 1e-3, 600
    epochs, β = 1e-4 and 1e-3) 375,000 steps for each of twelve populations: five minutes of an H200, side by side.

    The paper does not give the law of the weights that bend the square. At ``--scale paper`` the task is there
    twice: with standard normal weights, as in `figure_s4`, and gently bent, with weights as networks are initialised
    with.

    The default takes fewer and larger steps, on a cosine to 0: 30,000 from 0.1 on the stretched square, with β raised
    to 1e-3, since alignment takes a time proportional to 1/β; 20,000 from 3e-3 on the bent one, with the paper's β
    (15,000 leave the orderings of DtO undecided). Plain VAEs take fewer: they are done once their latents are switched
    off.
    """
    runs = []
    for task in tasks(scale):
        model = partial(task.model, likelihood=SQUARED_ERROR)
        columns: dict[str, tuple[VAE, Objective, int]] = {
            "beta-vae": (model(2), BetaVAE(task.beta), task.steps),
            "vae": (model(2), BetaVAE(1.0), task.pruning_steps),
            "autoencoder": (model(2, posterior=Deterministic()), Autoencoder(), task.steps),
            "full-covariance": (model(2, posterior=Full()), BetaVAE(task.beta), task.steps),
            "random": (model(2, posterior=Deterministic()), Autoencoder(), 0),
        }
        for column, (network, objective, steps) in columns.items():
            rate = replace(task.rate, steps=steps) if isinstance(task.rate, Cosine) and steps else task.rate
            members = grid(
                model=network,
                objective=objective,
                optimizer=Adam(lr=rate),
                batch=BATCH,
                steps=steps,
                seed=range(2 if scale == "smoke" else 10),
                history=RECORDED,
            )
            measures = NOISELESS_MEASURES if column in ("autoencoder", "random") else TABLE_MEASURES
            runs.append(Run(f"{task.name}/{column}", task.dataset, members, measures, held_out=True))
    return runs


def table_s4(scale: Scale) -> list[Run]:
    """Linear VAEs align with the axes only where the data's variances differ (rolinek2019 Table S4, Figure S5).

    A unit square, one side stretched by a ratio, is rotated into three dimensions; linear β-VAEs with two latents are
    trained on it. Published: DtO .49 ± .32, .20 ± .24 and .01 ± .06 at ratios 1.0, 1.2 and 1.5, and .00 at 2.0 (Table
    2); Disent. .51 ± .28, .76 ± .25 and .98 ± .06. At ratio 1.0 every rotation of the latents is equally good and each
    seed finds its own.

    Command: ``axiswise run rolinek2019.table_s4``. Cost: two minutes on two cores. At ``--scale paper`` (β = 1e-4, Adam
    1e-3, 600 epochs) 375,000 steps for each ratio: six minutes of an H200, side by side.

    The default raises β to 1e-2, at which alignment takes ten thousand steps instead of hundreds of thousands. DtO at
    ratio 1.2 less that at 1.0 was −.17 [−.37, .03] of twenty seeds and −.12 [−.21, −.02] of eighty, an effect that 139
    tell nine times in ten.
    """
    beta, steps, rate = {
        "smoke": (1e-2, 100, 0.1),
        "default": (1e-2, 10_000, 0.1),
        "paper": (1e-4, 375_000, 1e-3),
    }[scale]
    members = grid(
        model=linear(3, 2, likelihood=SQUARED_ERROR),
        objective=BetaVAE(beta=beta),
        optimizer=Adam(lr=rate if scale == "paper" else Cosine(rate, 0.0, steps)),
        batch=BATCH,
        steps=steps,
        seed=range(2 if scale == "smoke" else 160),
    )
    return [
        Run(
            f"linear/ratio-{ratio}",
            partial(synth_linear, ratio=ratio),
            members,
            (*MEASURES, axis_angle),
            held_out=True,
        )
        for ratio in RATIOS
    ]


def figure_s4(scale: Scale) -> list[Run]:
    """Too small a β does nothing, too large a β switches latents off (rolinek2019 Figure S4, right).

    β-VAEs with two latents on a square in space, stretched or bent, over five orders of magnitude of β.
    Published as curves without numbers: for too small a β the effect of the divergence is negligible, for too large a
    one fewer latents are active than there are factors. Over a single active latent DtO is 0 by definition, so read
    it beside the number of active latents.

    Command: ``axiswise run rolinek2019.figure_s4``. Cost: a minute on two cores. At ``--scale paper`` (Adam 1e-3, 600
    epochs) 375,000 steps for each task: five minutes of an H200, side by side.
    """
    steps, bent_steps = {"smoke": (100, 100), "default": (10_000, 5_000), "paper": (375_000, 375_000)}[scale]
    runs = []
    for task, length, rate in zip(tasks(scale)[:2], (steps, bent_steps), (0.1, 3e-3), strict=True):
        betas = BETAS[task.name]
        members = grid(
            model=task.model(2, likelihood=SQUARED_ERROR),
            objective=[BetaVAE(beta) for beta in ((betas[0], 1e-2, betas[-1]) if scale == "smoke" else betas)],
            optimizer=Adam(lr=1e-3 if scale == "paper" else Cosine(rate, 0.0, length)),
            batch=BATCH,
            steps=length,
            seed=range(2 if scale == "smoke" else 10),
        )
        runs.append(Run(f"{task.name}/beta", task.dataset, members, MEASURES, held_out=True))
    return runs


def table_2_images(scale: Scale) -> list[Run]:
    """Diagonal posteriors turn decoders orthogonal (rolinek2019 Tables 1 and 2, rows of images).

    Fully connected networks on dSprites (β = 4), MNIST and Fashion-MNIST (β = 1): β-VAEs, plain VAEs, autoencoders,
    VAEs with a full covariance, decoders as they were initialised, and ten latents for Table 1. Published DtO: dSprites
    .76 ± .08 for β-VAEs, 1.08 ± .15 for VAEs, 1.62 ± .03 for autoencoders, 1.73 ± .14 with full covariance; MNIST 1.59,
    1.83, 1.93 and Fashion-MNIST 1.36, 1.87, 2.02, without β-VAEs. Disent. of dSprites: .33, .21, .09, .12. Share of
    training with ΔKL < 3 %: 97.8 % and 90.6 % (ten latents), 99.8 % and 99.5 %, 99.8 % and 97.7 %.

    Command: ``axiswise run rolinek2019.table_2_images --device cuda``. Cost: to be measured; by its arithmetic an hour
    of one H200, of which dSprites takes most. ``--scale paper`` has batches of 64 instead of 256: four times as long.

    Networks, optimizer (AdaGrad, 0.01), epochs and β are those of Table S3. Batches and Bernoulli pixels are ours. At
    the smoke scale small sprites, which need no file, replace all three.
    """
    runs = []
    for task in IMAGES:
        columns: dict[str, tuple[VAE, Objective]] = {
            "beta-vae": (_images(task, scale), BetaVAE(task.beta)),
            "vae": (_images(task, scale), BetaVAE(1.0)),
            "autoencoder": (_images(task, scale, posterior=Deterministic()), Autoencoder()),
            "full-covariance": (_images(task, scale, posterior=Full()), BetaVAE(task.beta)),
            "random": (_images(task, scale, posterior=Deterministic()), Autoencoder()),
            "ten-latents": (_images(task, scale, latents=WIDE), BetaVAE(task.beta)),
        }
        if task.beta == 1.0:  # its β-VAE is the plain one
            del columns["beta-vae"]
        for column, (model, objective) in columns.items():
            epochs = 0 if column == "random" else task.epochs
            members = _image_members(task, scale, model, [objective], epochs, seeds=10)
            measures = NOISELESS_MEASURES if column in ("autoencoder", "random") else TABLE_MEASURES
            if column not in ("autoencoder", "random"):
                measures = (*measures, polarization)
            if task.name != "dsprites":  # labels are not factors that latents could be aligned with
                measures = tuple(measure for measure in measures if measure not in NOISELESS_MEASURES[:2])
            runs.append(Run(f"{task.name}/{column}", _pictures(task, scale), members, measures, held_out=True))
    return runs


def figure_3(scale: Scale) -> list[Run]:
    """The more orthogonal a decoder, the more disentangled its latents (rolinek2019 Figure 3).

    β-VAEs (β = 4) of dSprites after 10, 30 and 50 epochs, restarted many times. Published as a cloud of points without
    numbers: a low DtO goes with a high Disent. Both change with the length of training, so that the correlation is
    measured within each length, too.

    Command: ``axiswise run rolinek2019.figure_3 --device cuda``. Cost: to be measured; by its arithmetic half an hour
    of one H200. ``--scale paper`` has batches of 64 instead of 256.

    Twenty restarts of each length are ours, the rest is as in `table_2_images`.
    """
    task = IMAGES[0]
    runs = []
    for epochs in LENGTHS:
        members = _image_members(task, scale, _images(task, scale), [BetaVAE(task.beta)], epochs, seeds=20)
        runs.append(Run(f"sprites/epochs-{epochs}", _pictures(task, scale), members, TABLE_MEASURES, held_out=True))
    return runs


def figure_s4_sprites(scale: Scale) -> list[Run]:
    """Too small a β does nothing, too large a β switches latents off (rolinek2019 Figure S4, left).

    β-VAEs of dSprites over β. Published as curves without numbers: as for the synthetic tasks, with the best β
    at 4.

    Command: ``axiswise run rolinek2019.figure_s4_sprites --device cuda``. Cost: to be measured; by its arithmetic half
    an hour of one H200. ``--scale paper`` has batches of 64 instead of 256.
    """
    task = IMAGES[0]
    betas = (0.1, 4.0, 64.0) if scale == "smoke" else BETAS["sprites"]
    objectives: list[Objective] = [BetaVAE(beta) for beta in betas]
    members = _image_members(task, scale, _images(task, scale), objectives, task.epochs, seeds=5)
    return [Run("sprites/beta", _pictures(task, scale), members, TABLE_MEASURES, held_out=True)]


def _pictures(task: Images, scale: Scale) -> Callable[[], FactorDataset]:
    return small_sprites if scale == "smoke" else task.dataset


def _images(task: Images, scale: Scale, latents: int | None = None, **distributions: Deterministic | Full) -> VAE:
    """The networks of Table S3: an encoder of rectifiers, a decoder of hyperbolic tangents. Smoke has a tenth of it."""
    side = 16 if scale == "smoke" else 64 if task.dataset is dsprites else 28
    share = 10 if scale == "smoke" else 1
    return mlp(
        (1, side, side),
        latents or task.latents,
        encoder=tuple(width // share for width in task.encoder),
        decoder=tuple(width // share for width in task.decoder),
        activation=(nn.ReLU, nn.Tanh),
        likelihood=Bernoulli(),
        **distributions,  # pyright: ignore[reportArgumentType] (only `posterior` is given)
    )


def _image_members(
    task: Images, scale: Scale, model: VAE, objectives: list[Objective], epochs: int, *, seeds: int
) -> list[Member]:
    batch = {"smoke": 32, "default": 256, "paper": BATCH}[scale]
    steps = epochs * task.samples // batch
    return grid(
        model=model,
        objective=objectives,
        optimizer=AdaGrad(lr=1e-2),
        batch=batch,
        steps=min(steps, 3) if scale == "smoke" else steps,
        seed=range(2 if scale == "smoke" else seeds),
        history=1 if scale == "smoke" else RECORDED,
    )


def tasks(scale: Scale) -> tuple[Task, ...]:
    """The synthetic tasks with the settings of Table S3, or those that a small machine can afford.

    Example:
        >>> [(task.name, task.beta, task.rate, task.steps) for task in tasks("paper")]
        [('linear', 0.0001, 0.001, 375000), ('non-linear', 0.001, 0.001, 375000), ('gently-bent', 0.001, 0.001, 375000)]
    """
    if scale == "paper":
        return (
            Task("linear", synth_linear, partial(linear, 3), 1e-4, 1e-3, 375_000, 375_000),
            Task("non-linear", synth_nonlinear, partial(mlp, 6), 1e-3, 1e-3, 375_000, 375_000),
            Task("gently-bent", gently_bent, partial(mlp, 6), 1e-3, 1e-3, 375_000, 375_000),
        )
    steps, bent, pruning, bent_pruning = {
        "smoke": (100, 100, 100, 100),
        "default": (30_000, 20_000, 10_000, 5_000),
    }[scale]
    return (
        Task("linear", synth_linear, partial(linear, 3), 1e-3, Cosine(0.1, 0.0, steps), steps, pruning),
        Task("non-linear", synth_nonlinear, partial(mlp, 6), 1e-3, Cosine(3e-3, 0.0, bent), bent, bent_pruning),
    )


def gently_bent(*, samples: int = 50_000, seed: int = 0) -> FactorDataset:
    r"""The non-linear task with the weights that networks are initialised with instead of standard normal ones.

    .. math:: x = W_2 \tanh(W_1 v + b_1) + b_2, \qquad W \sim \mathcal{U}\left(\pm\sqrt{6 / (n_{in} + n_{out})}\right),
        \quad b \sim \mathcal{U}\left(\pm 1 / \sqrt{n_{in}}\right)

    The paper only says "random initialization". This surface is smaller and flatter than that of
    :func:`~axiswise.data.synth_nonlinear`, and closer to the published results: there a VAE of β = 1 switches off
    every latent, while on ours it keeps one.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        supplement 8.5. The weights: Glorot and Bengio, *Understanding the difficulty of training deep feedforward
        neural networks*, AISTATS 2010, normalized initialization.

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


STUDIES: dict[str, Study] = {
    "table_1": table_1,
    "table_2": table_2,
    "table_s4": table_s4,
    "figure_s4": figure_s4,
    "table_2_images": table_2_images,
    "figure_3": figure_3,
    "figure_s4_sprites": figure_s4_sprites,
}
