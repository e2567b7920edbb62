"""`axiswise bench`: speeds, as ratios measured in one run."""

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Measure speed.", no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure speed."""


@app.command()
def population(
    device: Annotated[str, typer.Option(help="Where to measure: cpu, cuda, ….")] = "cpu",
    members: Annotated[int, typer.Option(help="Members of the population.")] = 64,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; medians are printed.")] = 5,
    conv: Annotated[bool, typer.Option(help="Whether to measure the convolutional network too.")] = True,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
) -> None:
    """Train members one after another in plain PyTorch, and as a population, and compare."""
    from axiswise.population.benchmark import compare, standard_jobs
    from axiswise.records import versions, write_json

    typer.echo(f"milliseconds for a step of all members, medians of {repeats} interleaved repeats")
    typer.echo(f"{'job':34} {'one by one':>12} {'population':>12} {'ratio':>7}")
    rows = []
    for job in standard_jobs(members, conv=conv):
        result = compare(job, device=device, repeats=repeats)
        rows.append({"job": job.name, **result._asdict()})
        typer.echo(f"{job.name:34} {result.loop_ms:12.2f} {result.population_ms:12.2f} {result.ratio:7.1f}")
    if json_file:
        write_json(json_file, {"format": "axiswise-bench-1", "device": device, "versions": versions(), "rows": rows})


@app.command()
def data(
    device: Annotated[str, typer.Option(help="Where to measure: cpu, cuda, ….")] = "cpu",
    members: Annotated[int, typer.Option(help="Members of the population; each draws a batch of 64.")] = 64,
    repeats: Annotated[int, typer.Option(help="Interleaved repeats; medians are printed.")] = 5,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
) -> None:
    """Compare what the batches of a population cost with the training step that uses them."""
    from axiswise.data import dsprites, shapes3d
    from axiswise.errors import DataUnavailable
    from axiswise.population import device_named
    from axiswise.population.benchmark import batch_cost
    from axiswise.records import versions, write_json

    typer.echo(f"milliseconds for {members} × 64 images, medians of {repeats} interleaved repeats")
    typer.echo(f"{'dataset':12} {'batch':>10} {'step':>10} {'share':>7}")
    rows = []
    for make in (dsprites, shapes3d):
        try:
            dataset = make().to(device_named(device))
        except DataUnavailable as reason:
            typer.echo(f"{make.__name__:12} skipped: {reason}")
            continue
        result = batch_cost(dataset, members=members, repeats=repeats)
        rows.append({"dataset": make.__name__, **result._asdict()})
        typer.echo(f"{make.__name__:12} {result.batch_ms:10.2f} {result.step_ms:10.2f} {result.share:7.1%}")
    if json_file:
        write_json(json_file, {"format": "axiswise-bench-1", "device": device, "versions": versions(), "rows": rows})
