"""A folder of image files as a dataset."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import torch

from axiswise._arguments import Between, checked
from axiswise.data._images import convert, image_files
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.records._files import expanded
from axiswise.shapes import Shaped, Tensor


@checked
def image_folder(path: str | Path, size: Annotated[int, Between(1, 2**14)] = 64, channels: int = 3) -> FactorDataset:
    """Makes a dataset of every image below a folder, in the order of their names.

    Each is cropped to its central square and resized. The images are converted once, into a file of bytes in the cache
    folder; an added, removed or changed image causes another conversion. If every image is in one of at least two
    subfolders, these are the levels of a factor "folder", in the order of their names. Hidden files and files without
    an image extension are ignored; transparent images get a black background.

    Arguments:
        path: The folder.
        size: Side of the images in pixels.
        channels: 3 for colour, which every image must have; 1 for greyscale, to which colours are converted.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> folder = Path(tempfile.mkdtemp())
        >>> Image.new("RGB", (40, 30), "red").save(folder / "wide.png")
        >>> Image.new("RGB", (30, 50), "blue").save(folder / "tall.png")
        >>> dataset = image_folder(folder, size=16)
        >>> dataset.shape, dataset.x(torch.arange(2))[..., 0, 0].tolist()
        ((3, 16, 16), [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    """
    root = expanded(path).absolute()
    files = image_files(root)
    converted = convert(root, files, size=size, channels=channels)
    names, levels = _subfolders(root, files)
    return FactorDataset(
        name="image_folder",
        arguments={
            "images": converted.sha256,
            "size": size,
            "channels": channels,
            "folders": names,
            "levels": hashlib.sha256(levels.numpy().tobytes()).hexdigest(),
        },
        space=FactorSpace((Factor("folder", len(names)),) if names else ()),
        shape=tuple(converted.pixels.shape[1:]),
        tensors={"x": converted.pixels},
        render=stored,
        levels=levels,
    )


def _subfolders(root: Path, files: Sequence[Path]) -> tuple[list[str], Shaped[Tensor, "n k"]]:
    """Names of the subfolders, and the one of each image; none if not all images are in at least two of them."""
    parents = [path.relative_to(root).parts for path in files]
    names = sorted({parts[0] for parts in parents if len(parts) > 1})
    if len(names) < 2 or any(len(parts) == 1 for parts in parents):
        return [], torch.zeros((len(files), 0), dtype=torch.int64)
    level_of = {name: level for level, name in enumerate(names)}
    return names, torch.tensor([[level_of[parts[0]]] for parts in parents])
