"""Runs claims and judges them: exact ones by computation, trained ones by the records of their studies."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError, StudyIncomplete
from axiswise.population import Progress
from axiswise.records import read_json, read_study_header, versions, write_json
from axiswise.studies import Scale
from axiswise_papers._claim import Claim, Decision, Finding, Rows, Training, Verdict
from axiswise_papers._tables import rows_of

FORMAT, VERDICTS = "axiswise-verdicts-2", "verdicts.json"
AT_LENGTH = "-paper"
"""Ends the names of folders with committed records of the scale "paper"."""
GPU, UNTRAINED, FAILED, NO_DATA = "needs a GPU", "has no committed records", "could not be run", "needs data"
RANKS: dict[Verdict, int] = {
    "does not hold": 0,
    "undecided": 1,
    "holds in part": 2,
    "holds corrected": 3,
    "holds": 3,
    "not run here": 3,
    "ran": 3,
}
"""How good a verdict is; that nothing was run speaks against nothing."""


class ClaimResult(NamedTuple):
    """A claim with its verdict and findings.

    Arguments:
        claim: The claim.
        verdict: What is decided about it.
        findings: What it rests on.
        seconds: Time of its exact checks, and of training and measuring the members that it needs.
        notes: What was not run and why, and the origin of records that were not made here.
        departures: In which settings that which was run differs from the paper.
        parts: How many of its parts were run, and how many there are.
        expected: Whether the verdict is at least the one that the claim should have, or that the ledger has.
    """

    claim: Claim
    verdict: Verdict
    findings: tuple[Finding, ...]
    seconds: float
    notes: tuple[str, ...]
    departures: tuple[str, ...]
    parts: tuple[int, int]
    expected: bool

    @property
    def words(self) -> str:
        """The verdict, with the number of parts if it holds in part."""
        return verdict_words(self.verdict, self.parts)


def verdict_words(verdict: str, parts: Sequence[int]) -> str:
    """A verdict as it is shown.

    Example:
        >>> verdict_words("holds in part", (4, 10)), verdict_words("undecided", (4, 10))
        ('holds in part (4 of 10)', 'undecided')
    """
    return f"{verdict} ({parts[0]} of {parts[1]})" if verdict == "holds in part" else verdict


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
        known = list(dict.fromkeys(name for claim in claims for name in (claim.id.partition(".")[0], claim.id)))
        meant = [match for name in unknown for match in get_close_matches(name, known, n=1)]
        hint = f" Did you mean {', '.join(map(repr, meant))}?" if meant else ""
        raise AxiswiseError(f"Expected papers, or ids of claims ({', '.join(known)}). Got {', '.join(unknown)}.{hint}")
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
    train: bool = True,
    retrain: bool = False,
    seeds_from: int = 0,
    ledger: Mapping[str, Verdict] | None = None,
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
        train: Whether to train at all; if not, committed results judge every trained claim.
        retrain: Whether to train again what is damaged or was made by other code, as for `engines.run_study`.
        seeds_from: Added to every training seed, to repeat all with others. Data stay as they are, and with them the
            members that attacks were made with (seeds 300 … 315 on small sprites, from 1,000 on elsewhere).
        ledger: Verdicts that are known: a claim that falls short of what is expected of it, but not of these, is
            expected.
        progress: Receives how far the training of a study is.
        log: Receives a line as each study starts.
    """
    out, results = Path(out), Path(results) if results is not None else None
    problems: dict[str, str] = {}

    def runs_here(part: Training) -> bool:
        return train and (scale == "smoke" or not part.gpu or device != "cpu")

    parts = (part for claim in claims for part in claim.trained)
    for name in dict.fromkeys(part.study for part in parts if runs_here(part)):
        log(f"study {name}")
        settings = {"name": name, "device": device, "workers": workers, "seeds_from": seeds_from, "retrain": retrain}
        try:
            run_study(studies[name], scale, out / name, **settings, progress=progress, log=log)
        except StudyIncomplete as error:
            problems[name] = str(error)
            log(f"{name}: {error}")
    for claim in claims:
        yield _judge(claim, scale, out, results, problems, ledger or {}, runs_here)


def _judge(
    claim: Claim,
    scale: Scale,
    out: Path,
    results: Path | None,
    problems: Mapping[str, str],
    ledger: Mapping[str, Verdict],
    runs_here: Callable[[Training], bool],
) -> ClaimResult:
    began = time.perf_counter()
    findings: list[Finding] = list(claim.exact()) if claim.exact else []
    notes, departures = [], []
    seconds = time.perf_counter() - began if claim.exact else 0.0
    decisions: list[Decision] = [_decision(finding, shorter=False) for finding in findings]
    counts = [(1, 1)] if claim.exact else []
    for part in claim.trained:
        folder = out / part.study
        if not runs_here(part):
            committed = _committed(results, part.study)
            if committed is None:
                notes.append(f"{part.study}: {GPU if part.gpu else UNTRAINED}")
                counts.append((0, part.parts))
                continue
            folder = committed
            notes.append(f"{part.study}: from {committed}, {_made_on(committed)}")
        if part.study in problems:
            notes.append(f"{part.study} {FAILED}: {problems[part.study]}")
            counts.append((0, part.parts))
            continue
        rows = rows_of(folder, part.runs)
        if not rows:
            notes.append(f"{part.study}: {NO_DATA} ({_skipped(folder)})")
            counts.append((0, part.parts))
            continue
        seconds += _time(rows)
        found = list(part.judge(rows))
        if scale == "smoke":
            counts.append((part.parts, part.parts))
            continue
        decided_at, longer = scale, _committed(results, part.study + AT_LENGTH)
        if part.at_length and longer is not None and scale == "default":
            notes.append(f"{part.study}: from {longer}, {_made_on(longer)}; at the default scale {_tally(found)}")
            rows, decided_at = rows_of(longer, part.runs), "paper"
            seconds += _time(rows)
            found = list(part.judge(rows))
        findings += found
        counts.append(parts_run(part, found))
        departures += [f"{part.study}: {departure}" for departure in part.departures_at(decided_at)]
        decisions.extend(_decision(finding, shorter=part.shorter_at(decided_at)) for finding in found)
    parts = sum(run for run, _ in counts), sum(all_of_it for _, all_of_it in counts)
    verdict = _verdict(decisions, parts, corrected=bool(claim.errata))
    # Parts that need a GPU or data that is not here are nobody's fault; cells that a run lacks are.
    whole = verdict == "holds in part" and "not run" not in decisions
    least = min(RANKS[claim.expected], RANKS[ledger.get(claim.id, claim.expected)])
    expected = not any(FAILED in note for note in notes) and (whole or RANKS[verdict] >= least)
    if scale == "smoke" and set(decisions) - {"holds"}:
        expected = False
    return ClaimResult(
        claim, verdict, tuple(findings), seconds, tuple(notes), tuple(dict.fromkeys(departures)), parts, expected
    )


def parts_run(part: Training, found: Sequence[Finding]) -> tuple[int, int]:
    """How many parts of a training were run, and how many there are; findings are its parts if it names fewer.

    Example:
        >>> from axiswise_papers._claim import missing, true
        >>> one, cells = (Training("study", lambda rows: (), parts=parts) for parts in (1, 16))
        >>> found = [true("MIG falls", True), missing("DCI falls")]
        >>> parts_run(one, found[:1]), parts_run(one, found), parts_run(cells, found)
        ((1, 1), (1, 2), (15, 16))
    """
    lacking = sum(finding.decision == "not run" for finding in found)
    whole = part.parts if lacking < part.parts else len(found)
    return whole - lacking, whole


def _committed(results: Path | None, name: str) -> Path | None:
    """The folder of results with the records of a study, if there is one."""
    folder = Path(results, *name.split(".")) if results is not None else None
    return folder if folder is not None and folder.is_dir() else None


def _decision(finding: Finding, *, shorter: bool) -> Decision:
    """What a finding decides; of training that is shorter than the paper's, it contradicts nothing."""
    return "undecided" if shorter and finding.decision == "contradicted" else finding.decision


def _verdict(decisions: Sequence[Decision], parts: tuple[int, int], *, corrected: bool) -> Verdict:
    """What findings decide together."""
    if "contradicted" in decisions:
        return "does not hold"
    if "undecided" in decisions:
        return "undecided"
    if "holds" not in decisions:
        return "not run here" if parts[0] < parts[1] else "ran"
    if parts[0] < parts[1]:
        return "holds in part"
    return "holds corrected" if corrected else "holds"


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
        >>> summary(ClaimResult(CLAIMS[0], "holds", found, 0.1, (), (), (1, 1), True))
        'second: 5e-13, at most 1e-12 (of 2: 2 holds)'
    """
    if not result.findings:
        return "; ".join(result.notes)
    shown, *others = by_weight(result.findings)
    return f"{shown.what}: {phrase(shown)}" + (f" (of {_tally(by_weight(result.findings))})" if others else "")


def _tally(findings: Sequence[Finding]) -> str:
    """How many findings there are, and of which kind."""
    counts = Counter(finding.decision for finding in findings)
    return f"{len(findings)}: " + ", ".join(f"{count} {decision}" for decision, count in counts.items())


def by_weight(findings: Sequence[Finding]) -> list[Finding]:
    """Findings by importance: contradicted, undecided, not run, intervals, then exact ones near their limit.

    Example:
        >>> exact = Finding("exact", "at most 1", 0.5, math.nan, math.nan, "holds")
        >>> trained = Finding("trained", "below 0", -0.2, -0.3, -0.1, "holds")
        >>> unclear = Finding("unclear", "below 0", -0.2, -0.5, 0.1, "undecided")
        >>> [finding.what for finding in by_weight([exact, trained, unclear])]
        ['unclear', 'trained', 'exact']
    """
    order = ("contradicted", "undecided", "not run", "holds")
    return sorted(findings, key=lambda finding: (order.index(finding.decision), -_tightness(finding)))


def phrase(finding: Finding) -> str:
    """A finding's number, interval and rule, and the number of seeds where too few leave it to chance.

    Example:
        >>> phrase(Finding("DtO", "below 0", -0.25, -0.5, -0.1, "holds", seeds=10, needed=24))
        '−0.25 [−0.5, −0.1], below 0; 10 seeds, 24 would do'
    """
    if math.isnan(finding.estimate):
        return finding.rule if finding.decision == "holds" else f"not so: {finding.rule}"
    number = _signed(finding.estimate)
    if not math.isnan(finding.low):
        number += f" [{_signed(finding.low)}, {_signed(finding.high)}]"
    power = f"; {finding.seeds} seeds, {finding.needed:,} would do" if finding.needed > finding.seeds else ""
    return f"{number}, {finding.rule}{power}"


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
                    "parts": list(each.parts),
                    "departures": list(each.departures),
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


class FindingForm(TypedDict):
    """A finding in ``verdicts.json``; None where there is no number."""

    what: str
    rule: str
    estimate: float | None
    low: float | None
    high: float | None
    decision: Decision
    published: str
    seeds: int
    needed: int


class ClaimForm(TypedDict):
    """A claim in ``verdicts.json``."""

    id: str
    title: str
    published: str
    verdict: Verdict
    parts: list[int]
    departures: list[str]
    falls_short: str
    seconds: float
    notes: list[str]
    findings: list[FindingForm]


class VerdictsForm(TypedDict):
    """``verdicts.json``."""

    command: str
    scale: str
    device: str
    versions: dict[str, str]
    claims: list[ClaimForm]


def read_ledger(results: str | Path) -> dict[str, Verdict]:
    """The committed verdicts by claim; none if there are none."""
    path = Path(results) / VERDICTS
    claims = read_json(path, FORMAT, VerdictsForm)["claims"] if path.is_file() else []
    return {claim["id"]: claim["verdict"] for claim in claims}


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in finding._asdict().items()
    }
