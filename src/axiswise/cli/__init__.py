"""The command line: arguments, progress and exit codes. PyTorch is imported only by commands that compute."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from axiswise import __version__
from axiswise.cli import bench, data, theory
from axiswise.cli.attack import attack
from axiswise.cli.explain import explain
from axiswise.cli.interruption import interrupted
from axiswise.cli.listing import list_studies
from axiswise.cli.progress import Bars, Lines
from axiswise.cli.score import score
from axiswise.cli.status import status
from axiswise.cli.verify import verify
from axiswise.errors import AxiswiseError, StudyIncomplete

FAILED, MISTAKE = 1, 2  # exit codes: a run failed; something the user can mend

app = typer.Typer(
    help="Train populations of variational autoencoders, measure what each latent axis found, and explain why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
app.command()(theory.theory)
app.command("list")(list_studies)
app.command("score", short_help="Score codes against factors that lie in files.")(score)
app.command("status", short_help="Show what of a run or study is done, running, waiting or failed.")(status)
app.command("verify", short_help="Run the papers' claims, published beside ours.")(verify)
app.command("attack", short_help="Change a dataset a little so that VAEs entangle it, and judge that.")(attack)
app.command("explain", short_help="Explain the latents of your own model.")(explain)


def _version(asked: bool) -> bool:
    if asked:
        typer.echo(f"axiswise {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Options of the whole program."""


@app.command()
def run(
    study: Annotated[str, typer.Argument(help="Name of a study; `axiswise list` shows them.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; runs/STUDY-SCALE if not given.")] = None,
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda, ….")] = "cpu",
    scale: Annotated[str, typer.Option(help="smoke (seconds), default, or paper (the published setting).")] = "default",
    precision: Annotated[str | None, typer.Option(help="Products on CUDA: fp32, bf16 (if networks convolve).")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Processes that share the runs; if not given, one for each core, one on a GPU.")
    ] = None,
) -> None:
    """Train and measure a study, then write its report. The same command resumes."""
    from axiswise.engines import conduct
    from axiswise.evaluation import SCALES
    from axiswise.papers import study_named

    chosen = study_named(study)
    if scale not in SCALES:
        raise AxiswiseError(f"--scale must be one of {', '.join(SCALES)}. Got {scale!r}.")
    folder = out or Path("runs") / f"{study}-{scale}"
    console = Console(highlight=False, markup=False, soft_wrap=True)
    say = console.print
    progress = Bars(console) if console.is_terminal else Lines(say)
    if precision not in (None, "fp32", "bf16"):
        raise AxiswiseError(f"--precision must be fp32 or bf16. Got {precision!r}.")
    if workers is not None and workers < 1:
        raise AxiswiseError(f"--workers must be at least 1. Got {workers}.")
    settings = {"name": study, "device": device, "precision": precision, "workers": workers}
    try:
        conduct(chosen, scale, folder, **settings, progress=progress, say=say)
    except StudyIncomplete:
        if any(folder.rglob("records.jsonl")):  # of what there is
            _write_report(folder)
        raise
    except KeyboardInterrupt:
        raise interrupted() from None
    _write_report(folder)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A run or study folder; with --gallery, a folder of results.")],
    gallery: Annotated[bool, typer.Option("--gallery", help="One page of all papers, and their errata.")] = False,
) -> None:
    """Turn a folder's records into one self-contained report.html and PNG figures."""
    if not gallery:
        _write_report(folder)
        return
    from axiswise.papers import CLAIMS
    from axiswise.papers.gallery import errata, write_gallery
    from axiswise.records import write_bytes

    typer.echo(f"gallery: {write_gallery(folder, CLAIMS)}")
    write_bytes(folder / "errata.md", errata(CLAIMS).encode())
    typer.echo(f"errata: {folder / 'errata.md'}")


def _write_report(folder: Path) -> None:
    from axiswise.report import write_report

    typer.echo(f"report: {write_report(folder)}")


def main() -> None:
    """Runs the program; a user's mistake is one line on standard error and exit code 2, never a traceback."""
    try:
        app()
    except StudyIncomplete as error:
        typer.echo(f"axiswise: {error}", err=True)
        sys.exit(FAILED)
    except (AxiswiseError, OSError) as error:
        typer.echo(f"axiswise: {error}", err=True)
        sys.exit(MISTAKE)
