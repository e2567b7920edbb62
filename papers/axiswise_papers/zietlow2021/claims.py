"""The claims of zietlow2021, and how each is judged.

The rules were fixed before the first run at the default scale, except that of the small attack, whose setting was found
with other seeds before, and that of Figure 1: about eight settings of its data were tried on other seeds. Its rule on
angles to the local directions, which are arbitrary where a decoder is flat, failed in a pilot; it stands beside the one
that replaced it. Groups of seeds are independent: differences have Welch's interval. Images that are changed are judged
only where the change depends on the factors: one that is the same for all images is no test of the paper.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from axiswise.attack import VARIANTS
from axiswise.statistics import Interval, compare, mean_interval
from axiswise_papers._claim import (
    OURS,
    Claim,
    Departure,
    Erratum,
    Finding,
    Rows,
    Training,
    above,
    agrees,
    below,
    missing,
    mostly_below,
)
from axiswise_papers._tables import column, contrast, difference, values
from axiswise_papers.zietlow2021 import exact
from axiswise_papers.zietlow2021.tables import (
    ARMS,
    SCORES,
    VARIATIONAL,
    arms_of,
    dataset_of,
    dataset_words,
    document,
    printed_drop,
    published,
)

ALIGNED = 2.0  # degrees between columns of a linear decoder and principal directions, on average over seeds
LAW = 0.02  # by which E μ² + E σ² of any latent may miss 1: what is left of training, on average over seeds
NOT_NEGLIGIBLE = 0.1  # by which E μ² alone misses 1 where σ² is not small: .26 of the third source
FOLLOWED = 5.0  # degrees between the latents of a linear VAE and the global directions
MATCHED = 0.99  # correlation of two encodings that "match remarkably well"
CONSTANT = 0.01  # share of a change that must depend on the factors
LOST = 0.02  # of the accuracy of a classifier, that still counts as preserved
MARGIN = 0.05  # that PCL may drop and still count as unaffected: less than any VAE is printed to drop
HALF = 0.5
ONE_OF_FOUR = 1 - 0.05 / 4  # level of each of four intervals that together miss once in twenty times, at most
BY_CHANCE = 0.05  # that hues cut at random are as near to each other
HUES = 10
MAIN = {"beta-vae": "beta", "factor-vae": "gamma", "beta-tcvae": "beta", "slow-vae": "beta"}
TESTS = "tests/papers/zietlow2021/test_errata.py"


def thm1(rows: Rows) -> Iterator[Finding]:
    """Columns of linear VAEs are principal directions; the law of the second moments holds in every VAE."""
    angle, free = (column(rows, f"linear/{end}", "principal_angle") for end in ("diagonal", "full"))
    what = "degrees between columns of linear VAEs and principal directions"
    yield mostly_below(what, angle, ALIGNED, published="Theorem 1")
    mean, more = mean_interval(free).estimate, compare(free, angle).difference
    yield above(f"degrees with a full covariance ({mean:.0f}) less those with a diagonal one", more, 0.0)
    for run, words in (("linear/diagonal", "linear"), ("bent/mlp", "bent square"), ("images/mlp", "small images")):
        off = mean_interval(column(rows, run, "latent_law"))
        yield below(f"{words}: largest |E μ² + E σ² − 1| of a latent", off, LAW, published="E μ² = 1 (Lemma 1)")
    alone = mean_interval(column(rows, "linear/diagonal", "latent_law", "mean_square_alone"))
    yield above("linear: largest |E μ² − 1| of an active latent", alone, NOT_NEGLIGIBLE, published="0 (Lemma 1)")


def fig1(rows: Rows) -> Iterator[Finding]:
    """Linear VAEs follow the global directions; the encoding of non-linear ones is along and across stripes."""
    measure = next((row["measure"] for row in _all(rows) if row["measure"].startswith("local_pca")), "local_pca")
    straight, bent = "plane/linear", "plane/non-linear"
    whole = mean_interval(column(rows, straight, measure, "to_global"))
    yield below("linear VAEs: degrees to the global directions", whole, FOLLOWED)
    yield above(
        "linear VAEs: correlation of their encoding with that of PCA",
        mean_interval(column(rows, straight, "embedding")),
        MATCHED,
        published="matches remarkably well (Fig. 1)",
    )
    near, far = (values(rows, bent, measure, field) for field in (None, "to_global"))
    yield below(
        "non-linear VAEs: degrees to the local directions less those to the global ones (which failed in a pilot)",
        difference(near, far),
        0.0,
        published="picks up the alignment of the local structure (Fig. 1)",
    )
    level, principal = (values(rows, bent, "embedding", field) for field in ("level", None))
    yield above(
        "non-linear VAEs: correlation with coordinates along and across stripes less that with PCA",
        difference(level, principal),
        0.0,
        published="more sensitive to local variance (Fig. 1)",
    )


def manipulate(rows: Rows) -> Iterator[Finding]:
    """MIG of β-VAEs falls on changed images; where noise is said to do little, further than on noisy ones."""
    words, arm = dataset_words(rows), "beta-vae"
    yield _is_a_test(rows)
    if not _tests(rows):
        return
    original, changed, noisy = (column(rows, f"{arm}/{variant}", "mig") for variant in VARIANTS)
    drop = compare(original, changed).difference
    yield above(
        f"{words}: MIG of β-VAEs on original ({_mean(original)}) less that on changed images ({_mean(changed)})",
        drop,
        0.0,
        published=_printed(rows, arm),
    )
    if dataset_of(rows) != "dsprites":  # on which "the impact is noticeable" (section 5.2)
        less = compare(changed, noisy).difference
        yield below(f"{words}: MIG on changed less that on noisy images ({_mean(noisy)})", less, 0.0)


def preserved(rows: Rows) -> Iterator[Finding]:
    """Accuracy of classifiers of each factor on changed images, less on original ones, with that on noisy ones."""
    for group in sorted({run.partition("/")[0] for run in rows}) or ["small"]:
        runs = {end: f"{group}/{end}" for end in VARIANTS}
        names = next((row["factors"] for row in rows.get(runs["original"], ())), ["factor"])
        for place, name in enumerate(names):
            original, changed, noisy = (
                values(rows, run, "factor_accuracy", "accuracy", place=place) for run in runs.values()
            )
            shown = f"{_mean(list(original.values()))} on original images, {_mean(list(noisy.values()))} under noise"
            what = f"{group}, {name}: accuracy on changed images less that on original ones ({shown})"
            yield above(what, difference(changed, original), -LOST, published="perfectly preserved (abstract)")


def fig4(rows: Rows) -> Iterator[Finding]:
    """The change of Figure 4 differs from image to image; the gallery draws it."""
    yield _is_a_test(rows)


def noise(rows: Rows) -> Iterator[Finding]:
    """Noise takes less than half of MIG; on dSprites some of it, as in the paper's own figures."""
    words, dataset = dataset_words(rows), dataset_of(rows)
    for arm in VARIATIONAL:
        original, noisy, changed = (column(rows, f"{arm}/{end}", "mig") for end in ("original", "noise", "changed"))
        if not original or not noisy:
            yield from _not_run(rows, arm, ("original", "noise"))
            continue
        drop, printed = compare(original, noisy).difference, printed_drop(dataset, arm, "mig", "noise")
        what, place = f"{words}, {ARMS[arm]}: MIG on original less that on noisy images", _printed(rows, arm, "noise")
        if printed is not None and printed.difference.low > 0:
            yield above(what, drop, 0.0, published=place)
        else:
            yield below(f"{what}, {_mean(original)}", drop, HALF * mean_interval(original).estimate, published=place)
        if dataset == "shapes3d" and changed and _tests(rows):
            less = compare(changed, noisy).difference
            yield below(f"{words}, {ARMS[arm]}: MIG on changed less that on noisy images", less, 0.0)


def models(rows: Rows) -> Iterator[Finding]:
    """All objectives but the autoencoder, which is aligned at random, do better than it on the original images."""
    baseline = column(rows, "autoencoder/original", "mig")
    for arm in ARMS:
        found = column(rows, f"{arm}/original", "mig")
        if not found:
            yield from _not_run(rows, arm, ("original",))
        elif arm != "autoencoder":
            what = f"{dataset_words(rows)}, {ARMS[arm]}: MIG on the original less that of AE"
            yield above(what, compare(found, baseline).difference, 0.0, published=_printed(rows, arm, "original"))


def table1(rows: Rows) -> Iterator[Finding]:
    """Every cell of Table 1, and every drop."""
    yield _is_a_test(rows)
    yield from _table(rows, "mig")


def tables35(rows: Rows) -> Iterator[Finding]:
    """Every cell of Tables 3 to 5, and every drop."""
    yield _is_a_test(rows)
    for score in ("dci", "factor_vae", "sap"):
        yield from _table(rows, score)


def fig5(rows: Rows) -> Iterator[Finding]:
    """The best weight on changed images against the printed one on original images, on average over the objectives.

    Twenty weights are looked at for each score, and the best of them is high by chance alone. So every other seed
    chooses the best weight of each objective, the others test it, and there is one test for each of four scores.
    """
    words = dataset_words(rows)
    yield _is_a_test(rows)
    if not _tests(rows):
        return
    for arm in MAIN:
        if not {f"{arm}/original", f"{arm}/changed"} <= rows.keys():
            yield from _not_run(rows, arm, ("original", "changed"))
    there = [arm for arm in MAIN if {f"{arm}/original", f"{arm}/changed"} <= rows.keys()]
    for score, name in SCORES.items():
        searches = [_search(rows, arm, score) for arm in there]
        each = ", ".join(f"{ARMS[arm]} {found.words}" for arm, found in zip(there, searches, strict=True))
        yield below(
            f"{words}: {name} at the best weight on changed images ({_pruned(rows, there)}) less that on original ones "
            f"at the printed weight, on average over objectives ({each})",
            contrast([part for found in searches for part in found.kept(len(there))], level=ONE_OF_FOUR),
            0.0,
            published="stays low (Figs. 5, 7, 8 and 9)",
        )
        if score == "mig":
            yield below(
                f"{words}: MIG that the best stronger weight wins back, not over-pruned, less half of what was lost",
                contrast([part for found in searches for part in found.won_back(len(there))]),
                0.0,
                published="only once over-pruned (section 5.3)",
            )


class Search(NamedTuple):
    """A score of one objective at the printed weight, and on changed images at the weights that chosen seeds prefer."""

    before: list[float]
    """On original images at the printed weight."""
    after: list[float]
    """On changed images at the printed weight."""
    best: list[float]
    """On changed images at the best weight, by the seeds that did not choose it."""
    stronger: list[float]
    """At the best of the larger weights, likewise."""
    words: str
    """The best weight, and what it gives."""

    def kept(self, objectives: int) -> list[tuple[float, list[float]]]:
        """What the best weight gives less what the original images gave, as one of several objectives."""
        return [(1 / objectives, self.best), (-1 / objectives, self.before)]

    def won_back(self, objectives: int) -> list[tuple[float, list[float]]]:
        """What the best stronger weight gains less half of what was lost, likewise."""
        return [(1 / objectives, self.stronger), *((-HALF / objectives, part) for part in (self.after, self.before))]


def _search(rows: Rows, arm: str, score: str) -> Search:
    original, changed = (by_weight(rows[f"{arm}/{end}"], MAIN[arm], score) for end in ("original", "changed"))
    usual = document()["weights"].get(dataset_of(rows), {}).get(arm, min(original, default=math.nan))
    weight, best = _chosen(changed)
    _, stronger = _chosen({own: found for own, found in changed.items() if own > usual})
    before, after = (list(found.get(usual, {}).values()) for found in (original, changed))
    return Search(before, after, best, stronger, f"{_mean(best)} at {weight:g} against {_mean(before)}")


def _chosen(found: Mapping[float, Mapping[int, float]]) -> tuple[float, list[float]]:
    """The weight whose mean is largest over every other seed, and the values of the other seeds there."""
    seeds = sorted({seed for own in found.values() for seed in own})
    halves = [
        {w: [own[seed] for seed in half if seed in own] for w, own in found.items()}
        for half in (seeds[::2], seeds[1::2])
    ]
    means = {weight: mean_interval(own).estimate for weight, own in halves[0].items() if own}
    best = max((weight for weight in means if not math.isnan(means[weight])), key=means.__getitem__, default=math.nan)
    return best, halves[1].get(best, [])


def fig10(rows: Rows) -> Iterator[Finding]:
    """Whether polar coordinates or axes explain more of hue and orientation, in entangled and disentangled models."""
    found = rows.get("beta-vae/original", ())
    members = {row["member"]: row for row in found if row["measure"].startswith("hue_and_orientation")}
    active = {row["member"]: row["value"] or 0 for row in found if row["measure"] == "active_units"}
    ranked = sorted(
        (row["value"], row["member"])
        for row in found
        if row["measure"] == "mig" and row["value"] is not None and active.get(row["member"], 0) >= len(row["factors"])
    )
    count = min(document()["traversals"]["models"], len(ranked) // 2)
    entangled, disentangled = (
        [members[name] for _, name in part if name in members]
        for part in (ranked[:count], ranked[len(ranked) - count :])
    )
    first, last = ([_number(row["value"]) for row in part] for part in (entangled, disentangled))
    what = "share of wall hue and orientation by angle and radius less that by two latents"
    yield above(f"entangled β-VAEs: {what}", mean_interval(first), 0.0, published="angle and radius (Fig. 11)")
    yield below(f"disentangled β-VAEs: {what}", mean_interval(last), 0.0, published="separately (Fig. 10)")
    cuts = [cut(row["detail"]["hues"]) for row in disentangled if (row.get("detail") or {}).get("hues")]
    chance = as_near_by_chance(cuts)
    yield Finding(
        f"disentangled β-VAEs: chance that {len(cuts)} circles of hues, cut at random, are cut as near to each other",
        f"below {BY_CHANCE:g}",
        chance,
        math.nan,
        math.nan,
        "holds" if chance < BY_CHANCE else "undecided",
        "in the same way (C.2)",
    )


def by_weight(rows: Sequence[Mapping[str, Any]], name: str, score: str) -> dict[float, dict[int, float]]:
    """Scores by weight, ascending, and seed, of the runs that have as many active latents as there are factors.

    Example:
        >>> about = {"member": "a", "seed": 7, "hyperparameters": {"beta": 4.0}, "factors": ["x", "y"]}
        >>> rows = [{**about, "measure": "mig", "value": 0.3}, {**about, "measure": "active_units", "value": 2}]
        >>> by_weight(rows, "beta", "mig")
        {4.0: {7: 0.3}}
    """
    active = {row["member"]: row["value"] or 0 for row in rows if row["measure"] == "active_units"}
    found: dict[float, dict[int, float]] = {}
    for row in rows:
        if row["measure"] == score:
            own = found.setdefault(float(row["hyperparameters"][name]), {})
            if active.get(row["member"], 0) >= len(row["factors"]):
                own[row["seed"]] = _number(row["value"])
    return dict(sorted(found.items()))


def cut(hues: Sequence[float]) -> float:
    """Between which two hues a latent cuts the circle: where neighbours are furthest apart.

    Example:
        >>> cut([0.2, 0.4, -0.4, -0.2, 0.0])
        1.5
    """
    jumps = [abs(hues[(place + 1) % len(hues)] - value) for place, value in enumerate(hues)]
    return jumps.index(max(jumps)) + 0.5


def as_near_by_chance(places: Sequence[float], size: int = HUES) -> float:
    """The share of all ways to place as many points on a circle that have no larger sum of distances; NaN of one.

    Distances between the same few points depend on each other, so that all ways are counted.

    Example:
        >>> as_near_by_chance([0.5, 0.5, 0.5]), as_near_by_chance([0.5, 5.5])
        (0.01, 1.0)
    """
    if len(places) < 2:
        return math.nan
    around = np.arange(size)
    distance = np.minimum(around, size - around)
    # The first point may be anywhere: the others are placed around it.
    ways = np.array(list(product(range(size), repeat=len(places) - 1)))
    own = np.round(np.array([place - places[0] for place in places[1:]])).astype(int)

    def spread(rest: np.ndarray) -> np.ndarray:
        points = np.concatenate([np.zeros((len(rest), 1), int), rest], 1)
        pairs = np.array(list(combinations(range(len(places)), 2)))
        return distance[(points[:, pairs[:, 0]] - points[:, pairs[:, 1]]) % size].sum(-1)

    return float((spread(ways) <= spread(own[None])).mean())


def _table(rows: Rows, score: str) -> Iterator[Finding]:
    words, dataset, tested = dataset_words(rows), dataset_of(rows), _tests(rows)
    for arm in ARMS:
        for variant in VARIANTS:
            cell = published().get((dataset, arm, score, variant))
            found = column(rows, f"{arm}/{variant}", score)
            if cell and not found:
                yield from _not_run(rows, arm, (variant,), score)
            elif cell and (variant != "changed" or tested):
                yield agrees(f"{words}, {ARMS[arm]}: {SCORES[score]}, {variant}", found, cell)
        original, changed = (column(rows, f"{arm}/{variant}", score) for variant in ("original", "changed"))
        if not original or not changed or not tested or arm == "autoencoder":
            continue
        drop, theirs = compare(original, changed).difference, printed_drop(dataset, arm, score, "changed")
        what = f"{words}, {ARMS[arm]}: {SCORES[score]} on original less that on changed images"
        place = _printed(rows, arm, "changed", score)
        if arm == "pcl":
            yield below(what, drop, MARGIN, published=place)
        elif theirs is None or theirs.difference.low > 0:  # that of others is not known from what is printed
            yield above(what, drop, 0.0, published=place)


def _tests(rows: Rows) -> bool:
    """Whether, by the records, the change depends on the factors."""
    return _share(rows).low > CONSTANT


def _share(rows: Rows) -> Interval:
    arms = (arm for arm in arms_of(rows) if f"{arm}/changed" in rows)
    return mean_interval(next((found for arm in arms if (found := column(rows, f"{arm}/changed", "change_share"))), []))


def _is_a_test(rows: Rows) -> Finding:
    share = _share(rows)
    known = "" if share.known else ", which was not recorded: changed images are not judged"
    what = f"{dataset_words(rows)}: share of the change that depends on the factors{known}"
    decision = "holds" if _tests(rows) else "undecided"
    return Finding(what, f"above {CONSTANT:g}", share.estimate, share.low, share.high, decision)


def _not_run(rows: Rows, arm: str, variants: Sequence[str], score: str = "mig") -> Iterator[Finding]:
    """What is not among the records."""
    for variant in variants:
        if not column(rows, f"{arm}/{variant}", score):
            what = f"{dataset_words(rows)}, {ARMS[arm]}: {SCORES[score]}, {variant}"
            yield missing(what, _printed(rows, arm, variant, score))


def _pruned(rows: Rows, arms: Sequence[str]) -> str:
    found = [row for arm in arms for row in rows[f"{arm}/changed"] if row["measure"] == "active_units"]
    few = sum((row["value"] or 0) < len(row["factors"]) for row in found)
    return f"{few} of {len(found)} runs over-pruned and left out"


def _printed(rows: Rows, arm: str, variant: str = "changed", score: str = "mig") -> str:
    """The printed cells of the original and of a variant."""
    dataset = dataset_of(rows)
    names = dict.fromkeys(("original", variant))
    cells = [published().get((dataset, arm, score, name)) for name in names]
    known = [cell for cell in cells if cell is not None]
    if len(known) < len(cells):
        return ".23 → .07 on dSprites, .60 → .09 on Shapes3D (Table 1)" if dataset == "small_sprites" else ""
    return " → ".join(f"{cell.mean:.2f} ± {cell.deviation:.2f}" for cell in known) + f" ({known[0].place})"


def _mean(found: Sequence[float]) -> str:
    return f"{mean_interval(found).estimate:.2f}"


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _all(rows: Rows) -> Iterator[Mapping[str, Any]]:
    return (row for found in rows.values() for row in found)


_SPRITES, _SHAPES = "zietlow2021.table_1", "zietlow2021.table_1_shapes3d"
_STEPS = Departure("steps", "50,000", "not given; 300,000 in the reference study")
_NETWORK = Departure("network", "kernels of 4 in all layers", "of 2 in the encoder's third and fourth", lasting=True)
_TRANSITIONS = Departure("transitions", "Laplace of rate 1, for SlowVAE and PCL", "not given", lasting=True)
_TABLE = (_STEPS, _NETWORK, _TRANSITIONS)
_TABLE_SPRITES = (
    *_TABLE,
    Departure("change", "follows a latent of the entangled member, rate 0.001", "learned whole, 0.0001", lasting=True),
)
_RENDERED = Departure("data", "rendered images, where the original file is not", "Shapes3D", lasting=True)
_CHANGE_STEPS = Departure("change", "10,000 steps", "not given")
_TABLE_SHAPES = (*_TABLE, _RENDERED, _CHANGE_STEPS)
_SMALL = (
    Departure("data", "soft discs of 16 × 16 pixels, ε = 0.15", "dSprites and Shapes3D", lasting=True),
    Departure("network", "two layers of 64 hyperbolic tangents", "convolutional", lasting=True),
    Departure("β", "0.25", "8 and 32", lasting=True),
    Departure("steps", "2,500", "not given; 300,000 in the reference study"),
    Departure("rate", "0.003, cosine to 0", "0.0001", lasting=True),
    Departure("change", "1,500 steps, rate 0.001", "not given, 0.0001"),
)
_PROBE = (OURS, _SMALL[0])
_SHORTER = "Members have 50,000 of 300,000 steps"
_FOLLOWS = "the change follows a latent of the entangled member: the printed way ended in one picture for all images"
_PCL = "which may be its transitions, as the paper does not give them, or its steps"

CLAIMS: tuple[Claim, ...] = (
    Claim(
        id="zietlow.thm1",
        title="Linear VAEs perform PCA: at a fixed divergence, principal directions let the least noise through",
        published="V* is a signed permutation and U* the principal directions (Theorem 1, eqs 6–11, 15–25; Lemma 1)",
        rule=(
            "exact: the bound is reached to 1e-12, by principal directions alone if eigenvalues differ; the law "
            f"E μ² + E σ² = 1 to 1e-13. Trained: columns of linear VAEs within {ALIGNED:g}° of principal directions "
            "(the median: with other seeds one of ten got stuck, and widened the interval of the mean beyond that), "
            f"nearer than with a full covariance; the law to {LAW} in linear and non-linear VAEs, and in linear ones "
            f"E μ² alone misses 1 by more than {NOT_NEGLIGIBLE}"
        ),
        exact=exact.thm1,
        trained=(Training("zietlow2021.theorem_1", thm1, departures=(OURS,)),),
        errata=(
            Erratum(
                place="Theorem 1, problem (6–7)",
                printed="“the solution to (6, 7) fulfils”, with the divergence as the only constraint",
                right=(
                    "with the constraints of the supplement, diag(Z^⊤Z) = 1 and “we fully fix the matrix X̂”, which the "
                    "theorem leaves out"
                ),
                sure="certain",
                counterexample="Σ → 0 costs nothing: a thousandth of a decoder has 1e-6 of its loss, at equal KL",
                test=f"{TESTS}::test_without_fixed_reconstructions_the_least_noise_is_none",
            ),
            Erratum(
                place="Lemma 1, eq 26",
                printed="“c = √(Σ_i x_i²)”",
                right=(
                    "c = √(n / Σ_i x_i²): then the means have “unit standard deviation”, which the lemma is for. With "
                    "the whole divergence E μ² + E σ² = 1"
                ),
                sure="certain",
                counterexample="forty normal values times 3: the printed c costs more than the right one by over a nat",
                test=f"{TESTS}::test_lemma_1_is_upside_down",
            ),
            Erratum(
                place="Theorem 1 and eq 10",
                printed="“U* = V_X^⊤”, “M_PCA = V_X^⊤ Σ_X² P”",
                right=(
                    "U* = V_X, whose columns are the eigenvectors, since M_D = UΣV^⊤ multiplies columns z. The "
                    "supplement has data in rows, X̂ = ZΣU, and there V_X^⊤ is right"
                ),
                sure="our reading",
                counterexample="variances 4, 1, 0.25 turned at random: V_Xᵀ for U costs over 1 % more than the bound",
                test=f"{TESTS}::test_theorem_1_transposes_its_directions",
            ),
            Erratum(
                place="eq 3",
                printed="“E_q log p(x|z) + D_KL(q(z|x) ‖ p(z))” for the evidence lower bound",
                right="E log p(x|z) − KL(q ‖ p); the loss (4), which is its negative, has the right sign",
                sure="certain",
                counterexample="probabilistic PCA: the printed sum exceeds log p(x), which a lower bound cannot",
                test=f"{TESTS}::test_equation_3_has_the_wrong_sign",
            ),
        ),
    ),
    Claim(
        id="zietlow.fig1",
        title="PCA and linear VAEs follow global, non-linear VAEs local principal directions",
        published="a picture: linear VAEs match PCA remarkably well, non-linear ones follow local axes (Fig. 1)",
        rule=(
            f"linear VAEs are within {FOLLOWED:g}° of the global directions, and their encoding correlates above "
            f"{MATCHED} with that of PCA; columns of non-linear decoders are nearer to the local directions than to "
            "the global ones (a rule that a pilot failed), and their encoding is more like the coordinates along and "
            "across stripes, the local directions, than like that of PCA (which replaced it)"
        ),
        trained=(
            Training(
                "zietlow2021.figure_1",
                fig1,
                departures=(OURS, Departure("data", "stripes of ours", "not defined", lasting=True)),
            ),
        ),
    ),
    Claim(
        id="zietlow.order",
        title="Latents are ranked by ascending mean posterior variance",
        published="eqs 13 and 14",
        rule=(
            "latents of an optimal linear VAE, shuffled, come in the order of the variances that they explain, as "
            "singular values give them; reversed they do not"
        ),
        exact=exact.order,
    ),
    Claim(
        id="zietlow.manipulate",
        title="A small change that depends on the factors alone makes β-VAEs entangle",
        published="MIG .23 → .07 on dSprites at ε = 0.1, .60 → .09 on Shapes3D at 0.175 (section 4.4, Table 1)",
        rule=(
            "the change depends on the factors; MIG on original less that on changed images is above 0 (Welch); but on "
            "dSprites, where the paper finds the impact of noise noticeable, changed less noisy is below 0. Earlier "
            "rules asked for more than is printed: half of MIG, and less than under noise on dSprites, too (printed "
            ".07 ± .09 against .14 ± .07, p = .07), which ten seeds did not decide, −.005 [−.039, .029]"
        ),
        trained=(
            Training("zietlow2021.small_attack", manipulate, departures=_SMALL),
            Training(_SPRITES, manipulate, runs=("beta-vae",), gpu=True, departures=_TABLE_SPRITES),
            Training(_SHAPES, manipulate, runs=("beta-vae",), gpu=True, departures=_TABLE_SHAPES),
        ),
        errata=(
            Erratum(
                place="appendix B.1, normalisation",
                printed="“x′_norm = x − 2ReLu(x − 1) + 2ReLu(−x)”",
                right="x′ for x on the right; the conversion to text may have lost the primes",
                sure="our reading",
                counterexample="of images in 0 … 1 the printed formula gives x itself: no change at all",
                test=f"{TESTS}::test_the_printed_reflection_undoes_the_change",
            ),
        ),
    ),
    Claim(
        id="zietlow.preserved",
        title="The change leaves every factor in the images",
        published="(i) the generative factors are perfectly preserved (abstract, section 1); no numbers",
        rule=(
            "for every factor, the accuracy of a classifier that is trained on changed images, on others that it has "
            f"not seen, less that of one trained on original images is above −{LOST}, paired by seed; noise beside it. "
            "Small discs: a first run, of 3,000 steps, failed it at places down, −.054 [−.062, −.046]; now 10,000"
        ),
        trained=(
            Training("zietlow2021.preserved", preserved, departures=_PROBE),
            Training("zietlow2021.preserved_images", preserved, gpu=True, parts=2, departures=(OURS, _RENDERED)),
        ),
    ),
    Claim(
        id="zietlow.fig4",
        title="Each image changes mildly: original, change and changed image side by side",
        published="pictures of dSprites and Shapes3D (Fig. 4); changes of at most ε = 0.1 and 0.175 (section 5.2)",
        rule=(
            "exact: the change learned for dSprites is at most 1 before it is multiplied by ε, and a share of it "
            "above .1 differs between images; a share above .01 of the changes that members trained on. The gallery "
            "draws them"
        ),
        exact=exact.fig4,
        trained=(
            Training(_SPRITES, fig4, runs=("beta-vae",), gpu=True, departures=_TABLE_SPRITES),
            Training(_SHAPES, fig4, runs=("beta-vae",), gpu=True, departures=_TABLE_SHAPES),
        ),
    ),
    Claim(
        id="zietlow.noise",
        title="Uniform noise of the same size does little on Shapes3D; on dSprites it takes some MIG",
        published="original → noise: dSprites β .23 → .14, Factor .27 → .16; Shapes3D .60 → .66, .27 → .33 (Table 1)",
        rule=(
            "dSprites: original less noise is above 0 for β-VAE and FactorVAE, whose printed drops are significant. "
            "Elsewhere it is below half of the original's mean, and on Shapes3D changed less noise is below 0"
        ),
        trained=(
            Training(_SPRITES, noise, gpu=True, departures=_TABLE_SPRITES),
            Training(_SHAPES, noise, gpu=True, departures=_TABLE_SHAPES),
        ),
        expected="undecided",
        falls_short=f"On dSprites FactorVAE loses little (.23 → .20), which ten seeds do not tell from 0. {_SHORTER}.",
    ),
    Claim(
        id="zietlow.models",
        title="Six objectives with as many latents as factors; all but the autoencoder disentangle the originals",
        published="AE, β-VAE, FactorVAE, β-TCVAE, SlowVAE, PCL; β 8/32, β 6/32, γ 35/7, β 1/1 (section 5.1, Table 2)",
        rule=(
            "MIG on the original is above that of autoencoders, which the paper takes for random alignment. That "
            "latents and weights are the printed ones is tested, and no finding"
        ),
        trained=(
            Training(_SPRITES, models, gpu=True, departures=_TABLE_SPRITES),
            Training(_SHAPES, models, gpu=True, departures=_TABLE_SHAPES),
        ),
    ),
    Claim(
        id="zietlow.table1",
        title="MIG drops on changed images for every VAE, and not for PCL",
        published=(
            "original / changed / noise, dSprites: β .23 .07 .14, Factor .27 .20 .16, TC .25 .14 .20, Slow .39 .27 .37,"
            " PCL .21 .24 .24, AE .09; Shapes3D: .60 .09 .66, .27 .07 .33, .58 .24 .60, .53 .13 .60, .44 .47 .40, .06"
        ),
        rule=(
            "every cell agrees: Welch's interval of the difference contains 0, and half of it is at most the printed "
            "deviation; original less changed is above 0 for VAEs whose printed drop is significant, and below "
            f"{MARGIN} for PCL"
        ),
        trained=(
            Training(_SPRITES, table1, gpu=True, parts=16, departures=_TABLE_SPRITES),
            Training(_SHAPES, table1, gpu=True, parts=16, departures=_TABLE_SHAPES),
        ),
        expected="undecided",
        errata=(
            Erratum(
                place="caption of Table 1",
                printed="“The modification leads to a significant drop in all variational methods.”",
                right=(
                    "read as a statement of statistics, in all but FactorVAE on dSprites, by the printed means and "
                    "deviations of ten seeds; that one drops, too, but within its spread"
                ),
                sure="our reading",
                counterexample=".27 ± .11 against .20 ± .12: Welch's p = .19, interval −.04 … .18",
                test=f"{TESTS}::test_one_printed_drop_is_not_significant",
            ),
        ),
        falls_short=(
            "On dSprites every VAE drops and PCL does not, as printed, but 8 of 16 cells differ: AE and β-VAE on the "
            "original, β-VAE under noise, FactorVAE and SlowVAE on changed images, and PCL on all three sets, all "
            f"lower, {_PCL}. {_SHORTER}, and {_FOLLOWS}."
        ),
    ),
    Claim(
        id="zietlow.tables3-5",
        title="DCI, FactorVAE score and SAP drop on changed images, too",
        published=(
            "original / changed of β-VAE: DCI .11 .08, FactorVAE score .47 .38, SAP .04 .02 on dSprites; .73 .43, "
            ".80 .54, .16 .03 on Shapes3D; PCL .28 .30, .77 .82, .07 .10; .70 .67, .80 .77, .07 .07 (Tables 3 to 5)"
        ),
        rule="as for Table 1, cell by cell and drop by drop",
        trained=(
            Training(_SPRITES, tables35, gpu=True, parts=45, departures=_TABLE_SPRITES),
            Training(_SHAPES, tables35, gpu=True, parts=45, departures=_TABLE_SHAPES),
        ),
        expected="undecided",
        falls_short=(
            "On dSprites 26 of 45 cells differ: β-VAEs score higher than printed on the original, SlowVAE lower on "
            f"changed images by every score, and PCL lower, {_PCL}. {_SHORTER}, and {_FOLLOWS}."
        ),
    ),
    Claim(
        id="zietlow.fig5-7-8-9",
        title="Other weights do not make up for the change, unless they over-prune",
        published="curves of four scores over the scaled main weight, ten restarts (Figs. 5, 7, 8 and 9; section 5.3)",
        rule=(
            "without over-pruned runs, of which the share is reported: on average over four objectives, a score at the "
            "best weight on changed images, which every other seed chooses and the rest test, is below that on "
            "original ones at the printed weight, for each of four scores (Bonferroni); and the best of the stronger "
            "weights wins back less than half of the MIG that was lost. An earlier rule, before any run, asked eighty "
            "intervals to lie below 0, which ten seeds cannot decide"
        ),
        trained=(
            Training(
                "zietlow2021.figure_5",
                fig5,
                gpu=True,
                departures=(
                    _STEPS,
                    _NETWORK,
                    Departure("transitions", "Laplace of rate 1, for SlowVAE", "not given", lasting=True),
                    Departure(
                        "β", "a quarter to four times the printed weight", "a curve without numbers", lasting=True
                    ),
                    _RENDERED,
                    _CHANGE_STEPS,
                ),
            ),
        ),
    ),
    Claim(
        id="zietlow.fig10-11",
        title="Entangled β-VAEs code hue as an angle, orientation as a radius; disentangled ones order hues alike",
        published="traversals of four models of either kind (Figs. 10 and 11, appendix C.2)",
        rule=(
            "of the four least disentangled angle and radius explain more than two latents do, of the four most "
            "disentangled less; these cut the circle of hues nearer to each other than all but "
            f"{BY_CHANCE:.0%} of the ways to cut four circles of ten hues do"
        ),
        trained=(
            Training(
                "zietlow2021.figure_10",
                fig10,
                gpu=True,
                departures=(
                    _STEPS,
                    _NETWORK,
                    Departure("seeds", "20", "not given; four of either kind are shown", lasting=True),
                    _RENDERED,
                ),
            ),
        ),
    ),
)
