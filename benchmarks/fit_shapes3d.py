"""How close the rendered 3D Shapes come to real images, and how the renderer was fitted to them.

    AXISWISE_DATA=FOLDER python benchmarks/fit_shapes3d.py            # measure, half a minute
    AXISWISE_DATA=FOLDER python benchmarks/fit_shapes3d.py --light    # fit light and patterns again, then measure
    AXISWISE_DATA=FOLDER python benchmarks/fit_shapes3d.py --sizes    # search for better sizes, and print them
    AXISWISE_DATA=FOLDER python benchmarks/fit_shapes3d.py --picture docs/shapes3d.png    # real, then rendered

FOLDER/shapes3d/real_samples.npz holds real images with their hues, some with their row in the dataset.

The images of one source were read off a notebook's display, which lost the first row, drew a row in the middle twice
and covered the first and last column with copies of their neighbours. Pairs of equal rooms show it: all other pixels
are equal to the byte. `undisplayed` puts the rows back; the errors are printed for the images as they are stored and
for these.
"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
import torch
from safetensors.numpy import save

from axiswise.data import data_folder
from axiswise.data._shapes3d_scene import (
    ANGLES,
    BACK,
    FLOOR,
    GEOMETRIES,
    OBJECT,
    SAMPLES,
    SHADOW,
    SHAPES,
    SIDE,
    SKY,
    TABLES,
    WALLS,
    Scene,
    cast_rays,
    fitted_tables,
    object_features,
    packed,
    planes,
    room_features,
    surface,
    texture_cells,
)
from axiswise.data.shapes3d import COLOURS, SPACE, composed, shapes3d
from axiswise.records import write_bytes
from axiswise.report import contact_sheet

CHANNEL_MEANS = (0.502585, 0.578760, 0.603450)  # of the original, all 480,000 images
KNOTS = {"floor": (97, 97), "wall": (25, 97)}
WHITE = 0.985  # brighter values may have been clipped


class Samples(NamedTuple):
    """Real images (n, 64, 64, 3) in 0…1, their hues (n, 3), and their row in the dataset or −1."""

    images: np.ndarray
    hues: np.ndarray
    rows: np.ndarray


def samples(undo: bool = True) -> Samples:
    """Reads the real images, with the display's changes undone or as they are stored."""
    with np.load(data_folder() / "shapes3d" / "real_samples.npz", allow_pickle=False) as file:
        images = np.stack([undisplayed(image) for image in file["images"]]) if undo else file["images"]
        names = ("floor_hue_idx", "wall_hue_idx", "object_hue_idx_inferred")
        return Samples(images / 255, np.stack([file[name] for name in names], -1), file["index"])


def undisplayed(image: np.ndarray) -> np.ndarray:
    """Puts a row that a display lost at the top back, by removing the one it drew twice."""
    if not copied_columns(image):
        return image
    repeated = np.flatnonzero((image[1:] == image[:-1]).all((1, 2))) + 1
    repeated = repeated[(repeated > 20) & (repeated < 60)]  # above, all is sky
    return np.concatenate([image[:1], np.delete(image, repeated[0], 0)]) if len(repeated) else image


def copied_columns(image: np.ndarray) -> bool:
    """Whether a display covered the first and last column."""
    return bool((image[:, 0] == image[:, 1]).all() and (image[:, -1] == image[:, -2]).all())


def best_matches(data: Samples, buffers: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    """Searches the 480 geometries of each image at its hues; gives the mean absolute error and the geometry."""
    tensors = {"planes": buffers, "colours": torch.tensor(COLOURS).float(), "sky": torch.tensor(SKY).float()}
    errors, found = [], []
    for image, hues in zip(data.images, data.hues, strict=True):
        first = int(hues @ [100, 10, 1]) * GEOMETRIES
        target = torch.tensor(image).float().permute(2, 0, 1)
        rendered = torch.cat([composed(tensors, rows) for rows in torch.arange(first, first + GEOMETRIES).split(60)])
        error = (rendered - target).abs().mean((1, 2, 3))
        errors.append(float(error.min()))
        found.append(int(error.argmin()))
    return np.array(errors), np.array(found)


def levels(geometry: int) -> tuple[int, int, int]:
    """Scale, shape and orientation of a geometry."""
    scale, rest = divmod(geometry, len(SHAPES) * len(ANGLES))
    return scale, *divmod(rest, len(ANGLES))


def brightness(pixels: np.ndarray, colour: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shade and gloss of pixels of a saturated colour, and where the shade is known: elsewhere it was clipped."""
    _, middle, highest = np.argsort(colour)
    gloss = pixels.min(-1)
    clipped = pixels[:, highest] > WHITE
    shade = pixels[:, highest] - gloss
    if colour[middle] <= 0.15 or colour[middle] == 1:
        return shade, gloss, ~clipped
    other = (pixels[:, middle] - gloss) / colour[middle]
    return np.where(clipped, other, shade), gloss, ~clipped | (pixels[:, middle] < WHITE)


def fit_light(scene: Scene, data: Samples, geometries: np.ndarray) -> dict[str, np.ndarray]:
    """Fits the tables of `shapes3d_scene` by least squares to pixels that one material covers whole."""
    middle = SAMPLES // 2
    rows: dict[tuple[int, int], list[tuple[np.ndarray, ...]]] = {}
    for image, hues, geometry in zip(data.images, data.hues, geometries, strict=True):
        scale, shape, orientation = levels(int(geometry))
        rays = cast_rays(scene, scale, shape, orientation)
        tiled = rays.material.reshape(SIDE, SAMPLES, SIDE, SAMPLES)
        centre = np.arange(len(rays.material)).reshape(tiled.shape)[:, middle, :, middle].ravel()
        whole = (tiled == tiled[:, :1, :, :1]).all((1, 3))
        whole[:, [0, -1]] &= not copied_columns(image)
        for material in (FLOOR, SHADOW, *WALLS, OBJECT):
            at = whole.ravel() & (rays.material[centre] == material)
            colour = COLOURS[hues[0 if material in (FLOOR, SHADOW) else 2 if material == OBJECT else 1]]
            shade, gloss, known = brightness(image.reshape(-1, 3)[at], colour)
            point, normal = rays.point[centre[at]], rays.normal[centre[at]]
            angle = ANGLES[orientation]
            if material == OBJECT:
                features = object_features(scene, point, normal, angle)
            else:
                features = room_features(scene, material, point, angle)
            along, across = surface(scene, material, point)
            key = (material, shape if material == OBJECT else 0)
            rows.setdefault(key, []).append((features, shade, gloss, known, along, across))
    pooled = {key: [np.concatenate(parts) for parts in zip(*value, strict=True)] for key, value in rows.items()}
    light = np.zeros((SHADOW, 24))
    tables = {"floor texture": np.zeros(KNOTS["floor"]), "wall texture": np.zeros((3, *KNOTS["wall"]))}
    for material in (FLOOR, SHADOW, *WALLS):
        features, shade, _, known, along, across = pooled[material, 0]
        texture = np.zeros(KNOTS["wall" if material in WALLS else "floor"])
        knots = None if material == SHADOW else texture.shape
        weights, pattern = smooth_and_pattern(features[known], shade[known], along[known], across[known], knots)
        light[material - FLOOR, : features.shape[-1]] = weights
        if material == FLOOR:
            tables["floor texture"][:] = pattern
        elif material != SHADOW:
            tables["wall texture"][material - BACK] = pattern
    tables["room light"] = light
    for name in ("shade", "gloss"):
        fitted = []
        for shape in range(len(SHAPES)):
            features, shade, gloss, known, _, _ = pooled[OBJECT, shape]
            kept = known if name == "shade" else np.full(len(known), True)
            fitted.append(robust(features[kept], (shade if name == "shade" else gloss)[kept]))
        tables[f"object {name}"] = np.stack(fitted)
    return tables


def robust(features: np.ndarray, values: np.ndarray, ridge: float = 0.1) -> np.ndarray:
    """Least absolute deviations, by reweighting: edges and clipped values must not pull."""
    importance = np.ones(len(values))
    weights = np.zeros(features.shape[-1])
    for _ in range(10):
        gram = features.T @ (importance[:, None] * features) + ridge * np.eye(len(weights))
        weights = np.linalg.solve(gram, features.T @ (importance * values))
        importance = 0.01 / np.abs(features @ weights - values).clip(0.01)
    return weights


def smooth_and_pattern(features, values, along, across, knots):
    """Fits smooth light first, then the pattern to what is left of it, drawn to zero where there are few pixels."""
    weights = robust(features, values)
    if knots is None:
        return weights, 0.0
    left = (values - features @ weights).clip(-0.2, 0.2)
    cells, parts = texture_cells(along, across, knots)
    rows = np.tile(np.arange(len(left)), 4)
    design = scipy.sparse.csr_matrix((parts.ravel(), (rows, cells.ravel())), (len(left), knots[0] * knots[1]))
    gram = design.T @ design + 0.5 * scipy.sparse.eye(knots[0] * knots[1])
    return weights, scipy.sparse.linalg.spsolve(gram.tocsc(), design.T @ left).reshape(knots)


def held_out(data: Samples, geometries: np.ndarray, folds: int = 3) -> np.ndarray:
    """Errors at the geometries found, of images that the light was not fitted to; the sizes were, to all of them."""
    errors = np.zeros(len(data.images))
    fold = np.arange(len(errors)) % folds
    for kept in range(folds):
        others = fold != kept
        tables = fit_light(Scene(), Samples(*(part[others] for part in data)), geometries[others])
        for i in map(int, np.flatnonzero(~others)):
            errors[i] = error_of(Scene(), tables, data, i, int(geometries[i]))
    return errors


def error_of(scene: Scene, tables: Mapping[str, np.ndarray], data: Samples, i: int, geometry: int) -> float:
    """Mean absolute error of one image at one geometry."""
    buffer = torch.tensor(packed(planes(scene, tables, *levels(geometry))))
    tensors = {"planes": buffer.expand(GEOMETRIES, -1, -1, -1), "colours": torch.tensor(COLOURS).float()}
    row = torch.tensor(int(data.hues[i] @ [100, 10, 1]) * GEOMETRIES)
    x = composed({**tensors, "sky": torch.tensor(SKY).float()}, row)
    return float(np.abs(x.permute(1, 2, 0).numpy() - data.images[i]).mean())


def fit_sizes(scene: Scene, data: Samples, geometries: np.ndarray) -> Scene:
    """Searches the sizes one at a time for the least mean absolute error at the geometries found."""
    tables = fitted_tables()

    def error(candidate: Scene, only: str) -> float:
        chosen = [i for i, found in enumerate(geometries) if not only or SHAPES[levels(int(found))[1]] == only]
        chosen = chosen if only else chosen[::3]
        return sum(error_of(candidate, tables, data, i, int(geometries[i])) for i in chosen) / max(len(chosen), 1)

    for step in (0.03, 0.01, 0.004):
        for name, value in asdict(scene).items():
            only = next((shape for shape in SHAPES if name.startswith(shape)), "")
            values = [value * (1 + k * step) for k in (-2, -1, 0, 1, 2)] if name != "light" else light_grid(value, step)
            candidates = [replace(scene, **{name: candidate}) for candidate in values]
            scores = [error(candidate, only) for candidate in candidates]
            scene = candidates[int(np.argmin(scores))]
            print(f"{name}: {getattr(scene, name)} ({min(scores):.5f})", flush=True)
    return scene


def light_grid(light, step):
    """Neighbours of the light's place: aside, behind, and nearer or further on the same line."""
    x, y, z = light
    aside = 30 * step
    moved = [(x + a, y + b, z) for a in (-aside, 0, aside) for b in (-aside, 0, aside)]
    return moved + [(k * x, k * y, k * z) for k in (0.8, 1.25, 1.6)]


def report(data: Samples, buffers: torch.Tensor, title: str) -> np.ndarray:
    """Prints the errors of the best matches, with bootstrap intervals."""
    errors, found = best_matches(data, buffers)
    drawn = errors[np.random.default_rng(0).integers(0, len(errors), (2000, len(errors)))]
    print(f"{title}: {len(errors)} images")
    for name, share in (("median", 0.5), ("95th percentile", 0.95)):
        low, high = np.quantile(np.quantile(drawn, share, axis=1), (0.025, 0.975))
        print(f"  {name} {np.quantile(errors, share):.4f} (95 % interval {low:.4f} … {high:.4f})")
    for i in np.flatnonzero(data.rows >= 0):
        true = tuple(SPACE.levels(torch.tensor(data.rows[i]))[3:].tolist())
        print(f"  row {data.rows[i]}: matched at {levels(int(found[i]))}, labelled {true}, error {errors[i]:.4f}")
    return found


def main() -> None:
    """Measures, and fits where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--light", action="store_true", help="fit light and patterns, and write them into the package")
    parser.add_argument("--sizes", action="store_true", help="search for better sizes, and print them")
    parser.add_argument("--picture", type=Path, help="draw every fifth real image before its match, into this PNG")
    arguments = parser.parse_args()
    data = samples()
    if arguments.light or arguments.sizes:
        _, found = best_matches(data, shapes3d().tensors["planes"])
        if arguments.sizes:
            print(fit_sizes(Scene(), data, found))
        if arguments.light:
            tables = fit_light(Scene(), data, found)
            write_bytes(TABLES, save({name: table.astype(np.float16) for name, table in tables.items()}))
            fitted_tables.cache_clear()
    rooms = shapes3d()
    buffers = rooms.tensors["planes"]
    found = report(data, buffers, "Display undone")
    if arguments.picture:
        chosen = np.arange(0, len(found), 5)
        rows = torch.from_numpy(data.hues[chosen] @ [100, 10, 1] * GEOMETRIES + found[chosen])
        real = data.images[chosen].transpose(0, 3, 1, 2)
        contact_sheet(np.stack((real, rooms.x(rows).numpy()), 1).reshape(-1, *rooms.shape), arguments.picture)
    apart = held_out(data, found)
    middle, high = np.quantile(apart, (0.5, 0.95))
    print(f"  light fitted to other images, in 3 folds: median {middle:.4f}, 95th percentile {high:.4f}")
    report(samples(undo=False), buffers, "As stored")
    total = torch.zeros(3, dtype=torch.float64)
    # Each material has a hue of its own, so ten rows in which all three agree have the mean of all thousand.
    for hue in range(10):
        for rows in (torch.arange(GEOMETRIES) + hue * 111 * GEOMETRIES).split(60):
            total += rooms.x(rows).double().mean((2, 3)).sum(0)
    means = total / (10 * GEOMETRIES)
    print("Channel means", [round(float(mean), 4) for mean in means], "original", CHANNEL_MEANS)
    print("  largest difference", round(float((means - torch.tensor(CHANNEL_MEANS)).abs().max()), 4))


if __name__ == "__main__":
    main()
