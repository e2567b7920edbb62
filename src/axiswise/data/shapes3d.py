"""3D Shapes: every combination of six factors of an object in a room, original if available, else rendered."""

import colorsys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

from axiswise._arguments import checked
from axiswise.data._shapes3d_scene import (
    ANGLES,
    GEOMETRIES,
    PLANES,
    SCALES,
    SHADE_UNIT,
    SHAPES,
    SIDE,
    SKY,
    Scene,
    fitted_tables,
    packed,
    planes,
    version,
)
from axiswise.data.dataset import FactorDataset, stored
from axiswise.data.factors import Factor, FactorSpace
from axiswise.data.folders import cache_folder, data_folder
from axiswise.errors import AxiswiseError
from axiswise.records._files import replacing
from axiswise.shapes import Float, Int, Shaped, Tensor

FILENAME = "3dshapes.h5"
HUES = 10
SPACE = FactorSpace(
    (
        Factor("floor_hue", HUES, "circular"),
        Factor("wall_hue", HUES, "circular"),
        Factor("object_hue", HUES, "circular"),
        Factor("scale", len(SCALES)),
        Factor("shape", len(SHAPES)),
        Factor("orientation", len(ANGLES)),
    ),
    grid=True,
)
LABELS = (
    *(np.arange(HUES) / HUES,) * 3,
    SCALES,
    np.arange(len(SHAPES)),
    np.linspace(-30.0, 30.0, len(ANGLES)),
)
COLOURS = np.array([colorsys.hsv_to_rgb(hue / HUES, 1.0, 1.0) for hue in range(HUES)])
CHUNK = 4800  # images read at a time: 59 MB


@checked
def shapes3d() -> FactorDataset:
    """The 480,000 images of 3D Shapes, 64×64 in colour: the full grid of six factors.

    Floor hue 10, wall hue 10, object hue 10, scale 8, shape 4 (cube, cylinder, sphere, capsule) and orientation 15. The
    hues are tenths of the colour circle, the scales run from 0.75 to 1.25 and the orientations from −30 to 30 degrees.

    If the data folder has ``shapes3d/3dshapes.h5``, these are the original images, and ``arguments["origin"]`` is
    "original"; the first call converts them into a file of 5.9 GB that later calls map. Otherwise they are *rendered*
    ("rendered"): the room was rebuilt from real images, and images are composed on demand, on the dataset's device,
    from 14 MB of what its 480 geometries cover and reflect. ``benchmarks/fit_shapes3d.py`` measures how close they
    are.

    References:
        Burgess and Kim, *3D Shapes dataset*, https://github.com/google-deepmind/3d-shapes, 2018.

    Example:
        >>> rooms = shapes3d()  # doctest: +SKIP
        >>> rooms.x(torch.tensor([[0, 1, 2]])).shape  # doctest: +SKIP
        torch.Size([1, 3, 3, 64, 64])
    """
    file = data_folder() / "shapes3d" / FILENAME
    if file.exists():
        return FactorDataset(
            name="shapes3d",
            arguments={"origin": "original"},
            space=SPACE,
            shape=(3, SIDE, SIDE),
            tensors={"x": _original(file)},
            render=stored,
        )
    return FactorDataset(
        name="shapes3d",
        arguments={"origin": "rendered"},
        space=SPACE,
        shape=(3, SIDE, SIDE),
        tensors={
            "planes": _planes(),
            "colours": torch.from_numpy(COLOURS).to(torch.float32),
            "sky": torch.from_numpy(SKY).to(torch.float32),
        },
        render=composed,
    )


def composed(tensors: Mapping[str, Tensor], index: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape 3 h w"]:
    r"""Composes images from what each material m covers, :math:`w_m`, what it reflects, and the sky behind.

    .. math:: x = \Big(1 - \sum_m w_m\Big)\, c_\mathrm{sky} + \sum_m \min(s_m c_m + g_m, w_m)

    where :math:`s_m` is the shade and :math:`g_m` the gloss, both multiplied by the cover: no part of a pixel is
    brighter than white.

    Arguments:
        tensors: `planes` (a row for each geometry, as `_shapes3d_scene.packed` returns), `colours` by hue, and `sky`.
        index: Rows of the grid.

    Example:
        >>> planes = torch.zeros(480, 7, 1, 1, dtype=torch.uint8)
        >>> planes[:, 0], planes[:, 1] = 255, 90  # floor everywhere, at half its brightness
        >>> tensors = {"planes": planes, "colours": torch.eye(3)[[0] * 9 + [2]], "sky": torch.ones(3)}
        >>> composed(tensors, torch.tensor(479_999)).flatten()
        tensor([0.0000, 0.0000, 0.5000])
    """
    colours, sky = tensors["colours"], tensors["sky"]
    if index.is_cuda and find_spec("triton") is not None:
        from axiswise.data._triton_shapes3d import compose

        return compose(tensors["planes"], colours, sky, index, SHADE_UNIT)
    hues, geometry = index // GEOMETRIES, index % GEOMETRIES
    floor, wall, thing = (colours[hue][..., None, None] for hue in (hues // HUES**2, hues // HUES % HUES, hues % HUES))
    units = torch.where(torch.arange(7, device=sky.device) % 2 == 1, SHADE_UNIT, 255.0)  # every second plane is a shade
    layers = tensors["planes"][geometry] / units[:, None, None]
    floor_cover, floor_shade, wall_cover, wall_shade, cover, shade, gloss = layers.split(1, -3)
    # In place wherever possible: memory traffic dominates the cost.
    x = (1 - floor_cover - wall_cover - cover).clamp_min_(0) * sky[:, None, None]
    x += torch.minimum(floor_shade * floor, floor_cover)
    x += torch.minimum(wall_shade * wall, wall_cover)
    x += torch.minimum((shade * thing).add_(gloss), cover)
    return x.clamp_max_(1)


def _planes() -> Shaped[Tensor, "geometry plane h w"]:
    """Reads the planes of all geometries, after casting them if they are missing or incomplete."""
    path = cache_folder() / f"shapes3d-{version(Scene())}.npy"
    expected = (GEOMETRIES, len(PLANES), SIDE, SIDE)
    if not _is_whole(path, expected):
        scene, tables = Scene(), fitted_tables()
        with replacing(path) as file:
            _write_header(file, expected)
            for geometry in range(GEOMETRIES):
                scale, rest = divmod(geometry, len(SHAPES) * len(ANGLES))
                shape, orientation = divmod(rest, len(ANGLES))
                file.write(packed(planes(scene, tables, scale, shape, orientation)).tobytes())
    return torch.from_numpy(np.load(path, allow_pickle=False))


def _original(file: Path) -> Shaped[Tensor, "n 3 h w"]:
    """Maps the original images, channels first, after converting them if necessary."""
    stamp = file.stat()
    path = cache_folder() / f"shapes3d-original-{stamp.st_size}-{stamp.st_mtime_ns}.npy"
    if not _is_whole(path, (SPACE.size, 3, SIDE, SIDE)):
        _convert(file, path)
    return torch.from_numpy(np.load(path, mmap_mode="c", allow_pickle=False))  # "c": PyTorch needs writable memory


def _convert(file: Path, path: Path) -> None:
    try:
        import h5py  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise AxiswiseError(
            f"Reading {file} needs h5py. Got {error}. Install it with `pip install 'axiswise[shapes3d]'`, or move the "
            "file away to render the images."
        ) from error
    try:
        archive = h5py.File(file, "r")
    except OSError as error:
        raise AxiswiseError(f"{file} must be an HDF5 file. Got {error}. Fetch it again, or move it away.") from error
    with archive:
        images = _array(file, archive, "images", (SPACE.size, SIDE, SIDE, 3), np.dtype(np.uint8))
        labels = _array(file, archive, "labels", (SPACE.size, len(SPACE)), np.dtype(np.float64))
        for start in range(0, SPACE.size, CHUNK):
            rows = torch.arange(start, min(start + CHUNK, SPACE.size))
            levels = SPACE.levels(rows).numpy()
            expected = np.stack([values[levels[:, i]] for i, values in enumerate(LABELS)], -1)
            if not np.allclose(labels[start : start + CHUNK], expected, rtol=0, atol=1e-6):
                raise AxiswiseError(f"{file} must list the grid in order. Got other labels from row {start} on.")
        with replacing(path) as stream:
            _write_header(stream, (SPACE.size, 3, SIDE, SIDE))
            for start in range(0, SPACE.size, CHUNK):
                stream.write(np.ascontiguousarray(images[start : start + CHUNK].transpose(0, 3, 1, 2)).data)


def _array(file: Path, archive: Any, key: str, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    if key not in archive:
        raise AxiswiseError(f"{file} must have the arrays `images` and `labels`. Got {sorted(archive)}.")
    found = archive[key]
    if tuple(found.shape) != shape or found.dtype != dtype:
        raise AxiswiseError(
            f"`{key}` of {file} must be {dtype} of shape {shape}. Got {found.dtype} of shape {tuple(found.shape)}."
        )
    return found


def _write_header(file: Any, shape: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})


def _is_whole(path: Path, shape: tuple[int, ...]) -> bool:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return False
    return found.shape == shape and found.dtype == np.uint8
