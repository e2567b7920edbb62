"""`axiswise data`: list, get and show datasets."""

from pathlib import Path
from typing import Annotated

import typer

from axiswise.errors import AxiswiseError

app = typer.Typer(help="List, fetch and look at datasets.", no_args_is_help=True)


def _datasets() -> dict:
    from axiswise import data

    made = (data.dsprites, data.pinwheel, data.synth_linear, data.synth_nonlinear)
    return {make.__name__: make for make in made}


def _named(name: str):  # noqa: ANN202 (a dataset; naming its type would import PyTorch)
    datasets = _datasets()
    if name not in datasets:
        raise AxiswiseError(f"Expected the name of a dataset ({', '.join(datasets)}). Got {name!r}.")
    return datasets[name]()


@app.command("list")
def list_datasets() -> None:
    """Show the datasets."""
    for name, make in _datasets().items():
        typer.echo(f"{name:18} {(make.__doc__ or '').partition(chr(10))[0]}")


@app.command()
def get(name: Annotated[str, typer.Argument(help="Name of a dataset.")]) -> None:
    """Fetch, verify and prepare a dataset."""
    dataset = _named(name)
    kinds = [
        f"{factor.name} ({factor.kind}{f', {factor.size}' if factor.size else ''})" for factor in dataset.space.factors
    ]
    typer.echo(f"{name}: {len(dataset):,} observations of shape {dataset.shape}; factors {', '.join(kinds)}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a dataset.")],
    out: Annotated[Path | None, typer.Option(help="PNG to write; NAME.png if not given.")] = None,
) -> None:
    """Write a contact sheet of a dataset."""
    from axiswise.report import contact_sheet, scatter_sheet

    dataset = _named(name)
    path = out or Path(f"{name}.png")
    images = len(dataset.shape) == 3
    index = dataset.sample(64 if images else 2000)
    x, factors = dataset.x(index).numpy(), dataset.factors(index).numpy()
    written = contact_sheet(x, path) if images else scatter_sheet(x, factors, list(dataset.space.names), path)
    typer.echo(f"picture: {written}")
