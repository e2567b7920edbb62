"""The page of an explanation: every finding with its number, baselines, picture and source; and its limits."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from axiswise._arguments import checked
from axiswise.records import Explanation, Finding, write_bytes
from axiswise.report._folder import ACTIVE_BELOW
from axiswise.report._sections import number, setting
from axiswise.report.figures import HeatMap, explained, heat_maps
from axiswise.report.html import Markup, Picture, element, figure, join, table, whole_page

Arrays = Mapping[str, np.ndarray]

MOST_CELLS = 40  # latents of a matrix that can be read

LATENTS = "The information of each latent, the most first; active latents in blue. Passive ones carry almost none."
VARIANCES = (
    "How wide the posteriors are, in the same order. In the polarized regime bars are near 0 or near 1; below the "
    "dashed line a latent counts as active."
)
DTO = (
    "The distance to orthogonality of the model (blue, with its interval over points) against the same model with its "
    "active latents rotated at random (grey), which reconstructs as well, and against chance (dashed). Left of the "
    "grey, the decoder prefers the axes."
)
SPECTRUM = (
    "Singular values of the decoder's Jacobian: the median over points, and the range of nine in ten. Where neighbours "
    "are equal, the directions between them are not determined, and neither is DtO."
)
COHERENCE = "The share of JᵀJ off its diagonal, against the same model rotated."
COSINES = "How alike the effects of each two active latents are: 0 is a right angle, 1 the same direction."
LAW = (
    "Posterior variances of active latents, a dot per point and latent, coloured by latent, against those that follow "
    "from the decoder's slope. On the line the law holds; above it the encoder is noisier. A cloud beside the line and "
    "parallel to it shows that β, or the scale of the pixels, is another one."
)
LOCAL = (
    "Each active latent's angle to its local (blue) and global (orange) principal direction, and the mean angle of the "
    "model rotated (grey band). Low is aligned; in many dimensions unrelated directions meet at nearly 90°."
)
AGGREGATE = "Samples of the posteriors of all observations, latent by latent, and the prior (orange)."
INFORMATION = (
    "Mutual information of each factor with each latent, as a share of the factor's entropy. MIG is the mean gap "
    "between the largest and the second largest of each row."
)
MOVED = (
    "{} moves one latent from −2 to 2 standard deviations of the prior. The others stay at the encoding nearest to "
    "the middle; the latent that changes most comes first."
)


@checked
def page(explanation: Explanation, path: str | Path) -> Path:
    """Writes an explanation as one self-contained HTML page, without network or scripts.

    The same explanation gives the same bytes. The page reads stored numbers only, never the model.

    Arguments:
        explanation: What `axiswise.explain` returned.
        path: Where to write the page.

    Example:
        >>> import tempfile
        >>> nothing = Explanation("A model", (), ("One point says nothing.",), {}, {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page(nothing, Path(folder) / "page.html").name
        'page.html'
    """
    path = Path(path)
    write_bytes(path, _document(explanation).encode("utf-8"))
    return path


def _document(explanation: Explanation) -> str:
    drawn = list(_pictures(explanation))
    return whole_page(
        explanation.title,
        element("header", element("h1", explanation.title), _facts(explanation.about)),
        _conclusion(explanation.conclusion),
        _summary(explanation.findings),
        _limits(explanation.limits),
        *(_section(finding, [one for name, one in drawn if name == finding.name]) for finding in explanation.findings),
        _footer(explanation.about),
    )


def _facts(about: Mapping[str, Any]) -> Markup:
    shown = {name: _fact(about[name]) for name in ("points", "latents", "shape of latents") if name in about}
    if len(about.get("shape of latents", ())) < 2:
        shown.pop("shape of latents", None)
    shown |= {name: _fact(about[name]) for name in ("likelihood", "β", "prior") if name in about}
    if changed := about.get("layers put into evaluation mode and back"):
        shown["layers put into evaluation mode, and back"] = _fact(changed)
    pairs = (element("div", element("dt", name), element("dd", text)) for name, text in shown.items())
    return element("dl", *pairs, class_="facts") if shown else Markup()


def _fact(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " × ".join(str(size) for size in value)
    return "unknown" if value is None else setting(value)


def _conclusion(sentence: str) -> Markup:
    return element("p", element("b", "In short. "), sentence, class_="conclusion") if sentence else Markup()


def _summary(findings: Sequence[Finding]) -> Markup:
    items = (
        element("li", element("a", element("b", finding.question), href=f"#{_anchor(finding)}"), " ", finding.sentence)
        for finding in findings
    )
    return element("ul", *items, class_="findings") if findings else Markup()


def _anchor(finding: Finding) -> str:
    return "finding-" + finding.name.replace(" ", "-")


def _limits(limits: Sequence[str]) -> Markup:
    if not limits:
        return Markup()
    heading = element("h2", "What this cannot conclude")
    return element("aside", heading, element("ul", *(element("li", limit) for limit in limits)))


def _section(finding: Finding, pictures: Sequence[Picture]) -> Markup:
    return element(
        "section",
        element("h2", finding.question),
        element("p", finding.sentence),
        _numbers(finding),
        element("p", f"Source: {finding.reference}.", class_="note"),
        element("div", *(figure(picture) for picture in pictures), class_="figures") if pictures else Markup(),
        id=_anchor(finding),
    )


def _numbers(finding: Finding) -> Markup:
    """The number, its interval and its baselines, as a table."""
    if finding.value is None:
        return Markup()
    value = finding.value
    own = [element("b", "this model"), _range(value.estimate, value.low, value.high), f"{value.method}, over points"]
    rows = [own, *([one.name, _range(one.value, one.low, one.high), one.about] for one in finding.baselines)]
    return table([finding.unit, "value", "how"], rows)


def _range(value: float, low: float, high: float) -> str:
    """A number and its range of 95 %, all to the same digits."""
    if all(float(part).is_integer() for part in (value, low, high)):
        return f"{setting(value)} (95 %: {setting(low)} to {setting(high)})"  # counts
    size = max((abs(part) for part in (value, low, high) if math.isfinite(part)), default=0.0)
    ends = f" (95 %: {number(low, size)} to {number(high, size)})" if math.isfinite(low) else ""
    return number(value, size) + ends


def _footer(about: Mapping[str, Any]) -> Markup:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(about.get("versions", {}).items()))
    settings = [f"{name}: {_fact(about[name])}" for name in ("seed", "points with Jacobians") if name in about]
    return element(
        "footer",
        element("h2", "Where this comes from"),
        element(
            "p", join("Made by ", element("code", "axiswise.explain"), " and ", element("code", "report.page"), ".")
        ),
        element("p", "; ".join(settings) + ".", class_="note") if settings else Markup(),
        element("p", f"Versions: {versions}.", class_="note") if versions else Markup(),
    )


def _pictures(explanation: Explanation) -> Iterator[tuple[str, Picture]]:
    """The pictures that the arrays allow, each with the finding it belongs to."""
    arrays = explanation.arrays
    if "names" not in arrays:
        return
    names, order = arrays["names"].tolist(), arrays["order"].tolist()
    yield from _latents(arrays, names, order)
    yield from _directions(explanation, [names[latent] for latent in order])
    if "aggregate" in arrays:
        shown = [names[latent] for latent in arrays["aggregate/latents"].tolist()]
        png = explained.aggregates(shown, arrays["aggregate/edges"], arrays["aggregate"], arrays["aggregate/prior"])
        left_out = "" if len(shown) >= len(order) else f" Shown are the {len(shown)} most precise of {len(order)}."
        alt = "Histograms of latents over the data with the prior"
        yield "aggregate", Picture("aggregate", png, AGGREGATE + left_out, alt)
    yield from _moved(arrays, names)
    if "information" in arrays and len(names) <= MOST_CELLS:
        factors, shares = arrays["factors"].tolist(), arrays["information"]
        png = heat_maps([HeatMap("", shares)], factors, names, "share of the factor's entropy", 1.0)
        alt = "Matrix of mutual information of factors and latents"
        yield "scores", Picture("information", png, INFORMATION, alt)


def _latents(arrays: Arrays, names: list[str], order: list[int]) -> Iterator[tuple[str, Picture]]:
    """Bars of each latent's information, and of how wide its posteriors are."""
    quantities = {"kl": "KL of each latent (nats)", "spread": "standard deviation of the code"}
    for key in quantities.keys() & arrays.keys():
        ranked = np.argsort(-arrays[key], kind="stable")
        active, called = np.isin(ranked, order), [names[latent] for latent in ranked.tolist()]
        png = explained.latent_bars(called, arrays[key][ranked], active, quantities[key], None)
        yield "active", Picture("latents", png, LATENTS, f"Bars of the {quantities[key]}")
        if "variance" in arrays:
            words = "mean variance / prior's"
            png = explained.latent_bars(called, arrays["variance"][ranked], active, words, ACTIVE_BELOW)
            yield "active", Picture("variance", png, VARIANCES, "Bars of the mean posterior variance of each latent")


def _directions(explanation: Explanation, names: Sequence[str]) -> Iterator[tuple[str, Picture]]:
    """The decoder's geometry, the encoder's law, and the data's principal directions."""
    arrays = explanation.arrays
    alt = "Histogram of random rotations of the model with its own value"
    if "dto/rotated" in arrays:
        finding = explanation["orthogonality"]
        chance = explanation.baselines["orthogonality"]["chance"].value
        quantity = "distance to orthogonality (0 is aligned)"
        png = explained.against_rotations(_ends(finding), arrays["dto/rotated"], chance, quantity)
        yield finding.name, Picture("dto", png, DTO, alt, "half")
        png = explained.spectrum(arrays["singular values"])
        yield finding.name, Picture("spectrum", png, SPECTRUM, "Singular values by rank", "half")
    if "coherence/rotated" in arrays:
        finding = explanation["columns"]
        quantity = "share of JᵀJ off its diagonal (0 is orthogonal)"
        png = explained.against_rotations(_ends(finding), arrays["coherence/rotated"], None, quantity)
        yield finding.name, Picture("coherence", png, COHERENCE, alt, "half")
        if len(names) <= MOST_CELLS:
            png = heat_maps([HeatMap("", arrays["cosines"])], names, names, "|cos| of the angle between effects", 1.0)
            yield finding.name, Picture("cosines", png, COSINES, "Matrix of cosines between effects", "half")
    if "law/measured" in arrays:
        png = explained.law(arrays["law/measured"], arrays["law/expected"], arrays["law/latent"])
        yield "law", Picture("law", png, LAW, "Scatter of posterior variances against the law", "beside")
    if "local" in arrays:
        png = explained.angles(names, arrays["local"], arrays["local/global"], arrays["local/rotated"])
        yield "local directions", Picture("local", png, LOCAL, "Angles to principal directions by latent", "beside")


def _ends(finding: Finding) -> tuple[float, float, float]:
    """The number of a finding that has one, and the ends of its interval."""
    value = finding.value
    return (value.estimate, value.low, value.high) if value else (math.nan, math.nan, math.nan)


def _moved(arrays: Arrays, names: list[str]) -> Iterator[tuple[str, Picture]]:
    """Observations decoded as one latent at a time moves."""
    if "traversal" not in arrays:
        return
    decoded, values = arrays["traversal"], arrays["traversal/values"]
    shown = [names[latent] for latent in arrays["traversal/latents"].tolist()]
    if decoded.ndim in (4, 5):  # images without channels, or with
        png = explained.moving_images(shown, decoded if decoded.ndim == 5 else decoded[:, :, None], values)
        caption, alt = MOVED.format("Each row"), "Images decoded as one latent at a time moves"
    else:
        png = explained.moving_vectors(shown, decoded.reshape(*decoded.shape[:2], -1), values)
        caption, alt = MOVED.format("Each panel"), "Vectors decoded as one latent at a time moves"
        caption += " Lines are decoded vectors, from dark to bright as the latent grows."
    yield "effects", Picture("traversals", png, caption, alt)
