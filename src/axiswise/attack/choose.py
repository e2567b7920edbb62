"""Which members of a population to attack: the most and the least disentangled of those that code every factor."""

from typing import Literal, NamedTuple

from axiswise._arguments import checked
from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.evaluation import evaluate
from axiswise.population import Population
from axiswise.scores import active_units, mig, udr

Ranking = Literal["mig", "udr"]


class Ranked(NamedTuple):
    """A member's place in a ranking.

    Arguments:
        position: Its position in the population.
        seed: Its seed.
        score: Its score; None if it has none.
        active: Number of active latents; None if it is unknown.
        set_aside: Why it was set aside; None if it was not.
    """

    position: int
    seed: int
    score: float | None
    active: int | None
    set_aside: str | None = None


class Choice(NamedTuple):
    """The members to attack with, and the ranking they were chosen from.

    Arguments:
        disentangled: Positions of the most disentangled members, best first.
        entangled: Positions of the least disentangled members, worst first.
        ranking: Every member that was ranked, best first.
        set_aside: Every member that was not, with the reason.
        by: The score.
    """

    disentangled: tuple[int, ...]
    entangled: tuple[int, ...]
    ranking: tuple[Ranked, ...]
    set_aside: tuple[Ranked, ...]
    by: Ranking


@checked
def choose(
    population: Population,
    dataset: FactorDataset,
    *,
    count: int = 1,
    by: Ranking | None = None,
    apart: float = 0.1,
    points: int = 10_000,
    seed: int = 0,
) -> Choice:
    """Ranks members by how disentangled they are, and chooses the first and the last.

    Members that diverged are set aside, and over-pruned ones, which have fewer active latents (E σ² < 0.8) than there
    are factors: they score low, but not because their latents are rotated.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, sections
        4.3 and 5.3; k = 1 for dSprites and 4 for Shapes3D, appendix B.1.

    Arguments:
        population: The members.
        dataset: The dataset they were trained on.
        count: How many to choose from either end, k.
        by: "mig"; or "udr", which needs no factors. None is MIG where the dataset has factors.
        apart: By how much the lowest score of the disentangled must exceed the highest of the entangled. Members that
            are all alike cannot be attacked.
        points: Number of points of the dataset to rank at.
        seed: Decides which points.

    Raises:
        AxiswiseError: If there are too few members, or none disentangled or entangled enough; with the ranking.

    Example:
        >>> from axiswise import data, models, objectives, optimizers
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> model, faster = models.linear(3, 2), optimizers.Adam(lr=0.1)
        >>> members = grid(
        ...     model=model, objective=objectives.BetaVAE(1e-2), optimizer=faster, steps=100, seed=range(4)
        ... )
        >>> choice = choose(train(members, square), square, apart=0.0)
        >>> len(choice.ranking), len(choice.disentangled), len(choice.entangled)
        (4, 1, 1)
    """
    if count < 1:
        raise AxiswiseError(f"`count` must be at least 1. Got {count}.")
    if by not in (None, "mig", "udr"):
        raise AxiswiseError(f'`by` must be "mig", "udr" or None. Got {by!r}.')
    by = by or ("mig" if len(dataset.space) else "udr")
    if by == "mig" and not len(dataset.space):
        raise AxiswiseError(
            f"MIG needs the factors of every observation. Got dataset {dataset.name!r}, which has none. "
            'Rank by agreement, with by="udr".'
        )
    measures = [mig if by == "mig" else udr, active_units]
    rows = evaluate(population, dataset, measures, points=points, seed=seed, store=False)
    scores, activity = rows[: len(population)], rows[len(population) :]
    needed = sum(factor.size is None or factor.size > 1 for factor in dataset.space.factors)
    found = []
    for position, (score, active) in enumerate(zip(scores, activity, strict=True)):
        reason = score["reason"]
        if reason is None and active["value"] is not None and active["value"] < needed:
            reason = f"over-pruned: {active['value']} active latents, {needed} factors"
        found.append(Ranked(position, score["seed"], score["value"], active["value"], reason))
    set_aside = tuple(ranked for ranked in found if ranked.set_aside is not None)
    ranking = tuple(
        sorted((ranked for ranked in found if ranked.set_aside is None), key=lambda ranked: -(ranked.score or 0.0))
    )
    choice = Choice((), (), ranking, set_aside, by)
    if len(ranking) < 2 * count:
        raise AxiswiseError(
            f"An attack with {count} members of either kind needs {2 * count} that trained and have an active latent "
            f"for each of {needed} factors. Got {len(ranking)}. Train more members, or with a smaller β.\n"
            f"{table(choice)}"
        )
    best, worst = ranking[:count], ranking[::-1][:count]
    gap = min(ranked.score or 0.0 for ranked in best) - max(ranked.score or 0.0 for ranked in worst)
    if gap < apart:
        raise AxiswiseError(
            f"The disentangled members must score at least {apart:g} more than the entangled ones: there is no attack "
            f"on members that are alike. Got {gap:.3f}. Train more members, train them for longer, or vary β; or lower "
            f"`apart`.\n{table(choice)}"
        )
    return choice._replace(
        disentangled=tuple(ranked.position for ranked in best), entangled=tuple(ranked.position for ranked in worst)
    )


@checked
def table(choice: Choice) -> str:
    """The ranking in lines, as errors and the command line print it.

    Example:
        >>> print(table(Choice((0,), (1,), (Ranked(0, 7, 0.5, 2), Ranked(1, 8, 0.1, 2)), (), "mig")))
        member  seed     mig  active
             0     7   0.500       2  disentangled
             1     8   0.100       2  entangled
    """
    lines = [f"member  seed  {choice.by:>6}  active"]
    for ranked in (*choice.ranking, *choice.set_aside):
        score = "none" if ranked.score is None else f"{ranked.score:.3f}"
        role = "disentangled" if ranked.position in choice.disentangled else ""
        role = "entangled" if ranked.position in choice.entangled else role
        note = ranked.set_aside or role
        active = "?" if ranked.active is None else ranked.active
        lines.append(f"{ranked.position:>6}  {ranked.seed:>4}  {score:>6}  {active:>6}  {note}".rstrip())
    return "\n".join(lines)
