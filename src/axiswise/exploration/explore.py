"""`explore`: members of a population as a page shows them in which their decoders run."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from axiswise._arguments import Count, checked
from axiswise.data import FactorDataset
from axiswise.data.dataset import value_range
from axiswise.distributions import Deterministic, StandardNormal
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.evaluation._quantities import Quantities
from axiswise.exploration._choice import Choice, choose
from axiswise.exploration._decoder import Program, read_decoder
from axiswise.geometry import haar_chance, traversal
from axiswise.geometry.activity import active_latents
from axiswise.numerics import normal, permutation, uniform
from axiswise.population import Model, Population
from axiswise.population._external import evaluating
from axiswise.population._trained import Trained, in_one_row, settings_of
from axiswise.records import Exploration, ExploredMember, read_records, records_file, versions
from axiswise.records._exploration import NOT_CHOSEN, STRIP_GAP
from axiswise.scores import match_latents
from axiswise.shapes import Tensor

UNSEEN = 2  # the observation that a page is checked by: the first that decoders are not traced with
STARTS = 12  # observations that one can start from
BINS = 48  # of the prior's histogram
PRIOR_SAMPLES = 20_000
PRIOR_TAIL = 40  # samples beyond either end of a slider
CHANCE_LATENTS = 100  # up to which the distance to orthogonality has its chance beside it
CHANCE_NUMBERS = 1_000_000  # of the random rotations that tell it: fewer rotations, the more latents
STRIP_LATENTS, STRIP_VALUES = 5, torch.linspace(-2.0, 2.0, 7)
THUMBNAIL = 32  # largest side of an image of a strip
# What a page takes at most, in bytes; `axiswise.report.explorer` refuses to write more than was asked for.
PAGE_BYTES = 150_000  # besides its members: scripts, style, text
MEMBER_BYTES = 2_000.0  # of a member besides its arrays: settings, scores, reason
NUMBER_BYTES = 14  # of a number as text, such as −1.23457e−05
MATCH_BYTES = 20  # of a latent and its counterpart in one other member
ENCODED = 4 / 3  # base64
STORED_IN_ROWS = ("member", "status", "training_seconds")


@checked
def explore(
    population: Population,
    dataset: FactorDataset,
    *,
    members: Sequence[int] | None = None,
    each: Count | None = None,
    scores: Mapping[str, Mapping[str, float]] | None = None,
    points: int = 500,
    megabytes: float | int = 8.0,
    seed: int = 0,
    title: str | None = None,
    summary: str = "",
) -> Exploration:
    r"""Makes of a population what a page needs in which its decoders run: `axiswise.report.explorer` writes that page.

    Five members run in the page, unless others are named: the best, the median and the worst by the first score that
    compares codes with factors (else by the loss), and two of other seeds. Where up to six objectives are compared, the
    median seed of each runs instead. Their decoders become lists of layers with weights in 16 bits. Dense layers,
    convolutions, norms, activations, softmax, resampling, repetition, concatenation and reshaping are known, in modules
    or in forward functions that chain them. Decoders of anything else, and members that would make the page too large,
    are shown by a still traversal, with the reason.

    Every two members that run are matched latent by latent, by the correlation of their codes
    (:func:`axiswise.scores.match_latents`), so that one slider moves the corresponding latents of all.

    Arguments:
        population: The members.
        dataset: Observations: those to start from and those whose codes are shown. Take a test set where there is one.
        members: Positions in the population of those that are to run, the one that leads first; None chooses.
        each: How many members of each kind are to run instead, a kind being members that differ in their seed alone.
        scores: Values of measures by the member's address, the first measure first; None reads the records of the
            population's folder, if it has any.
        points: How many observations are encoded for histograms and matches.
        megabytes: What the page may take at most, of 10⁶ bytes.
        seed: Decides which observations.
        title: Title of the page; None names the dataset.
        summary: A sentence or two below it.

    Example:
        >>> from axiswise import data, models, objectives
        >>> from axiswise.population import grid, train
        >>> square = data.synth_linear(samples=1000)
        >>> members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.01), steps=20, seed=range(3))
        >>> found = explore(train(members, square), square)
        >>> [layer["kind"] for layer in found.running[0].layers], len(found.running[0].counterparts)
        (['convolution'], 3)
    """
    if not len(population):
        raise AxiswiseError("A population of at least one member is needed. Got none.")
    if points < 3:
        raise AxiswiseError(f"`points` must be at least 3. Got {points}.")
    if not megabytes > 0:
        raise AxiswiseError(f"`megabytes` must be positive. Got {megabytes}.")
    if len(dataset) < 3:
        raise AxiswiseError(f"A dataset of at least 3 observations is needed, to match latents by. Got {len(dataset)}.")
    if wrong := [place for place in (() if members is None else members) if not 0 <= place < len(population)]:
        raise AxiswiseError(f"`members` must be positions from 0 to {len(population) - 1}. Got {wrong[0]}.")
    if members is not None and each is not None:
        raise AxiswiseError(f"Name `members` or how many of `each` kind, not both. Got {members} and {each}.")
    index = permutation(seed, "explore", len(dataset))[:points].to(dataset.device)
    shown = dataset.x(index[:STARTS])
    values = _finite(scores) if scores is not None else recorded_scores(population.folder)
    settings = _settings(population)
    plane = _plane(dataset, index)
    numbers = shown.numel() + sum(array.size for array in plane.values())
    left = megabytes * 1e6 - PAGE_BYTES - (numbers * NUMBER_BYTES if plane else numbers * ENCODED)
    running: list[ExploredMember] = []
    still: list[ExploredMember] = []
    for choice in choose([trained.member for trained in population.trained], values, members, each):
        latents = [member.arrays["codes"].shape[1] for member in running]
        member, cost = _member(population.trained[choice.position], dataset, index, choice, latents, left)
        own = member._replace(settings=settings[choice.position], scores=values.get(member.address, {}))
        (running if own.layers else still).append(own)
        left -= cost
    if each is not None:  # seeds of a kind beside each other, whichever of them found room
        order: dict[str, int] = {}
        running.sort(key=lambda own: order.setdefault(repr({**own.settings, "seed": None}), len(order)))
    return Exploration(
        title=title or f"Explore {dataset.name}",
        summary=summary,
        shape=tuple(dataset.shape),
        members=(*_matched(running), *still),
        arrays={"x": _numpy(shown), "range": np.array(value_range(dataset)), **plane},
        about={
            "dataset": dataset.name,
            "points": len(index),
            "members": len(population),
            "steps": sorted({trained.member.steps for trained in population.trained if not trained.external}),
            "megabytes": float(megabytes),
            "versions": versions(),
        },
    )


def _finite(scores: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Scores of members, without those that are not finite."""
    return {
        key: {name: float(value) for name, value in own.items() if math.isfinite(value)} for key, own in scores.items()
    }


def recorded_scores(folder: Path | None) -> dict[str, dict[str, float]]:
    """What the records of a run folder say of its members, by address; nothing where there are none."""
    found: dict[str, dict[str, float]] = {}
    if folder is not None and records_file(folder).is_file():
        for record in read_records(folder):
            value = record.get("value")
            if isinstance(value, int | float) and math.isfinite(value):
                found.setdefault(record["member"], {})[record["measure"]] = float(value)
    return found


def _settings(population: Population) -> list[dict[str, Any]]:
    """The settings in which members differ, and the seed, of each."""
    rows = [in_one_row(settings_of(trained)) for trained in population.trained]
    names = dict.fromkeys(name for row in rows for name in row if name not in STORED_IN_ROWS)
    varying = [name for name in names if name == "seed" or len({repr(row.get(name)) for row in rows}) > 1]
    return [{name: row[name] for name in varying if row.get(name) is not None} for row in rows]


def _member(
    trained: Trained, dataset: FactorDataset, index: Tensor, choice: Choice, latents: list[int], left: float
) -> tuple[ExploredMember, float]:
    """A member with what a page can show of it, and at most how many bytes that takes.

    Arguments:
        trained: The member.
        dataset: The observations.
        index: Those that are encoded.
        choice: Whether it is to run.
        latents: How many latents each of those has that run already.
        left: How many bytes there are.
    """
    nothing = ExploredMember(trained.member.address, {}, {}, choice.role, (), "", {})
    if trained.diverged:
        return nothing._replace(reason=f"it {trained.status}"), MEMBER_BYTES
    (group,) = Population([trained]).groups
    if not group.decodes:
        return nothing._replace(reason="it has no decoder"), MEMBER_BYTES
    if not trained.external and tuple(trained.member.model.shape) != tuple(dataset.shape):
        taken = tuple(trained.member.model.shape)
        return nothing._replace(reason=f"it takes observations of shape {taken}, not {dataset.shape}"), MEMBER_BYTES
    quantities = Quantities(group, dataset, index)
    decoded = quantities["decode"](quantities["codes"][:, :1])[0, 0]
    if decoded.numel() != math.prod(dataset.shape):
        return nothing._replace(reason=f"it decodes shape {tuple(decoded.shape)}, not {dataset.shape}"), MEMBER_BYTES
    reason = NOT_CHOSEN
    if choice.runs:
        try:
            program = _program(Model(trained), quantities["codes"][0])
        except NotDefined as refusal:
            reason = str(refusal)
        else:
            arrays = {"weights": program.weights, **_latents(quantities)}
            if not all(np.isfinite(array).all() for array in arrays.values()):
                return nothing._replace(reason="what it encodes or decodes is not finite"), MEMBER_BYTES
            cost = page_bytes(arrays, program.layers, latents)
            if cost <= left:
                return nothing._replace(layers=program.layers, arrays=arrays), cost
            reason = f"it takes {cost / 1e6:.2g} MB, and {max(left, 0.0) / 1e6:.2g} MB are left: allow more megabytes"
    arrays = _strip(quantities) if len(dataset.shape) == 3 else {}
    cost = page_bytes(arrays)
    if cost > left:
        arrays, cost = {}, 0.0 if reason == NOT_CHOSEN else MEMBER_BYTES
    return nothing._replace(reason=reason, arrays=arrays), cost


def page_bytes(
    arrays: Mapping[str, np.ndarray], layers: Sequence[Mapping[str, Any]] = (), latents: Sequence[int] = ()
) -> float:
    """What a member takes in a page at most: many numbers in base64, few as text, images as PNG.

    Arguments:
        arrays: What is known of it.
        layers: Its decoder, if it runs.
        latents: How many latents each of those has that run already; they and it are matched.

    Example:
        >>> page_bytes({"codes": np.zeros((30, 2), np.float32)}, ({"kind": "first"},), latents=[2]) - MEMBER_BYTES
        459.0
    """
    encoded = sum(arrays[name].nbytes for name in ("weights", "codes", "decoded") if name in arrays)
    text = sum(
        arrays[name].size for name in ("active", "kl", "prior", "low", "high", "centre", "chance") if name in arrays
    )
    images = 1.01 * np.pad(arrays["strip"], [(0, 0)] * 3 + [(0, STRIP_GAP)] * 2).size if "strip" in arrays else 0.0
    own = arrays["codes"].shape[1] if layers else 0
    matches = own * (len(latents) + 1) + sum(latents)
    plain = len(json.dumps(layers)) + NUMBER_BYTES * text + MATCH_BYTES * matches
    return MEMBER_BYTES + plain + ENCODED * (encoded + images)


def _program(model: Model, codes: Tensor) -> Program:
    """The decoder of a model as layers."""
    decoder: Callable[..., Any] = model.decoder
    owner = getattr(decoder, "__self__", None)
    if isinstance(owner, nn.Module):
        decoder = _Method(owner, decoder.__name__)
    if not isinstance(decoder, nn.Module):
        raise NotDefined("its decoder is a function, not a module")
    some = codes[:UNSEEN]
    if not model.trained.external:
        return read_decoder(decoder, some, model.likelihood)
    reader: Any = model.member.model.network
    shape = reader.reader.latent_shape or some.shape[1:]
    with evaluating(decoder):  # which returns E[x | z] itself
        return read_decoder(decoder, some.reshape(len(some), *shape), None)


class _Method(nn.Module):
    """A method of a module, as a module."""

    def __init__(self, owner: nn.Module, name: str) -> None:
        super().__init__()
        self.owner, self.name = owner, name

    def forward(self, z: Any) -> Any:
        """What the method returns."""
        return getattr(self.owner, self.name)(z)


def _latents(quantities: Quantities) -> dict[str, np.ndarray]:
    """What is known of each latent of a member: codes, activity, divergence, prior; and one image to check by."""
    codes, variance = quantities["codes"], quantities["variance"]
    found = {
        "codes": codes[0],
        "active": active_latents(variance, codes.shape)[0],
        "decoded": quantities["decode"](codes[:, UNSEEN : UNSEEN + 1])[0, 0].flatten(),
    }
    low, high = codes[0].amin(0), codes[0].amax(0)
    if isinstance(quantities.group.model.posterior, Deterministic):
        centre = codes[0].mean(0)
        found["spread"] = codes[0].std(0)  # there is no divergence to order by, and no prior
    else:
        found["kl"] = quantities["kl"][0].mean(0)
        samples, centre = _prior_samples(quantities, codes.shape[-1])
        ends = samples.sort(0).values[[PRIOR_TAIL, -1 - PRIOR_TAIL]]
        low, high = torch.minimum(low, ends[0]), torch.maximum(high, ends[1])
        bins = [
            torch.histc(column, BINS, ends[0].item(), ends[1].item()) / len(samples)
            for column, ends in zip(samples.T, torch.stack([low, high], -1), strict=True)
        ]
        found["prior"] = torch.stack(bins)
        found["symmetric"] = torch.tensor([isinstance(quantities.group.model.prior, StandardNormal)])  # under rotations
    still = (low == high).to(low)  # a code that never changes has a slider all the same
    found |= {"low": low - still, "high": high + still, "centre": centre}
    if 2 <= (active := int(found["active"].sum())) <= CHANCE_LATENTS:
        chance = haar_chance(active, samples=min(20_000, CHANCE_NUMBERS // active**2))
        found["chance"] = torch.tensor([chance.score, chance.deviation])
    return {
        name: _numpy(tensor) if tensor.is_floating_point() else tensor.cpu().numpy() for name, tensor in found.items()
    }


def _prior_samples(quantities: Quantities, latents: int) -> tuple[Tensor, Tensor]:
    """Samples of the prior, and its mean: noise of either sign, so that a symmetric prior has its centre exactly."""
    prior = Model(quantities.group.trained[0]).prior
    shape = (PRIOR_SAMPLES // 2, latents)
    like = quantities["codes"]
    noise = normal(0, "explore prior", 0, shape, dtype=torch.float64).to(like)
    drawn = uniform(0, "explore prior", 0, shape, dtype=torch.float64).to(like)
    halves = [prior.sample(sign * noise, drawn).detach() for sign in (1.0, -1.0)]
    return torch.cat(halves), ((halves[0] + halves[1]) / 2).mean(0)


def _strip(quantities: Quantities) -> dict[str, np.ndarray]:
    """A traversal of the latents that hold most, from the first observation, in bytes."""
    codes, variance = quantities["codes"], quantities["variance"]
    chosen = variance[0].mean(0).argsort(stable=True)[:STRIP_LATENTS]
    units = codes.std(1)
    images = traversal(quantities["decode"], codes[:, 0], STRIP_VALUES.to(codes), units=units)[0, chosen]
    images = images.reshape(*images.shape[:2], *quantities.dataset.shape)  # decoders of others may return them flat
    factor = max(1, math.ceil(max(images.shape[-2:]) / THUMBNAIL))
    flat = nn.functional.avg_pool2d(images.flatten(0, 1), factor) if factor > 1 else images.flatten(0, 1)
    low, high = value_range(quantities.dataset)
    bytes_ = ((flat - low) / ((high - low) or 1.0)).clamp(0.0, 1.0) * 255
    strip = bytes_.round().to(torch.uint8).unflatten(0, images.shape[:2])
    return {"strip": strip.detach().cpu().numpy(), "strip_latents": chosen.cpu().numpy()}


def _matched(running: Sequence[ExploredMember]) -> list[ExploredMember]:
    """Members with the counterparts of their latents in each other."""
    found = []
    for member in running:
        pairs = [match_latents(member.arrays["codes"], other.arrays["codes"]) for other in running]
        found.append(
            member._replace(
                counterparts=tuple(pair.latent for pair in pairs),
                correlations=tuple(pair.correlation for pair in pairs),
            )
        )
    return found


def _plane(dataset: FactorDataset, index: Tensor) -> dict[str, np.ndarray]:
    """The plane that vectors are drawn in: their own two axes, or their first two principal directions."""
    if len(dataset.shape) == 3:
        return {}
    x = dataset.x(index).flatten(1).double()
    size = x.shape[1]
    if size <= 2:
        centre, axes = torch.zeros(size), torch.eye(2)[:, :size]
    else:
        centre = x.mean(0)
        axes = torch.linalg.svd(x - centre, full_matrices=False).Vh[:2]
        axes = axes * torch.where(axes.gather(1, axes.abs().argmax(1, keepdim=True)) < 0, -1.0, 1.0)
    cloud = (x - centre.to(x)) @ axes.to(x).T
    return {"centre": _numpy(centre), "axes": _numpy(axes), "cloud": _numpy(cloud)}


def _numpy(tensor: Tensor) -> np.ndarray:
    """In single precision; flags as they are."""
    return (tensor.float() if tensor.is_floating_point() else tensor).detach().cpu().numpy()
