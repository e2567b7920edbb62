"""CelebA: faces with forty attributes, from a folder of the user's."""

import hashlib
from pathlib import Path

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.data._images import convert, image_files
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.folders import data_folder
from axiswise.errors import AxiswiseError, DataUnavailable
from axiswise.records._files import expanded

CROP = 148
IMAGES = "img_align_celeba"
ATTRIBUTES = "list_attr_celeba.txt"


@checked
def celeba(folder: str | Path | None = None, size: int = 64) -> FactorDataset:
    """The aligned faces of CelebA: the central 148×148 pixels, resized, and their attributes, if known.

    The licence of CelebA does not allow free use, so it is not downloaded. Its folder contains ``img_align_celeba`` (or
    the images themselves). If it also contains ``list_attr_celeba.txt``, the forty attributes are binary factors: 0 for
    absent, 1 for present. The images are converted once, as in `image_folder`.

    References:
        Liu, Luo, Wang and Tang, *Deep learning face attributes in the wild*, ICCV 2015.

    Arguments:
        folder: The folder; None for ``celeba`` in the data folder.
        size: Side of the images in pixels.

    Example:
        >>> faces = celeba("~/celeba")  # doctest: +SKIP
        >>> len(faces), faces.shape, len(faces.space)  # doctest: +SKIP
        (202599, (3, 64, 64), 40)
    """
    root = expanded(data_folder() / "celeba" if folder is None else folder).absolute()
    if not root.is_dir():
        raise DataUnavailable(
            f"Expected CelebA in {root}. There is no such folder; get CelebA from its authors and put {IMAGES}/ and "
            f"{ATTRIBUTES} there, or name the folder that has them."
        )
    images = root / IMAGES if (root / IMAGES).is_dir() else root
    files = image_files(images)
    factors, levels = _attributes(root / ATTRIBUTES, [path.name for path in files])
    converted = convert(images, files, size=size, channels=3, crop=CROP)
    return FactorDataset(
        name="celeba",
        arguments={
            "images": converted.sha256,
            "size": size,
            "attributes": [factor.name for factor in factors],
            "levels": hashlib.sha256(levels.tobytes()).hexdigest(),
        },
        space=FactorSpace(factors),
        shape=tuple(converted.pixels.shape[1:]),
        tensors={"x": converted.pixels},
        render=stored,
        levels=torch.from_numpy(levels),
    )


def _attributes(path: Path, names: list[str]) -> tuple[tuple[Factor, ...], np.ndarray]:
    """Reads a file of these lines: the number of images, the attributes' names, and ±1 per name for each image."""
    if not path.exists():
        return (), np.zeros((len(names), 0), np.int64)
    try:
        _, heading, *lines = path.read_text(encoding="ascii").splitlines()
    except ValueError as error:  # fewer than two lines, or not text
        raise AxiswiseError(
            f"{path} must list the attributes of CelebA. Got another kind of file ({error})."
        ) from error
    factors = tuple(Factor(name, 2) for name in heading.split())
    rows = {fields[0]: fields[1:] for line in lines if (fields := line.split())}
    levels = np.empty((len(names), len(factors)), np.int64)
    for row, name in enumerate(names):
        values = rows.get(name)
        if values is None:
            raise AxiswiseError(f"{path} must have a line for each image. Got none for {name}.")
        if len(values) != len(factors) or not {"-1", "1"}.issuperset(values):
            raise AxiswiseError(
                f"{path} must give -1 or 1 for each of {len(factors)} attributes. "
                f"Got {' '.join(values)[:60]!r} for {name}."
            )
        levels[row] = [value == "1" for value in values]
    return factors, levels
