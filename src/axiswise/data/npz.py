"""Arrays of an .npz file as a dataset."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from axiswise.data.arrays import arrays
from axiswise.data.dataset import FactorDataset
from axiswise.errors import AxiswiseError

CHANNELS = (1, 3)


def npz(
    path: str | Path, images: str = "imgs", factors: str | None = None, names: Sequence[str] | None = None
) -> FactorDataset:
    """Makes a dataset from the images, and optionally the factors, under given keys of an .npz file.

    Bytes are pixels from 0 to 255, or black and white if none exceeds 1; floats must lie in 0…1. Nothing in the file is
    executed: an array of Python objects is an error.

    Arguments:
        path: The file.
        images: Key of the images: (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3 channels. If both of the last
            two fit, channels come first.
        factors: Key of the factors (n, k) or (n), as `arrays` takes them; integers and text are levels.
        names: Names of the factors.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> np.savez(path, faces=np.zeros((5, 8, 8, 3), np.uint8), who=np.array([[0], [0], [1], [1], [2]]))
        >>> dataset = npz(path, images="faces", factors="who", names=["person"])
        >>> dataset.shape, dataset.space.names, dataset.space.sizes
        ((3, 8, 8), ('person',), (3,))
    """
    path = Path(path).expanduser().absolute()
    if not path.is_file():
        raise AxiswiseError(f"Expected an .npz file at {path}. There is none.")
    try:
        with zipfile.ZipFile(path) as archive:
            contents = _contents(archive)
            x = _pixels(_array(archive, path, images, contents), path, images, contents)
            values = None if factors is None else _array(archive, path, factors, contents)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise AxiswiseError(f"{path} is truncated or not an .npz file ({error}). Restore it.") from error
    return arrays(x, values, names=names, name=path.stem)


def _contents(archive: zipfile.ZipFile) -> dict[str, str]:
    """What an archive contains: type and shape by key, from the headers alone."""
    contents = {}
    for member in archive.namelist():
        if not member.endswith(".npy"):
            continue
        with archive.open(member) as stream:
            try:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(stream)
            except ValueError as error:
                contents[member.removesuffix(".npy")] = f"unreadable: {error}"
                continue
        contents[member.removesuffix(".npy")] = "Python objects" if dtype.hasobject else f"{dtype} {shape}"
    return contents


def _array(archive: zipfile.ZipFile, path: Path, key: str, contents: dict[str, str]) -> np.ndarray:
    if key not in contents:
        raise AxiswiseError(f"{path} must contain an array {key!r}. Got {_listed(contents)}; name one of these.")
    try:
        with archive.open(f"{key}.npy") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except ValueError as error:
        raise AxiswiseError(
            f"`{key}` of {path} must be a complete array of numbers. Got {contents[key]} ({error})."
        ) from error


def _pixels(values: np.ndarray, path: Path, key: str, contents: dict[str, str]) -> np.ndarray:
    """Images (n, c, h, w), as bytes from 0 to 255 or as floats in 0…1."""
    if values.ndim == 3:
        values = values[:, None]
    elif values.ndim == 4 and values.shape[1] not in CHANNELS and values.shape[3] in CHANNELS:
        values = values.transpose(0, 3, 1, 2)
    if values.ndim != 4 or values.shape[1] not in CHANNELS or values.size == 0:
        raise AxiswiseError(
            f"`{key}` of {path} must be images: (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3 channels. "
            f"The file contains {_listed(contents)}."
        )
    if values.dtype == np.bool_ or (values.dtype == np.uint8 and values.max() <= 1):
        return values.astype(np.uint8) * np.uint8(255)
    if values.dtype == np.uint8:
        return values
    if values.dtype.kind != "f" or not (values.min() >= 0 and values.max() <= 1):
        raise AxiswiseError(
            f"`{key}` of {path} must be bytes, or floats in 0…1. Got {values.dtype} from {values.min()} to "
            f"{values.max()}; save it as np.uint8, or divided by its largest value."
        )
    return values


def _listed(contents: dict[str, str]) -> str:
    return ", ".join(f"{key} ({about})" for key, about in contents.items()) or "no arrays"
