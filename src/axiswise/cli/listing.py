"""`axiswise list`: the studies and the claims, with what they cost."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:  # it imports PyTorch
    from axiswise.papers.costs import Cost

FORMAT = "axiswise-list-1"


def list_studies(
    json_file: Annotated[Path | None, typer.Option("--json", help="Write it to this file, too.")] = None,
) -> None:
    """Show the studies that can be run and the claims that can be verified, with what they cost.

    Costs were measured at the default scale. What nobody has measured is a –, and a lower bound where parts are known.
    """
    import inspect

    from axiswise.papers import CLAIMS, STUDIES
    from axiswise.papers.costs import claim_cost, document, study_cost
    from axiswise.records import write_json

    studies, claims = [], []
    typer.echo(f"{'study':30} {'members':>7} {'CPU':>10} {'GPU':>10}")
    for name, study in STUDIES.items():
        members = sum(len(part.members) for part in study("default"))
        title = inspect.cleandoc(study.__doc__ or "").partition("\n")[0]
        cpu, gpu = study_cost(name, "cpu"), study_cost(name, "gpu")
        typer.echo(f"{name:30} {members:7,} {cpu!s:>10} {gpu!s:>10}  {title}")
        studies.append({"study": name, "title": title, "members": members, "cpu": _plain(cpu), "gpu": _plain(gpu)})
    typer.echo(f"\n{'claim':22} {'kind':14} {'CPU':>10} {'GPU':>10}")
    for claim in CLAIMS:
        cpu, gpu = claim_cost(claim, "cpu"), claim_cost(claim, "gpu")
        typer.echo(f"{claim.id:22} {claim.kind:14} {cpu!s:>10} {gpu!s:>10}  {claim.title}")
        about = {"claim": claim.id, "kind": claim.kind, "title": claim.title}
        claims.append({**about, "cpu": _plain(cpu), "gpu": _plain(gpu)})
    measured = {
        column: {name: held[name] for name in ("machine", "versions", "command")} for column, held in document().items()
    }
    typer.echo()
    for column, held in measured.items():
        typer.echo(f"{column.upper()}: {held['machine']}; {held['versions']}; {held['command']}")
    if json_file:
        write_json(json_file, {"format": FORMAT, "measured": measured, "studies": studies, "claims": claims})


def _plain(cost: "Cost") -> dict[str, Any]:
    return {"seconds": cost.seconds, "unknown": list(cost.unknown)}
