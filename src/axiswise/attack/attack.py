"""The whole attack: train, choose, learn."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.attack._bilevel import Learning
from axiswise.attack.choose import Choice, Ranking, choose, table
from axiswise.attack.learn import Learned, check_attack, check_folder, learn
from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.population import Member, Population, Precision, Progress, train
from axiswise.population._device import choose_device
from axiswise.population._folder import RunFolder
from axiswise.records._layout import POPULATION_FOLDER


class Attack(NamedTuple):
    """An attack on a dataset.

    Arguments:
        population: The members that were trained on the original.
        choice: Their ranking, and which of them the change favours and disfavours.
        learned: The change.
    """

    population: Population
    choice: Choice
    learned: Learned


@checked
def attack(
    dataset: FactorDataset,
    members: Sequence[Member],
    learning: Learning,
    *,
    count: int = 1,
    by: Ranking | None = None,
    apart: float = 0.1,
    out: str | Path | None = None,
    device: str | torch.device | None = None,
    dtype: torch.dtype = torch.float32,
    precision: Precision | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Attack:
    """Finds how VAEs entangle a dataset, and learns a small change of it that makes them do so.

    Members are trained on the dataset, ranked by how disentangled they are, and a change is learned that makes the
    codes of the least disentangled cheaper to decode than those of the most disentangled. Arguments are checked before
    anything is trained.

    ::

        population/          the run folder of the members
        change.safetensors   the learned change, which `load_change` reads
        learning.safetensors the state of unfinished learning

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, sections
        4.2 to 4.4.

    Arguments:
        dataset: The dataset to attack, with its factors.
        members: Members to train on it: restarts of a β-VAE with as many latents as there are factors.
        learning: How the change is learned; epsilon is its size.
        count: Number of members of either kind, k: 1 for dSprites, 4 for Shapes3D.
        by: The score that ranks members, "mig" or "udr".
        apart: By how much the scores of both kinds must differ; see `choose`.
        out: A folder; the same call resumes, bit for bit. None stores nothing.
        device: "cpu", "cuda", …; None is the best there is, as for `train`.
        dtype: Floating-point type of weights and computation.
        precision: On CUDA, the type of products.
        progress: Receives how far training and learning are.
        log: Called with the device, and with the ranking.

    Example:
        >>> from axiswise import data, models, objectives, optimizers
        >>> from axiswise.population import grid
        >>> square = data.synth_linear(samples=1000)
        >>> model, faster = models.linear(3, 2), optimizers.Adam(lr=0.1)
        >>> members = grid(
        ...     model=model, objective=objectives.BetaVAE(1e-2), optimizer=faster, steps=100, seed=range(4)
        ... )
        >>> found = attack(square, members, Learning(0.1, steps=5), apart=0.0)
        >>> len(found.choice.ranking), found.learned.change.epsilon
        (4, 0.1)
    """
    check_attack(dataset, learning.epsilon)
    if len(members) < 2 * count:
        raise AxiswiseError(
            f"An attack with {count} members of either kind needs {2 * count} to choose from, and gains by more. "
            f"Got {len(members)}. Add seeds."
        )
    needed = sum(factor.size is None or factor.size > 1 for factor in dataset.space.factors)
    few = [member for member in members if member.model.latents < needed]
    if few:
        raise AxiswiseError(
            f"Members need a latent for each of {needed} factors: with fewer, all would be set aside as over-pruned. "
            f"Got {few[0].model.latents} latents."
        )
    folder = Path(out) if out is not None else None
    if folder:
        check_folder(folder)
    settings: dict[str, Any] = {"dtype": dtype, "precision": precision, "progress": progress}
    place = folder / POPULATION_FOLDER if folder else None
    begun_on = RunFolder(place).begun_on(dataset.device) if place else None
    target = choose_device(device, dataset.device, begun_on=begun_on)
    dataset, settings["device"] = dataset.to(target), target
    log(f"training on {target}")
    population = train(members, dataset, out=place, **settings)
    choice = choose(population, dataset, count=count, by=by, apart=apart)
    log(table(choice))
    return Attack(population, choice, learn(population, dataset, choice, learning, out=folder, **settings))
