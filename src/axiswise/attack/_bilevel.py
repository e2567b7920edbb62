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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import nn
from torch.func import vmap
from torch.utils import _pytree as pytree

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
from axiswise.population import Precision
from axiswise.population._acceleration import Accelerated
from axiswise.population._program import Slot, State, bind, traced, views
from axiswise.schedules import hyperparameters, value_at
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
    """The program of one learning: the networks, and the columns of each parameter.

    Arguments:
        model: The VAE of the members.
        decoders: Template modules of the decoders.
        pattern: The form of the change.
        network: Its template module.
        slots: For each group of weights, the columns of its parameters.
        learning: How the change is learned.
        images: Whether observations are reflected back into 0…1.
        count: How many of the decoders are of either kind, k.
        stacked: Whether the decoders are mapped over, or run one after another.
    """

    model: VAE
    decoders: dict[str, nn.Module]
    pattern: Manipulation
    network: nn.Sequential
    slots: dict[str, tuple[Slot, ...]]
    learning: Learning
    images: bool
    count: int
    stacked: bool

    @property
    def narrow(self) -> nn.Sequential:
        """The change's layers up to its one number, which decide which function of the factors it follows."""
        return nn.Sequential(*list(self.network)[:3])

    @property
    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizer of each group."""
        own = self.learning.optimizer
        return {NETWORK: own, DECODERS: self.learning.decoder_optimizer or own}


class BilevelStepInputs(NamedTuple):
    """The inputs of one step: for each of the decoders' batches, observations, scaled factors and latents.

    Arguments:
        x: Observations.
        factors: Their factors, scaled to −1…1.
        z: Latent samples of every member, the samples of all observations one after another.
        moves: 1 if the change is updated in this step, 0 if the decoders are updated alone.
        coefficients: The optimizers' coefficients, for the decoders with the batches first.
    """

    x: Float[Tensor, "b n ..."]
    factors: Float[Tensor, "b n k"]
    z: Float[Tensor, "b p m z"]
    moves: Float[Tensor, ""]
    coefficients: dict[str, dict[str, Tensor]]


class BilevelBlockInputs(NamedTuple):
    """The inputs of a block of steps before observations are looked up; or, without their first axis, of one step."""

    rows: Int[Tensor, "*s b n"]
    noise: Float[Tensor, "*s b p m z"]
    moves: Float[Tensor, "*s"]
    coefficients: dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class BilevelBatches:
    """Inputs of the steps, as a pure function of the seed and the step.

    Arguments:
        built: The program.
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

    def block(self, numbers: range) -> BilevelBlockInputs:
        """The inputs of the steps of those numbers; all draws are made in one call."""
        learning, members = self.built.learning, 2 * self.built.count
        seed = torch.tensor(learning.seed, device=self.dataset.device)
        steps = torch.arange(numbers.start, numbers.stop, device=self.dataset.device)
        batches, rows = learning.decoder_batches, learning.batch
        index = integers(seed, "attack index", steps, (batches, rows), len(self.dataset))
        shape = (batches, members, learning.samples * rows, self.built.model.latents)
        noise = normal(seed, "attack noise", steps, shape, dtype=self.dtype)
        coefficients = {
            NETWORK: self._coefficients(NETWORK, numbers, 1, 1, after=learning.warm_up),
            DECODERS: self._coefficients(DECODERS, numbers, batches, members),
        }
        return BilevelBlockInputs(index, noise, (steps >= learning.warm_up).to(self.dtype), coefficients)

    def inputs(self, row: BilevelBlockInputs) -> BilevelStepInputs:
        """The inputs of one step, from its row of a block."""
        x = self.dataset.x(row.rows).to(self.dtype)
        factors = scaled_factors(self.dataset.factors(row.rows), *self.scales).to(self.dtype)
        samples = self.built.learning.samples
        z = torch.stack(
            [
                # The type is a named tuple of its posterior's own fields, which pyright cannot know.
                type(self.codes)(*(part[:, rows.repeat(samples)] for part in self.codes)).sample(noise)  # pyright: ignore
                for rows, noise in zip(row.rows, row.noise, strict=True)
            ]
        )
        return BilevelStepInputs(x, factors, z, row.moves, row.coefficients)

    def _coefficients(
        self, group: str, numbers: range, updates: int, rows: int, *, after: int = 0
    ) -> dict[str, Tensor]:
        """Coefficients ``(s, updates, rows, 1)`` of a group: schedules count steps, bias corrections updates.

        The latter count from step `after`, before which the group is not updated.
        """
        optimizer = self.built.optimizers[group]
        values = {
            name: torch.tensor([value_at(value, number) for number in numbers], dtype=torch.float64).repeat_interleave(
                updates
            )[:, None]
            for name, value in hyperparameters(optimizer).items()
        }
        count = torch.arange(numbers.start * updates, numbers.stop * updates, dtype=torch.float64)[:, None]
        factors = optimizer.coefficients(values, (count - after * updates).clamp_min(0.0))
        return {
            name: factor.to(self.dataset.device, self.dtype).view(-1, updates, 1, 1).expand(-1, -1, rows, 1)
            for name, factor in factors.items()
        }


class BilevelStepResult(NamedTuple):
    """What one batch computes before it updates anything."""

    gradients: dict[str, list[Tensor]]
    losses: Float[Tensor, " p"]
    buffers: dict[str, Tensor]


def differentiate(
    built: Bilevel,
    groups: tuple[str, ...],
    weights: Mapping[str, Tensor],
    buffers: dict[str, Tensor],
    x: Float[Tensor, "n ..."],
    factors: Float[Tensor, "n k"],
    z: Float[Tensor, "p m z"],
) -> BilevelStepResult:
    """The decoders' own gradients, from one backward pass through the sum of their losses, and one for the change.

    Arguments:
        built: The program.
        groups: The groups to differentiate by.
        weights: The weights of each group.
        buffers: The decoders' buffers.
        x: Observations.
        factors: Their scaled factors.
        z: Latent samples of every member.
    """
    leaves = {
        group: [view.detach().requires_grad_(group in groups) for view in views(slots, weights[group])]
        for group, slots in built.slots.items()
    }
    fixed = {name for name, _ in built.narrow.named_parameters()} if built.learning.follow is not None else set()
    own = {
        f"{slot.module}.{slot.name}": leaf.detach().squeeze(0) if slot.name in fixed else leaf.squeeze(0)
        for slot, leaf in zip(built.slots[NETWORK], leaves[NETWORK], strict=True)
    }
    drawn = bind({NETWORK: built.network}, own, {})[NETWORK](factors)
    changed = add_reflected(x, built.learning.epsilon * drawn, images=built.images)
    targets = changed.repeat(built.learning.samples, *(1 for _ in x.shape[1:]))

    def one(leaves: list[Tensor], buffers: dict[str, Tensor], z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        parameters = {
            f"{slot.module}.{slot.name}": leaf for slot, leaf in zip(built.slots[DECODERS], leaves, strict=True)
        }
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        networks = Networks(built.model, bind(built.decoders, parameters, updated))
        return -networks.likelihood.log_density(targets, networks.decode(z)).mean(), updated

    mapped = vmap(one) if built.stacked else _one_after_another(one)
    losses, updated = mapped(leaves[DECODERS], buffers, z)
    entangled, disentangled = losses[: built.count].mean(), losses[built.count :].mean()
    gap = entangled - disentangled
    if built.learning.centred and NETWORK in groups:
        (force,) = torch.autograd.grad(gap, changed, retain_graph=True)
        gap = (changed * (force - force.mean(0))).sum()  # its gradient is the force without its mean
    minimised = {DECODERS: losses.sum(), NETWORK: gap}
    gradients = {
        group: list(
            torch.autograd.grad(
                minimised[group], leaves[group], retain_graph=True, allow_unused=True, materialize_grads=True
            )
        )
        for group in groups
    }
    return BilevelStepResult(gradients, losses.detach(), updated)


def _one_after_another(one: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a function of one member on the rows of stacks in turn: what `vmap` does, faster for large members."""

    def mapped(*stacks: Any) -> Any:
        rows = len(pytree.tree_leaves(stacks)[0])
        found = [one(*pytree.tree_map(lambda stack, row=row: stack[row], stacks)) for row in range(rows)]
        return pytree.tree_map(lambda *parts: torch.stack(parts), *found)

    return mapped


def make_step(
    built: Bilevel, state: State, inputs: BilevelStepInputs, precision: Precision | None = None
) -> Callable[[State, BilevelStepInputs], tuple[State, dict[str, Tensor]]]:
    """A function that takes one step: (state, inputs) → (state, terms).

    The state passed in is donated: its tensors are updated in place and returned.

    Arguments:
        built: The program.
        state: A state of the shapes, type and device to come; it is not changed here.
        inputs: Inputs of the shapes to come.
        precision: Type of products on the fast path; None is the plain path.
    """
    example = (state.weights, state.buffers, inputs.x[0], inputs.factors[0], inputs.z[0])

    def recorded(groups: tuple[str, ...]) -> Callable[..., BilevelStepResult]:
        if precision is None:
            return traced(partial(differentiate, built, groups), example)
        with Accelerated(precision):
            return traced(partial(differentiate, built, groups), example)

    batches = built.learning.decoder_batches
    alone, both = recorded((DECODERS,)) if batches > 1 else None, recorded((DECODERS, NETWORK))
    gradient = {group: torch.empty_like(weights) for group, weights in state.weights.items()}
    slices = {group: views(slots, gradient[group]) for group, slots in built.slots.items()}

    @torch.no_grad()
    def step(state: State, inputs: BilevelStepInputs) -> tuple[State, dict[str, Tensor]]:
        losses = inputs.x.new_empty(0)
        for batch in range(batches):
            replay = alone if alone is not None and batch < batches - 1 else both
            result = replay(state.weights, state.buffers, inputs.x[batch], inputs.factors[batch], inputs.z[batch])
            for group, parts in result.gradients.items():
                for view, part in zip(slices[group], parts, strict=True):
                    view.copy_(part)
                if group == NETWORK:
                    gradient[group].mul_(inputs.moves)
                row = batch if group == DECODERS else 0
                factors = {name: factor[row] for name, factor in inputs.coefficients[group].items()}
                built.optimizers[group].update(state.weights[group], gradient[group], state.moments[group], factors)
            for name, buffer in result.buffers.items():
                state.buffers[name].copy_(buffer)
            losses = result.losses
        entangled, disentangled = losses[: built.count].mean(), losses[built.count :].mean()
        terms = {"entangled": entangled, "disentangled": disentangled, "gap": entangled - disentangled}
        return state, {**terms, "reconstruction": losses}

    return step
