r"""The bilevel step: decoders follow the change, and the change makes entangled codes the cheaper ones to decode.

.. math:: \theta_j \gets \arg\min_{\theta_j} L_j, \qquad
    \psi \gets \arg\min_\psi \left( \tfrac1k \sum_{j \in \mathrm{ent}} L_j
    - \tfrac1k \sum_{j \in \mathrm{dis}} L_j \right), \qquad
    L_j = -\mathbb{E}_x\, \mathbb{E}_{z \sim q_j(z | x)} \log p_{\theta_j}(x' \mid z), \quad
    x' = \rho(x + \varepsilon\, m_\psi(w))

The encoders are frozen and receive the original x, so that every posterior is computed once. One step is three batches
for the decoders, and on the last of them, from the same pass, one for the change. The losses are those of training,
sums over pixels and means over samples.

Where pixels are black or white, as in dSprites, this can end in one picture for all factors, which favours neither
code. Decoders trained on 0 and 1 alone have large logits, and the one that follows the change most slowly dictates its
direction, until it saturates. There three options help. The decoders first move alone (`warm_up`). The initial change
varies with the factors (`start`), since no change at all is a saddle of the losses. What pushes all observations alike
is left out (`centred`): a shift that all share favours neither code once the decoders have followed it. Fourth, the
change can follow a fixed function of the factors, a latent of an entangled member (`follow`), so that only its
rendering is learned against decoders that lag.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

import torch
from torch import nn

from axiswise._arguments import check_fields
from axiswise.attack.manipulation import (
    NETWORK,
    Manipulation,
    Ranges,
    Renderer,
    scaled_factors,
)
from axiswise.data import FactorDataset
from axiswise.data._reflection import add_reflected
from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks
from axiswise.numerics import integers, normal
from axiswise.optimizers import Adam, Optimizer
from axiswise.population.program import Losses, Precision, Program, Update, WeightGroup, bind, over_members
from axiswise.shapes import Float, Int, Tensor

DECODERS = "decoders"
REFERENCE = Adam(lr=1e-4, beta1=0.9, beta2=0.999, eps=1e-7)


@dataclass(frozen=True)
class Learning:
    """How a change is learned.

    The paper says neither for how many steps, nor whether the change is learned on a batch of its own. Here it is
    learned on the last of the decoders' three batches, before they are updated on it: one pass gives both gradients.
    `warm_up`, `start`, `follow` and `centred` are ours, for images of black and white pixels; without them it is the
    paper's.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, section
        4.4 and appendix B.1; ε = 0.1 for dSprites and 0.175 for Shapes3D (section 5.2).

    Arguments:
        epsilon: The most that any value is changed by.
        steps: Steps of the change; each is `decoder_batches` of the decoders.
        batch: Observations in a batch.
        samples: Latent samples of each observation, which estimate the stochastic part of the losses.
        decoder_batches: Batches of the decoders for each of the change.
        warm_up: First steps, in which decoders are updated and the change is not.
        start: Standard deviation of the first change before its tanh, as `started` scales it; None leaves the initial
            weights as they are drawn, with which there is nearly no change.
        follow: The latent of the first entangled member that the change follows, or "mixed" for the one most between
            two factors. Its one number is then the mean of that latent given the factors, and is fixed, while the
            rendering is learned. None learns both.
        centred: Whether the gradient by the change at a pixel is taken less its mean over the batch, so that nothing
            pushes all observations alike.
        optimizer: Updates the change; schedules count its steps.
        decoder_optimizer: Updates the decoders; None is the same.
        renderer: How the change is drawn, "convolutional" or "dense"; None is the first where the images allow it.
        hidden: Width of the dense layers of the change.
        seed: Decides its initial weights, the batches and the noise.

    Example:
        >>> Learning(epsilon=0.1).optimizer
        Adam(lr=0.0001, beta1=0.9, beta2=0.999, eps=1e-07, amsgrad=False, weight_decay=0.0, clip=0.0)
    """

    epsilon: float
    steps: int = 10_000
    batch: int = 64
    samples: int = 5
    decoder_batches: int = 3
    warm_up: int = 0
    start: float | None = None
    follow: int | Literal["mixed"] | None = None
    centred: bool = False
    optimizer: Optimizer = REFERENCE
    decoder_optimizer: Optimizer | None = None
    renderer: Renderer | None = None
    hidden: int = 256
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not (math.isfinite(self.epsilon) and self.epsilon > 0):
            raise AxiswiseError(
                f"`epsilon` must be positive and finite: it is the most that any value is changed by. "
                f"Got {self.epsilon}."
            )
        for name in ("steps", "batch", "samples", "decoder_batches"):
            if getattr(self, name) < 1:
                raise AxiswiseError(f"`{name}` must be at least 1. Got {getattr(self, name)}.")
        if not 0 <= self.warm_up < self.steps:
            raise AxiswiseError(
                f"`warm_up` must be at least 0 and less than the {self.steps} steps, or the change never moves. "
                f"Got {self.warm_up}."
            )
        if self.start is not None and not (math.isfinite(self.start) and self.start > 0):
            raise AxiswiseError(f"`start` must be positive and finite, or None. Got {self.start}.")

    @property
    def interval(self) -> int:
        """Steps between two entries of the history, for about two hundred entries."""
        return max(1, self.steps // 200)


@dataclass(frozen=True)
class Bilevel:
    """The networks of one learning.

    Arguments:
        model: The VAE of the members.
        decoders: Template modules of the decoders.
        pattern: The form of the change.
        network: Its template module.
        learning: How the change is learned.
        images: Whether observations are reflected back into 0…1.
        count: How many of the decoders are of either kind, k.
        stacked: Whether the decoders are mapped over, or run one after another.
    """

    model: VAE
    decoders: dict[str, nn.Module]
    pattern: Manipulation
    network: nn.Sequential
    learning: Learning
    images: bool
    count: int
    stacked: bool

    @property
    def narrow(self) -> nn.Sequential:
        """The change's layers up to its one number, which decide which function of the factors it follows."""
        return nn.Sequential(*list(self.network)[:3])


class UpdateInputs(NamedTuple):
    """The inputs of one of the decoders' batches: observations, scaled factors, and every member's latents.

    Arguments:
        x: Observations.
        factors: Their factors, scaled to −1…1.
        z: Latent samples, those of all observations one after another.
    """

    x: Float[Tensor, "n ..."]
    factors: Float[Tensor, "n k"]
    z: Float[Tensor, "p m z"]


class BlockInputs(NamedTuple):
    """The inputs of a block of steps before observations are looked up; or, without their first axis, of one step."""

    rows: Int[Tensor, "*s b n"]
    noise: Float[Tensor, "*s b p m z"]


@dataclass(frozen=True)
class Batches:
    """Inputs of the steps, as a pure function of the seed and the step.

    Arguments:
        built: The networks.
        dataset: The original observations.
        scales: How factors are scaled.
        codes: Every member's posterior parameters of every observation, member axis first.
        dtype: Floating-point type of everything random.
    """

    built: Bilevel
    dataset: FactorDataset
    scales: Ranges
    codes: Parameters
    dtype: torch.dtype

    def block(self, numbers: range) -> BlockInputs:
        """The inputs of the steps of those numbers; all draws are made in one call."""
        learning = self.built.learning
        seed = torch.tensor(learning.seed, device=self.dataset.device)
        steps = torch.arange(numbers.start, numbers.stop, device=self.dataset.device)
        batches, rows = learning.decoder_batches, learning.batch
        index = integers(seed, "attack index", steps, (batches, rows), len(self.dataset))
        shape = (batches, 2 * self.built.count, learning.samples * rows, self.built.model.latents)
        return BlockInputs(index, normal(seed, "attack noise", steps, shape, dtype=self.dtype))

    def inputs(self, row: BlockInputs) -> tuple[UpdateInputs, ...]:
        """The inputs of each of the decoders' batches."""
        return tuple(self._update(rows, noise) for rows, noise in zip(row.rows, row.noise, strict=True))

    def _update(self, rows: Int[Tensor, " n"], noise: Float[Tensor, "p m z"]) -> UpdateInputs:
        repeated = rows.repeat(self.built.learning.samples)
        # The type is a named tuple of its posterior's own fields, which pyright cannot know.
        z = type(self.codes)(*(part[:, repeated] for part in self.codes)).sample(noise)  # pyright: ignore
        factors = scaled_factors(self.dataset.factors(rows), *self.scales).to(self.dtype)
        return UpdateInputs(self.dataset.x(rows).to(self.dtype), factors, z)


def bilevel_program(batches: Batches, threads: int, precision: Precision | None) -> Program:
    """The program of a learning: batches that move the decoders, the last of which moves the change, too."""
    built, learning = batches.built, batches.built.learning
    optimizers = [learning.decoder_optimizer or learning.optimizer] * (2 * built.count)
    groups = {
        NETWORK: WeightGroup({NETWORK: built.network}, [learning.optimizer], first=learning.warm_up),
        DECODERS: WeightGroup(built.decoders, optimizers),
    }
    alone = Update((DECODERS,), partial(decoder_losses, built))
    both = Update((DECODERS, NETWORK), partial(decoder_losses, built, change=True))
    updates = (*[alone] * (learning.decoder_batches - 1), both)
    return Program(groups, batches, updates, learning.steps, learning.interval, threads, precision)


def decoder_losses(
    built: Bilevel,
    weights: Mapping[str, Mapping[str, Tensor]],
    buffers: Mapping[str, Tensor],
    inputs: UpdateInputs,
    *,
    change: bool = False,
) -> Losses:
    """The losses of the decoders, whose sum gives each its own gradient, and with `change` that of the change."""
    fixed = {f"{NETWORK}.{name}" for name, _ in built.narrow.named_parameters()}
    own = {
        name: (weight.detach() if built.learning.follow is not None and name in fixed else weight).squeeze(0)
        for name, weight in weights[NETWORK].items()
    }
    drawn = bind({NETWORK: built.network}, own)[NETWORK](inputs.factors)
    changed = add_reflected(inputs.x, built.learning.epsilon * drawn, images=built.images)
    targets = changed.repeat(built.learning.samples, *(1 for _ in inputs.x.shape[1:]))

    def one(
        parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], z: Tensor
    ) -> tuple[Tensor, dict[str, Tensor]]:
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        networks = Networks(built.model, bind(built.decoders, parameters, updated))
        return -networks.likelihood.log_density(targets, networks.decode(z)).mean(), updated

    losses, updated = over_members(one, stacked=built.stacked)(weights[DECODERS], buffers, inputs.z)
    entangled, disentangled = losses[: built.count].mean(), losses[built.count :].mean()
    gap = entangled - disentangled
    terms = {"entangled": entangled, "disentangled": disentangled, "gap": gap, "reconstruction": losses}
    minimised = {DECODERS: losses.sum()}
    if change:
        minimised[NETWORK] = gap
        if built.learning.centred:
            (force,) = torch.autograd.grad(gap, changed, retain_graph=True)
            minimised[NETWORK] = (changed * (force - force.mean(0))).sum()  # its gradient: the force without its mean
    return Losses(minimised, terms, updated)
