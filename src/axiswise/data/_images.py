"""Image files, converted once into arrays of bytes."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from axiswise.data.folders import cache_folder
from axiswise.errors import AxiswiseError
from axiswise.records import read_json, write_json
from axiswise.records._files import replacing
from axiswise.shapes import Shaped, Tensor

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
GREY_MODES = frozenset({"1", "L", "LA", "La"})
COLOUR_MODES = frozenset({"P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "HSV", "LAB"})
FORMAT = "axiswise-images-1"
CHUNK = 256  # images decoded at a time, which limits the memory besides that of the result


class Converted(NamedTuple):
    """Images of one size, mapped from the cache, and the SHA-256 of their pixels."""

    pixels: Shaped[Tensor, "n c h w"]
    sha256: str


def image_files(root: Path) -> list[Path]:
    """Lists the image files below a folder, by file extension, in the order of their paths.

    Arguments:
        root: The folder.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("b.png", "a.JPG", "notes.txt", "._b.png"):
        ...     (folder / name).touch()
        >>> [path.name for path in image_files(folder)]
        ['a.JPG', 'b.png']
    """
    if not root.is_dir():
        raise AxiswiseError(f"Expected a folder of images at {root}. There is none.")
    found = [path for path in root.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file()]
    visible = [path for path in found if not any(part.startswith(".") for part in path.relative_to(root).parts)]
    if not visible:
        raise AxiswiseError(
            f"Expected images ({', '.join(sorted(SUFFIXES))}) below {root}. Got none; choose another folder."
        )
    return sorted(visible, key=lambda path: path.relative_to(root).as_posix())


def convert(root: Path, files: Sequence[Path], *, size: int, channels: int, crop: int | None = None) -> Converted:
    """Crops and resizes images into one file in the cache folder, unless that file exists.

    The names, sizes and modification times of the images identify the file. The SHA-256 of the pixels identifies its
    contents, which copies of the images share. If an image cannot be read, this raises an error and writes nothing.

    Arguments:
        root: The folder that names are relative to.
        files: The images, in order.
        size: Side of the result in pixels.
        channels: 3 or 1.
        crop: Side of the central square to crop to; None for the largest that fits.

    Example:
        >>> import tempfile
        >>> from PIL import Image
        >>> folder = Path(tempfile.mkdtemp())
        >>> Image.new("L", (40, 30), 255).save(folder / "white.png")
        >>> convert(folder, image_files(folder), size=8, channels=1).pixels.shape
        torch.Size([1, 1, 8, 8])
    """
    if size < 1:
        raise AxiswiseError(f"`size` must be at least 1. Got {size}.")
    if channels not in (1, 3):
        raise AxiswiseError(f"`channels` must be 3 (colour) or 1 (greyscale). Got {channels}.")
    size, channels = int(size), int(channels)  # of numpy's, too
    path = cache_folder() / f"images-{_key(root, files, size, channels, crop)[:32]}.npy"
    shape = (len(files), channels, size, size)
    sha256 = _whole(path, shape)
    if sha256 is None:
        sha256 = _write(path, shape, files, partial(_read, size=size, channels=channels, crop=crop))
        write_json(path.with_suffix(".json"), {"format": FORMAT, "sha256": sha256, "folder": str(root)})
    pixels = np.load(path, mmap_mode="c", allow_pickle=False)  # "c": PyTorch needs writable memory
    return Converted(torch.from_numpy(pixels), sha256)


def _key(root: Path, files: Sequence[Path], size: int, channels: int, crop: int | None) -> str:
    digest = hashlib.sha256(json.dumps([FORMAT, size, channels, crop]).encode())
    for path in files:
        about = path.stat()
        digest.update(json.dumps([path.relative_to(root).as_posix(), about.st_size, about.st_mtime_ns]).encode())
    return digest.hexdigest()


def _whole(path: Path, shape: tuple[int, ...]) -> str | None:
    """The SHA-256 of converted pixels, or None if they are missing or incomplete.

    The file with the SHA-256 is written last: if it exists, the other is complete.
    """
    try:
        about = read_json(path.with_suffix(".json"), FORMAT)
        pixels = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return about.get("sha256") if pixels.shape == shape and pixels.dtype == np.uint8 else None


def _write(path: Path, shape: tuple[int, ...], files: Sequence[Path], read: Callable[[Path], np.ndarray]) -> str:
    digest = hashlib.sha256(str(shape).encode())
    with replacing(path) as file, ThreadPoolExecutor() as pool:  # decoding releases the interpreter lock
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        for chunk in _chunks(files):
            for pixels in pool.map(read, chunk):
                file.write(pixels.data)
                digest.update(pixels.data)
    return digest.hexdigest()


def _chunks(files: Sequence[Path]) -> Iterator[list[Path]]:
    remaining = iter(files)
    while chunk := list(itertools.islice(remaining, CHUNK)):
        yield chunk


def _read(path: Path, *, size: int, channels: int, crop: int | None) -> np.ndarray:
    """Pixels (c, size, size) of the central square of an image."""
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise AxiswiseError(
            "Reading image files needs Pillow. Install it with `pip install 'axiswise[report]'`."
        ) from error
    try:
        with Image.open(path) as opened:
            opened.load()
            image = ImageOps.exif_transpose(opened)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise AxiswiseError(f"{path} cannot be read as an image ({error}). Repair or remove it.") from error
    if image.mode not in GREY_MODES | COLOUR_MODES:
        raise AxiswiseError(
            f"{path} must have eight bits per channel. Got the mode {image.mode}; convert or remove it."
        )
    if channels == 3 and image.mode in GREY_MODES:
        raise AxiswiseError(
            f"{path} must have colours. Got greyscale (mode {image.mode}); use channels=1, or convert or remove it."
        )
    if "A" in image.getbands() or "transparency" in image.info:
        image = Image.alpha_composite(Image.new("RGBA", image.size, "black"), image.convert("RGBA"))
    side = min(image.size) if crop is None else crop
    if side > min(image.size):
        raise AxiswiseError(f"{path} must have at least {crop} × {crop} pixels. Got {image.width} × {image.height}.")
    left, top = round((image.width - side) / 2), round((image.height - side) / 2)
    image = image.convert("RGB" if channels == 3 else "L").crop((left, top, left + side, top + side))
    image = image.resize((size, size), Image.Resampling.BILINEAR)
    return np.ascontiguousarray(np.asarray(image).reshape(size, size, channels).transpose(2, 0, 1))
