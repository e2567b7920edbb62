"""`axiswise theory`: the exact optimum of a linear β-VAE as a function of β."""

import shlex
import sys
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from axiswise.cli._outputs import SMALLEST, Force, check_drawing, check_output
from axiswise.cli._tables import check_file
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # PyTorch is imported where something is computed
    from axiswise.analytic import LinearGaussian, LinearTerms, LinearVAE
    from axiswise.shapes import Tensor

POINTS = 200
REFINED = 201  # points between the neighbours of an extreme
DIMENSION, LATENTS = 128, 2  # of Figure 1
WIDE = 110  # characters of the printed table, whatever the terminal's width
COPIES = 8  # of a covariance and of decoders, while they are decomposed
ROWS_OFF = 6  # rows of the printed table for latents that are switched off
ROWS = 20  # values of β that are all printed


def theory(
    mixing: Annotated[
        Path | None, typer.Option(help="The mixing matrix A, a row for each observed value: a .npy or .csv file.")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(help="Without --mixing: N of A_ij = ½ (1 + δ_ij); 128 if not given.")
    ] = None,
    latents: Annotated[int | None, typer.Option(help="Without --mixing: number of sources; 2 if not given.")] = None,
    betas: Annotated[
        str | None,
        typer.Option(help="Values of β: 0.5,1,2 or LOW:HIGH:COUNT, evenly on a logarithmic scale; 200 if not given."),
    ] = None,
    noise: Annotated[float, typer.Option(help="Variance of the data's noise and of the likelihood.")] = 1.0,
    out: Annotated[Path, typer.Option(help="Folder for theory.png and theory.csv.")] = Path("runs/theory"),
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file, too.")] = None,
    force: Force = False,
) -> None:
    """Solve the linear β-VAE exactly for every β, and draw its terms (Sikka et al. 2019, Figure 1)."""
    check_drawing("The picture of the theory")
    import torch

    from axiswise.analytic import LinearGaussian
    from axiswise.records import versions, write_bytes, write_json
    from axiswise.records._numpy_files import DOUBLE, check_fits
    from axiswise.report.figures.theory import theory_curves

    for written in (out / "theory.png", out / "theory.csv", json_file):
        check_output(written, force=force, inputs=[mixing])
    if not SMALLEST <= noise <= 1 / SMALLEST:
        raise AxiswiseError(f"--noise must lie between {SMALLEST:g} and {1 / SMALLEST:g}. Got {noise:g}.")
    model = LinearGaussian(_matrix(mixing, dimension, latents), noise)
    off = _off(model)
    values = _values(betas, float(off.max()))
    check_fits(COPIES * DOUBLE * len(values) * model.mixing.numel(), f"{len(values):,} values of --betas")
    began = time.perf_counter()
    _, found = _solved(model, values)
    seconds = time.perf_counter() - began
    rows = _rows(model, values, found, off)
    _print(rows)
    typer.echo(f"{len(values)} value{'s' * (len(values) != 1)} of β in {seconds:.2f} s; listed are those that matter")
    # Peaks and corners are drawn where they are, not at the nearest point of the grid.
    every = torch.cat([values, torch.tensor([row["beta"] for row in rows], dtype=torch.float64)]).unique()
    vae, found = _solved(model, every)
    write_bytes(out / "theory.png", theory_curves(_curves(every, vae, found, off)))
    write_bytes(out / "theory.csv", _table(every, vae, found).encode())
    typer.echo(f"picture: {out / 'theory.png'}\ntable: {out / 'theory.csv'}")
    if json_file:
        about = {
            "format": "axiswise-theory-1",
            "command": "axiswise " + shlex.join(sys.argv[1:]),
            "versions": versions(),
            "device": "cpu",
            "mixing": str(mixing) if mixing else "A_ij = ½ (1 + δ_ij)",
            "shape": list(model.mixing.shape),
            "noise": noise,
            "betas": len(values),
            "seconds": round(seconds, 3),
            "off_from": off.tolist(),
            "rows": rows,
        }
        write_json(json_file, about)


def _matrix(path: Path | None, dimension: int | None, latents: int | None) -> "Tensor":
    import numpy as np
    import torch

    from axiswise._columns import as_array
    from axiswise.records._numpy_files import DOUBLE, check_fits, read_npy

    if path is None:
        rows, columns = (DIMENSION if dimension is None else dimension), (LATENTS if latents is None else latents)
        if not 1 <= columns <= rows:
            raise AxiswiseError(f"--latents must lie between 1 and --dimension, {rows}. Got {columns}.")
        check_fits(COPIES * DOUBLE * rows * rows, f"--dimension {rows}")
        return 0.5 + 0.5 * torch.eye(rows, columns, dtype=torch.float64)
    if dimension is not None or latents is not None:
        raise AxiswiseError(
            "--mixing determines the numbers of dimensions and latents. Leave out --dimension, --latents."
        )
    if path.suffix not in (".npy", ".csv"):
        raise AxiswiseError(f"--mixing must name a .npy or a .csv file. Got {path}.")
    check_file(path)
    if path.suffix == ".npy":
        read = as_array(read_npy(path), str(path))
    else:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a file without any, which the next check refuses
                read = np.loadtxt(path, delimiter=",", ndmin=2)
        except ValueError as error:
            raise AxiswiseError(f"{path} is not a matrix of numbers ({error}).") from error
    matrix = torch.from_numpy(read.astype(np.float64))
    if matrix.ndim != 2:
        raise AxiswiseError(
            f"{path} must hold a matrix, a row for each observed value. Got shape {tuple(matrix.shape)}."
        )
    return matrix


def _values(text: str | None, last: float) -> "Tensor":
    """The values of β; by default from 0.1 to well past where the last latent is off."""
    import torch

    from axiswise.records._numpy_files import DOUBLE, check_fits

    def number(part: str) -> float:
        try:
            value = float(part)
        except ValueError:
            value = float("nan")
        if not SMALLEST <= value <= 1 / SMALLEST:
            raise AxiswiseError(
                f"--betas must be positive numbers, as in 0.5,1,2 or 0.1:100:200, from {SMALLEST:g} to "
                f"{1 / SMALLEST:g}. Got {part!r}."
            )
        return value

    if text is None:
        low, high, count = 0.1, max(10.0, 1.5 * last), POINTS
    elif ":" in text:
        parts = text.split(":")
        if len(parts) != 3 or not parts[2].isdigit() or int(parts[2]) < 2:
            raise AxiswiseError(f"--betas must be LOW:HIGH:COUNT, with a COUNT of at least 2. Got {text!r}.")
        low, high, count = number(parts[0]), number(parts[1]), int(parts[2])
        check_fits(COPIES * DOUBLE * count, f"--betas {text}")
    else:
        chosen = sorted({number(part) for part in text.split(",")})
        return torch.tensor(chosen, dtype=torch.float64)
    if low >= high:
        raise AxiswiseError(f"--betas must be LOW:HIGH:COUNT, LOW below HIGH. Got {text!r}.")
    low, high = torch.tensor([low, high], dtype=torch.float64).log()
    return torch.linspace(low, high, count, dtype=torch.float64).exp()


def _off(model: "LinearGaussian") -> "Tensor":
    """The β from which each latent is off: the leading eigenvalues of the covariance over the noise."""
    import torch

    values = torch.linalg.eigvalsh(model.covariance).flip(-1)
    return values[: model.mixing.shape[-1]] / model.noise


def _solved(model: "LinearGaussian", betas: "Tensor") -> "tuple[LinearVAE, LinearTerms]":
    from axiswise.analytic import beta_vae_optimum, terms

    vae = beta_vae_optimum(model.covariance, model.mixing.shape[-1], betas, model.noise)
    return vae, terms(model, vae, betas)


def _curves(betas: "Tensor", vae: "LinearVAE", found: "LinearTerms", off: "Tensor"):  # noqa: ANN202
    from axiswise.report.figures.theory import Theory

    return Theory(
        beta=betas.numpy(),
        elbo=found.elbo.numpy(),
        log_likelihood=found.log_likelihood.numpy(),
        reconstruction=found.reconstruction.numpy(),
        kl=found.kl.numpy(),
        mie=found.mie.numpy(),
        tie=found.tie.numpy(),
        branches=found.tie_branches.numpy(),
        lengths=vae.decoder.norm(dim=-2).numpy(),
        off=off.numpy(),
    )


TERMS = ("reconstruction", "kl", "elbo", "objective", "log_likelihood", "mie", "tie")


def _rows(model: "LinearGaussian", betas: "Tensor", found: "LinearTerms", off: "Tensor") -> list[dict]:
    """The few values of β that matter, and all that were asked for if these are few, each solved for itself."""
    import torch

    events = dict.fromkeys(betas.tolist() if len(betas) <= ROWS else (), "")
    events |= {float(betas[0]): "smallest β", float(betas[-1]): "largest β"}
    inside = [(place, float(value)) for place, value in enumerate(off) if betas[0] <= value <= betas[-1]]
    events |= {value: f"latent {place + 1} off" for place, value in inside[:ROWS_OFF]}
    if bool(found.tie.isfinite().all()):
        least = _least(model, betas, found)
        events[least] = events.get(least) or "least TIE"
    if betas[0] <= 1 <= betas[-1]:
        events[1.0] = "ELBO peaks"
    chosen = torch.tensor(sorted(events), dtype=torch.float64)
    vae, exact = _solved(model, chosen)
    return [
        {
            "beta": beta,
            "what": events[beta],
            "active": int(vae.active[row]),
            **{name: _json_number(getattr(exact, name)[row]) for name in TERMS},
        }
        for row, beta in enumerate(chosen.tolist())
    ]


def _json_number(value: "Tensor") -> float | None:
    return float(value) if bool(value.isfinite()) else None


def _least(model: "LinearGaussian", betas: "Tensor", found: "LinearTerms") -> float:
    """The β of least TIE, between the neighbours of the least on the grid."""
    import torch

    at = int(found.tie.argmin())
    below, above = float(betas[max(at - 1, 0)]), float(betas[min(at + 1, len(betas) - 1)])
    fine = torch.linspace(below, above, REFINED, dtype=torch.float64)
    return float(fine[_solved(model, fine)[1].tie.argmin()])


def _table(betas: "Tensor", vae: "LinearVAE", found: "LinearTerms") -> str:
    from axiswise.report.figures.theory import distinct

    branches = distinct(found.tie_branches.numpy())
    names = [f"tie_branch_{place + 1}" for place in range(branches.shape[1])]
    lines = [",".join(["beta", "active", *TERMS, *names])]
    for row, beta in enumerate(betas.tolist()):
        values = [float(getattr(found, name)[row]) for name in TERMS] + branches[row].tolist()
        lines.append(",".join([f"{beta:.10g}", str(int(vae.active[row])), *(f"{value:.10g}" for value in values)]))
    return "\n".join(lines) + "\n"


def _print(rows: list[dict]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("β", "active", "reconstr.", "KL", "ELBO", "log p(x)", "MIE", "TIE"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in rows:
        numbers = [row[name] for name in ("reconstruction", "kl", "elbo", "log_likelihood", "mie", "tie")]
        shown = ["–" if value is None else f"{value + 0.0:.3f}".replace("-0.000", "0.000") for value in numbers]
        table.add_row(f"{row['beta']:.5g}", str(row["active"]), *shown, row["what"])
    Console(highlight=False, width=WIDE).print(table)
