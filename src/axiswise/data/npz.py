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
    """Makes a dataset of images, and perhaps their factors, that an .npz file holds under given keys.

    Bytes are pixels from 0 to 255, or, where none exceeds 1, black and white; floats must lie in 0…1. Nothing in the
    file is executed: an array of Python objects is refused.

    Arguments:
        path: The file.
        images: Key of the images: (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3 channels. Where both of the last
            two fit, channels come first.
        factors: Key of the factors (n, k), as `arrays` takes them; integers are levels from 0.
        names: What the factors are called.

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
            held = _held(archive)
            x = _pixels(_array(archive, path, images, held), path, images, held)
            values = None if factors is None else _array(archive, path, factors, held)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise AxiswiseError(f"{path} is truncated or no .npz file ({error}). Restore it.") from error
    return arrays(x, values, names=names, name=path.stem)


def _held(archive: zipfile.ZipFile) -> dict[str, str]:
    """What an archive holds: type and shape by key, from the headers alone."""
    held = {}
    for member in archive.namelist():
        if not member.endswith(".npy"):
            continue
        with archive.open(member) as stream:
            try:
                version = np.lib.format.read_magic(stream)
                read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
                shape, _, dtype = read(stream)
            except ValueError as error:
                held[member.removesuffix(".npy")] = f"unreadable: {error}"
                continue
        held[member.removesuffix(".npy")] = "Python objects" if dtype.hasobject else f"{dtype} {shape}"
    return held


def _array(archive: zipfile.ZipFile, path: Path, key: str, held: dict[str, str]) -> np.ndarray:
    if key not in held:
        raise AxiswiseError(f"{path} must hold an array {key!r}. Got {_listed(held)}; name one of these.")
    try:
        with archive.open(f"{key}.npy") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except ValueError as error:
        raise AxiswiseError(
            f"`{key}` of {path} must be a whole array of numbers. Got {held[key]} ({error})."
        ) from error


def _pixels(values: np.ndarray, path: Path, key: str, held: dict[str, str]) -> np.ndarray:
    """Images (n, c, h, w), as bytes from 0 to 255 or as floats in 0…1."""
    if values.ndim == 3:
        values = values[:, None]
    elif values.ndim == 4 and values.shape[1] not in CHANNELS and values.shape[3] in CHANNELS:
        values = values.transpose(0, 3, 1, 2)
    if values.ndim != 4 or values.shape[1] not in CHANNELS or values.size == 0:
        raise AxiswiseError(
            f"`{key}` of {path} must be images: (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3 channels. "
            f"The file holds {_listed(held)}."
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


def _listed(held: dict[str, str]) -> str:
    return ", ".join(f"{key} ({about})" for key, about in held.items()) or "no arrays"
