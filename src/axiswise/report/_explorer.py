"""The explorer: a page in which decoders run, so that a reader moves latents and sees images change."""

import base64
import hashlib
import io
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.records import Exploration, ExploredMember, write_bytes
from axiswise.records._exploration import NOT_CHOSEN, STRIP_GAP
from axiswise.report._folder import Setting, plain
from axiswise.report._sections import label, number, phrase
from axiswise.report.html import Markup, element, join, whole_page

SCRIPTS = ("decoder.js", "geometry.js", "page.js")
SCORES = 3  # measures that are shown beside a member
ADDRESS = 8  # characters of an address that name a member
GAP_GREY = 128  # between the images of a strip: apart from black and from white
# The browser itself refuses to fetch anything, and to run any other script, whatever the page says.
POLICY = "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'"
START = "Start from {}: every model below encodes it, and decodes it again."
MOVE = "Move a slider, press ▶ or type a value, and see what that latent changes."
DRAG = " Drag across the outlined picture to move two."
LEAD = "The sliders are those of the model that leads, A at first. In the others, the corresponding latents move along."
KEYS = (
    ("Tab, Shift + Tab", "to the next control, and back"),
    ("← →", "on a slider: a small step; Page Up and Page Down: a large one; Home and End: the ends"),
    ("← → ↑ ↓", "on an image or on the codes: two latents at once"),
    ("Space", "on ▶: play, and pause"),
    ("Enter", "in a number field: take the value"),
)
WORDS = (
    (
        "z0, z1, …",
        "The latents: the numbers of a code. A slider goes as far as the codes of the data and the prior do.",
    ),
    (
        "KL",
        "How much a latent tells of an image, in nats: the divergence of its posterior from the prior, averaged over "
        "data. Sliders are ordered by it; in models without noise, by the spread of the codes.",
    ),
    (
        "passive",
        "A latent that tells next to nothing: for any image, its posterior is about as wide as the prior. It is folded "
        "away.",
    ),
    (
        "counterpart",
        "The latent of another model that corresponds: its codes of the same images correlate most, paired one to one. "
        "The number is the size of the correlation, 1 if both are the same up to scale; a reversed one runs the other "
        "way.",
    ),
    (
        "no counterpart",
        "No latent of that model shares at least half of the variance, a correlation of 0.71. That model stands still.",
    ),
    ("leads", "The sliders are the latents of the model that leads. “Let it lead” makes it another."),
    (
        "seed",
        "The number that a model’s random numbers come from. Of models that differ in it alone, “median seed by MIG” "
        "is the one in the middle by that score.",
    ),
    (
        "Jacobian",
        "J has a column for each latent: how every pixel changes when the latent grows by a little.",
    ),
    (
        "DtO",
        "Distance to orthogonality: 0 where all columns of J, of active latents, are at right angles; larger, the more "
        "the latents mix. A random rotation of as many latents has the DtO that stands below it, on average.",
    ),
    (
        "JᵀJ off its diagonal",
        "The share of the columns' products that is between different latents; 0 % at right angles.",
    ),
    (
        "mutual information",
        "Where the study measured it: how much the latents tell of each other, in nats; 0 if they are independent. "
        "Nothing about factors.",
    ),
    ("mlp 64 / 64", "Networks of dense layers: the widths of the hidden ones, encoder / decoder."),
    ("MIG and others", "What the study measured of the model; its report explains them."),
)
COLUMN = "grey is no change, white brighter, black darker"
COLOURS = "grey is no change, a colour where that colour grows"
ARROW = "it is the thick line above"
COLUMN_OF = ", the latent that was moved last: what it changes is its column of the decoder’s Jacobian J; {}."
WHY = (
    "VAEs tend to keep the columns of the decoder’s Jacobian J at right angles: then DtO and the share of JᵀJ off its "
    "diagonal are 0. Move “rotate” to lose that. It turns two latents, in encoder and decoder alike: the model "
    "reconstructs as before, but its columns are no longer at right angles, and each of the two sliders now changes "
    "what both did."
)
NO_SCRIPT = "This page decodes images with a script of its own, and your browser does not run scripts. Allow them here."
PLANE = (
    "Small dots: data, in {}. Lines: the image of the plane of two latents. Large dot: what is decoded. Square: the "
    "observation that one starts from. Thick line: where the latent that was moved last moves the dot."
)
STRIPS = "Each row moves one latent by two standard deviations of its codes to either side."
CHOOSE = (
    "To run others, name them by the beginnings of their addresses: axiswise explore FOLDER --members {}. Or run "
    "several seeds of each objective or other setting: --each 2. Each model takes its share of --megabytes."
)
HISTOGRAM = "Most informative first. Bars: codes of the data; line: the prior, if there is one."
COUNTERPARTS = " Below each, its counterparts in the other models, and how strongly they correlate."
CODES = "Codes in the plane of two latents. Drag, or use the arrow keys, to move both."
NO_ACTIVE = "No latent is active: all tell next to nothing."


@checked
def explorer(exploration: Exploration, path: str | Path) -> Path:
    """Writes a page in which decoders run: one HTML file, without server or network.

    The same exploration gives the same bytes.

    Arguments:
        exploration: What `axiswise.explore` returned.
        path: Where to write the page.

    Example:
        >>> import tempfile
        >>> nothing = Exploration("Nothing", "", (1, 8, 8), (), {"x": np.zeros((1, 1, 8, 8))}, {})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     explorer(nothing, Path(folder) / "explorer.html")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected at least one member that can be shown. Got none...
    """
    if not any(member.layers or "strip" in member.arrays for member in exploration.members):
        reasons = dict.fromkeys(member.reason for member in exploration.members if member.reason)
        why = f": {'; '.join(reasons)}" if reasons else ""
        raise AxiswiseError(f"Expected at least one member that can be shown. Got none{why}.")
    page, allowed = _document(exploration).encode("utf-8"), exploration.about.get("megabytes", math.inf)
    if len(page) > allowed * 1e6:
        raise AxiswiseError(
            f"Expected a page of at most {allowed:g} MB. Got {len(page) / 1e6:.2f} MB: allow more, or explore fewer "
            "members."
        )
    path = Path(path)
    write_bytes(path, page)
    return path


def _document(exploration: Exploration) -> str:
    still = [member for member in exploration.members if not member.layers]
    contents = json.dumps(_data(exploration), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    parts = [
        element("header", element("h1", exploration.title), _lead(exploration.summary), _facts(exploration, contents)),
        element("noscript", element("p", NO_SCRIPT, class_="warning")),
    ]
    if exploration.running:
        parts += [_controls(exploration), _stage(exploration)]
    parts.append(_stills(still, folded=bool(exploration.running)))
    scripts = [
        # "<" ends no element within a script: JSON has another way to write it.
        Markup(f'<script type="application/json" id="exploration">{contents.replace("<", chr(92) + "u003c")}</script>'),
        *(element("script", Markup(_file(name))) for name in SCRIPTS),
    ]
    allowed = POLICY.format(" ".join(map(_digest, SCRIPTS)), _digest("explorer.css"))
    policy = Markup(f'<meta http-equiv="Content-Security-Policy" content="{allowed}">')
    style = element("style", Markup(_file("explorer.css")))
    return whole_page(exploration.title, *parts, *(scripts if exploration.running else ()), head=join(policy, style))


def _file(name: str) -> str:
    return files("axiswise.report").joinpath("browser", name).read_text(encoding="utf-8")


def _digest(name: str) -> str:
    """A script or style as a policy names it."""
    return f"'sha256-{_encoded(hashlib.sha256(_file(name).encode()).digest())}'"


def _lead(summary: str) -> Markup:
    return element("p", summary, class_="lead") if summary else Markup()


def _facts(exploration: Exploration, contents: str) -> Markup:
    running, about = len(exploration.running), exploration.about
    steps = [f"{count:,}" for count in about.get("steps", ())]
    trained = f"{'–'.join(dict.fromkeys((steps[0], steps[-1])))} steps" if steps else ""
    facts = {
        "dataset": str(about.get("dataset", "")),
        "models that run here": f"{running} of {about.get('members', len(exploration.members))}",
        "trained for": trained,
        "weights and codes": f"{len(contents) / 1e6:.1f} MB"
        if len(contents) >= 1e5
        else f"{len(contents) / 1e3:.0f} kB",
    }
    pairs = (element("div", element("dt", name), element("dd", text)) for name, text in facts.items() if text)
    return element("dl", *pairs, class_="facts")


def _controls(exploration: Exploration) -> Markup:
    start = START.format("an image" if len(exploration.shape) == 3 else "an observation")
    steps = [
        start,
        join(MOVE, element("span", DRAG, class_="of-two")),
        *([LEAD] if len(exploration.running) > 1 else []),
    ]
    folds = (("Keys", KEYS), ("What the words mean", WORDS))
    return join(
        element("ol", *(element("li", step) for step in steps), class_="how"),
        element(
            "div",
            *(
                element("details", element("summary", name), element("dl", *_terms(pairs), class_="terms"))
                for name, pairs in folds
            ),
            class_="help",
        ),
        element(
            "div",
            element("span", "Start from"),
            element("div", id="starts", role="group", **{"aria-label": "Start from"}),
            element("div", element("button", "Reset", type="button", id="reset"), id="neutral"),
            class_="from",
        ),
    )


def _terms(pairs: Sequence[tuple[str, str]]) -> list[Markup]:
    return [element(tag, text) for pair in pairs for tag, text in zip(("dt", "dd"), pair, strict=True)]


def _stage(exploration: Exploration) -> Markup:
    passive = element(
        "details",
        element("summary", "Passive latents", id="passive-summary"),
        element("div", id="passive"),
        id="passive-fold",
    )
    latents = element(
        "section",
        element("h2", "Latents"),
        element("p", HISTOGRAM + (COUNTERPARTS if len(exploration.running) > 1 else ""), class_="note"),
        element("p", NO_ACTIVE, id="no-active", class_="note", hidden=""),
        element("div", id="sliders"),
        passive,
        class_="latents",
    )
    note = Markup()
    if len(exploration.shape) != 3:
        size = np.prod(exploration.shape)
        note = element(
            "p", PLANE.format("their plane" if size <= 2 else "their first two principal directions"), class_="note"
        )
    drag = element("p", "", id="drag-note", class_="note")
    count = len(exploration.running)
    title = f"What {'the model decodes' if count == 1 else f'the {count} models decode'}"
    stage = element("section", element("h2", title), note, drag, element("div", id="members"), class_="stage")
    knobs = element(
        "div",
        element("label", "across ", element("select", id="across")),
        element("label", "up ", element("select", id="up")),
        element(
            "label",
            element("span", "rotate both", id="rotates"),
            Markup('<input type="range" id="angle" min="-90" max="90" step="1" value="0">'),
            element("output", "0°", id="angle-value"),
        ),
        class_="knobs",
    )
    plane = element(
        "figure",
        element("canvas", id="codes", tabindex="0", role="application", **{"aria-label": CODES}),
        element("figcaption", "", id="codes-note"),
        class_="code-plane",
    )
    column = ARROW if len(exploration.shape) != 3 else COLOURS if exploration.shape[0] == 3 else COLUMN
    words = element("p", WHY, class_="note")
    reasons = element(
        "section",
        element(
            "h2", "Why: the decoder’s Jacobian", element("span", ", and a rotation that spoils it", class_="of-two")
        ),
        element("div", plane, element("div", knobs, words), class_="turning of-two"),
        element("p", "Below: ", element("b", "", id="hand"), COLUMN_OF.format(column), class_="note"),
        element("div", id="whys"),
        class_="reasons",
    )
    return element("div", stage, latents, reasons, class_="explorer")


def _stills(members: Sequence[ExploredMember], *, folded: bool) -> Markup:
    if not members:
        return Markup()
    shown = [member for member in members if "strip" in member.arrays or member.reason != NOT_CHOSEN]
    left = len(members) - len(shown)
    count = f"{len(members)} {'model' if len(members) == 1 else 'models'}"
    choose = CHOOSE.format(",".join(member.address[:ADDRESS] for member in members[:2]))
    more = f"{left} {'more ' if shown else ''}{'is' if left == 1 else 'are'} not shown."
    return element(
        "details",
        element("summary", element("h2", f"{count} that {'does' if len(members) == 1 else 'do'} not run here")),
        element("p", choose, class_="note"),
        *([element("p", STRIPS, class_="note"), element("div", *map(_still, shown), class_="stills")] if shown else []),
        element("p", more, class_="note") if left else Markup(),
        class_="rest",
        **({} if folded else {"open": ""}),
    )


def _still(member: ExploredMember) -> Markup:
    reason = [] if member.reason == NOT_CHOSEN else [f"It does not run, since {member.reason}."]
    words = [*reason, " · ".join(_scores(member))]
    caption = join(element("b", _name(member)), " ", element("code", member.address[:ADDRESS]), " ", " ".join(words))
    if "strip" not in member.arrays:
        return element("figure", element("figcaption", caption))
    rows = ", ".join(f"z{latent}" for latent in member.arrays["strip_latents"].tolist())
    source = "data:image/png;base64," + _encoded(_png(member.arrays["strip"]))
    image = Markup(element("img", src=source, alt=f"Traversals of {rows}").removesuffix("</img>"))
    return element("figure", image, element("figcaption", caption, f" Rows: {rows}."))


def _png(strip: np.ndarray) -> bytes:
    """Images (rows, columns, channels, height, width) in bytes side by side, as a PNG."""
    apart = np.pad(strip, [(0, 0)] * 3 + [(0, STRIP_GAP)] * 2, constant_values=GAP_GREY)
    rows, columns, channels, height, width = apart.shape
    sheet = apart.transpose(0, 3, 1, 4, 2).reshape(rows * height, columns * width, channels)
    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(sheet if channels == 3 else sheet[..., 0])).save(file, "png")
    return file.getvalue()


def _name(member: ExploredMember) -> str:
    last = sorted(member.settings.items(), key=lambda pair: pair[0] == "seed")
    return phrase({name: _setting(name, value) for name, value in last}) or member.address


def _setting(name: str, value: Any) -> Setting:
    """A setting as a phrase has it; of a truth value the name, or that it is not."""
    return plain(value) if not isinstance(value, bool) else f"{'' if value else 'not '}{label(name)}"


def _scores(member: ExploredMember) -> list[str]:
    return [f"{label(name)} {number(value, abs(value))}" for name, value in list(member.scores.items())[:SCORES]]


def _data(exploration: Exploration) -> dict[str, Any]:
    """What the scripts read: plain values, arrays in base64 where there are many numbers."""
    arrays = exploration.arrays
    images, running = len(exploration.shape) == 3, exploration.running
    low, high = (float(end) for end in arrays["range"]) if "range" in arrays else (0.0, 1.0)
    high = high if high > low else low + 1.0
    x = arrays["x"]
    data: dict[str, Any] = {
        "shape": list(exploration.shape),
        "range": [low, high],
        "points": exploration.about.get("points", 0),
        "members": [_member(member, short) for member, short in zip(running, _short_names(running), strict=True)],
    }
    data["bins"] = next((len(member["prior"][0]) for member in data["members"] if member["prior"]), 48)
    if images:
        grey = ((x - low) / (high - low)).clip(0.0, 1.0) * 255
        data["x"] = _encoded(grey.round().astype(np.uint8).tobytes())
    else:
        data |= {name: _rounded(arrays[name]) for name in ("centre", "axes", "cloud")}
        data |= {"x": "", "starts": _rounded(x.reshape(len(x), -1))}
    return data


def _short_names(members: Sequence[ExploredMember]) -> list[str]:
    """Names that tell members apart where there is little room: the objective, and what differs within it."""

    def tells(name: str, member: ExploredMember) -> bool:
        alike = [each for each in members if each.settings.get("objective") == member.settings.get("objective")]
        return name in ("objective", "seed") or len({repr(each.settings.get(name)) for each in alike}) > 1

    return [
        _name(member._replace(settings={name: value for name, value in member.settings.items() if tells(name, member)}))
        for member in members
    ]


def _member(member: ExploredMember, short: str) -> dict[str, Any]:
    arrays = member.arrays
    known = {
        name: _rounded(arrays[name]) if name in arrays else None
        for name in ("kl", "prior", "low", "high", "centre", "chance")
    }
    return {
        "name": _name(member),
        "short": short,
        "address": member.address[:ADDRESS],
        "role": _role(member.role),
        "scores": _scores(member),
        "layers": list(member.layers),
        "weights": _encoded(arrays["weights"].astype("<u2").tobytes()),
        "codes": _encoded(arrays["codes"].astype("<f4").tobytes()),
        "decoded": _encoded(arrays["decoded"].astype("<f4").tobytes()),
        "active": arrays["active"].tolist(),
        "symmetric": bool(arrays.get("symmetric", np.zeros(1)).any()),
        "counterparts": [latents.tolist() for latents in member.counterparts],
        "correlations": [_rounded(values) for values in member.correlations],
        **known,
    }


def _role(role: str) -> str:
    """A role as readers call its measure, such as "best MIG" or "median seed by MIG"."""
    seed, _, measure = role.partition(" seed by ")
    if measure:
        return f"{seed} seed by {label(measure)}"
    rank, _, measure = role.partition(" ")
    return f"{rank} {label(measure)}" if rank in ("best", "worst", "highest", "median", "lowest") else role


def _rounded(array: np.ndarray) -> Any:
    """Numbers to six digits, which is what single precision has."""
    return [float(f"{value:.6g}") for value in array.tolist()] if array.ndim == 1 else [_rounded(row) for row in array]


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
