"""`axiswise data`: list, get and show datasets."""

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from axiswise.cli._outputs import Force, check_drawing, check_output
from axiswise.errors import AxiswiseError, suggestion

if TYPE_CHECKING:  # both would import PyTorch
    from axiswise.data import FactorDataset
    from axiswise.data._sources import Source

app = typer.Typer(help="List, fetch and show datasets.", no_args_is_help=True, rich_markup_mode=None)

PathOption = Annotated[Path | None, typer.Option("--path", help="The files of a dataset of your own.")]


class _Entry(NamedTuple):
    """A dataset in the catalogue: what makes it, and where its contents come from."""

    make: Callable[..., Any]
    origin: Literal["original", "rendered", "generated", "yours"]
    sources: "tuple[Source, ...]" = ()
    licence: str = ""
    takes_path: Literal["no", "may", "must"] = "no"


def _datasets() -> dict[str, _Entry]:
    """The catalogue, in the order of the list."""
    from axiswise import data
    from axiswise.data.dsprites import SOURCE
    from axiswise.data.fashion_mnist import SOURCES as FASHION_MNIST
    from axiswise.data.mnist import SOURCES as MNIST

    sprites = (SOURCE,)
    entries = (
        _Entry(data.dsprites, "original", sprites),
        _Entry(data.color_dsprites, "rendered", sprites),
        _Entry(data.noisy_dsprites, "rendered", sprites),
        _Entry(data.shapes3d, "rendered", licence="Apache-2.0 (ours; the original's too)"),
        _Entry(data.mnist, "original", _files(MNIST)),
        _Entry(data.fashion_mnist, "original", _files(FASHION_MNIST)),
        _Entry(data.celeba, "original", licence="non-commercial research only", takes_path="may"),
        _Entry(data.image_folder, "yours", takes_path="must"),
        _Entry(data.npz, "yours", takes_path="must"),
        _Entry(data.circles, "generated"),
        _Entry(data.digit_mixture, "generated"),
        _Entry(data.linear_gaussian, "generated"),
        _Entry(data.local_versus_global, "generated"),
        _Entry(data.moving_digit, "generated"),
        _Entry(data.pinwheel, "generated"),
        _Entry(data.small_sprites, "generated"),
        _Entry(data.synth_linear, "generated"),
        _Entry(data.synth_nonlinear, "generated"),
    )
    return {entry.make.__name__: entry for entry in entries}


def _files(parts: "Mapping[str, tuple[Source, Source]]") -> "tuple[Source, ...]":
    return tuple(source for part in parts.values() for source in part)


def named(name: str, path: Path | None) -> "FactorDataset":
    """The dataset of that name, made from the user's own files where it needs them."""
    datasets = _datasets()
    if name not in datasets:
        near = suggestion(name, datasets)
        raise AxiswiseError(f"Expected the name of a dataset ({', '.join(datasets)}). Got {name!r}.{near}")
    entry = datasets[name]
    if path is None and entry.takes_path == "must":
        raise AxiswiseError(f"The dataset {name} is made of files of your own. Name them with --path.")
    if path is not None and entry.takes_path == "no":
        raise AxiswiseError(f"The dataset {name} has files of its own and takes no --path. Got {path}.")
    return entry.make() if path is None else entry.make(path)


@app.command("list")
def list_datasets(
    long: Annotated[bool, typer.Option("--long", help="Print origin, licence, citation and files, too.")] = False,
) -> None:
    """Show the datasets."""
    datasets = _datasets()
    width = max(map(len, datasets))
    for name, entry in datasets.items():
        typer.echo(f"{name:{width}} {inspect.cleandoc(entry.make.__doc__ or '').partition(chr(10))[0]}")
        if long:
            for what, about in _details(entry):
                typer.echo(f"    {what:9} {about}")


def _details(entry: _Entry) -> list[tuple[str, str]]:
    from axiswise.data import data_folder

    details = [("origin", entry.origin)]
    licence = entry.licence or ", ".join(dict.fromkeys(source.licence for source in entry.sources))
    citation = "; ".join(dict.fromkeys(source.citation for source in entry.sources)) or _references(entry.make)
    details += [("licence", licence)] if licence else []
    details += [("citation", citation)] if citation else []
    if entry.sources:
        packed = any(source.filename.endswith(".gz") for source in entry.sources)
        details.append(("size", f"{_megabytes(entry.sources)}{' unpacked' if packed else ''}"))
    for source in entry.sources:
        details.append(("file", f"{source.path} ({'present' if source.path.exists() else 'not fetched yet'})"))
    if entry.takes_path == "may":
        folder = data_folder() / entry.make.__name__
        details.append(("folder", f"{folder} ({'present' if folder.exists() else 'absent'}), or --path"))
    elif entry.takes_path == "must":
        details.append(("file", "given by --path"))
    return details


def _megabytes(sources: "tuple[Source, ...]") -> str:
    return f"{sum(source.size for source in sources) / 1e6:,.1f} MB"


def _references(make: Callable[..., Any]) -> str:
    """The section "References" of a docstring, on one line."""
    lines = inspect.cleandoc(make.__doc__ or "").partition("References:\n")[2].splitlines()
    section: list[str] = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        section.append(line.strip())
    return " ".join(section).strip().replace("*", "")


@app.command()
def get(name: Annotated[str, typer.Argument(help="Name of a dataset.")], path: PathOption = None) -> None:
    """Fetch, verify and prepare a dataset."""
    dataset = named(name, path)
    kinds = [
        f"{factor.name} ({factor.kind}{f', {factor.size}' if factor.size else ''})" for factor in dataset.space.factors
    ]
    typer.echo(f"{name}: {len(dataset):,} observations of shape {dataset.shape}; factors {', '.join(kinds) or 'none'}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="Name of a dataset.")],
    out: Annotated[Path | None, typer.Option(help="PNG to write; NAME.png if not given.")] = None,
    path: PathOption = None,
    force: Force = False,
) -> None:
    """Write a contact sheet of a dataset."""
    check_drawing("A contact sheet")
    from axiswise.report import contact_sheet, scatter_sheet

    picture = out or Path(f"{name}.png")
    check_output(picture, force=force)
    dataset = named(name, path)
    images = len(dataset.shape) == 3
    index = dataset.sample(64 if images else 2000)
    x, factors = dataset.x(index).numpy(), dataset.factors(index).numpy()
    written = contact_sheet(x, picture) if images else scatter_sheet(x, factors, list(dataset.space.names), picture)
    typer.echo(f"picture: {written}")
