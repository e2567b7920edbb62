"""Sentences from numbers: each quantity becomes a finding, and what it leaves open becomes a limit."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from axiswise.distributions import Bernoulli, Gaussian
from axiswise.explanation._observation import KL_ABOVE, NAMED, STEP, Guess, Observed, Unsteady
from axiswise.explanation._quantities import (
    Activity,
    Aggregate,
    Columns,
    Effects,
    FactorScores,
    Law,
    LocalDirections,
    Orthogonality,
    Overlap,
    Quantities,
    Rank,
    Undefined,
)
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.records import Baseline, Finding
from axiswise.statistics import Interval

FEW = 50  # points below which intervals and threshold decisions are weak
SLIGHT = 0.1  # of a baseline, up to which a difference from it is called slight
GAP = 0.01  # of the largest singular value, below which neighbours are hard to tell apart
CLOSE, ROUGH = 0.1, 0.4  # mean |log(σ² / law)| below which variances are, or are roughly, those of the law
LARGE = math.log(3.0)  # mean |log| of ratios from which they are factors in sentences, not percent
NO_WIDTH = 1e-9  # of an estimate, below which an interval is rounding
OUTSIDE = 1.0  # by which observations leave 0 … 1 where they are probably not scaled as in training
APART = 0.95  # of the largest information, above which encodings hardly overlap

ROLINEK = "Rolinek, Zietlow and Martius, Variational autoencoders pursue PCA directions (by accident), CVPR 2019, {}"
ZIETLOW = "Zietlow, Rolinek and Martius, Demystifying inductive biases for β-VAE based architectures, ICML 2021, {}"
ALLEN = "Allen, Unpicking data at the seams: VAEs, disentanglement and independent components, 2024, {}"
MATHIEU = "Mathieu, Rainforth, Siddharth and Teh, Disentangling disentanglement in VAEs, ICML 2019, {}"
CHEN = "Chen, Li, Grosse and Duvenaud, Isolating sources of disentanglement in VAEs, NeurIPS 2018, {}"

UNSTEADY_ENCODER: dict[Unsteady, str] = {
    "draws": (
        "The encoder draws random numbers of its own even in evaluation mode: all numbers hold for one draw. Let it "
        "return means and log-variances."
    ),
    "depends on its batch": (
        "The encoding of an observation depends on the others in its batch, as with batch norm that keeps no running "
        "statistics: all numbers hold for this batch alone."
    ),
}
"""What it means where encodings are not functions of single observations."""
NO_SLOPES: dict[str, str] = {
    "draws": (
        "the decoder returns something else each time it is called with the same z, as with dropout that is called as "
        "a function"
    ),
    "depends on its batch": (
        "what the decoder returns for one z depends on the others in its batch, as with batch norm that keeps no "
        "running statistics"
    ),
}
"""Why nothing that rests on the decoder's slope can be said, by the reason."""
STEADY: dict[Unsteady, str] = {
    "draws": (
        "Let it return E[x | z], not a sample: call model.eval(), and pass training=self.training to functional.dropout"
    ),
    "depends on its batch": "Let its norm keep running statistics, and call model.eval()",
}
"""What to do about it."""

GUESSED: dict[Guess, str] = {
    "Bernoulli": (
        "Bernoulli pixels, since observations and reconstructions lie in 0 … 1. A Gaussian likelihood behind a sigmoid "
        "looks the same."
    ),
    "logits": (
        "Bernoulli pixels whose logits `decode` returns, since observations lie in 0 … 1, and its output fits them "
        "better through a sigmoid. Let it return probabilities instead."
    ),
    "Gaussian": (
        "Gaussian pixels. Their scale is unknown, so that only how the encoder's variances vary can be tested, not "
        "their level."
    ),
}
"""Why a likelihood was guessed, and what that leaves open."""
IF: dict[Guess, str] = {
    "Bernoulli": "pixels are Bernoulli, a guess from values in 0 … 1",
    "logits": "the output of `decode` is logits of Bernoulli pixels, a guess from its range",
    "Gaussian": "pixels are Gaussian, a guess",
}
WERE: dict[Guess, str] = {
    "Bernoulli": "pixels Bernoulli, which values in 0 … 1 suggest",
    "logits": "pixels Bernoulli and the output of `decode` their logits, which its range suggests",
    "Gaussian": "pixels Gaussian",
}
ADVICE: dict[tuple[bool, bool | None], str] = {
    (True, True): "Read latents one by one.",
    (True, False): "Look at latents one by one, and do not name them after factors.",
    (True, None): "Look at latents one by one; what they mean is open without factors.",
    (False, True): "Read latents one by one, with care.",
    (False, False): "Read latents together, not one by one.",
    (False, None): "Read latents together, not one by one.",
}
"""What to do, by whether the decoder, and factors where they are known, prefer the axes of the latents."""
FROM_LOGITS = " This takes the output of `decode` for logits, which is a guess."


IF_LOG_VARIANCE = "If what `encode` returns second is the logarithm of variances, then "
OR_VARIANCE = (
    "Every posterior would be at least as wide as the prior, as where these are variances or standard deviations."
)
APART_GROUPS = "Explain groups of observations apart, such as one class or one cluster: x[group]."


class Written(NamedTuple):
    """A finding, where there is one, and what it leaves open."""

    finding: Finding | None
    limits: tuple[str, ...] = ()


def write_findings(
    observed: Observed, quantities: Quantities, beta: float | int | None, factor_names: Sequence[str]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """The findings in the order in which to read them, and what they leave open.

    Arguments:
        observed: What was computed of the model.
        quantities: Its numbers.
        beta: Weight of the divergence as it was given; None where it is unknown.
        factor_names: What the factors are called.
    """
    written = (
        _active(observed, quantities.activity),
        _orthogonality(observed, quantities.orthogonality),
        _columns(quantities.columns),
        _law(observed, quantities.law, beta),
        _local_directions(observed, quantities.local_directions),
        _aggregate(observed, quantities.aggregate),
        _overlap(quantities.overlap),
        _effects(observed, quantities.effects),
        _scores(observed, quantities.scores, factor_names),
    )
    findings = tuple(one.finding for one in written if one.finding is not None)
    if observed.guess == "logits":
        decoded = ("orthogonality", "columns", "local directions", "effects")  # the law has its own words for it
        findings = tuple(
            one._replace(sentence=one.sentence + FROM_LOGITS) if one.name in decoded and one.value is not None else one
            for one in findings
        )
    return findings, tuple(limit for one in written for limit in one.limits)


def write_conclusion(observed: Observed, quantities: Quantities) -> str:
    """What the findings come to: whether single latents can be read.

    Arguments:
        observed: What was computed of the model.
        quantities: Its numbers.
    """
    count, latents = len(observed.active), observed.latents
    scored = quantities.scores
    if quantities.activity.collapsed:
        return "No latent is active: the model has collapsed, and its latents say nothing of observations."
    if count == 0 and observed.maybe_variances:
        return f"{IF_LOG_VARIANCE}no latent is active, and the model may have collapsed. {OR_VARIANCE}"
    if count == 0:
        return (
            "No latent is active on average, but the model is not shown to have collapsed: "
            f"{_divergence(quantities.activity)}. {APART_GROUPS}"
        )
    which = f"{count} of {latents} latents {'is' if count == 1 else 'are'} active."
    if count == 1:
        return f"{which} With no second one, there are no axes to choose between: see what it does."
    # Where equal singular values leave DtO undefined, angles between columns decide.
    preferred = quantities.columns if isinstance(quantities.orthogonality, Undefined) else quantities.orthogonality
    if isinstance(preferred, Undefined):
        return f"{which} Whether the decoder prefers their axes is open: {NO_SLOPES[preferred.reason]}."
    aligned, known = preferred.rank.beats_chance, None
    decoder = f"The decoder {'prefers' if aligned else 'is not shown to prefer'} their axes to rotated ones"
    if aligned and preferred is quantities.columns:
        decoder += " as far as equal singular values determine them"
    if isinstance(scored, FactorScores) and scored.rank is not None:
        known = scored.rank.beats_chance
        mig = f"MIG {scored.interval.estimate:.2f}, rotated {scored.baselines[0].value:.2f}"
        decoder += (
            f"; single latents {'' if known else 'are not shown to '}stand for factors better than rotated ({mig})"
        )
    if observed.guess == "logits":
        decoder = f"If {IF['logits']}, then the {decoder.removeprefix('The ')}"
    return f"{which} {decoder}. {ADVICE[aligned, known]}"


def observation_limits(observed: Observed) -> list[str]:
    """What the model's outputs leave open, before any quantity."""
    limits = []
    if observed.unsteady is not None:
        limits.append(UNSTEADY_ENCODER[observed.unsteady])
    if observed.kl is None:
        limits.append(
            "The encoder gives codes without noise. Nothing that rests on posterior variances can be said: which "
            "latents are passive, whether the encoder obeys its law, how much encodings overlap."
        )
    elif observed.maybe_variances:
        limits.append(
            "Every posterior is at least as wide as a standard normal prior. If the encoder returns variances or "
            "standard deviations, return the logarithm of the variance instead, or give them a name: "
            '{"mean": mean, "std": std}.'
        )
    if len(observed.x) < FEW:
        limits.append(
            f"{len(observed.x)} points are few: which latents count as active, and every interval, may change with "
            "more."
        )
    if observed.guess is not None:
        limits.append(
            f"The likelihood is a guess: {GUESSED[observed.guess]} Pass likelihood=Bernoulli() or "
            "likelihood=Gaussian(scale), whichever the model was trained with."
        )
    low, high = observed.x.min().item(), observed.x.max().item()
    if (low < -OUTSIDE or high > 1.0 + OUTSIDE) and observed.decoded.min() >= 0.0 and observed.decoded.max() <= 1.0:
        limits.append(
            f"Observations range from {low:.3g} to {high:.3g}, and reconstructions lie in 0 … 1. If the model was "
            "trained on observations in 0 … 1, scale them as in training: x / 255 for bytes."
        )
    if isinstance(observed.slopes, str):
        limits.append(
            f"Nothing that rests on the decoder's slope can be said: {NO_SLOPES[observed.slopes]}. "
            f"{STEADY[observed.slopes]}."
        )
    elif observed.slopes.not_differentiable is not None:
        message = observed.slopes.not_differentiable
        reason = (
            f"PyTorch cannot differentiate the decoder ({message})"
            if message
            else "the decoder hides its derivatives (it detaches, or leaves PyTorch)"
        )
        limits.append(
            f"Derivatives were taken as central differences of step {STEP:g}, good to about "
            f"{_percent(observed.slopes.rounding, 1)}, because {reason}."
        )
    return limits


def likelihood_name(observed: Observed) -> str:
    """What the likelihood is called."""
    likelihood = observed.likelihood
    if observed.guess is not None:
        return f"unknown ({type(likelihood).__name__} guessed{', of logits' if observed.guess == 'logits' else ''})"
    return f"Gaussian({likelihood.scale:g})" if isinstance(likelihood, Gaussian) else type(likelihood).__name__


def _active(observed: Observed, activity: Activity) -> Written:
    finding = partial(
        Finding,
        "active",
        "Which latents are active?",
        value=activity.interval,
        unit="active latents",
        reference=ZIETLOW.format("section 5.3; ") + ROLINEK.format("definition 1 (the polarized regime)"),
    )
    count, latents, value = len(observed.active), observed.latents, activity.interval
    if activity.criterion == "spread":
        return Written(
            finding(
                f"Undefined: codes have no noise. {count} of {latents} latents vary with the observation, and count as "
                "active below."
            )
        )
    criterion = (
        f"mean KL above {KL_ABOVE:g} nats"
        if activity.criterion == "kl"
        else f"mean posterior variance below {ACTIVE_BELOW:g} of the prior's"
    )
    if value is not None and value.low < value.high:
        criterion += f"; 95 %: {value.low:.0f} to {value.high:.0f}"
    if activity.collapsed:
        limit = (
            "No latent is active: the posterior has collapsed to the prior, and the decoder's geometry says nothing "
            "about how observations are encoded."
        )
        return Written(
            finding(f"None of {latents} latents is active ({criterion}): the model has collapsed."), (limit,)
        )
    between = _between(observed, activity)
    if observed.maybe_variances and not observed.active:
        sentence = f"{IF_LOG_VARIANCE}none of {latents} latents is active ({criterion}). {OR_VARIANCE}"
        return Written(finding(sentence))
    if not observed.active:
        limit = (
            "No latent is active on average, so that nothing was compared over active latents. "
            f"Yet {_divergence(activity)}: activity goes by the mean over points, which few wide posteriors can "
            f"dominate. {APART_GROUPS}"
        )
        sentence = f"None of {latents} latents is active ({criterion}), but {_divergence(activity)}.{between}"
        return Written(finding(sentence), (limit,))
    passive = latents - count - len(activity.between)
    which = f": {_names(observed, observed.active)}" if count < latents else ""
    which += ", the most precise first" if which and count > 1 else ""
    others = "other one carries" if passive == 1 else f"other {passive} carry"
    rest = f" The {others} almost no information." if passive else ""
    verb = "is" if count == 1 else "are"
    return Written(finding(f"{count} of {latents} latents {verb} active ({criterion}){which}.{rest}{between}"))


def _between(observed: Observed, activity: Activity) -> str:
    """Latents that are neither active nor silent, with their divergence; nothing where there are none."""
    if not activity.between or activity.kl is None:
        return ""
    named = [f"{observed.name(latent)} ({activity.kl[latent]:.2f} nats)" for latent in activity.between[:NAMED]]
    more = ", …" if len(activity.between) > NAMED else ""
    regime = "; the regime is not polarized" if activity.mixed else ""
    return f" Between active and passive, by mean KL: {', '.join(named)}{more}{regime}."


def _divergence(activity: Activity) -> str:
    """What encodings cost, in words."""
    total = 0.0 if activity.kl is None else float(activity.kl.sum())
    return f"posteriors differ from the prior by {total:.2g} nats (mean KL)"


def _orthogonality(observed: Observed, found: Orthogonality | Undefined) -> Written:
    finding = partial(
        Finding,
        "orthogonality",
        "Are the decoder's local principal directions the latent axes?",
        unit="distance to orthogonality (DtO)",
        reference=ROLINEK.format("equation 29 (DtO) and proposition 1"),
    )
    if isinstance(found, Undefined):
        sentence, limits = _undefined_orthogonality(observed, found)
        return Written(finding(sentence, value=None), limits)
    limits = ()
    if found.gap < GAP:
        limits = (
            f"Neighbouring singular values of the decoder differ by {_percent(found.gap, 2)} of the largest at the "
            "median point: small changes of the decoder turn the directions in between, so DtO is uncertain there. "
            "The angles between columns do not depend on that.",
        )
    chance = found.baselines[1]
    nearer = f"{_slightly(found.rank, found.interval.high, chance)}nearer"
    sentence = (
        f"The decoder's local principal directions are {'' if found.rank.beats_chance else 'not shown to be '}{nearer} "
        f"to the latent axes than chance: DtO over the {len(observed.active)} active latents is "
        f"{_with_interval(found.interval, 2)}, where 0 is aligned and a random rotation gives {chance.value:.2f}. "
        f"{_rotations(found.rank, 'below')}"
    )
    return Written(finding(sentence, value=found.interval, baselines=found.baselines), limits)


def _undefined_orthogonality(observed: Observed, found: Undefined) -> tuple[str, tuple[str, ...]]:
    """The sentence where there is no distance to orthogonality, and its limits."""
    match found.reason:
        case "draws" | "depends on its batch":
            return _no_slopes(found), ()
        case "equal singular values":
            limit = (
                "Neighbouring singular values of the decoder are equal to rounding at the median point. The directions "
                "in between are whatever rounding makes them, and DtO is undefined."
            )
            return "Undefined: the decoder has equal singular values, which determine no directions.", (limit,)
        case _:
            reason = _no_second_direction(observed)
            return f"Undefined. {reason}", (f"The distance to orthogonality is undefined. {reason}",)


def _columns(found: Columns | Undefined) -> Written:
    finding = partial(
        Finding,
        "columns",
        "Are the effects of different latents orthogonal?",
        unit="share of JᵀJ off its diagonal",
        reference=ALLEN.format("equation 8; ") + ROLINEK.format("theorem 2"),
    )
    if isinstance(found, Undefined):
        return Written(finding(_no_slopes(found), value=None) if found.reason in NO_SLOPES else None)
    value, rotated = found.interval, found.baselines[0]
    closer = f"{_slightly(found.rank, value.high, rotated)}closer"
    sentence = (
        f"The effects of different latents are {'' if found.rank.beats_chance else 'not shown to be '}{closer} to "
        f"orthogonal than after a random rotation: {_with_interval(value, 1, ' %')} of JᵀJ lies off its diagonal, "
        f"{_percent(rotated.value, 1)} for the model rotated. "
        f"{_rotations(found.rank, 'below')} The effects of the two most similar latents are {found.closest:.0f}° apart "
        "on average. Equal singular values do not affect this."
    )
    return Written(finding(sentence, value=found.interval, baselines=found.baselines))


def _law(observed: Observed, found: Law | Undefined, beta: float | int | None) -> Written:
    finding = partial(
        Finding,
        "law",
        "Does the encoder obey its law: are its variances those that the decoder's slope implies?",
        unit="mean |log(σ² / law)|",
        reference=ALLEN.format("equation 7: 1/σ_j² = 1 + [DᵀA²D]_jj / β"),
    )
    if isinstance(found, Undefined):
        sentence, limits = _undefined_law(found)
        return Written(finding(sentence, value=None), limits)
    own, *rotated = _deviations([found.interval.estimate, *(one.value for one in found.baselines)])
    implied = f"that the decoder's slope implies at {_law_taken_at(observed, beta)}"
    within = f", to within {own} on average" + "".join(f"; rotated at random, to within {one}" for one in rotated)
    apart, versus = f"by {own} on average", "".join(f"; rotated at random, by {one}" for one in rotated)
    low, high = found.interval.low, found.interval.high
    if high < ROUGH:
        on = "On" if observed.guess is None else f"If {IF[observed.guess]}, then on"
        how = "are" if high < CLOSE else "are roughly"
        sentence = f"{on} active latents the encoder's variances {how} those {implied}{within}."
    elif observed.guess is not None:
        sentence = (
            f"Not tested, because the likelihood is a guess. Were {WERE[observed.guess]}, then on active latents the "
            f"encoder's variances would differ {apart} from those {implied}{versus}."
        )
    elif low > ROUGH:
        sentence = f"On active latents the encoder's variances are not those {implied}: they differ {apart}{versus}."
    else:
        sentence = (
            f"On active latents the encoder's variances are not shown to be those {implied}, nor to be others: they "
            f"differ {apart}{versus}. The interval is {' to '.join(_deviations([low, high]))}."
        )
    sentence += f" {_best_fit(observed, found, beta)}"
    limits = _law_limits(observed, found.best_beta, beta)
    return Written(finding(sentence, value=found.interval, baselines=found.baselines), limits)


def _law_taken_at(observed: Observed, beta: float | int | None) -> str:
    if observed.guess == "Gaussian":
        return "the scale of pixels that fits best"
    return "the β that fits best" if beta is None else f"β = {beta:g}"


def _best_fit(observed: Observed, found: Law, beta: float | int | None) -> str:
    """Where variances fit the law best: at which β, or, without the scale of Gaussian pixels, at which scale."""
    if observed.guess == "Gaussian":
        weight = 1.0 if beta is None else beta
        scale = math.sqrt(found.best_beta / weight)
        return f"If pixels are Gaussian, then with β = {weight:g} they fit best at pixels of scale {scale:.3g}."
    best = f"fit best at β = {found.best_beta:.3g}" if math.isfinite(found.best_beta) else "fit at no β"
    return f"They {best}." if observed.guess is None else f"If {IF[observed.guess]}, then they {best}."


def _deviations(logarithms: Sequence[float]) -> list[str]:
    """Mean |log| of ratios in one unit: percent, or factors where one of them is large.

    Example:
        >>> _deviations([math.log(1.25), math.log(1.5)]), _deviations([math.log(1.25), math.log(6.0)])
        (['25.0 %', '50.0 %'], ['a factor of 1.25', 'a factor of 6'])
    """
    if max(logarithms) < LARGE:
        return [_percent(math.expm1(one), 1) for one in logarithms]
    return [f"a factor of {math.exp(one):.3g}" for one in logarithms]


def _undefined_law(found: Undefined) -> tuple[str, tuple[str, ...]]:
    """The sentence where there is no law, and its limits."""
    match found.reason:
        case "draws" | "depends on its batch":
            return _no_slopes(found), ()
        case "no noise":
            return "Undefined: codes without noise have no variances.", ()
        case "no active latent":
            return "Undefined: no latent is active.", ()
        case "prior is not Gaussian":
            limit = f"The encoder's law is one of Gaussian priors. Got {found.detail}."
            return "Undefined: the prior is not Gaussian.", (limit,)
        case "likelihood has no variance":
            limit = (
                f"The encoder's law needs a variance that follows from the mean, which {found.detail} does not have."
            )
            return f"Undefined for {found.detail}.", (limit,)
        case "variances vanish":
            return "Undefined: some posterior variances are 0 to rounding, which no law gives.", ()
        case _:
            return "Undefined: the decoder has no slope, or posteriors are wider than the prior.", ()


def _law_limits(observed: Observed, best: float, beta: float | int | None) -> tuple[str, ...]:
    """What a comparison with the law leaves open."""
    limits = []
    if beta is None:
        at = "" if observed.guess == "Gaussian" else f" at β = {best:.3g},"
        limits.append(
            f"β is unknown: the law was compared{at} where it fits best, so that only how variances vary was tested, "
            "not their level."
        )
    elif observed.guess != "Gaussian" and math.isfinite(best) and not abs(math.log(best / beta)) <= math.log(1.5):
        the = "The" if observed.guess is None else f"If {IF[observed.guess]}, then the"
        limits.append(
            f"{the} variances fit the law best at β = {best:.3g}, not at β = {beta:g}. β, the likelihood or its "
            "scale may differ from those of training (a mean over pixels in the loss changes β), or training may not "
            "have converged. The variances do not show which."
        )
    if isinstance(observed.likelihood, Bernoulli):
        limits.append(
            "Under a Bernoulli likelihood the law leaves out the decoder's curvature, which vanishes only where "
            "reconstructions are exact."
        )
    return tuple(limits)


def _local_directions(observed: Observed, found: LocalDirections | Undefined) -> Written:
    finding = partial(
        Finding,
        "local directions",
        "Do latents follow the local principal directions of the data?",
        unit="mean angle to local principal directions, degrees",
        reference=ZIETLOW.format("section 3.3 and figure 1"),
    )
    if isinstance(found, Undefined):
        sentence, limits = _undefined_local_directions(observed, found)
        return Written(finding(sentence, value=None), limits)
    value, rotated = found.interval, found.baselines[0]
    follow = "follow" if found.rank.beats_chance else "are not shown to follow"
    sentence = (
        f"Active latents {follow} the local principal directions of the data "
        f"{_slightly(found.rank, value.high, rotated)}better than after a random rotation: the mean angle is "
        f"{_with_interval(value, 1, '°')}, {rotated.value:.1f}° for the model "
        f"rotated. {_rotations(found.rank, 'below')} To global principal directions it is "
        f"{found.to_global:.1f}°."
    )
    limit = (
        f"Local principal directions come from the {found.neighbours} nearest of {len(observed.x):,} points: where "
        "these span much of the data they are not local, and directions of similar variance cannot be told apart."
    )
    return Written(finding(sentence, value=found.interval, baselines=found.baselines), (limit,))


def _undefined_local_directions(observed: Observed, found: Undefined) -> tuple[str, tuple[str, ...]]:
    """The sentence where there are no angles to local directions, and its limits."""
    match found.reason:
        case "draws" | "depends on its batch":
            return _no_slopes(found), ()
        case "no second direction":
            return f"Undefined. {_no_second_direction(observed)}", ()
        case "too few points":
            neighbours = int(found.detail)
            limit = (
                f"{len(observed.x)} points are too few for neighbourhoods of {neighbours}: whether latents follow "
                "local principal directions was not tested."
            )
            return f"Not tested: neighbourhoods take at least {2 * neighbours} points.", (limit,)
        case "no derivatives":
            return "Not tested: PyTorch cannot differentiate the decoder.", ()
        case _:
            return "Undefined: at some point an active latent does not move the observation.", ()


def _aggregate(observed: Observed, found: Aggregate) -> Written:
    value, samples = found.interval, found.baselines[0]
    fits = "does not fit the prior" if value.low > samples.high else "is not shown to differ from the prior"
    farthest = int(found.per_latent.argmax())
    sentence = (
        f"The aggregate of all encodings {fits}, latent by latent: its distance over "
        f"{'active ' if observed.active else ''}latents is {_with_interval(value, 3)} standard deviations "
        f"of the prior, {samples.value:.3f} (95 %: {samples.low:.3f} to {samples.high:.3f}) for draws of the prior "
        f"itself; it is largest at "
        f"{observed.name(found.latents[farthest])}, {found.per_latent[farthest]:.3f}."
    )
    limit = (
        "The aggregate was compared with the prior one latent at a time: how latents depend on each other over the "
        "whole set is not part of that."
    )
    return Written(
        Finding(
            "aggregate",
            "How far is the aggregate of all encodings from the prior?",
            sentence,
            found.interval,
            "Wasserstein distance of single latents, in σ of the prior",
            MATHIEU.format("factor (b) of decomposition, and equation 7"),
            found.baselines,
        ),
        (limit,),
    )


def _overlap(found: Overlap | Undefined) -> Written:
    finding = partial(
        Finding,
        "overlap",
        "How much do the encodings overlap?",
        unit="information I(x; z), nats",
        reference=MATHIEU.format("section 3.1 (overlap)"),
    )
    if isinstance(found, Undefined):
        sentence = "Undefined: some posteriors are narrower than their means are rounded to."
        return Written(finding(sentence, value=None) if found.reason == "variances vanish" else None)
    information, apart = found.interval.estimate, found.interval.low > APART * found.largest
    sentence = (
        f"The encodings of different observations {'hardly overlap' if apart else 'overlap'}: an encoding carries "
        f"{information:.2f} nats about which of the {found.points:,} points it came from; {found.largest:.2f} nats "
        "would identify every point."
    )
    limit = (
        f"The encodings of {found.points:,} points hardly overlap: their information about the observation is at least "
        f"{information:.1f} nats. Use more points to see how much more."
    )
    return Written(finding(sentence, value=found.interval), (limit,) if apart else ())


def _effects(observed: Observed, found: Effects | Undefined) -> Written:
    # A vector has no pixels.
    part = "pixel" if observed.x.ndim > 2 else "value"
    finding = partial(
        Finding,
        "effects",
        "What does each latent do to an observation?",
        reference=ROLINEK.format("equation 17 (the decoder, linearised)"),
    )
    if isinstance(found, Undefined):
        unit = f"change of a {part} by one standard deviation of a latent"
        return Written(finding(_no_slopes(found), value=None, unit=unit))
    first, changes = found.order[0], found.per_latent
    total = float((changes**2).sum())
    name, ahead = observed.name(first), found.lead is None or found.lead.low > 0.0
    others = "".join(f", of {observed.name(latent)} by {changes[latent]:.3f}" for latent in found.order[1:4])
    share = f" {name} does {_percent(changes[first] ** 2 / total)} of what all latents do." if total > 0.0 else ""
    headline = f"{name} changes observations most" if ahead else "No latent is shown to change observations most"
    sentence = (
        f"{headline}: one standard deviation of {name} moves a {part} by {found.interval.estimate:.3f} (root mean "
        f"square){others}.{share}"
    )
    unit = f"change of a {part} by one standard deviation of {name}"
    return Written(finding(sentence, value=found.interval, unit=unit))


def _scores(observed: Observed, found: FactorScores | Undefined | None, names: Sequence[str]) -> Written:
    finding = partial(
        Finding,
        "scores",
        "Does one latent stand for each factor?",
        unit="mutual information gap (MIG)",
        reference=CHEN.format("the mutual information gap"),
    )
    if found is None:
        limit = "Without factors nothing can be concluded about meaning: a latent may be clean and mean nothing."
        return Written(None, (limit,))
    if isinstance(found, Undefined):
        limit = f"The factors cannot be scored. {found.detail}"
        return Written(finding(f"Undefined. {found.detail}", value=None), (limit,))
    rows = zip(names, found.information, found.shuffled, found.varies, strict=True)
    best = [
        f"{observed.name(int(row.argmax()))} carries most about {name} ({_percent(row.max())} of its entropy, "
        f"{_percent(shuffled)} for codes shuffled)"
        for name, row, shuffled, varies in rows
        if varies
    ]
    constant = [name for name, varies in zip(names, found.varies, strict=True) if not varies]
    left_out = f"Constant among these points, and left out of MIG and SAP: {', '.join(constant)}."
    value = found.interval
    mig = f"MIG is {_with_interval(value, 3)}, where 1 is one latent for each factor and 0 none that stands out"
    if found.rank is None:
        headline = f"{mig}."
    else:
        rotated = found.baselines[0]
        stand = "stand" if found.rank.beats_chance else "are not shown to stand"
        headline = (
            f"Single latents {stand} for factors {_slightly(found.rank, value.low, rotated)}better than after a random "
            f"rotation: {mig}, and {rotated.value:.3f} for the model rotated. {_rotations(found.rank, 'above')}"
        )
    # What a collapsed model carries about factors is what counting makes of noise.
    which = f" Among these points, {'; '.join(best[:NAMED])}." if observed.active else ""
    sentence = f"{headline} SAP is {found.sap:.3f}.{which}{f' {left_out}' if constant else ''}"
    return Written(finding(sentence, value=found.interval, baselines=found.baselines), (left_out,) if constant else ())


def _no_slopes(found: Undefined) -> str:
    return f"Undefined: {NO_SLOPES[found.reason]}."


def _no_second_direction(observed: Observed) -> str:
    count = "one latent" if observed.active else "no latent"
    return f"With {count} active there is no second direction to compare with."


def _names(observed: Observed, latents: Sequence[int]) -> str:
    """The names of several latents, the first of them where they are many."""
    names = ", ".join(observed.name(latent) for latent in latents[:NAMED])
    return f"{names}, …" if len(latents) > NAMED else names


def _slightly(rank: Rank, end: float, baseline: Baseline) -> str:
    """Whether the interval, which ends there, excludes the baseline by so little that the sentence should say so."""
    return "slightly " if rank.beats_chance and abs(baseline.value - end) < SLIGHT * abs(baseline.value) else ""


def _rotations(rank: Rank, side: str) -> str:
    """How many random rotations of the model do as well."""
    count = {0: "none lies", 1: "1 lies"}.get(rank.as_good, f"{rank.as_good} lie")
    return f"Of {rank.draws} random rotations of this model {count} within that interval or {side}."


def _with_interval(value: Interval, digits: int, unit: str = "") -> str:
    """An estimate and its 95 % interval to the same digits: as many as tell its ends apart, or why nothing does.

    Example:
        >>> _with_interval(Interval(0.0213, 0.0211, 0.0215, 0.95, 9, "Student t"), 2)
        '0.0213 (95 %: 0.0211 to 0.0215)'
        >>> _with_interval(Interval(0.25, 0.25, 0.25, 0.95, 9, "Student t"), 1, " %")
        '25.0 % (exactly: it does not vary over points)'
    """
    numbers = [(100.0 if unit == " %" else 1.0) * number for number in (value.estimate, value.low, value.high)]
    if numbers[2] - numbers[1] <= NO_WIDTH * max(1.0, abs(numbers[0])):
        return f"{numbers[0]:.{digits}f}{unit} (exactly: it does not vary over points)".replace("-", "−")
    while numbers[1] < numbers[2] and f"{numbers[1]:.{digits}f}" == f"{numbers[2]:.{digits}f}":
        digits += 1
    own, low, high = (f"{number:.{digits}f}{unit}" for number in numbers)
    return f"{own} (95 %: {low} to {high})".replace("-", "−")


def _percent(share: Any, digits: int = 0) -> str:
    return f"{100.0 * float(share):.{digits}f} %"
