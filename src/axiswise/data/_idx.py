"""IDX files, the format of MNIST: a magic number, the size of every axis, and the values."""

import gzip
import math
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from axiswise.data._sources import Source, fetch_all
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.errors import AxiswiseError

UNSIGNED_BYTES = 8  # the code of the type; the other types occur in no dataset here
SIDE = 28
CLASSES = 10


class Part(NamedTuple):
    """The two files of one part of a dataset."""

    images: Source
    labels: Source


def read_idx(path: Path) -> np.ndarray:
    """Reads a file of unsigned bytes; a name that ends in ``.gz`` means that it is compressed.

    The file starts with 0, 0, the code of the type and the number of axes, one byte each. The size of each axis
    follows in four bytes, the highest first. The values follow, with the last axis varying fastest.

    References:
        LeCun, Cortes and Burges, *The MNIST database of handwritten digits*, section "File formats".

    Arguments:
        path: The file.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels.gz"
        >>> _ = path.write_bytes(packed_idx(np.array([3, 1, 4], dtype=np.uint8)))
        >>> read_idx(path)
        array([3, 1, 4], dtype=uint8)
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            magic = stream.read(4)
            if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] != UNSIGNED_BYTES or magic[3] == 0:
                raise AxiswiseError(
                    f"{path} must start like an IDX file of unsigned bytes (00 00 08 and the number of axes). "
                    f"Got {magic.hex(' ') or 'nothing'}: it is another kind of file."
                )
            sizes = stream.read(4 * magic[3])
            if len(sizes) < 4 * magic[3]:
                raise AxiswiseError(f"{path} is truncated: it ends inside its header. Fetch it again.")
            shape = struct.unpack(f">{magic[3]}I", sizes)
            count = math.prod(shape)
            values = stream.read(count + 1)
    except EOFError as error:
        raise AxiswiseError(f"{path} is truncated: its compressed contents end early. Fetch it again.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise AxiswiseError(f"{path} is not a complete gzip file ({error}). Fetch it again.") from error
    if len(values) != count:
        found = f"only {len(values):,}" if len(values) < count else "more"
        raise AxiswiseError(f"{path} must contain {count:,} values, for its shape {shape}. Got {found}: it is damaged.")
    return np.frombuffer(values, np.uint8).reshape(shape)


def packed_idx(values: np.ndarray) -> bytes:
    """Returns a compressed IDX file of unsigned bytes: the inverse of `read_idx`.

    Arguments:
        values: A uint8 array with at least one axis.

    Example:
        >>> gzip.decompress(packed_idx(np.array([7], dtype=np.uint8))).hex(" ")
        '00 00 08 01 00 00 00 01 07'
    """
    header = bytes((0, 0, UNSIGNED_BYTES, values.ndim)) + struct.pack(f">{values.ndim}I", *values.shape)
    return gzip.compress(header + values.astype(np.uint8, copy=False).tobytes(), compresslevel=6, mtime=0)


def labelled_images(name: str, parts: Mapping[str, Part], part: str | None) -> FactorDataset:
    """Returns the dataset of one part, or of all in order, and downloads the files that the data folder lacks.

    Arguments:
        name: Catalogue name.
        parts: The files of each part.
        part: Which part; None for all.

    Example:
        >>> labelled_images("letters", {}, "test")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `part` must be one of [] or None, for all. Got 'test'.
    """
    if part is not None and part not in parts:
        raise AxiswiseError(f"`part` must be one of {list(parts)} or None, for all. Got {part!r}.")
    chosen = list(parts.values()) if part is None else [parts[part]]
    paths = fetch_all([source for files in chosen for source in files])
    images = [_shaped(path, (SIDE, SIDE)) for path in paths[::2]]
    labels = [_shaped(path, ()) for path in paths[1::2]]
    for path, of_images, of_labels in zip(paths[1::2], images, labels, strict=True):
        if len(of_images) != len(of_labels):
            raise AxiswiseError(f"{path} must label {len(of_images):,} images. Got {len(of_labels):,} labels.")
        if of_labels.max(initial=0) >= CLASSES:
            raise AxiswiseError(f"{path} must contain labels from 0 to {CLASSES - 1}. Got {of_labels.max()}.")
    return FactorDataset(
        name=name,
        arguments={"part": part},
        space=FactorSpace((Factor("label", CLASSES),)),
        shape=(1, SIDE, SIDE),
        tensors={"x": torch.from_numpy(np.concatenate(images)[:, None])},
        render=stored,
        levels=torch.from_numpy(np.concatenate(labels).astype(np.int64)[:, None]),
    )


def _shaped(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    values = read_idx(path)
    if values.shape[1:] != shape:
        expected = ", ".join(("n", *map(str, shape)))
        raise AxiswiseError(f"{path} must have the shape ({expected}). Got {values.shape}.")
    return values
