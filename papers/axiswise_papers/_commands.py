"""The commands of this package: `axiswise verify`, `axiswise gallery`, and the claims that `axiswise list` shows."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from axiswise.cli import Force, check_output
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # they import PyTorch
    from axiswise.studies import Cost
    from axiswise_papers._verify import ClaimResult

MARKS = {
    "holds": "green",
    "holds corrected": "green",
    "holds in part": "green",
    "does not hold": "red",
    "undecided": "yellow",
    "not run here": "dim",
    "ran": "dim",
}


def verify(
    claims: Annotated[
        list[str] | None,
        typer.Argument(help="Ids of claims, or of papers such as sikka; all of them if none is given."),
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke (seconds), default, or paper (the published setting).")] = "default",
    out: Annotated[Path | None, typer.Option(help="Folder for the studies; runs/verify-SCALE if not given.")] = None,
    device: Annotated[
        str, typer.Option(help="Where to train: cpu, cuda, …. Committed verdicts are of a CPU, where it can do it.")
    ] = "cpu",
    workers: Annotated[
        int | None, typer.Option(help="Processes that share a study; one for each core if not given.")
    ] = None,
    results: Annotated[Path, typer.Option(help="Committed results, for claims that were run on a GPU.")] = Path(
        "results"
    ),
    train: Annotated[
        bool, typer.Option("--train/--no-train", help="Whether to train, or only judge the committed results again.")
    ] = True,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train again what is damaged or was made by other code.")
    ] = False,
    seeds_from: Annotated[
        int,
        typer.Option(
            min=0, max=2**63 - 1, help="Repeat everything with other seeds: this is added to every training seed."
        ),
    ] = 0,
    long: Annotated[bool, typer.Option("--long", help="Print every finding, not only the most important one.")] = False,
    json: Annotated[Path | None, typer.Option("--json", help="Write verdicts and findings to this file.")] = None,
    publish: Annotated[
        Path | None, typer.Option(help="Copy verdicts and compact records here, for `axiswise gallery`.")
    ] = None,
    force: Force = False,
) -> None:
    """Run the papers' claims: published beside ours, with a verdict each. The same command resumes.

    The exit code is 1 if the verdict of a claim is less than expected, unless the committed verdicts already say so.
    """
    from axiswise.cli import interrupted
    from axiswise.progress import shown_on
    from axiswise.studies import SCALES
    from axiswise_papers import _verify as verification
    from axiswise_papers.ledger import CLAIMS, STUDIES

    check_output(json, force=force)
    if scale not in SCALES:
        raise AxiswiseError(f"--scale must be one of {', '.join(SCALES)}. Got {scale!r}.")
    if publish is not None and claims:
        raise AxiswiseError(f"--publish keeps the verdicts of all claims together. Got {', '.join(claims)}.")
    if publish is not None and seeds_from:
        raise AxiswiseError(f"--publish keeps what the usual seeds give. Got --seeds-from {seeds_from}.")
    selected = verification.select_claims(CLAIMS, claims or [])
    console = Console(highlight=False, soft_wrap=True)
    folder = out or Path("runs") / (f"verify-{scale}" + (f"-seeds-{seeds_from}" if seeds_from else ""))
    settings = {"device": device, "workers": workers, "results": results if results.is_dir() else None}
    settings |= {
        "train": train,
        "retrain": retrain,
        "seeds_from": seeds_from,
        "ledger": verification.read_ledger(results),
    }
    finished = []
    try:
        for each in verification.verify(
            selected, STUDIES, scale, folder, **settings, progress=shown_on(console), log=console.print
        ):
            finished.append(each)
            _show(console, each, long=long)
    except KeyboardInterrupt:
        raise interrupted() from None
    counts = {verdict: sum(each.verdict == verdict for each in finished) for verdict in MARKS}
    total = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    console.print(f"\n{len(finished)} claims: {total}")
    options = [f"--scale {scale} --device {device}", *([] if train else ["--no-train"])]
    options += [f"--seeds-from {seeds_from}"] if seeds_from else []
    about = {"command": " ".join(["axiswise verify", *(claims or []), *options])}
    about |= {"scale": scale, "device": device}
    if publish is not None:
        from axiswise_papers._gallery import publish as copy_records

        trained = dict.fromkeys(part.study for claim in selected for part in claim.trained)
        for path in copy_records(folder, publish, list(trained)):
            console.print(f"records: {path}")
        verification.write(publish / verification.VERDICTS, finished, about)
    if json is not None:
        verification.write(json, finished, about)
        console.print(f"verdicts: {json}")
    unexpected = [each.claim.id for each in finished if not each.expected]
    if unexpected:
        typer.echo(f"axiswise: claims with a lower verdict than expected: {', '.join(unexpected)}", err=True)
        raise typer.Exit(1)


def _show(console: Console, each: "ClaimResult", *, long: bool) -> None:
    """Prints a claim: what is published, what was found, and the verdict."""
    from rich.markup import escape

    from axiswise_papers._verify import RANKS, phrase, summary

    mark = MARKS[each.verdict]
    console.print(f"[bold]{each.claim.id:24}[/bold] [{mark}]{each.words}[/{mark}] {each.seconds:8.1f} s")
    console.print(f"    published  {escape(each.claim.published)}")
    if long:
        for finding in each.findings:
            printed = f" (published: {finding.published})" if finding.published else ""
            console.print(f"    {finding.decision:12} {escape(finding.what)}: {escape(phrase(finding) + printed)}")
    elif each.findings:
        console.print(f"    found      {escape(summary(each))}")
    for departure in each.departures:
        console.print(f"    setting    {escape(departure)}")
    for note in each.notes:
        console.print(f"    note       {escape(note)}")
    for erratum in each.claim.errata:
        console.print(f"    corrected  {escape(erratum.right)}")
    if RANKS[each.verdict] < RANKS["holds"] and each.claim.falls_short:
        console.print(f"    because    {escape(each.claim.falls_short)}")


def gallery(
    results: Annotated[Path, typer.Argument(help="A folder that `axiswise verify --publish` wrote.")] = Path("results"),
) -> None:
    """Draw one page of all papers, claims, tables and figures, and list their errata."""
    from axiswise.records import write_bytes
    from axiswise_papers._gallery import errata, write_gallery
    from axiswise_papers.ledger import CLAIMS

    typer.echo(f"gallery: {write_gallery(results, CLAIMS)}")
    write_bytes(results / "errata.md", errata(CLAIMS).encode())
    typer.echo(f"errata: {results / 'errata.md'}")


def claims() -> "list[dict[str, str | Cost]]":
    """The claims, for `axiswise list`."""
    from axiswise_papers._costs import claim_cost
    from axiswise_papers.ledger import CLAIMS

    return [
        {
            "claim": claim.id,
            "kind": claim.kind,
            "cpu": claim_cost(claim, "cpu"),
            "gpu": claim_cost(claim, "gpu"),
            "title": claim.title,
        }
        for claim in CLAIMS
    ]
