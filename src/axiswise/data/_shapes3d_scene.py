"""The room of 3D Shapes, cast ray by ray: what each pixel shows and how bright it is, without the three hues."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from safetensors.numpy import load

SIDE = 64
SCALES = np.linspace(0.75, 1.25, 8)
SHAPES = ("cube", "cylinder", "sphere", "capsule")
ANGLES = np.deg2rad(np.linspace(30.0, -30.0, 15))  # of the camera about the object; level 0 looks towards the right
GEOMETRIES = len(SCALES) * len(SHAPES) * len(ANGLES)
SKY = np.array([153, 226, 249]) / 255
CAMERA_DISTANCE = 10.0  # from the axis of the object: the unit of length
REACH = 4.5  # no object, nor its shadow, is further from the axis
SAMPLES = 3  # rays across a pixel, in both directions
PLANES = ("floor", "floor shade", "wall", "wall shade", "object", "object shade", "object gloss")
SHADE_UNIT = 180.0  # shades reach 1.4, so that 255 means 1.417
SKY_MATERIAL, FLOOR, BACK, LEFT, RIGHT, SHADOW, OBJECT = range(7)
WALLS = (BACK, LEFT, RIGHT)
TABLES = Path(__file__).with_name("shapes3d.safetensors")


@final
@dataclass(frozen=True)
class Scene:
    """Sizes of the room, the objects at scale 1 and the light, in tenths of the camera's distance from the object.

    The object stands on the floor at the origin, the room's corners are square, and the camera looks horizontally at
    the axis of the object. The values were fitted to real images; ``benchmarks/fit_shapes3d.py`` does it.

    Arguments:
        focal_length: Distance of the image plane, in halves of the image's width.
        camera_height: Height of the camera above the floor.
        wall_distance: Distance of the back, left and right walls from the origin.
        wall_height: Height of the walls.
        light: Where the light that casts the shadow is.
        cube: Half the side of the cube.
        cylinder_radius: Radius of the cylinder.
        cylinder_height: Height of the cylinder.
        sphere: Radius of the sphere.
        capsule_radius: Radius of the capsule.
        capsule_length: Distance between the centres of its two half spheres.
    """

    focal_length: float = 2.1712
    camera_height: float = 2.9205
    wall_distance: float = 13.595
    wall_height: float = 7.7707
    light: tuple[float, float, float] = (-4.5338, 2.157, 24.72)
    cube: float = 1.3825
    cylinder_radius: float = 1.4867
    cylinder_height: float = 2.9272
    sphere: float = 1.6655
    capsule_radius: float = 1.2805
    capsule_length: float = 2.5227


class RayHits(NamedTuple):
    """What each ray hits first: the material, the point, and the outward normal of the object (zero elsewhere)."""

    material: np.ndarray
    point: np.ndarray
    normal: np.ndarray


class Shading(NamedTuple):
    """Brightness of what each ray hits: a factor of its colour, and the white that is added."""

    shade: np.ndarray
    gloss: np.ndarray


def cast_rays(scene: Scene, scale: int, shape: int | None, orientation: int, samples: int = SAMPLES) -> RayHits:
    """Casts the rays of one image.

    Arguments:
        scene: Sizes.
        scale: Level of the factor.
        shape: Level of the factor, or None for the empty room.
        orientation: Level of the factor.
        samples: Rays across a pixel.

    Example:
        >>> whole = cast_rays(Scene(), scale=0, shape=0, orientation=7, samples=1)
        >>> image = whole.material.reshape(64, 64)
        >>> [int(image[row, 32]) for row in (0, 30, 45, 63)] == [SKY_MATERIAL, BACK, OBJECT, FLOOR]
        True
    """
    origin, direction = _rays(scene, ANGLES[orientation], samples)
    material, point = _room(scene, origin, direction)
    normal = np.zeros_like(point)
    if shape is None:
        return RayHits(material, point, normal)
    size = SCALES[scale]
    # Only rays near the object can hit it or its shadow: testing the others would take most of the time.
    near = np.flatnonzero(np.abs(_nearest_approach(origin, direction)) < REACH)
    distance, normals = _object(scene, shape, size, origin[None], direction[near])
    hit = near[np.isfinite(distance)]
    material[hit] = OBJECT
    normal[hit] = normals[np.isfinite(distance)]
    point[hit] = origin + distance[np.isfinite(distance), None] * direction[hit]
    floor = near[material[near] == FLOOR]
    floor = floor[np.abs(point[floor, :2]).max(-1) < REACH]
    start = point[floor] * [1.0, 1.0, 0.0] + [0.0, 0.0, 1e-4]  # just above the floor, below every object
    blocked, _ = _object(scene, shape, size, start, np.array(scene.light) - start)
    material[floor[blocked < 1.0]] = SHADOW
    return RayHits(material, point, normal)


def shading(
    scene: Scene, tables: Mapping[str, np.ndarray], rays: RayHits, shape: int | None, orientation: int
) -> Shading:
    """Brightness of what each ray hits; the sky has no shading.

    Arguments:
        scene: Sizes.
        tables: Coefficients, as `fitted_tables` returns.
        rays: What `cast_rays` returned.
        shape: Level of the factor, or None for the empty room.
        orientation: Level of the factor.
    """
    angle = ANGLES[orientation]
    shade, gloss = np.zeros(len(rays.material)), np.zeros(len(rays.material))
    for material in (FLOOR, SHADOW, *WALLS):
        on = rays.material == material
        shade[on] = room_shade(scene, tables, material, rays.point[on], angle)
    if shape is not None:
        on = rays.material == OBJECT
        features = object_features(scene, rays.point[on], rays.normal[on], angle)
        shade[on] = features @ tables["object shade"][shape]
        gloss[on] = features @ tables["object gloss"][shape]
    return Shading(shade.clip(0.0, 255 / SHADE_UNIT), gloss.clip(0.0, 1.0))


def room_shade(
    scene: Scene, tables: Mapping[str, np.ndarray], material: int, point: np.ndarray, angle: float
) -> np.ndarray:
    """Brightness of the floor, of its shadow or of a wall: smooth light, and the texture of the surface."""
    features = room_features(scene, material, point, angle)
    light = features @ tables["room light"][material - FLOOR, : features.shape[-1]]
    if material == SHADOW:
        return light
    texture = tables["floor texture"] if material == FLOOR else tables["wall texture"][WALLS.index(material)]
    cells, weights = texture_cells(*surface(scene, material, point), texture.shape)
    return light + (texture.ravel()[cells] * weights).sum(0)


def surface(scene: Scene, material: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates 0…1 along and across a surface."""
    width, height = scene.wall_distance, scene.wall_height
    along = (point[:, 1] if material in (LEFT, RIGHT) else point[:, 0]) / (2 * width) + 0.5
    across = point[:, 2] / height if material in WALLS else point[:, 1] / (2 * width) + 0.5
    return along, across


def room_features(scene: Scene, material: int, point: np.ndarray, angle: float) -> np.ndarray:
    """Features of the smooth light on a surface: powers of the position and, on walls, of the angle.

    The light is a linear combination of them. The lamp does not move, so the floor looks the same from everywhere. The
    walls are lit mostly from the camera, and their brightness turns with it.
    """
    along, across = (2 * coordinate - 1 for coordinate in surface(scene, material, point))
    if material in (FLOOR, SHADOW):
        return _powers(along, across, 5 if material == FLOOR else 1)
    still, turned = _powers(along, across, 3), _powers(along, across, 2)
    return np.concatenate([still, angle * turned, angle**2 * turned], -1)


def object_features(scene: Scene, point: np.ndarray, normal: np.ndarray, angle: float) -> np.ndarray:
    """Features of an object's brightness, a linear combination of them: its normal, in the room and to the camera."""
    cosine, sine = np.cos(angle), np.sin(angle)
    sideways, forward = normal[:, 0] * cosine - normal[:, 1] * sine, normal[:, 0] * sine + normal[:, 1] * cosine
    towards = np.array(scene.light) - point
    lit = (normal * towards).sum(-1) / np.linalg.norm(towards, axis=-1)
    # A lamp adds its gloss as soon as a surface turns towards it: hence the step.
    columns = [lit.clip(0), (lit > 0).astype(float), (lit > 0) * lit**2, (lit > 0) * sideways, (lit > 0) * forward]
    columns += [(-forward).clip(0), sideways, sideways**2, sideways**3, forward * sideways, forward**2, forward**3]
    columns += [normal[:, 2], normal[:, 2] ** 2, normal[:, 2] ** 3, normal[:, 2] * forward, normal[:, 2] * sideways]
    columns += [normal[:, 0], normal[:, 1], normal[:, 0] ** 2, normal[:, 0] * normal[:, 1], np.ones_like(lit)]
    return np.stack(columns, -1)


def texture_cells(along: np.ndarray, across: np.ndarray, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The four knots around each point of a unit square, as flat indices, and their bilinear weights.

    Example:
        >>> cells, weights = texture_cells(np.array([0.25]), np.array([1.0]), (3, 5))
        >>> cells[weights > 0].tolist()
        [11]
    """
    rows, columns = shape
    x, y = along.clip(0, 1) * (columns - 1), across.clip(0, 1) * (rows - 1)
    left, low = np.floor(x).clip(0, columns - 2).astype(int), np.floor(y).clip(0, rows - 2).astype(int)
    x, y = x - left, y - low
    first = low * columns + left
    cells = np.stack([first, first + 1, first + columns, first + columns + 1])
    return cells, np.stack([(1 - x) * (1 - y), x * (1 - y), (1 - x) * y, x * y])


def planes(
    scene: Scene,
    tables: Mapping[str, np.ndarray],
    scale: int,
    shape: int | None,
    orientation: int,
    samples: int = SAMPLES,
) -> np.ndarray:
    """Averages the rays of each pixel into the `PLANES` of an image: what each material covers and reflects.

    Arguments:
        scene: Sizes.
        tables: Coefficients, as `fitted_tables` returns.
        scale: Level of the factor.
        shape: Level of the factor, or None for the empty room.
        orientation: Level of the factor.
        samples: Rays across a pixel.

    Example:
        >>> image = planes(Scene(), fitted_tables(), scale=0, shape=2, orientation=0, samples=1)
        >>> image.shape, float(image[0, 63].min())
        ((7, 64, 64), 1.0)
    """
    rays = cast_rays(scene, scale, shape, orientation, samples)
    shade, gloss = shading(scene, tables, rays, shape, orientation)
    floor = (rays.material == FLOOR) | (rays.material == SHADOW)
    wall = np.isin(rays.material, WALLS)
    thing = rays.material == OBJECT
    layers = np.stack([floor, floor * shade, wall, wall * shade, thing, thing * shade, thing * gloss])
    return layers.reshape(len(PLANES), SIDE, samples, SIDE, samples).mean((2, 4))


def packed(layers: np.ndarray) -> np.ndarray:
    """Rounds planes to bytes; shades have a coarser unit, since they may exceed 1."""
    units = np.array([SHADE_UNIT if "shade" in name else 255.0 for name in PLANES])
    return np.round(layers * units[:, None, None]).clip(0, 255).astype(np.uint8)


@cache
def fitted_tables() -> Mapping[str, np.ndarray]:
    """The coefficients of light and texture that ship with the package.

    They were fitted to 63 images of 3D Shapes (DeepMind, Apache-2.0) by ``benchmarks/fit_shapes3d.py --light``.

    Example:
        >>> sorted(fitted_tables())
        ['floor texture', 'object gloss', 'object shade', 'room light', 'wall texture']
    """
    return {name: table.astype(np.float64) for name, table in load(TABLES.read_bytes()).items()}


def version(scene: Scene) -> str:
    """What planes depend on, as a short hash: the sizes, the tables and this file."""
    digest = sha256(json.dumps(asdict(scene)).encode())
    digest.update(TABLES.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:16]


def _rays(scene: Scene, angle: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    across = (np.arange(SIDE * samples) + 0.5) / (SIDE * samples) * 2 - 1
    x, y = np.meshgrid(across, -across)
    cosine, sine = np.cos(angle), np.sin(angle)
    right, forward = np.array([cosine, -sine, 0.0]), np.array([sine, cosine, 0.0])
    origin = -CAMERA_DISTANCE * forward + [0.0, 0.0, scene.camera_height]
    direction = scene.focal_length * forward + x.reshape(-1, 1) * right + y.reshape(-1, 1) * np.array([0.0, 0.0, 1.0])
    return origin, direction


def _nearest_approach(origin: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Horizontal distance between each ray's line and the axis of the object."""
    cross = origin[0] * direction[:, 1] - origin[1] * direction[:, 0]
    return cross / np.linalg.norm(direction[:, :2], axis=-1)


def _room(scene: Scene, origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore"):
        floor = np.where(direction[:, 2] < 0, -origin[2] / direction[:, 2], np.inf)
        back = np.where(direction[:, 1] > 0, (scene.wall_distance - origin[1]) / direction[:, 1], np.inf)
        left = np.where(direction[:, 0] < 0, (-scene.wall_distance - origin[0]) / direction[:, 0], np.inf)
        right = np.where(direction[:, 0] > 0, (scene.wall_distance - origin[0]) / direction[:, 0], np.inf)
    distances = np.stack([floor, back, left, right])
    material = distances.argmin(0) + FLOOR
    point = origin + distances.min(0)[:, None] * direction
    material[(material != FLOOR) & (point[:, 2] > scene.wall_height)] = SKY_MATERIAL
    return material, point


def _object(
    scene: Scene, shape: int, size: float, origin: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Distance along each ray, in its own length, to the first point of the object, and the normal there."""
    origin = np.broadcast_to(origin, direction.shape)
    if SHAPES[shape] == "cube":
        return _cube(scene.cube * size, origin, direction)
    if SHAPES[shape] == "sphere":
        return _sphere(scene.sphere * size, scene.sphere * size, origin, direction)
    if SHAPES[shape] == "cylinder":
        radius, height = scene.cylinder_radius * size, scene.cylinder_height * size
        parts = [_tube(radius, 0.0, height, origin, direction)]
        parts += [_disc(radius, level, facing, origin, direction) for level, facing in ((height, 1.0), (0.0, -1.0))]
        return _first(parts)
    radius, top = scene.capsule_radius * size, (scene.capsule_radius + scene.capsule_length) * size
    return _first(
        [
            _tube(radius, radius, top, origin, direction),
            _sphere(radius, radius, origin, direction),
            _sphere(radius, top, origin, direction),
        ]
    )


def _first(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    distances = np.stack([distance for distance, _ in parts])
    nearest = distances.argmin(0)
    every = np.arange(distances.shape[1])
    return distances[nearest, every], np.stack([normal for _, normal in parts])[nearest, every]


def _cube(half: float, origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        bounds = (np.array([[-half, -half, 0.0], [half, half, 2 * half]])[:, None] - origin) / direction
    enter, leave = bounds.min(0), bounds.max(0)
    axis, every = enter.argmax(-1), np.arange(len(direction))
    distance = enter.max(-1)
    normal = np.zeros_like(direction)
    normal[every, axis] = -np.sign(direction[every, axis])
    return np.where((distance <= leave.min(-1)) & (distance > 0), distance, np.inf), normal


def _sphere(radius: float, centre: float, origin: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offset = origin - [0.0, 0.0, centre]
    distance = _root((direction**2).sum(-1), (offset * direction).sum(-1), (offset**2).sum(-1) - radius**2)
    return distance, (offset + np.where(np.isfinite(distance), distance, 0.0)[:, None] * direction) / radius


def _tube(
    radius: float, low: float, high: float, origin: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    flat, start = direction[:, :2], origin[:, :2]
    distance = _root((flat**2).sum(-1), (start * flat).sum(-1), (start**2).sum(-1) - radius**2)
    point = origin + np.where(np.isfinite(distance), distance, 0.0)[:, None] * direction
    within = (point[:, 2] >= low) & (point[:, 2] <= high)
    return np.where(within, distance, np.inf), point / radius * [1.0, 1.0, 0.0]


def _disc(
    radius: float, level: float, facing: float, origin: np.ndarray, direction: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = (level - origin[:, 2]) / direction[:, 2]
        within = ((origin + distance[:, None] * direction)[:, :2] ** 2).sum(-1) < radius**2
    return np.where(within & (distance > 0), distance, np.inf), np.tile([0.0, 0.0, facing], (len(direction), 1))


def _root(square: np.ndarray, half: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """The smaller root of a quadratic equation where it is positive, infinity where there is none."""
    discriminant = half**2 - square * constant
    root = (-half - np.sqrt(discriminant.clip(0))) / square
    return np.where((discriminant > 0) & (root > 0), root, np.inf)


def _powers(x: np.ndarray, y: np.ndarray, degree: int) -> np.ndarray:
    """All products of powers up to a total degree, by multiplication: a general power is many times slower."""
    rows, columns = [np.ones_like(x)], [np.ones_like(y)]
    for _ in range(degree):
        rows.append(rows[-1] * x)
        columns.append(columns[-1] * y)
    return np.stack([rows[i] * columns[j] for i in range(degree + 1) for j in range(degree + 1 - i)], -1)
