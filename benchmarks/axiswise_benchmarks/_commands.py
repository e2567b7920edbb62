"""`axiswise bench`: speeds, as ratios measured in one run."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from axiswise.cli import Force, check_output

app = typer.Typer(help="Measure speed.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _bench() -> None:
    """Measure speed."""


@app.command()
def population(
    device: Annotated[str, typer.Option(help="Where to measure: cpu, cuda, ….")] = "cpu",
    members: Annotated[int, typer.Option(min=1, max=10_000, help="Members of the population.")] = 64,
    repeats: Annotated[int, typer.Option(min=1, max=1_000, help="Interleaved repeats; medians are printed.")] = 5,
    conv: Annotated[bool, typer.Option(help="Whether to measure the convolutional network too.")] = True,
    only: Annotated[list[str] | None, typer.Option(help="A row of the table, by its name; repeatable.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Train members one after another in plain PyTorch, and as a population, and compare."""
    from axiswise.population._device import device_named
    from axiswise.records import versions, write_json
    from axiswise_benchmarks.population import compare, standard_jobs

    check_output(json_file, force=force)
    if device_named(device).type == "cuda":
        _throughput(device, only or [], json_file)
        return

    jobs = _named(standard_jobs(members, conv=conv), only or [])
    typer.echo(f"milliseconds for a step of all members, medians of {repeats} interleaved repeats")
    typer.echo(f"{'job':34} {'one by one':>12} {'population':>12} {'ratio':>7}")
    rows = []
    for job in jobs:
        result = compare(job, device=device, repeats=repeats)
        rows.append({"job": job.name, **result._asdict()})
        typer.echo(f"{job.name:34} {result.loop_ms:12.2f} {result.population_ms:12.2f} {result.ratio:7.1f}")
    if json_file:
        write_json(json_file, {"format": "axiswise-bench-1", "device": device, "versions": versions(), "rows": rows})


@app.command()
def data(
    device: Annotated[str, typer.Option(help="Where to measure: cpu, cuda, ….")] = "cpu",
    members: Annotated[
        int, typer.Option(min=1, max=10_000, help="Members of the population; each draws a batch of 64.")
    ] = 64,
    repeats: Annotated[int, typer.Option(min=1, max=1_000, help="Interleaved repeats; medians are printed.")] = 5,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Compare what the batches of a population cost with the training step that uses them."""
    from axiswise.data import dsprites, shapes3d
    from axiswise.errors import DataUnavailable
    from axiswise.population._device import device_named
    from axiswise.records import versions, write_json
    from axiswise_benchmarks.population import batch_cost

    check_output(json_file, force=force)
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


@app.command()
def networks(
    device: Annotated[str, typer.Option(help="Where to measure: cpu, cuda, ….")] = "cpu",
    members: Annotated[int, typer.Option(min=1, max=10_000, help="Members of a cohort.")] = 32,
    only: Annotated[list[str] | None, typer.Option(help="A network to measure; may be given several times.")] = None,
    processes: Annotated[
        int, typer.Option(min=1, max=1_000, help="Networks prepared side by side, then timed one by one.")
    ] = 1,
    deviations: Annotated[bool, typer.Option(help="Whether to compare members with a plain loop, too.")] = True,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures to this file, too, each as it is found.")
    ] = None,
    force: Force = False,
) -> None:
    """Train networks as people build them: how far from a plain loop, and on a GPU how much faster than eagerly."""
    from axiswise.population._device import device_named
    from axiswise.records import versions, write_json
    from axiswise_benchmarks.catalogue import Row, rows

    check_output(json_file, force=force)
    typer.echo(
        "deviation from a plain loop in double precision, relative to the way the weights went, of stacked members:"
    )
    typer.echo(
        "cpu, double; and on the GPU double, single, with bfloat16 products. Model-steps a second at batch 64, eager"
    )
    typer.echo("and as a cohort in bfloat16; floor: the ratio at which memory or arithmetic alone would be busy.")
    typer.echo(f"{'network':30} " + " ".join(f"{name:>8}" for name in Row._fields[1:]))
    found, header = [], {"format": "axiswise-bench-1", "device": device, "versions": versions()}
    settings = {"members": members, "only": only or (), "processes": processes, "deviations": deviations}
    for row in rows(device_named(device), **settings):
        found.append(row._asdict())
        apart = " ".join(_or_dash(value, "8.0e") for value in row[1:5])
        typer.echo(f"{row.network:30} {apart} " + " ".join(_or_dash(value, "8.0f") for value in row[5:]))
        if json_file:
            write_json(json_file, {**header, "rows": found})


@app.command()
def scores(
    members: Annotated[int, typer.Option(min=1, max=10_000, help="Members of the population.")] = 100,
    exact: Annotated[
        bool, typer.Option("--exact", help="Time the reference in full: nothing left out or extrapolated. Takes hours.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Compare the scores with plain algorithms: seconds of both, their ratio, and how far the numbers differ."""
    from axiswise.records import versions, write_json
    from axiswise_benchmarks import scores as benchmark

    check_output(json_file, force=force)
    known = benchmark.reference()
    if not known:
        typer.echo("no reference: tests/scores/reference.py is part of the source tree; only our side is timed")
    benchmark.warm_up(known)
    train, test = benchmark.TRAIN, benchmark.TEST
    typer.echo(f"seconds for {train:,} + {test:,} points of {benchmark.LATENTS} latents, factors {benchmark.SIZES}")
    typer.echo(f"{'score':34} {'code':9} {'reference':>10} {'ours':>9} {'ratio':>8} {'value':>8} {'difference':>11}")
    rows, totals = [], [0.0, 0.0]
    for timing in benchmark.compare(known, benchmark.examples(train, test), exact=exact):
        rows.append(timing._asdict())
        totals = [totals[0] + (timing.reference_seconds or 0.0), totals[1] + timing.seconds]
        ends = f"{_or_dash(timing.ratio, '8.1f')} {timing.value:8.3f} {_or_dash(timing.difference, '11.1e')}"
        slow = _or_dash(timing.reference_seconds, "10.3f")
        typer.echo(f"{timing.score:34} {timing.code:9} {slow} {timing.seconds:9.3f} {ends}  {timing.about}".rstrip())
    ratio = totals[0] / totals[1] if known else None
    typer.echo(f"{'all of these':44} {totals[0]:10.3f} {totals[1]:9.3f} {_or_dash(ratio, '8.1f')}")

    typer.echo(f"seconds for {members} members, scored at once against one by one")
    many = []
    for timing in benchmark.compare_population(known, benchmark.population(members, train, test), exact=exact):
        many.append(timing._asdict())
        ends = f"{_or_dash(timing.ratio, '8.1f')} {'':8} {_or_dash(timing.difference, '11.1e')}"
        about = f"  reference measured on {timing.sampled} members" if 0 < timing.sampled < members else ""
        slow = _or_dash(timing.reference_seconds, "10.3f")
        typer.echo(f"{timing.score:34} {'members':9} {slow} {timing.seconds:9.3f} {ends}{about}".rstrip())
    peak = _peak_memory()
    typer.echo(f"peak memory of all this: {_or_dash(peak, '.2f')} GiB")
    if json_file:
        about = {"format": "axiswise-bench-1", "exact": exact, "reference": bool(known), "versions": versions()}
        write_json(json_file, {**about, "rows": rows, "population": many, "peak_gib": peak})


@app.command()
def geometry(
    points: Annotated[int, typer.Option(min=1, max=1_000_000, help="Points of the decoder.")] = 1000,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Compare the distance to orthogonality and the encoder law with a plain loop over points, on a CPU."""
    import torch

    from axiswise.models import conv64, initialise
    from axiswise.records import versions, write_json
    from axiswise_benchmarks import geometry as benchmark

    check_output(json_file, force=force)
    torch.set_num_threads(1)  # either way: threads that wait for each other measure who else uses the machine
    vae, decoders = conv64(latents=10), []
    for dtype in (torch.float64, torch.float32):
        decoder = vae.modules()["decoder"].to(dtype).eval()
        weights = initialise(decoder, "decoder", torch.tensor([0]), dtype)
        decoder.load_state_dict({name: stack[0] for name, stack in weights.items()})
        decoders.append((dtype, lambda z, decoder=decoder: vae.likelihood.mean(decoder(z))))
    typer.echo(
        f"seconds for DtO and encoder law at {points:,} points of a decoder of 4,096 pixels and 10 latents, one thread"
    )
    typer.echo("loop: jacfwd and milp, one point after another; reverse: Jacobians alone; both timed on few and scaled")
    typer.echo("to double, off by: against the loop in float64")
    head = f"{'type':8} {'ours':>8} {'loop':>8} {'ratio':>6} {'to double':>9} {'reverse':>8}"
    typer.echo(f"{head} {'DtO':>8} {'off by':>8} {'law':>8} off by")
    rows = []
    for found in benchmark.compare(decoders, vae.likelihood, vae.latents, points=points):
        rows.append(found._asdict())
        times = f"{found.seconds:8.2f} {found.loop_seconds:8.2f} {found.ratio:6.1f} {found.ratio_to_double:9.1f}"
        values = f"{found.dto:8.4f} {found.dto_difference:8.0e} {found.law:8.4f} {found.law_difference:.0e}"
        typer.echo(f"{found.dtype:8} {times} {found.reverse_seconds:8.0f} {values}")
    assigned, peak = benchmark.assignment_seconds(), _peak_memory()
    typer.echo(f"DtO of 10,000 products of 10 latents: {assigned:.2f} s")
    typer.echo(f"peak memory of all this: {_or_dash(peak, '.2f')} GiB")
    if json_file:
        about = {"format": "axiswise-bench-1", "device": "cpu", "versions": versions(), "rows": rows}
        write_json(json_file, {**about, "assignment_seconds": assigned, "peak_gib": peak})


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="A study, as for `axiswise run`.")],
    device: Annotated[str, typer.Option(help="Where to train: cpu, cuda, ….")] = "cpu",
    scale: Annotated[str, typer.Option(help="smoke, default or paper.")] = "default",
    out: Annotated[Path | None, typer.Option(help="An empty folder to run it in; a temporary one if none.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Run a study, and say where its time goes: training, measuring, storing, starting, and what is left."""
    import tempfile

    from axiswise.errors import AxiswiseError
    from axiswise.records import versions, write_json
    from axiswise.studies import SCALES, find_study
    from axiswise_benchmarks.study import measure

    check_output(json_file, force=force)
    if scale not in SCALES:
        raise AxiswiseError(f"--scale must be one of {', '.join(SCALES)}. Got {scale!r}.")
    if out is not None and out.exists() and any(out.iterdir()):
        raise AxiswiseError(f"--out must be an empty folder, so that all is trained. Got {out}.")
    with tempfile.TemporaryDirectory() as temporary:
        times = measure(find_study(name), scale, out or Path(temporary) / "study", device, typer.echo)
    typer.echo(f"{'seconds':12} {'share':>18}")
    for part, seconds in times._asdict().items():
        typer.echo(f"{part:12} {seconds:9.1f} {seconds / times.wall:8.1%}")
    typer.echo(f"wall time is {times.ratio:.2f} × training time; beside: measuring in other processes, summed")
    if json_file:
        about = {"format": "axiswise-bench-1", "study": name, "scale": scale, "device": device, "versions": versions()}
        write_json(json_file, {**about, **times._asdict(), "ratio": times.ratio})


def _or_dash(value: float | None, form: str) -> str:
    return f"{'–':>{form.partition('.')[0]}}" if value is None else f"{value:{form}}"


def _peak_memory() -> float | None:
    """The most memory that this process has used, in GiB; None on Windows, which does not count it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**30


def _named(rows: Iterable[Any], only: Sequence[str]) -> list[Any]:
    """The rows of those names; all of them if there is none."""
    from axiswise.errors import AxiswiseError

    known = {row.name: row for row in rows}
    if unknown := [name for name in only if name not in known]:
        raise AxiswiseError(f"--only must name rows of the table ({'; '.join(known)}). Got {unknown[0]!r}.")
    return [known[name] for name in only or known]


def _throughput(device: str, only: Sequence[str], json_file: Path | None) -> None:
    """Model-steps a second on a GPU, against one model at a time and against what the memory allows.

    What was found is written after each task: all of them take longer than a GPU may be there.
    """
    import torch

    from axiswise.records import versions, write_json
    from axiswise_benchmarks.throughput import (
        COHORTS,
        bandwidth,
        cohort_rate,
        compiled_rate,
        eager_rate,
        graph_rate,
        tasks,
        work,
    )

    gpu = torch.device(device)
    wanted = _named(tasks(gpu), only)
    name, speed = torch.cuda.get_device_name(gpu), bandwidth(gpu)
    typer.echo(f"{name}, copies at {speed / 1e12:.2f} TB/s; model-steps a second, draws and batches included")
    typer.echo("floor: the rate at which the memory alone could keep up; GB/s: unavoidable traffic at that rate")
    typer.echo(f"{'task':26} {'members':>12} {'rate':>9} {'× eager':>8} {'TFLOP/s':>8} {'GB/s':>7} {'of floor':>9}")
    rows = []
    for task in wanted:
        needed, eager = work(task), eager_rate(task)
        found = [("eager", 1, eager)]
        for way, measured in (("compiled", compiled_rate), ("graph", graph_rate)):
            try:
                found.append((way, 1, measured(task)))
            except RuntimeError as reason:  # of what cannot be compiled or recorded
                typer.echo(f"{task.name:26} one, {way}: not possible, {str(reason).partition(chr(10))[0]:.80}")
        found += [("bf16", count, cohort_rate(task, count, "bf16")) for count in COHORTS]
        found.append(("fp32", COHORTS[-1], cohort_rate(task, COHORTS[-1], "fp32")))
        for precision, count, rate in found:
            share = rate * needed.bytes / speed
            row = {"task": task.name, "precision": precision, "members": count, "rate": rate, "ratio": rate / eager}
            rows.append({**row, **needed._asdict(), "share_of_floor": share})
            achieved = f"{rate * needed.flops / 1e12:8.1f} {rate * needed.bytes / 1e9:7.0f} {share:9.1%}"
            typer.echo(f"{task.name:26} {count:>3} {precision:8} {rate:9.0f} {rate / eager:8.1f} {achieved}")
        if json_file:
            about = {"format": "axiswise-bench-1", "device": name, "bandwidth": speed, "versions": versions()}
            write_json(json_file, {**about, "rows": rows})
