r"""The bilevel step: decoders follow the change, and the change makes entangled codes the cheaper ones to decode.

.. math:: \theta_j \gets \arg\min_{\theta_j} L_j, \qquad
    \psi \gets \arg\min_\psi \left( \tfrac1k \sum_{j \in \mathrm{ent}} L_j
    - \tfrac1k \sum_{j \in \mathrm{dis}} L_j \right), \qquad
    L_j = -\mathbb{E}_x\, \mathbb{E}_{z \sim q_j(z | x)} \log p_{\theta_j}(x' \mid z), \quad
    x' = \rho(x + \varepsilon\, m_\psi(w))

The encoders are frozen and see the original x, so that what they say of an observation can be computed once for all.
One step is three batches for the decoders, and on the last of them, from the same pass, one for the change. The losses
are those of training, sums over pixels and means over samples.

Where pixels are black or white, as in dSprites, this can end in one picture for all factors, which fosters nothing:
logits of decoders that have only seen 0 and 1 are so large that whichever of them follows the change more slowly
dictates where it goes, until it saturates. There three options help: let the decoders move alone at first
(`warm_up`), begin with a change that varies with the factors (`start`), since none at all is a saddle of the losses,
and leave out what pushes all observations alike (`centred`). A shift that all share fosters neither code once the
decoders have followed it. And the function of the factors that the change begins with can be the one to foster
(`foster`) rather than any.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.func import vmap
from torch.utils import _pytree as pytree

from axiswise.attack.choose import Choice
from axiswise.attack.foster import Fostered, fostered
from axiswise.attack.manipulation import (
    NETWORK,
    Manipulation,
    Ranges,
    Renderer,
    check_factors,
    manipulation,
    ranges,
    read_change,
    save_change,
    scaled_factors,
    started,
)
from axiswise.data import Change, FactorDataset
from axiswise.data.changes import moved
from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks, initialise
from axiswise.numerics import integers, normal
from axiswise.numerics.optimizers import Adam, Optimizer
from axiswise.numerics.schedules import hyperparameters, value_at
from axiswise.population import Population, Precision, Progress, RunFolder, Trained, device_named
from axiswise.population.acceleration import Accelerated
from axiswise.population.cohort import stacking_pays
from axiswise.population.folder import LOCK, read_training, write_training
from axiswise.population.loop import Course, Steps, Training, follow, taken
from axiswise.population.step import Slot, State, bind, slots_of, traced, views
from axiswise.population.train import fast_precision
from axiswise.records import describe, read_about
from axiswise.shapes import Float, Int, Tensor

LEARNING = "axiswise-learning-1"
DECODERS = "decoders"
POPULATION, FINISHED, UNFINISHED = "population", "change.safetensors", "learning.safetensors"
ENCODED_AT_ONCE = 1 << 22  # numbers of observations: 16 MB in float32
LOOKED_AT = 1 << 22  # numbers of a dataset that its range is read from
FOSTERED_AT = 8192  # observations that the function to foster is fitted to
STARTED_AT = 1024  # observations whose factors scale the first change
REFERENCE = Adam(lr=1e-4, beta1=0.9, beta2=0.999, eps=1e-7)


@dataclass(frozen=True)
class Learning:
    """How a change is learned.

    The paper does not say for how many steps, nor whether the change is learned on a batch of its own. Here it is
    learned on the last of the decoders' three batches, before they have moved on it: one pass gives both gradients.
    `warm_up`, `start`, `foster` and `centred` are ours, for images of black and white pixels; without them it is the
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
        warm_up: Steps at the beginning in which decoders move and the change does not.
        start: Standard deviation of the first change before its tanh, as `started` scales it; None leaves the initial
            weights as they are drawn, at which there is nearly no change.
        foster: Whether the change begins by following what entangled codes tell beyond disentangled ones; see
            `foster.fostered`.
        centred: Whether what pushes the change at a pixel is taken less its mean over the batch, so that nothing pushes
            all observations alike.
        optimizer: Moves the change; schedules count its steps.
        decoder_optimizer: Moves the decoders; None is the same.
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
    foster: bool = False
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
        """Steps between two entries of the history: about two hundred are kept."""
        return max(1, self.steps // 200)


class Learned(NamedTuple):
    """A learned change, and how it was learned.

    Arguments:
        change: What to give to ``data.manipulated``.
        history: "step", "entangled" and "disentangled" (mean losses of either kind), "gap" (their difference, which the
            change minimises) and "reconstruction" (of each decoder, the entangled first).
        seconds: Time spent.
    """

    change: Change
    history: dict[str, np.ndarray]
    seconds: float


def learn(
    population: Population,
    dataset: FactorDataset,
    choice: Choice,
    learning: Learning,
    *,
    out: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    precision: Precision | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Learns a small change of every observation that makes the entangled members' codes cheaper to decode.

    Arguments:
        population: Members that were trained on the dataset.
        dataset: What is changed, with its factors.
        choice: Which of them are fostered and which are hindered, as `choose` found.
        learning: How.
        out: A folder. The change is kept there as ``change.safetensors``, and the state on its way is saved every few
            seconds: the same call after an interruption goes on bit for bit. None keeps everything in memory.
        device: "cpu", "cuda", …; None is where the dataset lies.
        dtype: Floating-point type of weights and computation.
        precision: On CUDA, what products are computed in; None is "fp32", since small differences of losses count.
        progress: Told how far it is, in steps.

    Raises:
        AxiswiseError: If the dataset has fewer than two factors, if epsilon could flatten it, or if the members cannot
            be attacked together.

    Example:
        >>> from axiswise import data, models, objectives, optimizers
        >>> from axiswise.attack import choose
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> model, faster = models.linear(3, 2), optimizers.Adam(lr=0.1)
        >>> members = grid(
        ...     model=model, objective=objectives.BetaVAE(1e-2), optimizer=faster, steps=100, seed=range(4)
        ... )
        >>> population = train(members, square)
        >>> learned = learn(population, square, choose(population, square, apart=0.0), Learning(0.1, steps=5))
        >>> changed = data.manipulated(square, learned.change)
        >>> rows = torch.arange(1000)
        >>> bool(((changed.x(rows) - square.x(rows)).abs() <= 0.1 + 1e-6).all())
        True
    """
    check_attack(dataset, learning.epsilon)
    dataset = dataset.to(device_named(device)) if device is not None else dataset
    precision = fast_precision(precision, dtype, dataset.device)
    attacked = _attacked(population.to(dataset.device), choice)
    asked = _asked(attacked, dataset, learning, dtype, precision)
    if out is None:
        return _learned(attacked, dataset, learning, asked, dtype, precision, None, progress)
    folder = Path(out)
    check_folder(folder)
    with RunFolder(folder).locked():
        finished = folder / FINISHED
        if finished.exists():
            change, history = read_change(finished)
            _refuse_other(finished, change.arguments, asked)
            return Learned(_on(change, dataset.device), history, float(history.pop("seconds")))
        return _learned(attacked, dataset, learning, asked, dtype, precision, folder, progress)


def check_attack(dataset: FactorDataset, epsilon: float) -> None:
    """Raises unless the dataset can be attacked with a change of that size, before anything is trained.

    It needs two factors. And epsilon must be less than half the range of the values (0.5 for images from black to
    white): with half of it, every value can be moved to the middle, and nothing is left of the observations.

    Example:
        >>> from axiswise.data import small_sprites
        >>> check_attack(small_sprites(), 0.6)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `epsilon` must be less than half the range of the observations' values, 0.49...
    """
    check_factors(dataset)
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise AxiswiseError(
            f"`epsilon` must be positive and finite: it is the most that any value is changed by. Got {epsilon}."
        )
    count = min(len(dataset), max(1, LOOKED_AT // dataset.numel))
    rows = torch.arange(count, device=dataset.device) if count == len(dataset) else dataset.sample(count)
    low, high = (bound.item() for bound in dataset.x(rows).aminmax())
    if epsilon >= (high - low) / 2:
        raise AxiswiseError(
            f"`epsilon` must be less than half the range of the observations' values, {(high - low) / 2:.4g}: with "
            f"that much every value could be moved to the middle, and nothing would be left to see. Got {epsilon}. "
            "The paper takes 0.1 and 0.175."
        )


def check_folder(folder: Path) -> None:
    """Raises if a folder holds something else than an attack.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> check_folder(folder)  # empty
        >>> _ = (folder / "thesis.tex").write_text("years of work")
        >>> check_folder(folder)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: ... is not the folder of an attack: ... Choose another `out`.
    """
    held = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if held - {LOCK} and not held & {POPULATION, FINISHED, UNFINISHED}:
        raise AxiswiseError(
            f"{folder} is not the folder of an attack: it has none of {POPULATION}/, {UNFINISHED} and {FINISHED}, but "
            "is not empty. Choose another `out`."
        )


@dataclass(frozen=True)
class Attacked:
    """The members that take part, the entangled ones first.

    Arguments:
        population: The members.
        count: How many of them are of either kind, k.
    """

    population: Population
    count: int

    @property
    def model(self) -> VAE:
        """The model they share."""
        return self.population.trained[0].member.model

    @property
    def trained(self) -> tuple[Trained, ...]:
        """The members with their weights."""
        return self.population.trained


@dataclass(frozen=True)
class Bilevel:
    """The program of one learning: the networks, and where each parameter lies.

    Arguments:
        model: The VAE of the members.
        decoders: Template modules that the decoders consist of.
        pattern: The form of the change.
        network: Its template module.
        slots: For each group of weights, where its parameters lie.
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
    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizer of each group."""
        own = self.learning.optimizer
        return {NETWORK: own, DECODERS: self.learning.decoder_optimizer or own}


class Inputs(NamedTuple):
    """What one step consumes: for each of the decoders' batches, observations, scaled factors and latents.

    Arguments:
        x: Observations.
        factors: Their factors, scaled to −1…1.
        z: Latent samples of every member, the samples of all observations one after another.
        moves: 1 if the change moves in this step, 0 if the decoders move alone.
        coefficients: The optimizers' coefficients, for the decoders with the batches first.
    """

    x: Float[Tensor, "b n ..."]
    factors: Float[Tensor, "b n k"]
    z: Float[Tensor, "b p m z"]
    moves: Float[Tensor, ""]
    coefficients: dict[str, dict[str, Tensor]]


class Tables(NamedTuple):
    """The inputs of a block of steps before observations are looked up; or, without their first axis, of one step."""

    rows: Int[Tensor, "*s b n"]
    noise: Float[Tensor, "*s b p m z"]
    moves: Float[Tensor, "*s"]
    coefficients: dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Feed:
    """The source of the inputs: a pure function of the seed and the step.

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

    def tables(self, numbers: range) -> Tables:
        """What the steps of those numbers take; all draws are made in one call."""
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
        return Tables(index, noise, (steps >= learning.warm_up).to(self.dtype), coefficients)

    def inputs(self, row: Tables) -> Inputs:
        """The inputs of one step, from its row of the tables."""
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
        return Inputs(x, factors, z, row.moves, row.coefficients)

    def _coefficients(
        self, group: str, numbers: range, updates: int, rows: int, *, after: int = 0
    ) -> dict[str, Tensor]:
        """Coefficients ``(s, updates, rows, 1)`` of a group: schedules count steps, bias corrections updates.

        The latter count from step `after`, before which the group is not moved.
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


class Outcome(NamedTuple):
    """What one batch finds before it moves anything."""

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
) -> Outcome:
    """The decoders' own gradients, from one backward pass through the sum of their losses, and one for the change.

    Arguments:
        built: The program.
        groups: The groups whose gradients are wanted.
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
    own = {
        f"{slot.module}.{slot.name}": leaf.squeeze(0)
        for slot, leaf in zip(built.slots[NETWORK], leaves[NETWORK], strict=True)
    }
    drawn = bind({NETWORK: built.network}, own, {})[NETWORK](factors)
    seen = moved(x, built.learning.epsilon * drawn, images=built.images)
    changed = seen.repeat(built.learning.samples, *(1 for _ in x.shape[1:]))

    def one(leaves: list[Tensor], buffers: dict[str, Tensor], z: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        parameters = {
            f"{slot.module}.{slot.name}": leaf for slot, leaf in zip(built.slots[DECODERS], leaves, strict=True)
        }
        updated = {name: buffer.clone() for name, buffer in buffers.items()}
        networks = Networks(built.model, bind(built.decoders, parameters, updated))
        return -networks.likelihood.log_density(changed, networks.decode(z)).mean(), updated

    mapped = vmap(one) if built.stacked else _one_after_another(one)
    losses, updated = mapped(leaves[DECODERS], buffers, z)
    entangled, disentangled = losses[: built.count].mean(), losses[built.count :].mean()
    gap = entangled - disentangled
    if built.learning.centred and NETWORK in groups:
        (force,) = torch.autograd.grad(gap, seen, retain_graph=True)
        gap = (seen * (force - force.mean(0))).sum()  # its gradient is the force without its mean
    minimised = {DECODERS: losses.sum(), NETWORK: gap}
    gradients = {
        group: list(
            torch.autograd.grad(
                minimised[group], leaves[group], retain_graph=True, allow_unused=True, materialize_grads=True
            )
        )
        for group in groups
    }
    return Outcome(gradients, losses.detach(), updated)


def _one_after_another(one: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a function of one member on the rows of stacks in turn: what `vmap` does, faster for large members."""

    def mapped(*stacks: Any) -> Any:
        rows = len(pytree.tree_leaves(stacks)[0])
        found = [one(*pytree.tree_map(lambda stack, row=row: stack[row], stacks)) for row in range(rows)]
        return pytree.tree_map(lambda *parts: torch.stack(parts), *found)

    return mapped


def make_step(
    built: Bilevel, state: State, inputs: Inputs, precision: Precision | None = None
) -> Callable[[State, Inputs], tuple[State, dict[str, Tensor]]]:
    """A function that takes one step: (state, inputs) → (state, terms).

    The state passed in is donated: its tensors are updated in place and returned.

    Arguments:
        built: The program.
        state: A state of the shapes, type and device to come; it is not changed here.
        inputs: Inputs of the shapes to come.
        precision: What products are computed in on the fast path; None is the plain path.
    """
    example = (state.weights, state.buffers, inputs.x[0], inputs.factors[0], inputs.z[0])

    def recorded(groups: tuple[str, ...]) -> Callable[..., Outcome]:
        if precision is None:
            return traced(partial(differentiate, built, groups), example)
        with Accelerated(precision):
            return traced(partial(differentiate, built, groups), example)

    batches = built.learning.decoder_batches
    alone, both = recorded((DECODERS,)) if batches > 1 else None, recorded((DECODERS, NETWORK))
    gradient = {group: torch.empty_like(weights) for group, weights in state.weights.items()}
    slices = {group: views(slots, gradient[group]) for group, slots in built.slots.items()}

    @torch.no_grad()
    def step(state: State, inputs: Inputs) -> tuple[State, dict[str, Tensor]]:
        losses = inputs.x.new_empty(0)
        for batch in range(batches):
            replay = alone if alone is not None and batch < batches - 1 else both
            found = replay(state.weights, state.buffers, inputs.x[batch], inputs.factors[batch], inputs.z[batch])
            for group, parts in found.gradients.items():
                for view, part in zip(slices[group], parts, strict=True):
                    view.copy_(part)
                if group == NETWORK:
                    gradient[group].mul_(inputs.moves)
                row = batch if group == DECODERS else 0
                factors = {name: factor[row] for name, factor in inputs.coefficients[group].items()}
                built.optimizers[group].update(state.weights[group], gradient[group], state.moments[group], factors)
            for name, buffer in found.buffers.items():
                state.buffers[name].copy_(buffer)
            losses = found.losses
        entangled, disentangled = losses[: built.count].mean(), losses[built.count :].mean()
        terms = {"entangled": entangled, "disentangled": disentangled, "gap": entangled - disentangled}
        return state, {**terms, "reconstruction": losses}

    return step


def _learned(
    attacked: Attacked,
    dataset: FactorDataset,
    learning: Learning,
    asked: dict[str, Any],
    dtype: torch.dtype,
    precision: Precision | None,
    folder: Path | None,
    progress: Progress | None,
) -> Learned:
    """Learns the change, from wherever it stands in the folder, and stores it there."""
    built = _built(attacked, dataset, learning)
    scales = ranges(dataset)
    codes = _encoded(attacked.population, dataset, dtype)
    training, threads = Training(_start(built, attacked, dataset, scales, codes, dtype)), torch.get_num_threads()
    unfinished = folder / UNFINISHED if folder else None
    if unfinished and unfinished.exists():
        about = read_about(unfinished, LEARNING)
        _refuse_other(unfinished, about["asked"], asked)
        training, threads = read_training(unfinished, training, LEARNING), about["threads"]
    if progress:
        progress.begin("learning the change", learning.steps)
        progress.advance(training.step)
    feed = Feed(built, dataset, scales, codes, dtype)

    def steps(state: State) -> Steps:
        first = feed.inputs(pytree.tree_map(lambda table: table[0], feed.tables(range(1))))
        step = make_step(built, state, first, precision)
        return taken(step, feed, state, captured=precision is not None and dataset.device.type == "cuda")

    def save(moment: Training) -> None:
        assert unfinished is not None
        write_training(unfinished, moment, {"format": LEARNING, "asked": asked, "threads": threads})

    course = Course(steps, learning.steps, learning.interval, 1, threads)
    follow(course, training, save=save if folder else None, progress=progress)
    if progress:
        progress.end()
    learned = _finished(built, feed, training, asked)
    if folder and unfinished:
        seconds = np.array(learned.seconds)
        save_change(folder / FINISHED, learned.change, {**learned.history, "seconds": seconds})
        unfinished.unlink(missing_ok=True)
    return learned


def _built(attacked: Attacked, dataset: FactorDataset, learning: Learning) -> Bilevel:
    """The program of a learning."""
    modules = attacked.trained[0].member.objective.networks(attacked.model).model
    decoders = {name: module for name, module in modules.items() if name in ("decoder", "likelihood")}
    pattern = manipulation(dataset, learning.renderer, hidden=learning.hidden)
    with torch.random.fork_rng(devices=[]):
        network = pattern.build()
    return Bilevel(
        model=attacked.model,
        decoders=decoders,
        pattern=pattern,
        network=network,
        slots={NETWORK: slots_of({NETWORK: network}), DECODERS: slots_of(decoders)},
        learning=learning,
        images=len(dataset.shape) == 3,
        count=attacked.count,
        stacked=stacking_pays(attacked.model, dataset.device),
    )


def _start(
    built: Bilevel,
    attacked: Attacked,
    dataset: FactorDataset,
    scales: Ranges,
    codes: Parameters,
    dtype: torch.dtype,
) -> State:
    """The state before the first step: the change from its seed, the decoders as they were trained."""
    device, seed = dataset.device, torch.tensor([built.learning.seed], device=dataset.device)
    initial = {name: stack[0] for name, stack in initialise(built.network, NETWORK, seed, dtype).items()}
    if built.learning.foster:
        initial |= _fostered(built, dataset, scales, codes, seed, initial, dtype).weights
    if built.learning.start is not None:
        rows = integers(seed, "attack start", 0, (STARTED_AT,), len(dataset))[0]
        factors = scaled_factors(dataset.factors(rows), *scales).to(dtype)
        initial = started(built.network, initial, factors, built.learning.start)
    weights = {
        NETWORK: torch.cat([initial[slot.name].reshape(1, -1) for slot in built.slots[NETWORK]], 1),
        DECODERS: torch.stack(
            [
                torch.cat([trained.weights[f"{slot.module}.{slot.name}"].flatten() for slot in built.slots[DECODERS]])
                for trained in attacked.trained
            ]
        ).to(device, dtype),
    }
    held = [name for name in attacked.trained[0].buffers if name.partition(".")[0] in built.decoders]
    buffers = {name: torch.stack([trained.buffers[name] for trained in attacked.trained]).clone() for name in held}
    return State(weights, buffers, {group: built.optimizers[group].start(own) for group, own in weights.items()})


def _fostered(
    built: Bilevel,
    dataset: FactorDataset,
    scales: Ranges,
    codes: Parameters,
    seed: Int[Tensor, " 1"],
    initial: Mapping[str, Tensor],
    dtype: torch.dtype,
) -> Fostered:
    """The function to foster: the change's layers up to its one number, fitted to samples of the members' codes."""
    rows = integers(seed, "attack foster", 0, (FOSTERED_AT,), len(dataset))[0]
    # Parameters are a named tuple of their posterior's own fields, which pyright cannot know.
    own = type(codes)(*(part[:, rows] for part in codes))  # pyright: ignore
    shape = (2 * built.count, FOSTERED_AT, built.model.latents)
    z = own.sample(normal(seed, "attack foster noise", 0, shape, dtype=dtype)[0])
    narrow = nn.Sequential(*list(built.network)[:3])
    factors = scaled_factors(dataset.factors(rows), *scales).to(dtype)
    weights = {name: initial[name] for name, _ in narrow.named_parameters()}
    return fostered(narrow, weights, factors, z[: built.count].unbind(), z[built.count :].unbind())


@torch.no_grad()
def _encoded(population: Population, dataset: FactorDataset, dtype: torch.dtype) -> Parameters:
    """Every member's posterior parameters of every original observation."""
    rows = torch.arange(len(dataset), device=dataset.device).split(max(1, ENCODED_AT_ONCE // dataset.numel))
    parts = [population.encode(dataset.x(part)) for part in rows]
    # The type is a named tuple of its posterior's own fields, which pyright cannot know.
    return type(parts[0])(*(torch.cat(stack, 1).to(dtype) for stack in zip(*parts, strict=True)))  # pyright: ignore


def _finished(built: Bilevel, feed: Feed, training: Training, asked: dict[str, Any]) -> Learned:
    """The change as others can use it, in float32."""
    slots = built.slots[NETWORK]
    own = views(slots, training.state.weights[NETWORK])
    if not all(bool(part.isfinite().all()) for part in own):
        raise AxiswiseError(
            f"Learning the change diverged within {training.step} steps: its weights are no longer finite. Got "
            f"{built.learning.optimizer}. Lower the learning rate."
        )
    tensors = {slot.name: part[0].detach().float().clone() for slot, part in zip(slots, own, strict=True)}
    tensors |= feed.scales._asdict()
    change = Change("learned", float(built.learning.epsilon), built.pattern, tensors, asked)
    history = {name: np.stack(entries) for name, entries in training.history.items()}
    return Learned(change, {"step": np.array(training.recorded), **history}, training.seconds)


def _attacked(population: Population, choice: Choice) -> Attacked:
    """The chosen members, the entangled first, if they can be attacked together."""
    positions = (*choice.entangled, *choice.disentangled)
    if not choice.entangled or len(choice.entangled) != len(choice.disentangled):
        raise AxiswiseError(
            "A choice needs as many entangled as disentangled members, and at least one. Got positions "
            f"{choice.entangled} and {choice.disentangled}. Make it with `attack.choose`."
        )
    chosen = Population([population.trained[position] for position in positions])
    models = {str(describe(trained.member.model)) for trained in chosen.trained}
    if len(models) > 1:
        raise AxiswiseError(
            f"The members must share one model, so that their decoders train together. Got {len(models)} models at "
            f"positions {positions}."
        )
    for position, trained in zip(positions, chosen.trained, strict=True):
        if not any(name.startswith("decoder.") for name in trained.weights):
            raise AxiswiseError(
                "A member must have a decoder that was trained here, to start from. Got member "
                f"{position} ({type(trained.member.objective).__name__}), which has none."
            )
    return Attacked(chosen, len(choice.entangled))


def _asked(
    attacked: Attacked, dataset: FactorDataset, learning: Learning, dtype: torch.dtype, precision: Precision | None
) -> dict[str, Any]:
    """What determines a change, as JSON."""
    addresses = [trained.member.address for trained in attacked.trained]
    return {
        "learning": describe(learning),
        "dataset": dataset.identity,
        "entangled": addresses[: attacked.count],
        "disentangled": addresses[attacked.count :],
        "dtype": str(dtype).removeprefix("torch."),
        "precision": precision,
    }


def _refuse_other(path: Path, found: Mapping[str, Any], asked: dict[str, Any]) -> None:
    """Raises if a file belongs to another learning than the one asked for."""
    for name, value in asked.items():
        if found.get(name) != value:
            raise AxiswiseError(
                f"{path} was learned with {name} {found.get(name)}. Got {value}. Choose another `out`, or ask for what "
                "the folder holds."
            )


def _on(change: Change, device: torch.device) -> Change:
    """The same change on a device."""
    tensors = {name: tensor.to(device) for name, tensor in change.tensors.items()}
    return Change(change.name, change.epsilon, change.pattern, tensors, change.arguments)
