"""A change learned from start to end: the attacked members, the initial state, and the folder."""

import math
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.attack._bilevel import Batches, Bilevel, Learning, bilevel_program
from axiswise.attack._latent import following, most_mixed
from axiswise.attack.choose import Choice
from axiswise.attack.manipulation import (
    NETWORK,
    Ranges,
    check_factors,
    manipulation,
    ranges,
    read_change,
    save_change,
    scaled_factors,
    started,
)
from axiswise.data import Change, FactorDataset
from axiswise.data.dataset import value_range
from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, initialise
from axiswise.numerics import integers, normal
from axiswise.population import Population, Precision, Progress
from axiswise.population._cohort import stacking_pays
from axiswise.population._folder import RunFolder
from axiswise.population._preparation import fast_precision
from axiswise.population._trained import Trained
from axiswise.population.loop import Finished, Loop
from axiswise.population.population import device_for
from axiswise.records import describe, read_tensors, write_tensors
from axiswise.records._layout import CHANGE_FILE, LEARNING, LEARNING_FILE, LOCK, PARTIAL, POPULATION_FOLDER
from axiswise.shapes import Int, Tensor

ENCODED_AT_ONCE = 1 << 22  # numbers of observations: 16 MB in float32
FOLLOWED_AT = 8192  # observations that the latent to follow is read from
STARTED_AT = 1024  # observations whose factors scale the first change


class Learned(NamedTuple):
    """A learned change, and how it was learned.

    Arguments:
        change: The change, an argument of ``data.manipulated``.
        history: "step", "entangled" and "disentangled" (mean losses of either kind), "gap" (their difference, which the
            change minimises) and "reconstruction" (of each decoder, the entangled first).
        seconds: Time spent.
    """

    change: Change
    history: dict[str, np.ndarray]
    seconds: float


@checked
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
        dataset: The dataset to change, with its factors.
        choice: Which of them the change favours and disfavours, from `choose`.
        learning: How the change is learned.
        out: A folder. The change is stored there as ``change.safetensors``, and the unfinished state is saved every few
            seconds: the same call after an interruption resumes bit for bit. None stores nothing.
        device: "cpu", "cuda", …; None is where dataset or population were moved to, else where members were trained.
        dtype: Floating-point type of weights and computation.
        precision: On CUDA, the type of products; None is "fp32", since small differences of losses count.
        progress: Receives how far it is, in steps.

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
    dataset = dataset.to(device_for(population, dataset.device, device))
    precision = fast_precision(precision, dtype, dataset.device)
    attacked = _attacked(population.to(dataset.device), choice)
    if learning.follow not in (None, "mixed", *range(attacked.model.latents)):
        raise AxiswiseError(
            f'`follow` must be a latent of the attacked members, 0 to {attacked.model.latents - 1}, or "mixed", or '
            f"None. Got {learning.follow!r}."
        )
    arguments = _arguments(attacked, dataset, learning, dtype, precision)
    if out is None:
        return _learned(attacked, dataset, learning, arguments, dtype, precision, None, progress)
    folder = Path(out)
    check_folder(folder)
    finished = folder / CHANGE_FILE
    with nullcontext() if finished.exists() else RunFolder(folder).locked():
        if finished.exists():
            change, history = read_change(finished)
            _refuse_other(finished, change.arguments, arguments)
            return Learned(_on(change, dataset.device), history, float(history.pop("seconds")))
        return _learned(attacked, dataset, learning, arguments, dtype, precision, folder, progress)


def check_attack(dataset: FactorDataset, epsilon: float) -> None:
    """Raises unless the dataset can be attacked with a change of that size, before anything is trained.

    It needs two factors. And epsilon must be less than half the range of the values (0.5 for images from black to
    white): with half of it, every value can be moved to the middle, which erases the observations.

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
    low, high = value_range(dataset)
    if epsilon >= (high - low) / 2:
        raise AxiswiseError(
            f"`epsilon` must be less than half the range of the observations' values, {(high - low) / 2:.4g}: with "
            f"that much every value could be moved to the middle, which erases the images. Got {epsilon}. "
            "The paper takes 0.1 and 0.175."
        )


def check_folder(folder: Path) -> None:
    """Raises if a folder contains anything but an attack.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> check_folder(folder)  # empty
        >>> _ = (folder / "thesis.tex").write_text("years of work")
        >>> check_folder(folder)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: ... is not the folder of an attack: ... Choose another `out`.
    """
    found = folder.iterdir() if folder.is_dir() else ()
    names = {path.name for path in found if not path.name.endswith(PARTIAL)}  # a killed process leaves those
    if names - {LOCK} and not names & {POPULATION_FOLDER, CHANGE_FILE, LEARNING_FILE}:
        raise AxiswiseError(
            f"{folder} is not the folder of an attack: it has none of {POPULATION_FOLDER}/, {LEARNING_FILE} and "
            f"{CHANGE_FILE}, but is not empty. Choose another `out`."
        )


@dataclass(frozen=True)
class Attacked:
    """The attacked members, the entangled ones first.

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


def _learned(
    attacked: Attacked,
    dataset: FactorDataset,
    learning: Learning,
    arguments: dict[str, Any],
    dtype: torch.dtype,
    precision: Precision | None,
    folder: Path | None,
    progress: Progress | None,
) -> Learned:
    """Learns the change, from the state in the folder if there is one, and stores it there."""
    built, scales = _built(attacked, dataset, learning), ranges(dataset)
    batches = Batches(built, dataset, scales, _encoded(attacked.population, dataset, dtype), dtype)
    unfinished = folder / LEARNING_FILE if folder else None
    saved = read_tensors(unfinished, LEARNING, LearningForm) if unfinished and unfinished.exists() else None
    if unfinished and saved:
        _refuse_other(unfinished, saved.about["asked"], arguments)
    threads = saved.about["threads"] if saved else torch.get_num_threads()
    loop = Loop(bilevel_program(batches, threads, precision), *_initial(batches, attacked))
    if saved:
        loop.resume(saved, str(unfinished))
    if progress:
        progress.begin("learning the change", learning.steps)
        progress.advance(loop.step)

    def save() -> None:
        assert unfinished is not None
        arrays, about = loop.state()
        write_tensors(unfinished, arrays, {"format": LEARNING, "asked": arguments, "threads": threads, **about})

    shown = progress.advance if progress else lambda steps: None
    try:
        loop.advance(save=save if folder else None, on_block=lambda numbers: shown(len(numbers)))
    finally:
        if progress:
            progress.end()
    learned = _learned_change(built, scales, loop.finish(), arguments)
    if folder and unfinished:
        seconds = np.array(learned.seconds)
        save_change(folder / CHANGE_FILE, learned.change, {**learned.history, "seconds": seconds})
        unfinished.unlink(missing_ok=True)
    return learned


class LearningForm(TypedDict):
    """What the state of an unfinished learning says of it."""

    asked: dict[str, Any]
    threads: int
    step: int
    seconds: float


def _built(attacked: Attacked, dataset: FactorDataset, learning: Learning) -> Bilevel:
    """The networks of a learning."""
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
        learning=learning,
        images=len(dataset.shape) == 3,
        count=attacked.count,
        stacked=stacking_pays(attacked.model, dataset.device),
    )


def _initial(batches: Batches, attacked: Attacked) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Weights and buffers before the first step: the change from its seed, the decoders as they were trained."""
    built, dataset, dtype = batches.built, batches.dataset, batches.dtype
    seed = torch.tensor([built.learning.seed], device=dataset.device)
    initial = {name: stack[0] for name, stack in initialise(built.network, NETWORK, seed, dtype).items()}
    if built.learning.follow is not None:
        initial |= _following(batches, seed, initial)
    if built.learning.start is not None:
        rows = integers(seed, "attack start", 0, (STARTED_AT,), len(dataset))[0]
        factors = scaled_factors(dataset.factors(rows), *batches.scales).to(dtype)
        initial = started(built.network, initial, factors, built.learning.start)
    weights = {f"{NETWORK}.{name}": weight[None] for name, weight in initial.items()}
    own = [name for name in attacked.trained[0].weights if name.partition(".")[0] in built.decoders]
    weights |= {
        name: torch.stack([trained.weights[name] for trained in attacked.trained]).to(dataset.device, dtype)
        for name in own
    }
    names = [name for name in attacked.trained[0].buffers if name.partition(".")[0] in built.decoders]
    return weights, {name: torch.stack([trained.buffers[name] for trained in attacked.trained]) for name in names}


def _following(batches: Batches, seed: Int[Tensor, " 1"], initial: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights of the change up to its one number, which follows a latent of the first entangled member."""
    built, dataset, dtype = batches.built, batches.dataset, batches.dtype
    rows = integers(seed, "attack follow", 0, (FOLLOWED_AT,), len(dataset))[0]
    # Parameters are a named tuple of their posterior's own fields, which pyright cannot know.
    own = type(batches.codes)(*(part[0, rows] for part in batches.codes))  # pyright: ignore
    z = own.sample(normal(seed, "attack follow noise", 0, (FOLLOWED_AT, built.model.latents), dtype=dtype)[0])
    factors = scaled_factors(dataset.factors(rows), *batches.scales).to(dtype)
    weights = {name: initial[name] for name, _ in built.narrow.named_parameters()}
    latent = built.learning.follow
    if latent == "mixed":
        latent = most_mixed(own.mean, dataset.factors(rows), dataset.space.kinds)
    return following(built.narrow, weights, factors, z[:, latent])


@torch.no_grad()
def _encoded(population: Population, dataset: FactorDataset, dtype: torch.dtype) -> Parameters:
    """Every member's posterior parameters of every original observation."""
    rows = torch.arange(len(dataset), device=dataset.device).split(max(1, ENCODED_AT_ONCE // dataset.numel))
    parts = [population.encode(dataset.x(part)) for part in rows]
    # The type is a named tuple of its posterior's own fields, which pyright cannot know.
    return type(parts[0])(*(torch.cat(stack, 1).to(dtype) for stack in zip(*parts, strict=True)))  # pyright: ignore


def _learned_change(built: Bilevel, scales: Ranges, finished: Finished, arguments: dict[str, Any]) -> Learned:
    """The change in float32, with its history."""
    own = {name: finished.weights[f"{NETWORK}.{name}"] for name, _ in built.network.named_parameters()}
    if not all(bool(weight.isfinite().all()) for weight in own.values()):
        raise AxiswiseError(
            f"Learning the change diverged within {built.learning.steps} steps: its weights are no longer finite. Got "
            f"{built.learning.optimizer}. Lower the learning rate."
        )
    tensors = {
        name: weight[0].detach().float().clone(memory_format=torch.contiguous_format) for name, weight in own.items()
    } | scales._asdict()
    change = Change("learned", float(built.learning.epsilon), built.pattern, tensors, arguments)
    return Learned(change, finished.history, finished.seconds)


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


def _arguments(
    attacked: Attacked, dataset: FactorDataset, learning: Learning, dtype: torch.dtype, precision: Precision | None
) -> dict[str, Any]:
    """Everything that determines a change, as JSON."""
    addresses = [trained.member.address for trained in attacked.trained]
    return {
        "learning": describe(learning),
        "dataset": dataset.identity,
        "entangled": addresses[: attacked.count],
        "disentangled": addresses[attacked.count :],
        "dtype": str(dtype).removeprefix("torch."),
        "precision": precision,
    }


def _refuse_other(path: Path, found: Mapping[str, Any], arguments: dict[str, Any]) -> None:
    """Raises if a file belongs to a learning with other arguments."""
    for name, value in arguments.items():
        if found.get(name) != value:
            raise AxiswiseError(
                f"{path} was learned with {name} {found.get(name)}. Got {value}. Choose another `out`, or learn with "
                "the same as before."
            )


def _on(change: Change, device: torch.device) -> Change:
    """The same change on a device."""
    tensors = {name: tensor.to(device) for name, tensor in change.tensors.items()}
    return Change(change.name, change.epsilon, change.pattern, tensors, change.arguments)
