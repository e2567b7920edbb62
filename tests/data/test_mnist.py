"""IDX files, and the two datasets that come in them."""

import gzip
import hashlib
import importlib
import re
import struct

import numpy as np
import pytest
import torch

from axiswise.data import data_folder, fashion_mnist, mnist
from axiswise.data._idx import Part, packed_idx, read_idx
from axiswise.data._sources import Address, Source
from axiswise.errors import AxiswiseError

MODULES = {name: importlib.import_module(f"axiswise.data.{name}") for name in ("mnist", "fashion_mnist")}


def idx(values: np.ndarray) -> bytes:
    """The format, from its description: written here once more."""
    sizes = b"".join(struct.pack(">i", size) for size in values.shape)
    return bytes([0, 0, 0x08, values.ndim]) + sizes + values.astype(">u1").tobytes()


@pytest.mark.parametrize("shape", [(5,), (2, 3), (4, 28, 28), (0, 2)])
@pytest.mark.parametrize("name", ["values", "values.gz"])
def test_reads_what_was_written(tmp_path, shape, name):
    values = np.arange(np.prod(shape)).astype(np.uint8).reshape(shape)
    contents = idx(values)
    path = tmp_path / name
    path.write_bytes(gzip.compress(contents) if name.endswith(".gz") else contents)
    assert np.array_equal(read_idx(path), values)
    assert read_idx(path).shape == shape
    assert gzip.decompress(packed_idx(values)) == contents


VALUES = idx(np.arange(12, dtype=np.uint8).reshape(3, 4))


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("a", b"", "must start like an IDX file of unsigned bytes .* Got nothing: it is another kind of file."),
        ("a", b"\x89PNG", "Got 89 50 4e 47: it is another kind of file."),
        ("a", b"\0\0\x0d\x01" + VALUES[4:], "Got 00 00 0d 01"),  # floats
        ("a", b"\0\0\x08\x00", "Got 00 00 08 00"),
        ("a", VALUES[:9], "is truncated: it ends inside its header. Fetch it again."),
        ("a", VALUES[:-1], r"must contain 12 values, for its shape \(3, 4\). Got only 11: it is damaged."),
        ("a", VALUES + b"!", r"must contain 12 values, for its shape \(3, 4\). Got more: it is damaged."),
        ("a.gz", VALUES, r"is not a complete gzip file \(Not a gzipped file .*\). Fetch it again."),
        ("a.gz", gzip.compress(VALUES)[:-9], "is truncated: its compressed contents end early. Fetch it again."),
    ],
    ids=["empty", "png", "floats", "no axes", "header", "short", "long", "not gzip", "cut gzip"],
)
def test_other_files_are_refused_by_name(tmp_path, name, contents, message):
    path = tmp_path / name
    path.write_bytes(contents)
    with pytest.raises(AxiswiseError, match=re.escape(str(path)) + " " + ".*" + message):
        read_idx(path)


def images(count: int) -> np.ndarray:
    return np.random.default_rng(count).integers(0, 256, (count, 28, 28)).astype(np.uint8)


@pytest.fixture
def publish(tmp_path, monkeypatch):
    """Replaces the published files by small ones."""
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path / "data"))

    def source(filename: str, values: np.ndarray) -> Source:
        path = tmp_path / filename
        path.write_bytes(gzip.compress(idx(values)))
        sha256 = hashlib.sha256(idx(values)).hexdigest()
        return Source("mnist", filename, len(idx(values)), sha256, "MIT", "A. Author", (Address(path.as_uri()),))

    def publish(train, test):
        parts = {
            name: Part(source(f"{name}-images.gz", part[0]), source(f"{name}-labels.gz", part[1]))
            for name, part in (("train", train), ("test", test))
        }
        monkeypatch.setattr(MODULES["mnist"], "SOURCES", parts)

    return publish


def test_training_part_first_then_test_part(publish):
    train, test = (images(5), np.array([1, 9, 0, 4, 4])), (images(3), np.array([7, 2, 1]))
    publish(train, test)
    digits = mnist()
    assert len(digits) == 8
    assert digits.shape == (1, 28, 28)
    assert (digits.space.names, digits.space.sizes, digits.space.kinds) == (("label",), (10,), ("discrete",))
    assert digits.tensors["x"].dtype == torch.uint8
    x = digits.x(torch.arange(8))
    assert np.array_equal(x[:, 0].numpy(), np.concatenate((train[0], test[0])).astype(np.float32) / 255)
    assert digits.factors(torch.arange(8)).flatten().tolist() == [1, 9, 0, 4, 4, 7, 2, 1]
    for part, rows in (("train", range(5)), ("test", range(5, 8))):
        chosen = mnist(part)
        assert torch.equal(chosen.x(torch.arange(len(chosen))), x[list(rows)])
        assert chosen.identity == {"name": "mnist", "arguments": {"part": part}}
    assert digits.identity == {"name": "mnist", "arguments": {"part": None}}


def test_only_the_files_of_the_part_are_fetched(publish, tmp_path):
    publish((images(2), np.array([0, 1])), (images(1), np.array([3])))
    mnist("test")
    assert sorted(path.name for path in (tmp_path / "data" / "mnist").iterdir()) == ["test-images.gz", "test-labels.gz"]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        ((images(2), np.array([0, 10])), "train-labels.gz must contain labels from 0 to 9. Got 10."),
        ((images(2), np.array([0])), "train-labels.gz must label 2 images. Got 1 labels."),
        (
            (images(2)[:, :20], np.array([0, 1])),
            r"train-images.gz must have the shape \(n, 28, 28\). Got \(2, 20, 28\).",
        ),
        ((images(2), images(2)), r"train-labels.gz must have the shape \(n\). Got \(2, 28, 28\)."),
    ],
    ids=["label", "count", "side", "axes"],
)
def test_files_of_other_contents_are_refused(publish, train, message):
    publish(train, (images(1), np.array([3])))
    with pytest.raises(AxiswiseError, match=message):
        mnist("train")


@pytest.mark.parametrize("make", [mnist, fashion_mnist])
def test_an_unknown_part_is_refused_before_anything_is_fetched(make, tmp_path, monkeypatch):
    monkeypatch.setenv("AXISWISE_DATA", str(tmp_path))
    with pytest.raises(
        AxiswiseError, match=r"`part` must be one of \['train', 'test'\] or None, for all. Got 'valid'."
    ):
        make("valid")
    assert list(tmp_path.iterdir()) == []


def test_a_table_becomes_the_same_file():
    pixels, labels = images(3), np.array([5, 0, 4], dtype=np.uint8)
    lines = ["label," + ",".join(f"{row}x{column}" for row in range(28) for column in range(28))]
    lines += [",".join(map(str, (label, *image.flatten()))) for label, image in zip(labels, pixels, strict=True)]
    table = "\n".join(lines).encode()
    assert gzip.decompress(MODULES["mnist"].of_csv("images", table)) == idx(pixels)
    assert gzip.decompress(MODULES["mnist"].of_csv("labels", table)) == idx(labels)


# Of the published files, uncompressed: figures of their authors' pages, and of the first test images as known to all.
PUBLISHED = {
    "mnist": (mnist, [7, 2, 1, 0, 4, 1, 4, 9, 5, 9], [5, 0, 4, 1, 9, 2, 1, 3, 1, 4], 0.1306604762738429),
    "fashion_mnist": (
        fashion_mnist,
        [9, 2, 1, 1, 6, 1, 4, 6, 5, 7],
        [9, 0, 0, 3, 0, 2, 7, 2, 5, 5],
        0.2860405969887955,
    ),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_published_files(name):
    make, first_test, first_train, mean = PUBLISHED[name]
    if not all(source.path.exists() for part in MODULES[name].SOURCES.values() for source in part):
        pytest.skip(f"{data_folder()} does not have {name}")
    dataset = make()
    assert len(dataset) == 70_000
    labels = dataset.factors(torch.arange(70_000)).flatten()
    assert labels[:10].tolist() == first_train
    assert labels[60_000:60_010].tolist() == first_test
    if name == "fashion_mnist":
        assert labels.bincount().tolist() == [7000] * 10
    pixels = dataset.tensors["x"][:60_000].numpy()
    assert pixels.mean() / 255 == pytest.approx(mean, abs=1e-9)
