"""Writes reports and sheets."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.records import write_bytes
from axiswise.records._layout import FIGURES_FOLDER, REPORT_FILE
from axiswise.report import figures
from axiswise.report._document import document
from axiswise.report._folder import read_folder
from axiswise.report._pictures import pictures
from axiswise.report._sections import sections


@checked
def write_report(folder: str | Path) -> Path:
    """Turns a folder of records and stored arrays into ``report.html``, and its figures into ``figures/*.png``.

    The page is one file, without network or scripts. The same records give the same bytes. Everything is drawn before
    anything is written, so that an error leaves an earlier report as it was.

    Arguments:
        folder: A study folder (with ``study.json``) or a run folder (with ``run.json``).

    Example:
        >>> write_report(Path("/nowhere"))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected a run or study folder (with run.json or study.json). Got /nowhere, ...
    """
    folder = Path(folder)
    study = read_folder(folder)
    parts = [(section, pictures(section)) for section in sections(study.runs)]
    page = document(study, parts)
    for _, drawn in parts:
        for picture in drawn:
            write_bytes(folder / FIGURES_FOLDER / picture.name, picture.png)
    write_bytes(folder / REPORT_FILE, page.encode("utf-8"))
    return folder / REPORT_FILE


@checked
def contact_sheet(images: np.ndarray, path: Path, titles: Sequence[str] | None = None) -> Path:
    """Writes images side by side to a PNG file.

    Arguments:
        images: Images (n, c, h, w) with values in 0 … 1; one channel is grey, three are colours.
        path: Where to write.
        titles: What to write above each image.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     contact_sheet(np.random.default_rng(0).random((6, 1, 8, 8)), Path(folder) / "sheet.png").name
        'sheet.png'
    """
    if images.ndim != 4 or not len(images):
        raise AxiswiseError(
            f"`images` must have the shape (n, c, h, w) with n ≥ 1. Got {images.shape}. Add or split axes."
        )
    if titles is not None and len(titles) != len(images):
        raise AxiswiseError(
            f"`titles` must be as many as the images, {len(images)}. Got {len(titles)}. Give one for each."
        )
    write_bytes(path, figures.contact(images, titles))
    return path


@checked
def scatter_sheet(x: np.ndarray, factors: np.ndarray, names: Sequence[str], path: Path) -> Path:
    """Writes a scatter plot of vector data per factor, coloured by that factor, to a PNG file.

    Two and three dimensions are drawn as they are, more as their first three principal components.

    Arguments:
        x: The data (n, d).
        factors: The factors of each point (n, k).
        names: The factors' names.
        path: Where to write.

    Example:
        >>> import tempfile
        >>> square = np.random.default_rng(0).random((50, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scatter_sheet(square, square, ["width", "height"], Path(folder) / "square.png").name
        'square.png'
    """
    if x.ndim != 2 or factors.shape != (len(x), len(names)) or not factors.size:
        raise AxiswiseError(
            f"`x`, `factors` and `names` must have the shapes (n, d), (n, k) and (k,), none empty. "
            f"Got {x.shape}, {factors.shape} and ({len(names)},). Flatten images, or use `contact_sheet` for them."
        )
    write_bytes(path, figures.scatter_factors(x, factors, names))
    return path


@checked
def heat_map_sheet(
    matrices: Sequence[np.ndarray],
    path: Path,
    *,
    factors: Sequence[str],
    latents: Sequence[str],
    quantity: str,
    titles: Sequence[str],
    top: float | None = None,
) -> Path:
    """Writes matrices of factors by latents, below each other on one scale of colours, to a PNG file.

    Arguments:
        matrices: Matrices (k, z); NaN where there is no value.
        path: Where to write.
        factors: Names of the rows.
        latents: Names of the columns.
        quantity: What the numbers are.
        titles: What to write above each.
        top: The end of the scale, which begins at 0; the largest value if None.

    Example:
        >>> import tempfile
        >>> names = {"factors": ["width", "height"], "latents": ["z0", "z1"], "titles": [""], "quantity": "share"}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     heat_map_sheet([np.eye(2)], Path(folder) / "map.png", **names).name
        'map.png'
    """
    shapes = {matrix.shape for matrix in matrices}
    if shapes != {(len(factors), len(latents))} or 0 in (*shapes, len(factors), len(latents)):
        raise AxiswiseError(
            f"`matrices` must have a row for each of the {len(factors)} factors and a column for each of the "
            f"{len(latents)} latents. Got shapes {sorted(shapes)}."
        )
    if len(titles) != len(matrices):
        raise AxiswiseError(f"`titles` must be as many as the matrices, {len(matrices)}. Got {len(titles)}.")
    maps = [figures.HeatMap(title, matrix) for title, matrix in zip(titles, matrices, strict=True)]
    write_bytes(path, figures.heat_maps(maps, factors, latents, quantity, top))
    return path
