"""Arrays of an .npz file as a dataset."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from axiswise._arguments import checked
from axiswise.data.arrays import CHANNELS, arrays, has_channels_last
from axiswise.data.dataset import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.records._files import expanded
from axiswise.records._numpy_files import Npz


@checked
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
    path = expanded(path).absolute()
    if not path.is_file():
        raise AxiswiseError(f"Expected an .npz file at {path}. There is none.")
    with Npz(path) as file:
        x = _pixels(file[images], path, images, file.listed)
        values = None if factors is None else file[factors]
    return arrays(x, values, names=names, name=path.stem)


def _pixels(values: np.ndarray, path: Path, key: str, listed: str) -> np.ndarray:
    """Images (n, c, h, w), as bytes from 0 to 255 or as floats in 0…1."""
    if values.ndim == 3:
        values = values[:, None]
    elif has_channels_last(values.shape):
        values = values.transpose(0, 3, 1, 2)
    if values.ndim != 4 or values.shape[1] not in CHANNELS or values.size == 0:
        raise AxiswiseError(
            f"`{key}` of {path} must be images: (n, h, w), (n, c, h, w) or (n, h, w, c) with 1 or 3 channels. "
            f"The file contains {listed}."
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
