import colorsys
import importlib
import importlib.util
import itertools
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from axiswise.data import Factor, FactorSpace, data_folder
from axiswise.data import _shapes3d_scene as scene_module
from axiswise.errors import AxiswiseError

MODULE = importlib.import_module("axiswise.data.shapes3d")  # as an attribute, `shapes3d` may be the function
SCENE = scene_module.Scene()
REAL = data_folder() / "shapes3d" / "real_samples.npz"
needs_real = pytest.mark.skipif(not REAL.exists(), reason=f"{REAL} is not there")
SMALL = FactorSpace(
    (
        Factor("floor_hue", 2),
        Factor("wall_hue", 1),
        Factor("object_hue", 2),
        Factor("scale", 3),
        Factor("shape", 1),
        Factor("orientation", 2),
    ),
    grid=True,
)


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXISWISE_DATA", str(tmp_path_factory.mktemp("data")))  # where no original is
        return MODULE.shapes3d()


def sweep(rooms, name, levels=(0, 5, 3, 4, 2, 7)):
    column = rooms.space.position(name)
    varied = torch.tensor(levels).repeat(rooms.space.sizes[column], 1)
    varied[:, column] = torch.arange(len(varied))
    return rooms.x(rooms.space.index(varied))


def test_is_the_published_grid(rooms):
    assert len(rooms) == 480_000
    assert rooms.shape == (3, 64, 64)
    assert rooms.space.names == ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    assert rooms.space.sizes == (10, 10, 10, 8, 4, 15)
    assert rooms.space.kinds == ("circular",) * 3 + ("discrete",) * 3
    assert rooms.space.grid
    assert rooms.identity == {"name": "shapes3d", "arguments": {"origin": "rendered"}}
    # The rows of three published labels.
    rows = rooms.space.index(torch.tensor([[7, 3, 0, 5, 2, 12], [3, 1, 4, 5, 2, 12], [0, 2, 5, 0, 0, 0]]))
    assert rows.tolist() == [350742, 151062, 12000]


def test_images_are_in_range_and_of_any_index_shape(rooms):
    x = rooms.x(rooms.sample(300, seed=1))
    assert x.dtype == torch.float32
    assert x.min() >= 0
    assert 0.99 < x.max() <= 1
    assert rooms.x(torch.zeros(2, 3, dtype=torch.int64)).shape == (2, 3, 3, 64, 64)
    assert sum(tensor.nbytes for tensor in rooms.tensors.values()) < 30e6


def test_channel_means_are_those_of_the_original(rooms):
    # A pixel is a sum of parts with one hue each: rows in which all three agree have the mean of the whole grid.
    total = torch.zeros(3, dtype=torch.float64)
    for hue in range(10):
        total += rooms.x(torch.arange(0, 480) + hue * 111 * 480).double().mean((2, 3)).sum(0)
    published = torch.tensor([0.502585, 0.578760, 0.603450], dtype=torch.float64)
    assert (total / 4800 - published).abs().max() < 0.01


def test_each_hue_colours_its_own_part(rooms):
    changed = {name: (sweep(rooms, name).std(0).sum(0) > 0.05) for name in ("floor_hue", "wall_hue", "object_hue")}
    assert changed["floor_hue"][60].all()  # the floor in front
    assert changed["wall_hue"][28, :8].all()
    assert changed["object_hue"][44, 32]
    assert not any(mask[:10].any() for mask in changed.values())  # the sky
    inside = changed["object_hue"] & changed["wall_hue"]
    assert inside.sum() < 0.05 * changed["object_hue"].sum() + 60  # edges only
    # At the bottom left the floor has its colour, brightened by one number for all hues and clipped at white.
    corner = sweep(rooms, "floor_hue")[:, :, 63, 0]
    shade = corner[7, 0] / 0.2  # of (0.2, 0, 1): the channel that cannot clip
    colours = torch.tensor([colorsys.hsv_to_rgb(hue / 10, 1, 1) for hue in range(10)])
    assert 1 < shade < 1.3
    torch.testing.assert_close(corner, (shade * colours).clamp_max(1), rtol=0, atol=1e-6)


def test_scale_shape_and_orientation_do_what_they_are_called(rooms):
    planes = rooms.tensors["planes"].reshape(8, 4, 15, 7, 64, 64)
    area = planes[:, :, :, 4].double().sum((-1, -2)) / 255
    assert (area.diff(dim=0) > 0).all()
    # Seen from far away, an image's area would grow with the square of the scale; near, faster.
    assert (area[-1] / area[0] > (1.25 / 0.75) ** 2).all()
    ball = planes[4, 2, :, 4].double() / 255
    assert (ball - ball[7]).abs().max() < 1e-9  # a ball looks the same from all sides
    mirrored = planes[:, :, :, 4].flip(2).flip(-1)
    assert torch.equal(mirrored, planes[:, :, :, 4])  # −30° is the mirror image of 30°, but for the light
    assert torch.equal(planes[:, :, :, 2].flip(2).flip(-1), planes[:, :, :, 2])  # and so is the room


def distance_field(shape, size, point):
    """Signed distances to the four objects, as textbooks give them."""
    x, y, z = point.T
    radial = np.hypot(x, y)

    def box(*extents):
        q = np.stack(extents, -1)
        return np.linalg.norm(q.clip(0), axis=-1) + q.max(-1).clip(None, 0)

    if shape == 0:
        half = SCENE.cube * size
        return box(abs(x) - half, abs(y) - half, abs(z - half) - half)
    if shape == 1:
        half = SCENE.cylinder_height * size / 2
        return box(radial - SCENE.cylinder_radius * size, abs(z - half) - half)
    if shape == 2:
        return np.linalg.norm(point - [0, 0, SCENE.sphere * size], axis=-1) - SCENE.sphere * size
    radius = SCENE.capsule_radius * size
    nearest = z.clip(radius, radius + SCENE.capsule_length * size)
    return np.hypot(radial, z - nearest) - radius


def march(shape, size, origin, direction, limit=60.0):
    """First point of an object along unit rays, by walking the distance that is free."""
    travelled = np.zeros(len(direction))
    for _ in range(400):
        travelled = travelled + distance_field(shape, size, origin + travelled[:, None] * direction).clip(0)
        travelled = travelled.clip(None, limit)
    return travelled


@pytest.mark.parametrize("shape", range(4))
def test_rays_meet_what_marching_along_them_meets(shape):
    scale, orientation = 6, 3
    size, angle = 0.75 + 6 / 14, np.deg2rad(30 - 60 * orientation / 14)
    rays = scene_module.cast_rays(SCENE, scale, shape, orientation, samples=1)
    forward = np.array([np.sin(angle), np.cos(angle), 0])
    origin = -10 * forward + [0, 0, SCENE.camera_height]
    rows, columns = np.divmod(np.arange(4096), 64)
    right = np.array([np.cos(angle), -np.sin(angle), 0])
    direction = SCENE.focal_length * forward + np.outer((columns - 31.5) / 32, right)
    direction[:, 2] = (31.5 - rows) / 32
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    travelled = march(shape, size, origin, direction)
    gap = distance_field(shape, size, origin + travelled[:, None] * direction)
    met = (gap < 1e-4) & (travelled < 59)
    hit = rays.material == scene_module.OBJECT
    assert met.sum() > 200
    assert np.array_equal(met, hit)
    np.testing.assert_allclose(
        rays.point[hit], (origin + travelled[:, None] * direction)[hit], rtol=0, atol=2e-3 if shape else 1e-6
    )
    step = 1e-5
    gradient = np.stack(
        [
            distance_field(shape, size, rays.point[hit] + step * axis)
            - distance_field(shape, size, rays.point[hit] - step * axis)
            for axis in np.eye(3)
        ],
        -1,
    ) / (2 * step)
    smooth = np.linalg.norm(gradient, axis=-1) > 0.999  # not on an edge
    assert smooth.mean() > 0.95
    np.testing.assert_allclose(rays.normal[hit][smooth], gradient[smooth], rtol=0, atol=1e-6)
    # Shadow: what the light does not reach, walking from the floor towards it.
    floor = np.isin(rays.material, (scene_module.FLOOR, scene_module.SHADOW)) & (np.abs(rays.point).max(-1) < 6)
    start = rays.point[floor] * [1, 1, 0] + [0, 0, 1e-4]
    towards = np.array(SCENE.light) - start
    towards /= np.linalg.norm(towards, axis=-1, keepdims=True)
    blocked = march(shape, size, start, towards, limit=20.0) < 19
    dark = rays.material[floor] == scene_module.SHADOW
    assert dark.sum() > 20
    assert (blocked == dark).mean() > 0.995  # a ray that touches an edge may go either way


def test_the_room_is_a_box_seen_through_a_pinhole():
    rays = scene_module.cast_rays(SCENE, 0, None, 2, samples=1)
    on = {material: rays.point[rays.material == material] for material in range(5)}
    np.testing.assert_allclose(on[scene_module.FLOOR][:, 2], 0, atol=1e-9)
    np.testing.assert_allclose(on[scene_module.BACK][:, 1], SCENE.wall_distance, atol=1e-9)
    np.testing.assert_allclose(on[scene_module.RIGHT][:, 0], SCENE.wall_distance, atol=1e-9)
    assert len(on[scene_module.LEFT]) == 0
    walls = np.concatenate([on[scene_module.BACK], on[scene_module.RIGHT]])
    assert walls[:, 2].min() >= -1e-9
    assert walls[:, 2].max() <= SCENE.wall_height
    # Each point, projected by a camera matrix, falls on its own pixel.
    angle = np.deg2rad(30 - 60 * 2 / 14)
    rotation = np.array([[np.cos(angle), -np.sin(angle), 0], [0, 0, 1], [np.sin(angle), np.cos(angle), 0]])
    camera = np.array([-10 * np.sin(angle), -10 * np.cos(angle), SCENE.camera_height])
    right, up, depth = rotation @ (rays.point - camera).T
    pixels = np.stack([31.5 - 32 * SCENE.focal_length * up / depth, 31.5 + 32 * SCENE.focal_length * right / depth])
    np.testing.assert_allclose(pixels, np.divmod(np.arange(4096), 64), atol=1e-6)


def test_composes_as_a_plain_loop_does():
    generator = np.random.default_rng(0)
    cover = generator.dirichlet(np.ones(4), (480, 2, 2))[..., :3]
    planes = np.zeros((480, 7, 2, 2))
    for k, plane in enumerate((0, 2, 4)):
        planes[:, plane] = cover[..., k] * 255
        planes[:, plane + 1] = generator.uniform(0, 255, (480, 2, 2))
    planes[:, 6] = generator.uniform(0, 60, (480, 2, 2))
    planes = planes.astype(np.uint8)
    colours, sky = generator.uniform(size=(10, 3)), generator.uniform(size=3)
    tensors = {
        "planes": torch.tensor(planes),
        "colours": torch.tensor(colours, dtype=torch.float32),
        "sky": torch.tensor(sky, dtype=torch.float32),
    }
    rows = torch.tensor([0, 123_456, 479_999, 12_000])
    x = MODULE.composed(tensors, rows)
    for row, image in zip(rows.tolist(), x, strict=True):
        floor, wall, thing, *rest = np.unravel_index(row, (10, 10, 10, 480))
        p = planes[rest[0]].astype(float)
        for i, j, c in itertools.product(range(2), range(2), range(3)):
            value = sky[c] * max(0, 1 - (p[0, i, j] + p[2, i, j] + p[4, i, j]) / 255)
            value += min(p[1, i, j] / 180 * colours[floor, c], p[0, i, j] / 255)
            value += min(p[3, i, j] / 180 * colours[wall, c], p[2, i, j] / 255)
            value += min(p[5, i, j] / 180 * colours[thing, c] + p[6, i, j] / 255, p[4, i, j] / 255)
            assert float(image[c, i, j]) == pytest.approx(min(value, 1), abs=1e-5)


def test_composes_under_vmap_and_tracing(rooms):
    rows = rooms.sample(6, seed=3).reshape(3, 2)
    x = rooms.x(rows)
    assert torch.equal(torch.func.vmap(lambda index: MODULE.composed(rooms.tensors, index))(rows), x)
    traced = make_fx(lambda index: MODULE.composed(rooms.tensors, index))(rows.flip(0))
    assert torch.equal(traced(rows), x)


@pytest.fixture(scope="module")
def fit():
    path = Path(__file__).parents[2] / "benchmarks" / "fit_shapes3d.py"
    spec = importlib.util.spec_from_file_location("fit_shapes3d", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_real
def test_labelled_images_are_matched_at_their_labels(rooms, fit):
    data = fit.samples()
    labelled = data.rows >= 0
    errors, found = fit.best_matches(fit.Samples(*(part[labelled] for part in data)), rooms.tensors["planes"])
    assert found.tolist() == (data.rows[labelled] % 480).tolist()
    assert errors.max() < 0.01


@needs_real
@pytest.mark.slow
@pytest.mark.parametrize("undo", [True, False])
def test_real_images_are_matched_closely(rooms, fit, undo):
    errors, _ = fit.best_matches(fit.samples(undo), rooms.tensors["planes"])
    assert np.median(errors) <= 0.02
    assert np.quantile(errors, 0.95) <= 0.05


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def quick(folders, monkeypatch):
    """Replaces the planes, which take long to cast, by flat ones."""
    calls = itertools.count()

    def flat(scene, tables, scale, shape, orientation):
        next(calls)
        return np.full((7, 64, 64), (scale * 60 + shape * 15 + orientation) / 480)

    monkeypatch.setattr(MODULE, "planes", flat)
    return calls


def test_planes_are_cast_once_in_the_order_of_the_grid(folders, quick):
    first = MODULE.shapes3d()
    assert next(quick) == 480
    assert torch.equal(MODULE.shapes3d().tensors["planes"], first.tensors["planes"])
    assert next(quick) == 481
    expected = torch.round(torch.arange(480) / 480 * 255).to(torch.uint8)
    assert (first.tensors["planes"][:, 0, 5, 5].int() - expected.int()).abs().max() <= 1
    assert [path.suffix for path in (folders / "cache").iterdir()] == [".npy"]


@pytest.mark.parametrize("damage", [lambda contents: contents[:-1], lambda contents: b"", lambda contents: b"x" * 300])
def test_a_damaged_cache_is_made_again(folders, quick, damage):
    MODULE.shapes3d()
    (cached,) = (folders / "cache").iterdir()
    whole = cached.read_bytes()
    cached.write_bytes(damage(whole))
    MODULE.shapes3d()
    assert cached.read_bytes() == whole


def test_an_interruption_leaves_no_cache(folders, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(MODULE, "planes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MODULE.shapes3d()
    assert list((folders / "cache").iterdir()) == []


class Archive(dict):
    """What is used of an open HDF5 file."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


def small_archive(**changes):
    rows = torch.arange(SMALL.size)
    levels = SMALL.levels(rows).numpy()
    values = (np.arange(10) / 10,) * 3 + (np.linspace(0.75, 1.25, 8), np.arange(4), np.linspace(-30, 30, 15))
    labels = np.stack([value[levels[:, i]] for i, value in enumerate(values)], -1)
    images = np.random.default_rng(0).integers(0, 256, (SMALL.size, 64, 64, 3), dtype=np.uint8)
    return Archive({"images": images, "labels": labels, **changes})


@pytest.fixture
def original(folders, monkeypatch):
    """Puts a file where the original is looked for, and a reader in the place of h5py."""
    monkeypatch.setattr(MODULE, "SPACE", SMALL)
    monkeypatch.setattr(MODULE, "CHUNK", 5)  # so that the last chunk is not full
    file = folders / "data" / "shapes3d" / "3dshapes.h5"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"in place of an HDF5 file")

    def put(archive):
        def opened(path, mode):
            assert (path, mode) == (file, "r")
            if isinstance(archive, Exception):
                raise archive
            return archive

        monkeypatch.setitem(sys.modules, "h5py", types.SimpleNamespace(File=opened))
        return folders / "cache"

    return put


def test_reads_the_original_where_it_is(original):
    archive = small_archive()
    cache = original(archive)
    rooms = MODULE.shapes3d()
    assert rooms.identity == {"name": "shapes3d", "arguments": {"origin": "original"}}
    expected = archive["images"].transpose(0, 3, 1, 2).astype(np.float32) / np.float32(255)
    assert np.array_equal(rooms.x(torch.arange(SMALL.size)).numpy(), expected)
    original(OSError("is not opened again"))
    assert torch.equal(MODULE.shapes3d().tensors["x"], rooms.tensors["x"])
    assert len(list(cache.iterdir())) == 1


def test_a_missing_h5py_is_named(original, monkeypatch):
    original(small_archive())
    monkeypatch.setitem(sys.modules, "h5py", None)  # as if not installed
    with pytest.raises(AxiswiseError, match=r"3dshapes.h5 needs h5py. Got .*Install it with `pip install"):
        MODULE.shapes3d()


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (OSError("file signature not found"), r"3dshapes.h5 must be an HDF5 file. Got file signature not found"),
        (Archive(labels=0, pictures=0), r"must have the arrays `images` and `labels`. Got \['labels', 'pictures'\]"),
        (
            small_archive(images=np.zeros((24, 64, 64, 1), np.uint8)),
            r"`images` of .*3dshapes.h5 must be uint8 of shape \(24, 64, 64, 3\). Got uint8 of shape \(24, 64, 64, 1\)",
        ),
        (
            small_archive(images=np.zeros((24, 64, 64, 3), np.float32)),
            r"must be uint8 of shape \(24, 64, 64, 3\). Got float32 of shape",
        ),
        (
            small_archive(labels=np.zeros((24, 5))),
            r"`labels` of .* must be float64 of shape \(24, 6\). Got float64 of shape \(24, 5\)",
        ),
        (
            small_archive(labels=small_archive()["labels"][[*range(22), 23, 22]]),
            "must list the grid in order. Got other labels from row 20 on",
        ),
    ],
)
def test_a_file_of_other_contents_is_refused(original, archive, message):
    cache = original(archive)
    with pytest.raises(AxiswiseError, match=message):
        MODULE.shapes3d()
    assert not cache.exists() or list(cache.iterdir()) == []


@pytest.mark.gpu
@pytest.mark.kernels
def test_the_kernel_composes_the_same_images(kernels):
    """Of odd planes, so that the last block is cut off, and colours and shades that no room has."""
    from axiswise.data._triton_shapes3d import compose

    draw = torch.Generator().manual_seed(0)
    planes = torch.randint(256, (480, 7, 37, 41), dtype=torch.uint8, generator=draw)
    colours, sky = torch.rand(10, 3, generator=draw), torch.rand(3, generator=draw)
    rows = torch.randint(480_000, (2, 3), generator=draw)
    expected = MODULE.composed({"planes": planes, "colours": colours, "sky": sky}, rows)
    found = compose(*(tensor.to(kernels) for tensor in (planes, colours, sky, rows)), MODULE.SHADE_UNIT)
    torch.testing.assert_close(found.cpu(), expected, rtol=0, atol=1e-6)


@pytest.mark.gpu
def test_composes_on_the_device_and_in_a_graph(rooms):
    moved = rooms.to("cuda")
    index = torch.zeros(16, dtype=torch.int64, device="cuda")
    moved.x(index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = moved.x(index)
    rows = rooms.sample(16, seed=2)
    index.copy_(rows)
    graph.replay()
    torch.testing.assert_close(x.cpu(), rooms.x(rows), rtol=0, atol=1e-6)
