"""Datasets of the user's own files: folders of images, CelebA, .npz."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, features

from axiswise.data import celeba, image_folder, npz
from axiswise.errors import AxiswiseError, DataUnavailable


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path / "data"))
    (tmp_path / "images").mkdir()
    return tmp_path / "images"


def cached(folder: Path) -> list[str]:
    cache = folder.parent / "cache"
    return sorted(path.suffix for path in cache.iterdir()) if cache.exists() else []


def picture(path: Path, size: tuple[int, int] = (40, 30), colour: str = "red", mode: str = "RGB") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)
    return path


def colours(dataset) -> list[list[int]]:
    return (255 * dataset.x(torch.arange(len(dataset)))[..., 0, 0]).round().int().tolist()


def test_every_image_in_the_order_of_names(folder):
    picture(folder / "b.png", colour="red")
    picture(folder / "a" / "z.bmp", colour="blue")
    picture(folder / "C.PNG", colour="white")
    picture(folder / ".hidden.png")
    picture(folder / ".thumbnails" / "x.png")
    (folder / "notes.txt").write_text("no image")
    dataset = image_folder(folder, size=8)
    assert dataset.shape == (3, 8, 8)
    assert dataset.tensors["x"].dtype == torch.uint8
    assert colours(dataset) == [[255, 255, 255], [0, 0, 255], [255, 0, 0]]
    assert len(dataset.space) == 0
    assert repr(dataset).startswith("FactorDataset(image_folder: 3 × (3, 8, 8); no factors")


def test_subfolders_are_a_factor(folder):
    for name, colour in (("dogs/1.png", "red"), ("cats/deep/2.png", "blue"), ("cats/1.png", "white")):
        picture(folder / name, colour=colour)
    dataset = image_folder(folder, size=8)
    assert (dataset.space.names, dataset.space.sizes) == (("folder",), (2,))
    assert dataset.factors(torch.arange(3)).tolist() == [[0], [0], [1]]
    assert dataset.identity["arguments"]["folders"] == ["cats", "dogs"]
    picture(folder / "in-between.png")  # in no subfolder: they no longer distinguish all images
    assert len(image_folder(folder, size=8).space) == 0


def test_one_subfolder_tells_nothing(folder):
    picture(folder / "only" / "1.png")
    assert len(image_folder(folder, size=8).space) == 0


@pytest.mark.parametrize("size", [(50, 20), (20, 50), (51, 20)])
def test_the_middle_is_kept(folder, size):
    width, height = size
    pixels = np.zeros((height, width, 3), np.uint8)
    left, top = round((width - 20) / 2), round((height - 20) / 2)
    middle = np.random.default_rng(0).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    pixels[top : top + 20, left : left + 20] = middle
    Image.fromarray(pixels).save(folder / "a.png")
    x = image_folder(folder, size=20).x(torch.tensor(0))
    assert np.array_equal((255 * x).round().byte().permute(1, 2, 0).numpy(), middle)


def test_resizing_averages(folder):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(folder / "a.png")
    x = image_folder(folder, size=2).x(torch.tensor(0)).numpy()
    # A triangle of twice the width of a pixel, cut at the border: written out, not Pillow's code. It rounds to bytes
    # after each of the two passes, half a level each, and its coefficients add a little.
    place = np.arange(64) + 0.5
    weights = np.stack([np.maximum(0, 1 - np.abs(place - centre) / 32) for centre in (16, 48)])
    weights /= weights.sum(1, keepdims=True)
    expected = np.einsum("ih,jw,hwc->cij", weights, weights, pixels)
    assert np.abs(255 * x - expected).max() < 1.05


def test_greyscale(folder):
    picture(folder / "a.png", colour="red")
    picture(folder / "b.png", colour="white", mode="L")
    dataset = image_folder(folder, size=8, channels=1)
    assert dataset.shape == (1, 8, 8)
    assert colours(dataset) == [[76], [255]]  # 0.299 · 255, the luma of ITU-R 601


def test_turned_and_transparent_images(folder):
    image = Image.new("RGB", (40, 30), "red")
    image.paste("blue", (0, 0, 40, 15))
    about = image.getexif()
    about[0x0112] = 3  # to be turned by half a turn
    image.save(folder / "a.png", exif=about)
    Image.new("RGBA", (30, 30), (200, 100, 50, 128)).save(folder / "b.png")
    Image.new("RGBA", (30, 30), (255, 255, 255, 0)).save(folder / "c.png")
    assert colours(image_folder(folder, size=8)) == [[255, 0, 0], [100, 50, 25], [0, 0, 0]]


def test_unreadable_among_many_is_named_and_nothing_is_kept(folder):
    for number in range(300):
        picture(folder / f"{number:03}.png", size=(8, 8))
    broken = folder / "271.png"
    broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(
        AxiswiseError, match=re.escape(f"{broken} cannot be read as an image") + ".* Repair or remove it"
    ):
        image_folder(folder, size=8)
    assert cached(folder) == []
    broken.unlink()
    assert len(image_folder(folder, size=8)) == 299


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda path: picture(path, mode="L", colour="white"),
            r"must have colours. Got greyscale \(mode L\); use channels=1",
        ),
        (lambda path: picture(path, mode="1", colour="white"), r"Got greyscale \(mode 1\)"),
        (
            lambda path: Image.new("I;16", (9, 9)).save(path),
            "must have eight bits per channel. Got the mode I;16; convert",
        ),
        (lambda path: path.write_text("no image"), "cannot be read as an image"),
    ],
    ids=["grey", "binary", "sixteen bits", "text"],
)
def test_an_image_that_does_not_fit_is_named(folder, make, message):
    picture(folder / "a.png")
    make(folder / "b.png")
    with pytest.raises(AxiswiseError, match=re.escape(str(folder / "b.png")) + " .*" + message):
        image_folder(folder, size=8)
    assert cached(folder) == []


def test_truncated_jpeg_is_refused(folder):
    assert features.check("jpg")
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    path = folder / "a.jpg"
    Image.fromarray(pixels).save(path)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(AxiswiseError, match=r"a.jpg cannot be read as an image .*truncated"):
        image_folder(folder)


def test_arguments_and_folders_are_checked(folder):
    with pytest.raises(AxiswiseError, match=r"Expected a folder of images at .*nowhere. There is none."):
        image_folder(folder / "nowhere")
    with pytest.raises(AxiswiseError, match=r"Expected images \(.bmp, .* below .*images. Got none"):
        image_folder(folder)
    picture(folder / "a.png")
    with pytest.raises(AxiswiseError, match=r"`size` must be a whole number from 1 to 16,384. Got 0."):
        image_folder(folder, size=0)
    with pytest.raises(AxiswiseError, match=r"`channels` must be 3 \(colour\) or 1 \(greyscale\). Got 4."):
        image_folder(folder, channels=4)


def test_converted_once_and_again_when_something_changes(folder):
    picture(folder / "a.png", colour="red")
    first = image_folder(folder, size=8)
    assert cached(folder) == [".json", ".npy"]
    (converted,) = (folder.parent / "cache").glob("*.npy")
    before = converted.stat().st_mtime_ns
    assert image_folder(folder, size=8).identity == first.identity
    assert converted.stat().st_mtime_ns == before
    os.utime(folder / "a.png", ns=(0, 0))  # another time, the same pixels: converted again, the same identity
    assert image_folder(folder, size=8).identity == first.identity
    assert len(cached(folder)) == 4
    picture(folder / "a.png", colour="blue")
    second = image_folder(folder, size=8)
    assert second.identity != first.identity
    assert colours(second) == [[0, 0, 255]]


@pytest.mark.parametrize("suffix", [".npy", ".json"])
def test_a_damaged_cache_is_made_again(folder, suffix):
    picture(folder / "a.png")
    identity = image_folder(folder, size=8).identity
    (path,) = (folder.parent / "cache").glob(f"*{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    assert image_folder(folder, size=8).identity == identity
    assert path.read_bytes() == whole


MEMORY = """
import resource, sys, torch
from axiswise.data import image_folder
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
dataset = image_folder(sys.argv[1], size=256)
print(dataset.tensors["x"].numel(), 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


def test_memory_is_bounded(folder):
    pixels = np.zeros((256, 256, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "0000.png")
    for number in range(1, 1500):
        os.link(folder / "0000.png", folder / f"{number:04}.png")
    ran = subprocess.run([sys.executable, "-c", MEMORY, str(folder)], check=True, capture_output=True, text=True)
    size, used = map(int, ran.stdout.split())
    assert size == 1500 * 3 * 256 * 256  # 295 MB
    assert used < 150_000_000  # a chunk of 256 images is 50 MB


ATTRIBUTES = """3
Bald Smiling Young
000001.png -1  1  1
000002.png  1 -1 -1
000003.png -1 -1  1
"""


@pytest.fixture
def faces(folder):
    root = folder.parent / "data" / "celeba"
    for number, colour in enumerate(("red", "blue", "white"), start=1):
        image = Image.new("RGB", (178, 218), "black")
        image.paste(colour, (15, 35, 15 + 148, 35 + 148))
        (root / "img_align_celeba").mkdir(parents=True, exist_ok=True)
        image.save(root / "img_align_celeba" / f"{number:06}.png")
    return root


def test_celeba(faces):
    plain = celeba()
    assert len(plain) == 3
    assert plain.shape == (3, 64, 64)
    assert len(plain.space) == 0
    (faces / "list_attr_celeba.txt").write_text(ATTRIBUTES)
    dataset = celeba(faces)
    assert dataset.space.names == ("Bald", "Smiling", "Young")
    assert dataset.space.sizes == (2, 2, 2)
    assert dataset.factors(torch.arange(3)).tolist() == [[0, 1, 1], [1, 0, 0], [0, 0, 1]]
    assert dataset.identity != plain.identity
    expected = torch.tensor([[1.0, 0, 0], [0, 0, 1], [1, 1, 1]])
    assert torch.equal(dataset.x(torch.arange(3)), expected[..., None, None].expand(3, 3, 64, 64))  # nothing black
    assert torch.equal(celeba(faces / "img_align_celeba").x(torch.arange(3)), dataset.x(torch.arange(3)))
    assert celeba(faces, size=32).shape == (3, 32, 32)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (ATTRIBUTES.replace("000003", "000004"), "must have a line for each image. Got none for 000003.png."),
        (
            ATTRIBUTES.replace("3.png -1", "3.png  0"),
            "must give -1 or 1 for each of 3 attributes. Got '0 -1 1' for 000003",
        ),
        (
            ATTRIBUTES.replace("3.png -1", "3.png"),
            "must give -1 or 1 for each of 3 attributes. Got '-1 1' for 000003.png",
        ),
        ("3", "must list the attributes of CelebA. Got another kind of file"),
        ("é\né", "must list the attributes of CelebA. Got another kind of file"),
    ],
)
def test_attributes_that_do_not_fit_are_refused(faces, attributes, message):
    (faces / "list_attr_celeba.txt").write_text(attributes)
    with pytest.raises(AxiswiseError, match=f"list_attr_celeba.txt {message}"):
        celeba(faces)


def test_celeba_that_is_not_there_or_too_small(folder):
    with pytest.raises(
        DataUnavailable, match=r"Expected CelebA in .*data/celeba. There is no such folder; get CelebA from"
    ):
        celeba()
    picture(folder / "a.png", size=(178, 147))
    with pytest.raises(AxiswiseError, match=r"a.png must have at least 148 × 148 pixels. Got 178 × 147."):
        celeba(folder)


IMAGES = np.random.default_rng(0).integers(0, 256, (6, 5, 4)).astype(np.uint8)


def test_npz_of_bytes(tmp_path):
    np.savez_compressed(tmp_path / "mine.npz", imgs=IMAGES, classes=np.arange(6)[:, None])
    dataset = npz(tmp_path / "mine.npz", factors="classes", names=["who"])
    assert dataset.name == "mine"
    assert dataset.shape == (1, 5, 4)
    assert dataset.space.names == ("who",)
    assert np.array_equal(dataset.x(torch.arange(6))[:, 0].numpy(), IMAGES.astype(np.float32) / 255)
    assert len(npz(tmp_path / "mine.npz").space) == 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.stack([IMAGES] * 3, -1), np.stack([IMAGES] * 3, 1) / 255),
        (np.stack([IMAGES] * 3, 1), np.stack([IMAGES] * 3, 1) / 255),
        (IMAGES[..., None], IMAGES[:, None] / 255),
        (IMAGES > 100, IMAGES[:, None] > 100),
        ((IMAGES > 100).astype(np.uint8), IMAGES[:, None] > 100),
        (IMAGES / 255, IMAGES[:, None] / 255),
    ],
    ids=["last", "first", "one", "bool", "binary", "float"],
)
def test_npz_in_other_layouts(tmp_path, values, expected):
    np.savez(tmp_path / "mine.npz", pictures=values)
    x = npz(tmp_path / "mine.npz", images="pictures").x(torch.arange(6))
    assert np.array_equal(x.numpy(), expected.astype(np.float32))


@pytest.mark.parametrize(
    ("contents", "arguments", "message"),
    [
        (
            {"pictures": IMAGES},
            {},
            r"must contain an array 'imgs'. Got pictures \(uint8 \(6, 5, 4\)\); name one of these.",
        ),
        ({"imgs": IMAGES}, {"factors": "y"}, r"must contain an array 'y'. Got imgs \(uint8 \(6, 5, 4\)\)"),
        ({}, {}, "must contain an array 'imgs'. Got no arrays"),
        ({"imgs": IMAGES[0]}, {}, r"must be images: .* The file contains imgs \(uint8 \(5, 4\)\)."),
        (
            {"imgs": np.zeros((6, 5, 4, 2))},
            {},
            r"must be images: .* The file contains imgs \(float64 \(6, 5, 4, 2\)\).",
        ),
        ({"imgs": np.zeros((0, 5, 4))}, {}, "must be images"),
        (
            {"imgs": IMAGES.astype(int)},
            {},
            "must be bytes, or floats in 0…1. Got int64 from 0 to 255; save it as np.uint8",
        ),
        ({"imgs": IMAGES.astype(float)}, {}, "Got float64 from 0.0 to 255.0"),
        ({"imgs": np.full((2, 3, 3), np.nan)}, {}, "Got float64 from nan to nan"),
    ],
)
def test_npz_of_other_contents_is_refused(tmp_path, contents, arguments, message):
    np.savez(tmp_path / "mine.npz", **contents)
    with pytest.raises(AxiswiseError, match="mine.npz .*" + message):
        npz(tmp_path / "mine.npz", **arguments)


def test_npz_never_unpickles(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "harm",))

    np.savez(tmp_path / "mine.npz", imgs=np.array([Harmful()], dtype=object), other=IMAGES)
    with pytest.raises(AxiswiseError, match=r"`imgs` of .*mine.npz holds Python objects, which would .* executed"):
        npz(tmp_path / "mine.npz")
    assert not (tmp_path / "harm").exists()
    assert len(npz(tmp_path / "mine.npz", images="other")) == 6


def test_npz_that_is_missing_or_damaged(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected an .npz file at .*mine.npz. There is none."):
        npz(tmp_path / "mine.npz")
    np.savez_compressed(tmp_path / "mine.npz", imgs=IMAGES)
    whole = (tmp_path / "mine.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[:-30])
    with pytest.raises(AxiswiseError, match=r"mine.npz is truncated or not an .npz file \(File is not a zip file\)"):
        npz(tmp_path / "mine.npz")
    (tmp_path / "mine.npz").write_bytes(whole[:200] + b"\0" * 20 + whole[220:])
    with pytest.raises(AxiswiseError, match=r"`imgs` of .*mine.npz is not a whole array of numpy's .Bad CRC-32"):
        npz(tmp_path / "mine.npz")
    with zipfile.ZipFile(tmp_path / "mine.npz", "w") as archive:
        archive.writestr("imgs.npy", b"no array")
    with pytest.raises(
        AxiswiseError, match=r"`imgs` of .*mine.npz is not a whole array of numpy's \(the magic string is"
    ):
        npz(tmp_path / "mine.npz")
