"""What `explain` says: each finding a sentence, a number with its interval, baselines, and the equation behind it."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy import ndarray
from scipy import stats

from axiswise import geometry, scores
from axiswise.distributions import Bernoulli, Gaussian, LearnedGaussian, StandardNormal
from axiswise.distributions.estimators import aggregate_log_density
from axiswise.errors import AxiswiseError
from axiswise.explanation._observation import KL_ABOVE, NAMED, Seen
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.numerics import normal, permutation, uniform
from axiswise.records import Baseline, Finding
from axiswise.shapes import Float, Tensor
from axiswise.statistics import Interval, bootstrap, bootstrap_rows, mean_interval

ROTATIONS = 200  # random rotations that a model is compared with
FEW_ROTATIONS = 20  # the same where each takes neighbourhoods or scores of its own
RESAMPLES = 300  # of a bootstrap over rows
JACKKNIFE_BLOCKS = 40  # that points are left out in
UNLIKELY = 0.05  # share of random rotations that do as well, below which a model is said to beat chance
GAP = 0.01  # of the largest singular value, below which neighbours are told apart badly
CLOSE, ROUGH = 0.1, 0.4  # mean |log(σ² / law)| below which variances are, or are roughly, those of the law
PRIOR_DRAWS = 1 << 16  # that stand for the quantiles of the prior
BINS = 60  # of a histogram
NEIGHBOURS = 50  # that local principal directions come from
LOCAL_BATCHES, LOCAL_POINTS = 8, 12  # points with a neighbourhood, in batches that give an interval
LAW_POINTS = 4000  # that the scatter of the encoder's law keeps
VALUES = 9  # that a traversed latent takes

ROLINEK = "Rolinek, Zietlow and Martius, Variational autoencoders pursue PCA directions (by accident), CVPR 2019, {}"
ZIETLOW = "Zietlow, Rolinek and Martius, Demystifying inductive biases for β-VAE based architectures, ICML 2021, {}"
ALLEN = "Allen, Unpicking data at the seams: VAEs, disentanglement and independent components, 2024, {}"
MATHIEU = "Mathieu, Rainforth, Siddharth and Teh, Disentangling disentanglement in VAEs, ICML 2019, {}"
CHEN = "Chen, Li, Grosse and Duvenaud, Isolating sources of disentanglement in VAEs, NeurIPS 2018, {}"
TURNED = "this model, rotated"


@dataclass(frozen=True)
class Desk:
    """What the findings are made from, and where their arrays and limits go.

    Arguments:
        seen: What was computed of the model.
        beta: Weight of the divergence; None where it is unknown.
        seed: Decides what is drawn.
        limits: Where to add what cannot be concluded.
        rotations: Random rotations of the active latents.
        arrays: Where to put what a page draws.
    """

    seen: Seen
    beta: float | int | None
    seed: int
    limits: list[str]
    rotations: Float[Tensor, "r d d"]
    arrays: dict[str, ndarray] = field(default_factory=dict)

    @property
    def active_gram(self) -> Float[Tensor, "m d d"]:
        """JᵀJ of the active latents."""
        return _block(self.seen.gram, self.seen.active)

    @property
    def nothing_to_rotate(self) -> str | None:
        """Why there is no second direction, where there is none."""
        if len(self.seen.active) >= 2:
            return None
        count = "one latent" if self.seen.active else "no latent"
        return f"With {count} active there is no second direction to compare with."


def findings(
    seen: Seen, factors: ndarray | None, names: Sequence[str], beta: float | int | None, seed: int, limits: list[str]
) -> tuple[list[Finding], dict[str, ndarray]]:
    """Everything there is to say, and the arrays that a page draws.

    Arguments:
        seen: What was computed of the model.
        factors: Factors of the observations, where they are known.
        names: What they are called.
        beta: Weight of the divergence; None where it is unknown.
        seed: Decides what is drawn.
        limits: Where to add what cannot be concluded.
    """
    desk = Desk(seen, beta, seed, limits, random_rotations(seed, ROTATIONS, max(1, len(seen.active))))
    desk.arrays["names"] = np.array([seen.name(latent) for latent in range(seen.latents)])
    desk.arrays["order"] = np.array(seen.active, dtype=np.int64)
    makers = (_active, _orthogonality, _columns, _law, _local_directions, _aggregate, _overlap, _effects)
    found = [finding for make in makers if (finding := make(desk)) is not None]
    if factors is not None:
        found.append(_scores(desk, factors, names))
    else:
        limits.append("Without factors nothing is said of meaning: a latent may be clean and mean nothing to anyone.")
    return found, desk.arrays


def random_rotations(seed: int, count: int, size: int) -> Float[Tensor, "r d d"]:
    """Uniformly random orthogonal matrices: the factor Q of Gaussian ones, with the signs that make it unique.

    Example:
        >>> turns = random_rotations(0, 3, 4)
        >>> torch.allclose(turns @ turns.mT, torch.eye(4, dtype=torch.float64))
        True
    """
    drawn = normal(seed, "explain rotations", 0, (count, size, size), dtype=torch.float64)
    q, r = torch.linalg.qr(drawn)
    return q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]


def _active(desk: Desk) -> Finding:
    seen = desk.seen
    say = partial(
        Finding,
        "active",
        "Which latents are active?",
        unit="active latents",
        reference=ZIETLOW.format("section 5.3; ") + ROLINEK.format("definition 1 (the polarized regime)"),
    )
    if seen.kl is None:
        desk.arrays["spread"] = _numpy(seen.posterior.mean.std(0))
        return say(
            f"Without noise there is no telling: {len(seen.active)} of {seen.latents} latents vary with the "
            "observation, and are taken for active below.",
            value=None,
        )
    desk.arrays["kl"] = _numpy(seen.kl).mean(0)
    if seen.scale is None:
        quantity, criterion = _numpy(seen.kl), f"mean KL above {KL_ABOVE:g} nats"

        def count(rows: ndarray) -> float:
            return float((rows.mean(0) > KL_ABOVE).sum())

    else:
        quantity = _numpy(seen.posterior.variance / seen.scale.square())
        criterion = f"mean posterior variance below {ACTIVE_BELOW:g} of the prior's"
        desk.arrays["variance"] = quantity.mean(0)

        def count(rows: ndarray) -> float:
            return float((rows.mean(0) < ACTIVE_BELOW).sum())

    value = bootstrap_rows((quantity,), count, resamples=RESAMPLES)
    if not seen.active:
        desk.limits.append(
            "No latent is active: the posterior has collapsed to the prior, and the decoder's geometry says nothing "
            "about how observations are encoded."
        )
        return say(f"None of {seen.latents} latents is active ({criterion}): the model has collapsed.", value=value)
    passive = seen.latents - len(seen.active)
    which = f": {seen.names(seen.active)}, the most precise first" if passive else ""
    rest = f" The other {passive} tell the decoder next to nothing." if passive else ""
    if isinstance(seen.prior, StandardNormal):
        kinds = geometry.regime(seen.posterior).kinds.tolist()
        mixed = [latent for latent, kind in enumerate(kinds) if kind == -1]
        if mixed:
            rest += f" Neither active nor as wide as the prior: {seen.names(mixed)}; the regime is not polarized."
    return say(f"{len(seen.active)} of {seen.latents} latents are active ({criterion}){which}.{rest}", value=value)


def _orthogonality(desk: Desk) -> Finding:
    say = partial(
        Finding,
        "orthogonality",
        "Are the decoder's local principal directions the latent axes?",
        unit="distance to orthogonality (DtO)",
        reference=ROLINEK.format("equation 29 (DtO) and proposition 1"),
    )
    if reason := desk.nothing_to_rotate:
        desk.limits.append(f"The distance to orthogonality is undefined. {reason}")
        return say(f"Undefined. {reason}", value=None)
    products, size = desk.active_gram, len(desk.seen.active)
    single = geometry.dto(gram=products[:, None]).score  # as if each point were a member
    value = mean_interval(_numpy(single))
    turned = _rotated(desk, lambda turn: geometry.dto(gram=turn @ products @ turn.mT).score)
    chance = geometry.haar_chance(size)
    ascending = torch.linalg.eigvalsh(products).clamp(min=0.0).sqrt()
    desk.arrays.update({"dto": _numpy(single), "dto/rotated": turned, "singular values": _numpy(ascending.flip(-1))})
    gap = geometry.singular_spectrum(gram=products).score.item()
    if gap < GAP:
        desk.limits.append(
            f"Neighbouring singular values of the decoder differ by {_percent(gap, 2)} of the largest at the median "
            "point: small changes of the decoder turn the directions in between, so DtO is uncertain there. The angles "
            "between columns do not depend on that."
        )
    beats, count = _beats(turned, value)
    sentence = (
        f"The decoder's local principal directions are {'' if beats else 'not shown to be '}nearer to the latent "
        f"axes than chance: DtO over the {size} active latents is {value.estimate:.2f}, where 0 is aligned and "
        f"a random rotation gives {chance.score:.2f}; of {len(turned)} random rotations of this model {count} as low."
    )
    spread = 1.96 * chance.deviation
    baselines = (
        _baseline(TURNED, turned),
        Baseline(
            "chance", chance.score, max(0.0, chance.score - spread), chance.score + spread, "one random rotation (Haar)"
        ),
    )
    return say(sentence, value=value, baselines=baselines)


def _columns(desk: Desk) -> Finding | None:
    if desk.nothing_to_rotate:
        return None
    products = desk.active_gram
    single = geometry.column_coherence(gram=products[:, None]).score
    found = geometry.column_coherence(gram=products)
    value = mean_interval(_numpy(single))
    turned = _rotated(desk, lambda turn: geometry.column_coherence(gram=turn @ products @ turn.mT).score)
    desk.arrays.update({"cosines": _numpy(found.cosines), "coherence": _numpy(single), "coherence/rotated": turned})
    closest = math.degrees(math.acos(min(1.0, found.largest.item())))
    beats, _ = _beats(turned, value)
    sentence = (
        f"The effects of different latents are {'' if beats else 'not shown to be '}closer to orthogonal than "
        f"after a random rotation: {_percent(value.estimate)} of JᵀJ lies off its diagonal, "
        f"{_percent(turned.mean())} for the model rotated; the two latents most alike in effect meet at {closest:.0f}° "
        "on average. Equal singular values do no harm here."
    )
    return Finding(
        "columns",
        "Are the effects of different latents orthogonal?",
        sentence,
        value,
        "share of JᵀJ off its diagonal",
        ALLEN.format("equation 8; ") + ROLINEK.format("theorem 2"),
        (_baseline(TURNED, turned),),
    )


def _law(desk: Desk) -> Finding:
    seen = desk.seen
    say = partial(
        Finding,
        "law",
        "Does the encoder obey its law: are its variances those that the decoder's slope asks for?",
        unit="mean |log(σ² / law)|",
        reference=ALLEN.format("equation 7: 1/σ_j² = 1 + [DᵀA²D]_jj / β"),
    )
    if seen.kl is None:
        return say("Undefined: codes without noise have no variances.", value=None)
    if not seen.active:
        return say("Undefined: no latent is active.", value=None)
    if seen.scale is None:
        desk.limits.append(f"The encoder's law is one of Gaussian priors. Got {type(seen.prior).__name__}.")
        return say("Undefined: the prior is not Gaussian.", value=None)
    if not isinstance(seen.likelihood, Gaussian | LearnedGaussian | Bernoulli):
        kind = type(seen.likelihood).__name__
        desk.limits.append(f"The encoder's law needs a variance that follows from the mean, which {kind} has not.")
        return say(f"Undefined for {kind}.", value=None)
    information = geometry.fisher_information(seen.jacobians, seen.likelihood, seen.decoded)
    root = seen.posterior.cholesky[: len(information)].double()
    covariance = root @ root.mT
    best = _best_beta(desk, information, covariance)
    weight = best if desk.beta is None else float(desk.beta)
    if not math.isfinite(weight):
        return say("Undefined: the decoder has no slope, or posteriors are wider than the prior.", value=None)
    _law_limits(desk, best)

    law = geometry.optimal_variance(information, weight, prior=seen.prior)[:, seen.active]
    block, noise = _block(information, seen.active), _block(covariance, seen.active)
    variance = _diagonal(noise)
    deviation = (variance / law).log()
    value = mean_interval(_numpy(deviation.abs().mean(-1)))
    baselines = ()
    if isinstance(seen.prior, StandardNormal) and len(seen.active) > 1:

        def off(turn: Tensor) -> Tensor:
            asked = geometry.optimal_variance(turn @ block @ turn.mT, weight)
            return (_diagonal(turn @ noise @ turn.mT) / asked).log().abs().mean()

        baselines = (_baseline(TURNED, _rotated(desk, off)),)
    kept = np.linspace(0, variance.numel() - 1, min(LAW_POINTS, variance.numel())).round().astype(int)
    desk.arrays.update(
        {
            "law/measured": _numpy(variance).ravel()[kept],
            "law/expected": _numpy(law).ravel()[kept],
            "law/latent": np.tile(np.arange(len(seen.active)), len(variance))[kept],
        }
    )
    size = math.expm1(value.estimate)
    if value.estimate < ROUGH:
        how = f"are {'' if value.estimate < CLOSE else 'roughly '}those"
        by = f", to within {_percent(size, 1)} on average"
    else:
        how, by = "are not those", f": they differ {1 + size:.2g}-fold on average"
    versus = f"; rotated at random, by {_percent(math.expm1(baselines[0].value))}" if baselines else ""
    given = "" if desk.beta is None else f"; β = {weight:g} was given"
    sentence = (
        f"On active latents the encoder's variances {how} that the decoder's slope asks for{by}{versus}. They fit "
        f"best at β = {best:.3g}{given}."
    )
    return say(sentence, value=value, baselines=baselines)


def _law_limits(desk: Desk, best: float) -> None:
    """Says what a comparison with the law leaves open."""
    if desk.beta is None:
        desk.limits.append(
            f"β is unknown: the law was compared at β = {best:.3g}, where it fits best, so that only how variances "
            "vary was tested, not their level."
        )
    elif not abs(math.log(best / desk.beta)) <= math.log(1.5):
        desk.limits.append(
            f"The variances fit the law best at β = {best:.3g}, not at the {desk.beta:g} given. β or the scale of the "
            "pixels may be another than was said (a mean over pixels in the loss changes β), or training may not have "
            "converged; the variances cannot tell which."
        )
    if isinstance(desk.seen.likelihood, Bernoulli):
        desk.limits.append(
            "Under a Bernoulli likelihood the law leaves out the decoder's curvature, which vanishes only where "
            "reconstructions are exact."
        )


def _best_beta(desk: Desk, information: Float[Tensor, "m z z"], covariance: Float[Tensor, "m z z"]) -> float:
    """The β at which the law holds for the median point and active latent; NaN where none has a slope."""
    scale = desk.seen.scale
    excess = _diagonal(covariance).reciprocal() - (1.0 if scale is None else scale.double().square().reciprocal())
    slope, excess = (part[:, desk.seen.active] for part in (_diagonal(information), excess))
    ratios = (slope / excess)[(excess > 0.0) & (slope > 0.0)]
    return ratios.log().median().exp().item() if ratios.numel() else math.nan


def _local_directions(desk: Desk) -> Finding:
    seen = desk.seen
    say = partial(
        Finding,
        "local directions",
        "Do latents follow the local principal directions of the data?",
        unit="mean angle to local principal directions, degrees",
        reference=ZIETLOW.format("section 3.3 and figure 1"),
    )
    neighbours = max(NEIGHBOURS, seen.latents + 1)
    if reason := desk.nothing_to_rotate:
        return say(f"Undefined. {reason}", value=None)
    if len(seen.x) < 2 * neighbours:
        desk.limits.append(
            f"{len(seen.x)} points are too few for neighbourhoods of {neighbours}: whether latents follow local "
            "principal directions was not tested."
        )
        return say(f"Not tested: neighbourhoods take at least {2 * neighbours} points.", value=None)
    if seen.hidden:
        return say("Not tested: PyTorch cannot differentiate the decoder.", value=None)
    found = _local_angles(desk, neighbours)
    near, far = (_numpy(torch.stack([getattr(part, name) for part in found])) for name in ("score", "to_global"))
    value, turned, whole = mean_interval(near[:, 0]), near[:, 1:].mean(0), float(far[:, 0].mean())
    if not np.isfinite(near).all():
        return say("Undefined: at some point an active latent does not move the observation.", value=None)
    for name, column in (("local", "per_latent"), ("local/global", "per_latent_global")):
        angles = torch.stack([getattr(part, column)[0] for part in found]).mean(0)
        desk.arrays[name] = _numpy(angles)[seen.active]
    desk.arrays["local/rotated"] = turned
    beats, count = _beats(turned, value)
    sentence = (
        f"Active latents {'follow' if beats else 'are not shown to follow'} the local principal directions of the data "
        f"better than after a random rotation: the mean angle is {value.estimate:.0f}°, {turned.mean():.0f}° for the "
        f"model rotated, where 90° is unrelated; of {len(turned)} rotations {count} as low. To global principal "
        f"directions it is {whole:.0f}°."
    )
    desk.limits.append(
        f"Local principal directions come from the {neighbours} nearest of {len(seen.x):,} points: where these span "
        "much of the data they are not local, and directions of similar variance cannot be told apart."
    )
    return say(sentence, value=value, baselines=(_baseline(TURNED, turned),))


def _local_angles(desk: Desk, neighbours: int) -> list[geometry.LocalPCA]:
    """Angles of the model and, as further members, of the model rotated; rows are rolled for batches of points."""
    seen = desk.seen
    places = torch.tensor(seen.active)
    turns = torch.eye(seen.latents, dtype=torch.float64).repeat(FEW_ROTATIONS + 1, 1, 1)
    turns[1:, places[:, None], places] = desk.rotations[:FEW_ROTATIONS]
    turns = turns.to(seen.posterior.mean)
    codes, pixels = seen.posterior.mean @ turns.mT, seen.x.flatten(1)
    passive = torch.ones_like(codes)  # stands for variances, of which only those of active latents are small
    passive[..., seen.active] = 0.0

    def decode(z: Float[Tensor, "p n z"]) -> Float[Tensor, "p n x"]:
        return seen.reader.decode((z @ turns).flatten(0, 1)).reshape(*z.shape[:2], -1)

    starts = range(0, min(LOCAL_BATCHES * LOCAL_POINTS, len(pixels) - LOCAL_POINTS + 1), LOCAL_POINTS)
    return [
        geometry.local_pca(
            pixels.roll(-start, 0), codes.roll(-start, 1), decode, passive, neighbours=neighbours, points=LOCAL_POINTS
        )
        for start in starts
    ]


def _aggregate(desk: Desk) -> Finding:
    seen = desk.seen
    latents = seen.active or list(range(seen.latents))
    shape = (PRIOR_DRAWS, seen.latents)
    noise, choice = (
        draw(desk.seed, "explain prior", step, shape, dtype=torch.float64)
        for step, draw in enumerate((normal, uniform))
    )
    like = torch.zeros(1, dtype=torch.float64)
    prior = _numpy(seen.prior.sample(noise.to(like), choice.to(like)))[:, latents]
    codes = _numpy(seen.samples).astype(np.float64)[:, latents]
    ordered, spread = np.sort(prior, axis=0), prior.std(0)

    def distances(rows: ndarray) -> ndarray:
        """Of each latent: sorted values against as many quantiles of the prior."""
        places = ((np.arange(len(rows)) + 0.5) * len(ordered) / len(rows)).astype(np.intp)
        return np.abs(np.sort(rows, axis=0) - ordered[places]).mean(0) / spread

    value = _jackknife((codes,), lambda rows: float(distances(rows).mean()))
    shuffled = prior[permutation(desk.seed, "explain prior", PRIOR_DRAWS).numpy()]
    parts = [shuffled[start : start + len(codes)] for start in range(0, PRIOR_DRAWS - len(codes) + 1, len(codes))]
    baseline = _baseline(
        "draws of the prior",
        np.array([distances(part).mean() for part in parts[:ROTATIONS]] or [math.nan]),
        "sets of as many draws",
    )
    edges = np.linspace(-4.0, 4.0, BINS + 1) * float(spread.max())
    desk.arrays.update(
        {
            "aggregate/edges": edges,
            "aggregate": _densities(codes[:, :NAMED], edges),
            "aggregate/prior": _densities(prior[:, :NAMED], edges),
            "aggregate/latents": np.array(latents[:NAMED]),
        }
    )
    sizes = distances(codes)
    fits = "is on the prior, as far as draws of it are" if value.estimate <= baseline.high else "is off the prior"
    sentence = (
        f"The aggregate of all encodings {fits}, latent by latent: its distance over {'active ' if seen.active else ''}"
        f"latents is {value.estimate:.3f} standard deviations of the prior, {baseline.value:.3f} for draws of the "
        f"prior itself; it is largest at {seen.name(latents[int(sizes.argmax())])}, {sizes.max():.3f}."
    )
    desk.limits.append(
        "The aggregate was compared with the prior one latent at a time: how latents depend on each other over the "
        "whole set is not part of that."
    )
    return Finding(
        "aggregate",
        "How does the aggregate of all encodings sit to the prior?",
        sentence,
        value,
        "Wasserstein distance of single latents, in σ of the prior",
        MATHIEU.format("factor (b) of decomposition, and equation 7"),
        (baseline,),
    )


def _densities(values: Float[ndarray, "n d"], edges: Float[ndarray, " b"]) -> Float[ndarray, "d a"]:
    return np.stack([np.histogram(column, edges)[0] / len(values) / np.diff(edges) for column in values.T])


def _overlap(desk: Desk) -> Finding | None:
    seen = desk.seen
    if seen.kl is None:
        return None
    posterior: Any = seen.posterior
    wide, samples = type(posterior)(*(part.double() for part in posterior)), seen.samples.double()
    single = wide.log_density(samples) - aggregate_log_density(wide, samples, len(samples))
    value, ceiling = mean_interval(_numpy(single)), math.log(len(samples))
    how = "overlap"
    if value.estimate > 0.95 * ceiling:
        how = "hardly overlap"
        desk.limits.append(
            f"The encodings of {len(samples):,} points keep apart, so that their information about the observation is "
            f"at least {value.estimate:.1f} nats; to see how much more, use more points."
        )
    sentence = (
        f"The encodings of different observations {how}: an encoding tells {value.estimate:.2f} nats of which of the "
        f"{len(samples):,} points it came from, where {ceiling:.2f} would tell them all apart."
    )
    question, unit = "How much do the encodings overlap?", "information I(x; z), nats"
    return Finding("overlap", question, sentence, value, unit, MATHIEU.format("section 3.1 (overlap)"))


def _effects(desk: Desk) -> Finding:
    seen = desk.seen
    squares = _numpy(_diagonal(seen.gram)).clip(min=0.0)
    spread = _numpy(seen.samples).astype(np.float64).std(0)
    pixels = seen.jacobians.shape[-2]
    effects = np.sqrt(squares.mean(0) / pixels) * spread
    order = np.argsort(-effects, kind="stable").tolist()
    first = order[0]
    value = bootstrap(squares[:, first], _change(float(spread[first]), pixels), resamples=1000)
    desk.arrays["effects"] = effects
    _traverse(desk, [latent for latent in order if latent in seen.active][:NAMED] or order[:NAMED])
    total = float(np.square(effects).sum())
    share = f", {_percent(effects[first] ** 2 / total)} of what all latents do" if total > 0.0 else ""
    others = "".join(f", {seen.name(latent)} by {effects[latent]:.3f}" for latent in order[1:4])
    sentence = (
        f"{seen.name(first)} changes observations most: one standard deviation of it moves a pixel by "
        f"{value.estimate:.3f} (root mean square){share}" + (f"; then{others.removeprefix(',')}." if others else ".")
    )
    return Finding(
        "effects",
        "What does each latent do to an observation?",
        sentence,
        value,
        f"change of a pixel by one standard deviation of {seen.name(first)}",
        ROLINEK.format("equation 14 (the decoder, linearised)"),
    )


def _change(spread: float, pixels: int) -> Callable[..., Any]:
    """Root mean square change of a pixel, from squared lengths of a column."""

    def change(squares: ndarray, axis: int | None = None) -> Any:
        return np.sqrt(squares.mean(axis) / pixels) * spread

    return change


def _traverse(desk: Desk, latents: Sequence[int]) -> None:
    """Decodes the values of one latent at a time, from the encoding nearest to the middle of all."""
    seen = desk.seen
    codes, places = seen.posterior.mean, list(latents)
    middle = (codes - codes.mean(0)).square().sum(-1).argmin()
    units = codes.std(0) if seen.scale is None or seen.kl is None else seen.scale
    values = torch.linspace(-2.0, 2.0, VALUES)

    def decode(z: Float[Tensor, "n d"]) -> Float[Tensor, "n ..."]:
        whole = codes[middle].repeat(len(z), 1)
        whole[:, places] = z
        return seen.reader.decode(whole)

    decoded = geometry.traversal(decode, codes[middle, places], values, units=units[places].to(codes))
    desk.arrays.update(
        {
            "traversal": _numpy(decoded).reshape(len(places), VALUES, *seen.x.shape[1:]).astype(np.float32),
            "traversal/values": _numpy(values),
            "traversal/latents": np.array(places),
        }
    )


def _scores(desk: Desk, factors: ndarray, names: Sequence[str]) -> Finding:
    seen = desk.seen
    say = partial(
        Finding,
        "scores",
        "Does one latent stand for each factor?",
        unit="mutual information gap (MIG)",
        reference=CHEN.format("equation 6"),
    )
    codes = _numpy(seen.posterior.mean).astype(np.float64)
    try:
        found, sap = scores.mig(codes, factors), scores.sap(codes, factors)
    except AxiswiseError as error:
        desk.limits.append(f"The factors cannot be scored. {error}")
        return say(f"Undefined. {error}", value=None)
    value = _jackknife((codes, factors), lambda c, f: float(np.asarray(scores.mig(c, f).score)))
    known = found.entropies > 0.0
    shares = np.divide(
        found.information, found.entropies[:, None], where=known[:, None], out=np.zeros_like(found.information)
    )
    desk.arrays.update({"information": shares, "factors": np.array(names)})
    baselines = ()
    if len(seen.active) > 1:
        turned = codes[:, seen.active] @ desk.rotations[:FEW_ROTATIONS].numpy()
        baselines = (_baseline(TURNED, np.asarray(scores.mig(turned, factors).score)),)
    told = [
        f"{name} is known best to {seen.name(int(row.argmax()))} ({_percent(row.max())} of its entropy)"
        for name, row, varies in zip(names, shares, known, strict=True)
        if varies
    ]
    versus = f", and {baselines[0].value:.3f} is what the model rotated has" if baselines else ""
    sentence = (
        f"MIG is {value.estimate:.3f}, where 1 is one latent for each factor and 0 none that stands out{versus}; "
        f"SAP is {float(np.asarray(sap.score)):.3f}; {'; '.join(told[:NAMED])}."
    )
    return say(sentence, value=value, baselines=baselines)


def _rotated(desk: Desk, measure: Callable[[Tensor], Tensor]) -> Float[ndarray, " r"]:
    """A measure of the model under each random rotation of its active latents.

    The Jacobian of `models.rotate_latents`'s decoder is J Rᵀ, so nothing needs to be decoded again.
    """
    turns = desk.rotations.to(desk.seen.gram.device)
    return np.array([measure(turn).item() for turn in turns])


def _jackknife(arrays: Sequence[ndarray], statistic: Callable[..., float]) -> Interval:
    r"""Interval over points of a statistic that repeated rows would bias, such as information or a distance.

    .. math:: \hat\theta \pm t_{g-1} \sqrt{\tfrac{g-1}{g} \sum_b (\hat\theta_{(b)} - \bar\theta)^2},

    with :math:`\hat\theta_{(b)}` the statistic without the b-th of g blocks. A bootstrap repeats rows, which plug-in
    information takes for structure: its intervals can miss the estimate itself.
    """
    rows = np.arange(len(arrays[0]))
    blocks = np.array_split(rows, min(JACKKNIFE_BLOCKS, len(rows)))
    without = np.array([statistic(*(np.delete(array, block, axis=0) for array in arrays)) for block in blocks])
    count = len(blocks)
    error = math.sqrt((count - 1) ** 2 / count * without.var(ddof=1))
    half = float(stats.t.ppf(0.975, count - 1)) * error
    estimate = statistic(*arrays)
    method = f"jackknife of {count} blocks, Student t"
    return Interval(estimate, estimate - half, estimate + half, 0.95, len(rows), method)


def _beats(turned: Float[ndarray, " r"], value: Interval) -> tuple[bool, str]:
    """Whether so few rotations do as well as the model that it is no accident; and how many, in words."""
    count = int((turned <= value.estimate).sum())
    words = "none comes" if count == 0 else "1 comes" if count == 1 else f"{count} come"
    return (count + 1) / (len(turned) + 1) <= UNLIKELY, words


def _baseline(name: str, draws: Float[ndarray, " r"], what: str = "random rotations") -> Baseline:
    low, high = np.quantile(draws, (0.025, 0.975)).tolist()
    return Baseline(name, float(draws.mean()), low, high, f"{len(draws)} {what}")


def _block(matrices: Float[Tensor, "m z z"], latents: list[int]) -> Float[Tensor, "m d d"]:
    return matrices[:, latents][:, :, latents]


def _diagonal(matrices: Float[Tensor, "m d d"]) -> Float[Tensor, "m d"]:
    return matrices.diagonal(dim1=-2, dim2=-1)


def _percent(share: Any, digits: int = 0) -> str:
    return f"{100.0 * float(share):.{digits}f} %"


def _numpy(tensor: Tensor) -> ndarray:
    return tensor.detach().cpu().numpy()
