"""The effect of a change: the same members on the original, the changed and a noisy dataset."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from axiswise._arguments import checked
from axiswise.data import Change, FactorDataset, manipulated, transitions, with_noise
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.evaluation import kl, loss, reconstruction
from axiswise.objectives.objective import needs_of
from axiswise.population import Member, Precision, Progress
from axiswise.records import read_runs
from axiswise.scores import active_units, mig
from axiswise.statistics import Comparison, Interval, compare, mean_interval
from axiswise.studies import Run, Scale

VARIANTS = ("original", "changed", "noise")
"""The datasets that members are judged on."""
MEASURES = (mig, active_units, loss, reconstruction, kl)

Arms = Mapping[str, Sequence[Member]]
"""Members by the name of their arm, such as that of their objective."""


class Verdict(NamedTuple):
    """The result of one arm: a score's mean on each dataset, and how far it dropped.

    Arguments:
        arm: The arm.
        means: Mean and interval over members on the "original", the "changed" and the "noise" dataset.
        drop: Original less changed, with Welch's interval.
        noise_drop: Original less noise.
    """

    arm: str
    means: dict[str, Interval]
    drop: Comparison
    noise_drop: Comparison

    @property
    def halved(self) -> bool:
        """Whether the mean fell to half or less on the changed dataset, with intervals that do not overlap."""
        original, changed = self.means["original"], self.means["changed"]
        return changed.estimate <= original.estimate / 2 and changed.high < original.low


@checked
def judgement(
    dataset: Callable[[], FactorDataset],
    change: Callable[[], Change],
    arms: Arms,
    *,
    epsilon: float,
    measures: Sequence[Callable[..., Any]] = MEASURES,
    seed: int = 0,
) -> list[Run]:
    """The runs that judge a change: every arm on the original, on the changed dataset, and on one of equal noise.

    Members whose objective trains on pairs (SlowVAE, PCL) get the dataset with transitions.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, section
        5.2 and Table 1.

    Arguments:
        dataset: Makes the original.
        change: Makes the change; it is called when the first run on the changed dataset begins.
        arms: The members to train on each.
        epsilon: Amplitude of the noise, that of the change.
        measures: The measures.
        seed: Seed of the noise.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=20, seed=range(4))
        >>> still = Change("none", 0.1, lambda tensors, factors: factors.new_zeros(*factors.shape[:-1], 3))
        >>> [run.name for run in judgement(data.synth_linear, lambda: still, {"linear": members}, epsilon=0.1)]
        ['linear/original', 'linear/changed', 'linear/noise']
    """
    makers = {
        "original": dataset,
        "changed": partial(_changed, dataset, change),
        "noise": partial(_noisy, dataset, epsilon, seed),
    }
    runs = []
    for arm, members in arms.items():
        if not members:
            raise AxiswiseError(f"An arm needs at least one member. Got none in {arm!r}.")
        pairs = any(needs_of(member.objective).pairs for member in members)
        for variant in VARIANTS:
            make = partial(_with_transitions, makers[variant]) if pairs else makers[variant]
            runs.append(Run(f"{arm}/{variant}", make, members, measures))
    return runs


@checked
def judge(
    dataset: FactorDataset,
    change: Change,
    arms: Arms,
    out: str | Path,
    *,
    measures: Sequence[Callable[..., Any]] = MEASURES,
    score: str = "mig",
    device: str | None = None,
    precision: Precision | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> list[Verdict]:
    """Trains and measures every arm on the three datasets, in a study folder, and returns how far a score dropped.

    The same call resumes. `axiswise report` draws the folder.

    Arguments:
        dataset: The original.
        change: The change; the noise has its epsilon.
        arms: Members by the name of their arm.
        out: The study folder.
        measures: The measures.
        score: The measure of the verdicts, by its name in the rows.
        device: Where to train; None is where the folder was begun, else the best there is.
        precision: Type of products on CUDA.
        progress: Receives how far the training of each run is.
        log: Called with a line for each run that begins.

    Example:
        >>> found = judge(dataset, change, {"beta-vae": members}, "runs/judged")  # doctest: +SKIP
        >>> found[0].drop.difference.estimate  # doctest: +SKIP
    """

    def attack_judgement(scale: Scale) -> list[Run]:
        """A learned change of the data, judged.

        The same members on the original dataset, on the changed one, and on one with uniform noise of the same size.
        """
        given, learned = partial(_given, dataset), partial(_given, change)
        return judgement(given, learned, arms, epsilon=change.epsilon, measures=measures)

    folder = run_study(
        attack_judgement, "default", out, device=device, precision=precision, progress=progress, workers=1, log=log
    )
    return verdicts(folder, score)


@checked
def verdicts(folder: str | Path, score: str = "mig") -> list[Verdict]:
    """The verdict on each arm, from the records of a judgement.

    Arguments:
        folder: The study folder.
        score: The measure, by its name in the rows.

    Raises:
        AxiswiseError: If there is no arm that was measured on all three datasets.

    Example:
        >>> verdicts("/nowhere")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected the folder of a judgement, with 'mig' of an arm on ... Got /nowhere, ...
    """
    runs, found = read_runs(folder), []
    for arm in dict.fromkeys(run.partition("/")[0] for run in runs):
        values = {
            variant: [record.value for record in runs.get(f"{arm}/{variant}", ()) if record.measure == score]
            for variant in VARIANTS
        }
        if all(values.values()):
            original = values["original"]
            means = {variant: mean_interval(members) for variant, members in values.items()}
            drops = (compare(original, values[variant]) for variant in ("changed", "noise"))
            found.append(Verdict(arm, means, *drops))
    if not found:
        raise AxiswiseError(
            f"Expected the folder of a judgement, with {score!r} of an arm on {', '.join(VARIANTS)}. "
            f"Got {folder}, which has none."
        )
    return found


def _given(value: Any) -> Any:
    return value


def _changed(dataset: Callable[[], FactorDataset], change: Callable[[], Change]) -> FactorDataset:
    return manipulated(dataset(), change())


def _noisy(dataset: Callable[[], FactorDataset], epsilon: float, seed: int) -> FactorDataset:
    return with_noise(dataset(), epsilon, seed=seed)


def _with_transitions(make: Callable[[], FactorDataset]) -> FactorDataset:
    return transitions(make())
