"""One page of all papers: claims with their verdicts, and every table and figure, drawn from committed records.

The folder of results has ``verdicts.json``, as ``axiswise verify --publish`` writes it, and a compact copy of the
records of each study in ``PAPER/STUDY``.
"""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from PIL import Image  # matplotlib, which draws the figures, requires it

from axiswise.errors import AxiswiseError
from axiswise.records import copy_results, read_json, read_runs, read_study_header, records_file, write_bytes
from axiswise.report.html import Markup, Picture, element, figure, join, table, whole_page
from axiswise_papers._claim import Claim, Finding
from axiswise_papers._verify import FORMAT, RANKS, VERDICTS, VerdictsForm, by_weight, phrase, verdict_words

PAGE = "gallery.html"
_SIDES = [(f"linear/ratio-{ratio}", "codes", ()) for ratio in ("1.0", "1.5")]
_STRIPES = [(f"plane/{kind}", "codes", ()) for kind in ("linear", "non-linear")]
_IMAGES = [(f"beta-vae/{name}", "reconstructions", ("x",)) for name in ("original", "changed", "noise")]
DRAWN_ARRAYS: Mapping[str, Sequence[tuple[str, str, Sequence[str]]]] = {
    "rolinek2019.table_s4": _SIDES,
    "zietlow2021.figure_1": _STRIPES,
    "zietlow2021.small_attack": _IMAGES,
    "zietlow2021.table_1": _IMAGES,
    "zietlow2021.table_1_shapes3d": _IMAGES,
}
"""For each study whose figures need more than rows: runs, the name of their arrays, and which of them, all if empty."""
SQUARES = 6
"""Of the members of Table S4, those of so many seeds are drawn; the paper shows four."""
COLOURS = 256
KINDS = ("holds", "holds corrected", "holds in part", "undecided", "does not hold", "not run here")
SURE = {
    "certain": "arithmetic or a proof, which anyone can repeat",
    "our reading": "the mathematics is certain; what was meant is our inference",
    "open": "more than one reading is left",
}
"""How sure an erratum may be, and what that means."""
Figures = Mapping[str, Callable[[Path], dict[str, bytes]]]
"""For each study of a paper, a function of its folder that draws its pictures, by file name."""


class Paper(NamedTuple):
    """A paper: its folder here, the prefix of its claims, and how it is cited."""

    name: str
    prefix: str
    citation: str


PAPERS = (
    Paper("sikka2019", "sikka", "Sikka, Zhong, Yin and Pehlevan, A closer look at disentangling in β-VAE, 2019"),
    Paper(
        "mathieu2019",
        "mathieu",
        "Mathieu, Rainforth, Siddharth and Teh, Disentangling disentanglement in variational autoencoders, 2019",
    ),
    Paper(
        "rolinek2019",
        "rolinek",
        "Rolinek, Zietlow and Martius, Variational autoencoders pursue PCA directions (by accident), 2019",
    ),
    Paper(
        "allen2024",
        "allen",
        "Allen, Unpicking data at the seams: VAEs, disentanglement and independent components, 2024",
    ),
    Paper(
        "zietlow2021",
        "zietlow",
        "Zietlow, Rolinek and Martius, Demystifying inductive biases for β-VAE based architectures, 2021",
    ),
)


def publish(runs: str | Path, results: str | Path, studies: Sequence[str], *, add: bool = False) -> list[Path]:
    """Copies the records of studies, compressed, and the arrays that their figures need, without any weights.

    Arguments:
        runs: Folder of the studies, one each, as `verify` leaves it.
        results: Folder to copy into: ``PAPER/STUDY``.
        studies: Names of the studies, paper.study.
        add: Whether they are added to runs of the same studies that were copied before, as `copy_results` does it.

    Returns:
        The folders that were written.
    """
    written = []
    for name in studies:
        source, target = Path(runs) / name, Path(results, *name.split("."))
        if read_study_header(source):
            arrays = DRAWN_ARRAYS.get(name, ())
            if arrays is _SIDES:
                arrays = [(run, stored, _first_members(source, run)) for run, stored, _ in _SIDES]
            copy_results(source, target, arrays, add=add)
            written.append(target)
    return written


def _first_members(study: Path, run: str) -> list[str]:
    """The members of the first seeds of a run, and its factors."""
    members = {record.seed: record.member for record in read_runs(study).get(run, ())}
    return [*(members[seed] for seed in sorted(members)[:SQUARES]), "factors"]


def write_gallery(results: str | Path, claims: Sequence[Claim]) -> Path:
    """Draws every figure from the records under a folder of results and writes one self-contained page of it all.

    The pictures are also written beside the records that they were drawn from.

    Arguments:
        results: The folder, with ``verdicts.json``.
        claims: The ledger, for what is wrong in print.

    Example:
        >>> write_gallery("/nowhere", [])
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a folder of results with a verdicts.json, as `axiswise verify --json`...
    """
    results = Path(results)
    if not (results / VERDICTS).is_file():
        raise AxiswiseError(
            f"Expected a folder of results with a {VERDICTS}, as `axiswise verify --json` writes it. Got {results}."
        )
    verdicts = read_json(results / VERDICTS, FORMAT, VerdictsForm)
    page = whole_page(
        "Five papers, run",
        _header(verdicts),
        element("nav", *(element("a", paper.name, href=f"#{paper.name}") for paper in PAPERS)),
        *(_paper(paper, verdicts, results, claims) for paper in PAPERS),
        _footer(verdicts),
    )
    write_bytes(results / PAGE, page.encode("utf-8"))
    return results / PAGE


def summary_table(verdicts: Mapping[str, Any]) -> str:
    """The README's table: for each paper, how many claims have which verdict.

    Arguments:
        verdicts: The content of ``verdicts.json``.
    """
    lines = ["| paper | claims | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 2) + "|"]
    for paper in PAPERS:
        found = [claim["verdict"] for claim in _of(paper, verdicts)]
        counts = " | ".join(str(found.count(kind) or "–") for kind in KINDS)
        lines.append(f"| {paper.name} | {len(found)} | {counts} |")
    return "\n".join(lines)


def errata(claims: Sequence[Claim]) -> str:
    """The errata of the five papers, as a Markdown page.

    Arguments:
        claims: The ledger.
    """
    lines = [
        "# Errata of the five papers",
        "",
        "What this page does not mean: that a paper is wrong. The main results of all five stand or fall elsewhere, by",
        "[their claims](README.md). Here are slips of print, such as a sign or a transposed matrix, from which nothing",
        "else follows; sentences that say a little more than was shown; and places that can be read in two ways, with",
        "the way that we took. Any paper that is read this closely has some, and so have we.",
        "",
        "Conventions that a paper declares, constants that it says it drops and omissions that it explains are not",
        "listed. We read the papers as text that was converted from their pages, where a prime or a bracket may be",
        "lost: entries where that may be the reason say so.",
        "",
        "Each entry quotes the paper with its place (formulas in plain letters), and says how we read it and how sure",
        "we are:",
        "",
        *(f"- *{sure}*: {meaning};" for sure, meaning in SURE.items()),
        "",
        "and then what shows it. The page is generated from the claims (`axiswise gallery results`).",
    ]
    for paper in PAPERS:
        own = [claim for claim in claims if claim.id.startswith(f"{paper.prefix}.") and claim.errata]
        if not own:
            continue
        lines += ["", f"## {paper.citation}"]
        for claim in own:
            for erratum in claim.errata:
                lines += [
                    "",
                    f"**{erratum.place}** (`{claim.id}`)",
                    "",
                    f"- Printed: {erratum.printed}",
                    f"- We read: {erratum.right} ({erratum.sure})",
                    f"- Evidence: {erratum.counterexample}",
                    f"- Shown by: `{erratum.test}`",
                ]
    return "\n".join(lines) + "\n"


def _of(paper: Paper, verdicts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [claim for claim in verdicts["claims"] if claim["id"].startswith(f"{paper.prefix}.")]


def _header(verdicts: Mapping[str, Any]) -> Markup:
    found = [claim["verdict"] for claim in verdicts["claims"]]
    facts = {"claims": len(found)} | {kind: found.count(kind) for kind in KINDS if kind in found}
    pairs = (element("div", element("dt", name), element("dd", str(count))) for name, count in facts.items())
    lead = (
        "Everything that five papers on disentanglement in variational autoencoders define, claim and measure, run and "
        "judged: what is published beside what was found, with its 95 % interval."
    )
    how = (
        "Corrected means that what was checked is the statement under Errata: a slip of print mended, or a sentence "
        "made as strong as what was shown; in part, that what was run holds and the rest was not run. Training that is "
        "shorter than the paper's contradicts nothing. In pictures pale points are seeds, and bold ones their mean "
        "with its 95 % Student t interval."
    )
    return element(
        "header",
        element("h1", "Five papers, run"),
        element("p", lead, class_="lead"),
        element("p", how, class_="note"),
        element("dl", *pairs, class_="facts"),
    )


def _paper(paper: Paper, verdicts: Mapping[str, Any], results: Path, claims: Sequence[Claim]) -> Markup:
    own = [claim for claim in claims if claim.id.startswith(f"{paper.prefix}.")]
    wrong = [(claim, erratum) for claim in own for erratum in claim.errata]
    rows = [
        [
            element("code", claim["id"]),
            claim["title"],
            claim["published"],
            _found(claim),
            element("span", verdict_words(claim["verdict"], claim["parts"]), class_="verdict"),
            f"{claim['seconds']:.1f} s",
        ]
        for claim in _of(paper, verdicts)
    ]
    corrected = table(
        ["claim", "place", "printed", "we read", "evidence"],
        [
            [
                element("code", claim.id),
                erratum.place,
                erratum.printed,
                f"{erratum.right} ({erratum.sure})",
                erratum.counterexample,
            ]
            for claim, erratum in wrong
        ],
        "scroll prose",
    )
    return element(
        "section",
        element("h2", paper.citation),
        table(["id", "claim", "published", "found", "verdict", "time"], rows, "scroll prose"),
        *(_study(paper, folder, results) for folder in _folders(results / paper.name, _figures_of(paper))),
        join(element("h3", "Errata"), corrected) if wrong else Markup(),
        id=paper.name,
    )


def _found(claim: Mapping[str, Any]) -> Markup:
    """Every finding of a claim: the most informative one visible, the others folded."""
    stored: list[dict[str, Any]] = [
        {key: math.nan if value is None else value for key, value in finding.items()} for finding in claim["findings"]
    ]
    lines = []
    for shown in by_weight([Finding(**known) for known in stored]):
        mark = "" if shown.decision == "holds" else f"{shown.decision}: "
        lines.append(element("div", f"{mark}{shown.what}: {phrase(shown)}"))
    words = [*claim["departures"], *claim["notes"]]
    if RANKS[claim["verdict"]] < RANKS["holds"] and claim["falls_short"]:
        words.append(claim["falls_short"])
    notes = [element("div", note, class_="note") for note in words]
    folded = element("details", element("summary", f"{len(lines) - 1} more"), *lines[1:]) if len(lines) > 1 else ""
    return join(*lines[:1], folded or Markup(), *notes)


def _folders(folder: Path, drawn: Figures) -> list[Path]:
    return [path for path in sorted(folder.glob("*")) if path.name in drawn and read_study_header(path)]


def _study(paper: Paper, folder: Path, results: Path) -> Markup:
    about = read_study_header(folder)
    pictures = {name: with_palette(png) for name, png in _figures_of(paper)[folder.name](folder).items()}
    for name, png in pictures.items():
        write_bytes(folder / name, png)
    members, seeds, devices, links = set(), set(), set(), []
    for run, records in read_runs(folder).items():
        links += [" ", element("a", run, href=quote(records_file(folder / run).relative_to(results).as_posix()))]
        for record in records:
            members.add((run, record.member))  # one setting, several datasets
            seeds.add(record.seed)
            devices.add(str(record.get("device", "")))
    made = f"{len(members)} members, {len(seeds)} seeds, {', '.join(sorted(devices))}, scale {about['scale']}; made by "
    captions = {name: Path(name).stem.replace("_", " ").replace("-", " ") for name in pictures} | _captions_of(paper)
    shown = (figure(Picture(name, png, captions[name], f"{about['title']}: {name}")) for name, png in pictures.items())
    return join(
        element("h3", about["title"]),
        element("p", made, element("code", about["command"]), ". Records:", *links, class_="note"),
        element("div", *shown, class_="figures"),
    )


def with_palette(png: bytes) -> bytes:
    """The picture with a palette of 256 colours, which takes a third of the bytes and looks the same.

    A picture that a palette makes larger is returned as it is.

    Arguments:
        png: A picture without transparent parts.
    """
    stream = io.BytesIO()
    # Median cut gives many colours to what covers much of the picture: densities stay smooth, greys stay grey.
    reduced = Image.open(io.BytesIO(png)).convert("RGB").quantize(COLOURS, Image.Quantize.MEDIANCUT, kmeans=4)
    reduced.save(stream, "PNG", optimize=True)
    return min(png, stream.getvalue(), key=len)


def _figures_of(paper: Paper) -> Figures:
    return import_module(f"axiswise_papers.{paper.name}.figures").FIGURES


def _captions_of(paper: Paper) -> dict[str, str]:
    return import_module(f"axiswise_papers.{paper.name}.figures").CAPTIONS


def _footer(verdicts: Mapping[str, Any]) -> Markup:
    versions = ", ".join(f"{name} {version}" for name, version in sorted(verdicts["versions"].items()))
    return element(
        "footer",
        element("h2", "Where this comes from"),
        element("p", "Verdicts made by ", element("code", verdicts["command"]), f" on {verdicts['device']}."),
        element("p", f"Versions: {versions}."),
    )
