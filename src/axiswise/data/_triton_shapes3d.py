"""A Triton kernel that composes Shapes3D images in one pass, where `shapes3d.composed` needs twenty.

This module needs Triton, which PyTorch's CUDA builds include; nothing imports it on a CPU.
"""

# Triton launches a kernel by subscripting it with its grid.
# pyright: reportIndexIssue=false

import torch
import triton  # pyright: ignore[reportMissingImports]
import triton.language as tl  # pyright: ignore[reportMissingImports]

from axiswise.shapes import Float, Int, Shaped, Tensor

BLOCK = 1024


@triton.jit
def _compose_kernel(
    planes, colours, sky, index, images, pixels, GEOMETRIES: tl.constexpr, HUES: tl.constexpr, UNIT: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    image = tl.program_id(0).to(tl.int64)
    pixel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = pixel < pixels
    row = tl.load(index + image)
    geometry, hues = row % GEOMETRIES, row // GEOMETRIES
    floor, wall, thing = hues // (HUES * HUES), hues // HUES % HUES, hues % HUES
    plane = planes + geometry * (7 * pixels) + pixel
    floor_cover = tl.load(plane, mask=inside, other=0).to(tl.float32) / 255.0
    floor_shade = tl.load(plane + pixels, mask=inside, other=0).to(tl.float32) / UNIT
    wall_cover = tl.load(plane + 2 * pixels, mask=inside, other=0).to(tl.float32) / 255.0
    wall_shade = tl.load(plane + 3 * pixels, mask=inside, other=0).to(tl.float32) / UNIT
    cover = tl.load(plane + 4 * pixels, mask=inside, other=0).to(tl.float32) / 255.0
    shade = tl.load(plane + 5 * pixels, mask=inside, other=0).to(tl.float32) / UNIT
    gloss = tl.load(plane + 6 * pixels, mask=inside, other=0).to(tl.float32) / 255.0
    left = tl.maximum(1.0 - floor_cover - wall_cover - cover, 0.0)
    for channel in tl.static_range(3):
        x = left * tl.load(sky + channel)
        x += tl.minimum(floor_shade * tl.load(colours + floor * 3 + channel), floor_cover)
        x += tl.minimum(wall_shade * tl.load(colours + wall * 3 + channel), wall_cover)
        x += tl.minimum(shade * tl.load(colours + thing * 3 + channel) + gloss, cover)
        tl.store(images + (image * 3 + channel) * pixels + pixel, tl.minimum(x, 1.0), mask=inside)


def compose(
    planes: Shaped[Tensor, "geometry plane h w"],
    colours: Float[Tensor, "hues 3"],
    sky: Float[Tensor, "3"],
    index: Int[Tensor, "*shape"],
    unit: float,
) -> Float[Tensor, "*shape 3 h w"]:
    """Images of the rows of the grid, as `shapes3d.composed` returns them."""
    geometries, _, height, width = planes.shape
    images = torch.empty(*index.shape, 3, height, width, dtype=torch.float32, device=planes.device)
    if index.numel():
        with torch.cuda.device_of(planes):  # a kernel begins on the current GPU
            _compose_kernel[(index.numel(), triton.cdiv(height * width, BLOCK))](
                planes, colours, sky, index.contiguous(), images, height * width,
                GEOMETRIES=geometries, HUES=len(colours), UNIT=unit, BLOCK=BLOCK,
            )  # fmt: skip
    return images
