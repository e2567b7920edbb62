"""Fashion-MNIST: articles of clothing, in the form of MNIST."""

from axiswise._arguments import checked
from axiswise.data._idx import Part, labelled_images
from axiswise.data._sources import Address, DebianMember, Source
from axiswise.data.dataset import FactorDataset

DEBIAN = "dataset-fashion-mnist"


@checked
def fashion_mnist(part: str | None = None) -> FactorDataset:
    """The 70,000 greyscale 28×28 images of Fashion-MNIST, articles of clothing with their label.

    The labels are T-shirt, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag and ankle boot, in this order.
    The 60,000 images of the training part come first, then the 10,000 of the test part. Images are stored as bytes,
    55 MB on any device, and scaled to 0…1 on demand. The first call downloads the published files if the data folder
    lacks them; every call verifies them.

    References:
        Xiao, Rasul and Vollgraf, *Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms*,
        arXiv 1708.07747, 2017.

    Arguments:
        part: "train", "test", or None for both.

    Example:
        >>> clothes = fashion_mnist("test")  # doctest: +SKIP
        >>> clothes.x(torch.arange(3)).shape, clothes.factors(torch.arange(3)).flatten().tolist()  # doctest: +SKIP
        (torch.Size([3, 1, 28, 28]), [9, 2, 1])
    """
    return labelled_images("fashion_mnist", SOURCES, part)


def _source(filename: str, size: int, sha256: str) -> Source:
    return Source(
        dataset="fashion_mnist",
        filename=filename,
        size=size,
        sha256=sha256,
        licence="MIT (Zalando SE)",
        citation="Xiao, Rasul and Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning "
        "algorithms, arXiv 1708.07747, 2017",
        places=(
            Address(f"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/{filename}"),
            Address(f"https://fashion-mnist.s3.eu-central-1.amazonaws.com/{filename}"),
            DebianMember(DEBIAN, f"usr/share/datasets/fashion-mnist/{filename}"),
        ),
    )


SOURCES = {
    "train": Part(
        _source(
            "train-images-idx3-ubyte.gz",
            47_040_016,
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        ),
        _source(
            "train-labels-idx1-ubyte.gz",
            60_008,
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        ),
    ),
    "test": Part(
        _source(
            "t10k-images-idx3-ubyte.gz",
            7_840_016,
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        ),
        _source(
            "t10k-labels-idx1-ubyte.gz",
            10_008,
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
    ),
}
