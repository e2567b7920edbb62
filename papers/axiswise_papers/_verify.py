"""Runs claims and judges them: exact ones by computation, trained ones by the records of their studies."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.population import Progress
from axiswise.records import read_study_header, versions, write_json
from axiswise.studies import Scale
from axiswise_papers._claim import Claim, Finding, Rows, Training
from axiswise_papers._tables import rows_of

FORMAT = "axiswise-verdicts-1"
Verdict = Literal["holds", "holds corrected", "does not hold", "undecided", "not run here", "ran"]
"""What is decided about a claim; "ran" is all that the smoke scale can decide about trained models."""
GPU, FAILED, NO_DATA = "needs a GPU", "could not be run", "needs data"


class ClaimResult(NamedTuple):
    """A claim with its verdict and findings.

    Arguments:
        claim: The claim.
        verdict: What is decided about it.
        findings: What it rests on.
        seconds: Time of its exact checks, and of training and measuring the members that it needs.
        notes: What was not run and why, and the origin of records that were not made here.
        expected: Whether the verdict is one that the claim should have at this scale.
    """

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    seconds: float
    notes: tuple[str, ...]
    expected: bool


def select_claims(claims: Sequence[Claim], names: Sequence[str]) -> list[Claim]:
    """The claims with these ids, or of papers with these names; all of them if none is named.

    Example:
        >>> from axiswise_papers.ledger import CLAIMS
        >>> [claim.id for claim in select_claims(CLAIMS, ["sikka.prop1", "sikka.prop2"])]
        ['sikka.prop1', 'sikka.prop2']
    """
    found = [claim for claim in claims if not names or any(_has_name(claim, name) for name in names)]
    unknown = [name for name in names if not any(_has_name(claim, name) for claim in claims)]
    if unknown:
        known = ", ".join(claim.id for claim in claims)
        raise AxiswiseError(f"Expected ids of claims, or of papers ({known}). Got {', '.join(unknown)}.")
    return found


def _has_name(claim: Claim, name: str) -> bool:
    return claim.id == name or claim.id.partition(".")[0] == name


def verify(
    claims: Sequence[Claim],
    studies: Mapping[str, Any],
    scale: Scale,
    out: str | Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    results: str | Path | None = None,
    progress: Progress | None = None,
    log: Callable[[str], None] = lambda line: None,
) -> Iterator[ClaimResult]:
    """Trains what the claims need, and judges them one after another.

    The same call resumes: finished runs are read from the folder; exact checks are repeated, with the same findings.

    Arguments:
        claims: The claims.
        studies: All studies by name.
        scale: "smoke" (everything runs, trained claims are not judged), "default" or "paper".
        out: Folder for the studies, one each.
        device: Where to train. On a CPU, claims that need a GPU are judged by `results` or not at all.
        workers: Processes, as for `engines.run_study`.
        results: Folder of committed results, for claims that were run on a GPU.
        progress: Receives how far the training of a study is.
        log: Receives a line as each study starts.
    """
    out, results = Path(out), Path(results) if results is not None else None
    problems: dict[str, str] = {}
    for name in _needed(claims, scale, device):
        log(f"study {name}")
        try:
            run_study(
                studies[name], scale, out / name, name=name, device=device, workers=workers, progress=progress, log=log
            )
        except StudyIncomplete as error:
            problems[name] = str(error)
            log(f"{name}: {error}")
    for claim in claims:
        yield _judge(claim, scale, out, device, results, problems)


def _needed(claims: Iterable[Claim], scale: Scale, device: str) -> list[str]:
    """The studies that must be run here, each once."""
    parts = (part for claim in claims for part in claim.trained)
    return list(dict.fromkeys(part.study for part in parts if _runs_here(part, scale, device)))


def _runs_here(part: Training, scale: Scale, device: str) -> bool:
    return scale == "smoke" or not part.gpu or device != "cpu"


def _judge(
    claim: Claim, scale: Scale, out: Path, device: str, results: Path | None, problems: Mapping[str, str]
) -> ClaimResult:
    began = time.perf_counter()
    findings, notes = list(claim.exact()) if claim.exact else [], []
    seconds = time.perf_counter() - began if claim.exact else 0.0
    absent = False
    for part in claim.trained:
        folder = out / part.study
        if not _runs_here(part, scale, device):
            committed = results / part.results if results is not None and part.results else None
            if committed is None or not committed.is_dir():
                notes.append(f"{part.study}: {GPU}")
                absent = True
                continue
            folder = committed
            notes.append(f"{part.study}: from {committed}, {_made_on(committed)}")
        if part.study in problems:
            notes.append(f"{part.study} {FAILED}: {problems[part.study]}")
            absent = True
            continue
        rows = rows_of(folder, part.runs)
        if not rows:
            notes.append(f"{part.study}: {NO_DATA} ({_skipped(folder)})")
            absent = True
            continue
        seconds += _time(rows)
        found = list(part.judge(rows))
        if scale != "smoke":
            findings += found
    return _verdict(claim, scale, findings, seconds, notes, absent=absent)


def _verdict(
    claim: Claim, scale: Scale, findings: Sequence[Finding], seconds: float, notes: Sequence[str], *, absent: bool
) -> ClaimResult:
    decisions = {finding.decision for finding in findings}
    broken = any(FAILED in note for note in notes)
    if "contradicted" in decisions:
        verdict = "does not hold"
    elif "undecided" in decisions:
        verdict = "undecided"
    elif not findings:
        verdict = "not run here" if absent else "ran"
    else:
        verdict = "holds corrected" if claim.errata else "holds"
    expected = not broken and (verdict not in ("does not hold", "undecided") or bool(claim.falls_short))
    if scale == "smoke" and any(finding.decision != "holds" for finding in findings):
        expected = False
    return ClaimResult(claim, verdict, tuple(findings), seconds, tuple(notes), expected)


def _time(rows: Rows) -> float:
    """Seconds that the members took to train, each counted once."""
    members = {(run, row["member"]): row.get("training_seconds") or 0.0 for run, found in rows.items() for row in found}
    return math.fsum(members.values())


def _made_on(folder: Path) -> str:
    """The device that committed records were made on."""
    devices = {str(row.get("device", "?")) for rows in rows_of(folder).values() for row in rows}
    return "made on " + ", ".join(sorted(devices)) if devices else "no records"


def _skipped(folder: Path) -> str:
    skipped = read_study_header(folder).get("skipped", {})
    return "; ".join(dict.fromkeys(skipped.values())) or "no records"


def summary(result: ClaimResult) -> str:
    """What was found, in a line: the most important finding.

    Example:
        >>> from axiswise_papers._claim import within
        >>> from axiswise_papers.ledger import CLAIMS
        >>> found = (within("first", 1e-15, 1e-12), within("second", 5e-13, 1e-12))
        >>> summary(ClaimResult(CLAIMS[0], "holds", found, 0.1, (), True))
        'second: 5e-13, at most 1e-12 (1 more)'
    """
    if not result.findings:
        return "; ".join(result.notes)
    shown, *_ = by_weight(result.findings)
    more = len(result.findings) - 1
    return f"{shown.what}: {phrase(shown)}" + (f" ({more} more)" if more else "")


def by_weight(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by importance: what is contradicted, what is undecided, intervals, then exact ones near their limit.

    Example:
        >>> exact = Finding("exact", "at most 1", 0.5, math.nan, math.nan, "holds")
        >>> trained = Finding("trained", "below 0", -0.2, -0.3, -0.1, "holds")
        >>> unclear = Finding("unclear", "below 0", -0.2, -0.5, 0.1, "undecided")
        >>> [finding.what for finding in by_weight([exact, trained, unclear])]
        ['unclear', 'trained', 'exact']
    """
    order = ("contradicted", "undecided", "holds")
    return sorted(findings, key=lambda finding: (order.index(finding.decision), -_tightness(finding)))


def phrase(finding: Finding) -> str:
    """A finding's number, interval and rule.

    Example:
        >>> phrase(Finding("DtO", "below 0", -0.25, -0.5, -0.1, "holds"))
        '−0.25 [−0.5, −0.1], below 0'
    """
    if math.isnan(finding.estimate):
        return finding.rule if finding.decision == "holds" else f"not so: {finding.rule}"
    number = _signed(finding.estimate)
    if not math.isnan(finding.low):
        number += f" [{_signed(finding.low)}, {_signed(finding.high)}]"
    return f"{number}, {finding.rule}"


def _signed(value: float) -> str:
    """Three digits, with a minus rather than a hyphen before them."""
    return ("−" if value < 0 else "") + f"{abs(value):.3g}"


def _tightness(finding: Finding) -> float:
    """How close an exact finding comes to its limit; findings with intervals come first."""
    if not math.isnan(finding.low):
        return math.inf
    limit = finding.rule.removeprefix("at most ")
    try:
        return abs(finding.estimate) / float(limit)
    except (ValueError, ZeroDivisionError):
        return -1.0


def write(path: str | Path, claims: Sequence[ClaimResult], about: Mapping[str, Any]) -> None:
    """Writes verdicts and findings to a JSON file, atomically.

    Arguments:
        path: The file.
        claims: The claims with their verdicts.
        about: How they were made: the command, the scale, the device.
    """
    write_json(
        Path(path),
        {
            "format": FORMAT,
            **about,
            "versions": versions(),
            "claims": [
                {
                    "id": each.claim.id,
                    "kind": each.claim.kind,
                    "title": each.claim.title,
                    "published": each.claim.published,
                    "rule": each.claim.rule,
                    "verdict": each.verdict,
                    "expected": each.expected,
                    "falls_short": each.claim.falls_short,
                    "seconds": round(each.seconds, 2),
                    "notes": list(each.notes),
                    "findings": [_plain(finding) for finding in each.findings],
                }
                for each in claims
            ],
        },
    )


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in finding._asdict().items()
    }
