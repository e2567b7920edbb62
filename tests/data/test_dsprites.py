import hashlib
import importlib
import io
import itertools
import os
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest
import scipy.stats
import torch

from axiswise.data import (
    Factor,
    FactorSpace,
    cache_folder,
    color_dsprites,
    dsprites,
    materialized,
    noisy_dsprites,
    subset,
)
from axiswise.data._sources import Address, Source, fetch
from axiswise.errors import AxiswiseError, DataUnavailable

MODULE = importlib.import_module("axiswise.data.dsprites")  # as an attribute, `dsprites` is the function
SMALL = FactorSpace((Factor("shape", 2), Factor("posX", 3)), grid=True)


@pytest.fixture(scope="module")
def sprites():
    try:
        return dsprites()
    except DataUnavailable as error:
        pytest.skip(str(error))


def test_is_the_published_grid(sprites):
    assert len(sprites) == 737_280
    assert sprites.shape == (1, 64, 64)
    assert sprites.space.names == ("shape", "scale", "orientation", "posX", "posY")
    assert sprites.space.sizes == (3, 6, 40, 32, 32)
    assert sprites.space.kinds == ("discrete", "discrete", "circular", "discrete", "discrete")
    assert sprites.space.grid
    assert sprites.identity == {"name": "dsprites", "arguments": {}}


def test_pixels_are_binary_and_have_the_published_mean(sprites):
    counts = sum(torch.bincount(part.flatten(), minlength=256) for part in sprites.tensors["bits"].split(1 << 16))
    ones = sum(int(count) * byte.bit_count() for byte, count in enumerate(counts))
    assert ones / (737_280 * 64 * 64) == pytest.approx(0.0424944, abs=5e-8)
    x = sprites.x(sprites.sample(1000))
    assert x.dtype == torch.float32
    assert x.unique().tolist() == [0.0, 1.0]
    assert sprites.x(torch.zeros(2, 3, dtype=torch.int64)).shape == (2, 3, 1, 64, 64)


def test_images_are_those_of_the_file(sprites):
    try:
        path = fetch(MODULE.SOURCE)
    except DataUnavailable as error:  # the converted images may outlive the file
        pytest.skip(str(error))
    with zipfile.ZipFile(path) as archive, archive.open("imgs.npy") as stream:
        assert np.lib.format.read_magic(stream) == (1, 0)
        np.lib.format.read_array_header_1_0(stream)
        first = np.frombuffer(stream.read(5000 * 64 * 64), np.uint8).reshape(5000, 1, 64, 64)
    assert np.array_equal(sprites.x(torch.arange(5000)).numpy(), first)


def test_factors_do_what_they_are_called(sprites):
    levels = torch.tensor([0, 5, 0, 16, 16])

    def sweep(name, size):
        varied = levels.repeat(size, 1)
        varied[:, sprites.space.position(name)] = torch.arange(size)
        return sprites.x(sprites.space.index(varied))[:, 0]

    across = torch.arange(64.0)
    columns = (sweep("posX", 32).sum(1) @ across) / sweep("posX", 32).sum((1, 2))
    rows = (sweep("posY", 32).sum(2) @ across) / sweep("posY", 32).sum((1, 2))
    assert (columns.diff() > 0).all()
    assert (rows.diff() > 0).all()
    assert (sweep("scale", 6).sum((1, 2)).diff() > 0).all()
    turned = sweep("orientation", 40)
    assert torch.equal(turned[0], turned[39])  # 0 and 2π


def test_the_second_load_is_instant(sprites):
    start = time.perf_counter()
    dsprites()
    assert time.perf_counter() - start < 1


def test_changes_of_it(sprites):
    hearts = subset(sprites, shape=2, scale=5, orientation=0)
    assert hearts.space.sizes == (32, 32)
    assert hearts.space.grid
    whole = materialized(hearts)
    row = sprites.space.index(torch.tensor([2, 5, 0, 3, 30]))
    assert torch.equal(whole.x(whole.space.index(torch.tensor([3, 30]))), sprites.x(row))
    train = sprites.split().train
    assert len(train) == 589_824
    assert torch.equal(train.factors(torch.tensor(77)), sprites.factors(train.rows[77]))


@pytest.mark.slow
def test_conversion_needs_less_than_a_gigabyte(sprites, tmp_path):
    try:
        fetch(MODULE.SOURCE)
    except DataUnavailable as error:
        pytest.skip(str(error))
    code = (
        "import resource, axiswise.data as d; d.dsprites(); print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    environment = {**os.environ, "AXISWISE_CACHE": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert int(ran.stdout) < 1_000_000  # kilobytes
    (converted,) = tmp_path.iterdir()
    assert converted.read_bytes() == (cache_folder() / converted.name).read_bytes()


def npz(images: np.ndarray, classes: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, imgs=images, latents_classes=classes)
    return file.getvalue()


def small_images() -> np.ndarray:
    return (np.arange(6 * 64 * 64).reshape(6, 64, 64) % 7 == 0).astype(np.uint8)


def small_classes() -> np.ndarray:
    return np.array([(0, *levels) for levels in itertools.product(range(2), range(3))])


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Replaces the published file by a small one."""
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(MODULE, "SPACE", SMALL)
    monkeypatch.setattr(MODULE, "CHUNK", 4)  # so that the last chunk is not full

    def publish(contents: bytes):
        (tmp_path / "small.npz").write_bytes(contents)
        url = (tmp_path / "small.npz").as_uri()
        sha256 = hashlib.sha256(contents).hexdigest()
        small = Source("dsprites", "small.npz", len(contents), sha256, "MIT", "A. Author, Small", (Address(url),))
        monkeypatch.setattr(MODULE, "SOURCE", small)
        return tmp_path / "cache"

    return publish


def test_converts_chunk_by_chunk(publish):
    cache = publish(npz(small_images(), small_classes()))
    x = dsprites().x(torch.arange(6))
    assert np.array_equal(x[:, 0].numpy(), small_images())
    (converted,) = cache.iterdir()
    assert np.load(converted, allow_pickle=False).shape == (6, 512)
    before = converted.stat().st_mtime_ns
    dsprites()
    assert converted.stat().st_mtime_ns == before


def test_the_cache_does_not_need_the_file(publish, tmp_path):
    publish(npz(small_images(), small_classes()))
    dsprites()
    (tmp_path / "data" / "dsprites" / "small.npz").unlink()
    (tmp_path / "small.npz").unlink()
    assert len(dsprites()) == 6


@pytest.mark.parametrize("damage", [lambda contents: contents[:-1], lambda contents: b"", lambda contents: b"x" * 300])
def test_a_damaged_cache_is_made_again(publish, damage):
    cache = publish(npz(small_images(), small_classes()))
    dsprites()
    (converted,) = cache.iterdir()
    whole = converted.read_bytes()
    converted.write_bytes(damage(whole))
    assert np.array_equal(dsprites().x(torch.arange(6))[:, 0].numpy(), small_images())
    assert converted.read_bytes() == whole


def test_an_interrupted_conversion_leaves_no_cache(publish, monkeypatch):
    cache = publish(npz(small_images(), small_classes()))
    pack, calls = np.packbits, itertools.count()

    def interrupted(images):
        if next(calls) == 1:
            raise KeyboardInterrupt
        return pack(images)

    monkeypatch.setattr(np, "packbits", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dsprites()
    assert list(cache.iterdir()) == []


def test_a_changed_file_has_a_cache_of_its_own(publish):
    publish(npz(small_images(), small_classes()))
    dsprites()
    cache = publish(npz(1 - small_images(), small_classes()))
    with pytest.raises(AxiswiseError, match="damaged or another version"):
        dsprites()
    (cache.parent / "data" / "dsprites" / "small.npz").unlink()
    assert np.array_equal(dsprites().x(torch.arange(6))[:, 0].numpy(), 1 - small_images())
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize(
    ("images", "classes", "message"),
    [
        (small_images(), small_classes()[::-1], "must list the grid in order. Got other labels from row 0 on."),
        (
            small_images(),
            small_classes()[[0, 1, 2, 3, 5, 4]],
            "must list the grid in order. Got other labels from row 4 on.",
        ),
        (3 * small_images(), small_classes(), "must contain binary images. Got a pixel of 3."),
        (
            small_images()[:5],
            small_classes(),
            r"`imgs` of .*small.npz must be numbers of shape \(6, 64, 64\) .* Got uint8 of shape \(5, 64, 64\)",
        ),
        (np.asfortranarray(small_images()), small_classes(), "Got uint8 of shape .* in Fortran order"),
    ],
)
def test_a_file_of_other_contents_is_refused(publish, images, classes, message):
    cache = publish(npz(images, classes))
    with pytest.raises(AxiswiseError, match=message):
        dsprites()
    assert not cache.exists() or list(cache.iterdir()) == []


def test_coloured_shapes_have_one_colour_each(publish):
    publish(npz(small_images(), small_classes()))
    dataset = color_dsprites(seed=3)
    assert dataset.shape == (3, 64, 64)
    assert dataset.space == SMALL
    assert dataset.identity == {"name": "color_dsprites", "arguments": {"seed": 3}}
    x, sprites = dataset.x(torch.arange(6)), dsprites().x(torch.arange(6))
    colours = x.amax((2, 3), keepdim=True)
    assert torch.equal(x, sprites * colours)
    assert len(colours.unique()) == 18


def test_noise_lies_on_the_background_only(publish):
    publish(npz(small_images(), small_classes()))
    dataset = noisy_dsprites(seed=3)
    assert dataset.shape == (3, 64, 64)
    assert dataset.identity == {"name": "noisy_dsprites", "arguments": {"seed": 3}}
    x = dataset.x(torch.arange(6))
    sprites = dsprites().x(torch.arange(6)).expand(-1, 3, -1, -1)
    assert (x[sprites == 1] == 1).all()
    background = x[sprites == 0]
    assert scipy.stats.kstest(background.numpy()[:20_000], "uniform").pvalue > 0.01
    assert len(background.unique()) > 0.9 * len(background)  # 24 bits: few of the 63,000 values occur twice


def test_colours_are_uniform():
    tensors = {
        "bits": torch.full((1, 8), 255, dtype=torch.uint8).expand(20_000, 8),
        "shifts": torch.arange(7, -1, -1, dtype=torch.uint8),
        "seed": torch.tensor(11),
    }
    colours = MODULE.coloured(tensors, torch.arange(20_000))[..., 0, 0]
    for channel in colours.T:
        assert scipy.stats.kstest(channel.numpy(), "uniform", args=(0.5, 0.5)).pvalue > 0.01
    # Independent channels correlate by 1/sqrt(n) = 0.007 at random: four of these are no accident.
    assert (torch.corrcoef(colours.T) - torch.eye(3)).abs().max() < 4 / 20_000**0.5


@pytest.mark.parametrize("variant", [color_dsprites, noisy_dsprites])
def test_a_row_is_always_the_same_image(publish, variant):
    publish(npz(small_images(), small_classes()))
    dataset = variant()
    whole = dataset.x(torch.arange(6))
    assert torch.equal(dataset.x(torch.tensor([[4, 0], [4, 2]])), whole[torch.tensor([[4, 0], [4, 2]])])
    assert torch.equal(dataset.x(torch.tensor(5)), whole[5])
    assert torch.equal(subset(dataset, shape=1).x(torch.arange(3)), whole[3:])  # by the row of the whole set
    assert not torch.equal(variant(seed=1).x(torch.arange(6)), whole)
    with pytest.raises(AxiswiseError, match=r"`seed` must lie in 0 … 2\^63 - 1. Got -1."):
        variant(seed=-1)


@pytest.mark.gpu
@pytest.mark.parametrize("variant", [color_dsprites, noisy_dsprites])
def test_variants_are_the_same_on_the_device_and_in_a_graph(publish, variant):
    publish(npz(small_images(), small_classes()))
    expected = variant().x(torch.arange(6))
    sprites = variant().to("cuda")
    index = torch.zeros(6, dtype=torch.int64, device="cuda")
    sprites.x(index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = sprites.x(index)
    index.copy_(torch.arange(6))
    graph.replay()
    assert torch.equal(x.cpu(), expected)


@pytest.mark.gpu
def test_unpacks_on_the_device_and_in_a_graph(publish):
    publish(npz(small_images(), small_classes()))
    sprites = dsprites().to("cuda")
    index = torch.zeros(6, dtype=torch.int64, device="cuda")
    sprites.x(index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = sprites.x(index)
    index.copy_(torch.arange(6))
    graph.replay()
    assert np.array_equal(x[:, 0].cpu().numpy(), small_images())
