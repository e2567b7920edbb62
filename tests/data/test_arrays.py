import re

import numpy as np
import pytest
import torch

from axiswise.data import arrays
from axiswise.errors import AxiswiseError


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_bytes_are_pixels_and_everything_else_is_kept():
    pixels = np.array([[0, 51, 255]], np.uint8)
    assert arrays(pixels).x(torch.tensor(0)).tolist() == pytest.approx([0, 0.2, 1])
    assert arrays(pixels.astype(np.int64)).x(torch.tensor(0)).tolist() == [0, 51, 255]
    assert arrays(pixels > 0).x(torch.tensor(0)).tolist() == [0, 1, 1]
    assert arrays(pixels.astype(">f8")).x(torch.tensor(0)).dtype == torch.float32
    assert arrays(pixels.astype(np.uint16)[:, ::-1]).x(torch.tensor(0)).tolist() == [255, 51, 0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int32])
def test_tensors_are_taken_like_arrays(dtype):
    x = torch.tensor([[1, 2], [3, 4]], dtype=dtype)
    scale = 255 if dtype == torch.uint8 else 1
    assert torch.allclose(arrays(x).x(torch.tensor([1])), torch.tensor([[3.0, 4.0]]) / scale)
    assert arrays(x.double().requires_grad_()).x(torch.tensor([1])).requires_grad is False


def test_the_arrays_are_copied():
    x, factors = ones(3, 2), np.array([[0], [1], [1]])
    x.flags.writeable = False
    dataset = arrays(x, factors)
    factors[:] = 0
    x.flags.writeable = True
    x[:] = 7
    assert dataset.x(torch.tensor(0)).tolist() == [1, 1]
    assert dataset.factors(torch.tensor([0, 1, 2])).flatten().tolist() == [0, 1, 1]


def test_kinds_follow_the_type_unless_given():
    discrete = arrays(ones(3, 2), np.array([[0, 4], [1, 2], [1, 0]]))
    assert discrete.space.names == ("factor 0", "factor 1")
    assert (discrete.space.sizes, discrete.space.kinds) == ((2, 5), ("discrete", "discrete"))
    real = arrays(ones(3, 2), np.array([[0.5], [1], [2]]))
    assert (real.space.sizes, real.space.kinds) == ((None,), ("continuous",))
    values = np.array([[0, 0.5, 3.0, 2.0], [1, 6.0, 1.0, 0.0]])
    mixed = arrays(
        ones(2, 2), values, kinds=["discrete", "circular", "circular", "continuous"], sizes=[None, None, 8, None]
    )
    assert mixed.space.sizes == (2, None, 8, None)
    assert mixed.factors(torch.tensor([0, 1])).tolist() == values.tolist()
    assert arrays(ones(2, 2), np.array([[0], [3]]), kinds=["circular"]).space.sizes == (4,)
    for whole in (np.float32([0, 2 * np.pi]), np.array([0.0, 9.0])):  # a turn as rounded, and levels
        assert arrays(ones(2, 2), whole, kinds=["circular"]).space.kinds == ("circular",)
    assert arrays(ones(2, 2), np.array([[0], [3]]), kinds=["continuous"]).factors(torch.tensor(1)).tolist() == [3.0]
    assert arrays(ones(2, 2), np.array([[0], [1]]), sizes=[6]).space.sizes == (6,)


def test_a_full_grid_is_recognised():
    levels = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
    whole = arrays(ones(6, 2), levels)
    assert whole.space.grid
    assert whole.space.index(torch.tensor([1, 2])).item() == 5
    assert not arrays(ones(6, 2), levels[::-1]).space.grid
    assert not arrays(ones(5, 2), levels[:5]).space.grid
    assert not arrays(ones(6, 2), levels, sizes=[2, 4]).space.grid


def test_identity_is_of_the_contents():
    x, factors = ones(4, 2), np.array([[0], [1], [1], [0]])
    same = arrays(x, factors).identity
    assert arrays(torch.from_numpy(x.copy()), factors.astype(np.int32)).identity == same
    others = [
        arrays(2 * x, factors),
        arrays(x.astype(np.uint8), factors),
        arrays(x.reshape(4, 1, 2), factors),
        arrays(x, 1 - factors),
        arrays(x, factors, names=["colour"]),
        arrays(x, factors, kinds=["circular"]),
        arrays(x, factors, sizes=[3]),
        arrays(x),
        arrays(x, factors, name="mine"),
    ]
    identities = [str(other.identity) for other in others]
    assert len({str(same), *identities}) == 1 + len(others)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((4, 8, 6, 3), np.uint8),
        np.zeros((4, 8, 6, 1), bool),
        torch.rand(4, 8, 6, 3),
    ],
    ids=["bytes", "grey", "tensor"],
)
def test_images_whose_channels_come_last_are_refused(x):
    moved = "x.movedim(-1, 1)" if isinstance(x, torch.Tensor) else "np.moveaxis(x, -1, 1)"
    message = f"`x` must have the channels of its images first: (n, c, h, w). Got {tuple(x.shape)}; {moved} moves them."
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        arrays(x)
    first = x.movedim(-1, 1) if isinstance(x, torch.Tensor) else np.moveaxis(x, -1, 1)
    assert arrays(first).shape == (x.shape[-1], 8, 6)


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (np.zeros((4, 3, 6, 3), np.uint8), (3, 6, 3)),  # either way round
        (np.full((4, 8, 6, 3), 2.0), (8, 6, 3)),  # no grey values
        (np.zeros((4, 8, 6), np.uint8), (8, 6)),
        (np.zeros((4, 8, 6, 2), np.uint8), (8, 6, 2)),
    ],
)
def test_what_may_be_no_image_with_its_channels_last_stays_as_it_is(x, shape):
    assert arrays(x).shape == shape


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: arrays(np.array([[0.0, np.nan], [np.inf, 1.0]])),
            "`x` must be finite in float32. Got 2 NaN or infinite values in 2 of 2 rows, the first at (0, 1)",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([0.5, 359.0]), names=["angle"], kinds=["circular"]),
            "circular factor 'angle' must be in radians, within one turn (2π). Got values from 0.5 to 359; convert "
            "degrees with np.deg2rad",
        ),
        (
            lambda: arrays(np.array([[0.0], [1e300]])),
            "Got 1 NaN or infinite values in 1 of 2 rows, the first at (1, 0)",
        ),
        (lambda: arrays(ones(3)), "shape (n, …). Got (3,); use x[:, None] for a single value."),
        (lambda: arrays(np.array(3.0)), "shape (n, …). Got ()."),
        (lambda: arrays(ones(0, 3)), "at least one sample of at least one value. Got shape (0, 3)."),
        (lambda: arrays(ones(3, 0)), "at least one sample of at least one value. Got shape (3, 0)."),
        (lambda: arrays(np.array([["a"]])), "`x` must contain real numbers. Got the type <U1."),
        (
            lambda: arrays(ones(2, 2), np.array([["2026-01-01"], ["2026-01-02"]], "M8[D]")),
            "factor 0 of `factors` must contain numbers, truth values or text. Got the type datetime64[D].",
        ),
        (lambda: arrays([[1.0, 2.0], [3.0]]), "Rows of `x` must be equally long. Got rows of 1 and 2 values."),
        (lambda: arrays(ones(2, 2), missing="ignore"), '`missing` must be "raise" or "drop". Got \'ignore\'.'),
        (lambda: arrays(np.full((2, 2), np.nan), missing="drop"), "At least one row must have all its values."),
        (lambda: arrays(np.array([[1j]])), "`x` must contain real numbers. Got the type complex128."),
        (
            lambda: arrays(np.array([[None]])),
            "Got 1 NaN or infinite values in 1 of 1 rows",
        ),
        (
            lambda: arrays(ones(3, 2), np.zeros((3, 1, 1))),
            "none of them empty; one axis is one factor. Got shape (3, 1, 1).",
        ),
        (lambda: arrays(ones(3, 2), np.zeros((4, 1), int)), "one row for each sample. Got 3 and 4 rows."),
        (
            lambda: arrays(ones(2, 2), np.array([[0.0], [np.nan]])),
            "`factors` must be finite. Got NaN or infinite values in 1 of 2 rows, in factor 0; remove or replace such",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([[0], [-1]])),
            "The levels of factor 'factor 0' must be at least 0. Got -1 in row 1; number the levels from 0",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([[0.5], [1]]), names=["colour"], kinds=["discrete"]),
            "The levels of factor 'colour' must be integers. Got 0.5 in row 0",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([[0], [3]]), sizes=[3]),
            "The levels of factor 'factor 0' must lie in 0 … 2. Got 3.",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([[0], [3]]), names=["a", "b"]),
            "`names` must have one entry for each of 1",
        ),
        (
            lambda: arrays(ones(2, 2), np.array([[0], [3]]), kinds=[]),
            "`kinds` must have one entry for each of 1 factors. Got 0.",
        ),
        (lambda: arrays(ones(2, 2), sizes=[2]), "`sizes` must have one entry for each of 0 factors. Got 1."),
        (
            lambda: arrays(ones(2, 2), np.array([[0.5], [1]]), sizes=[2]),
            "The continuous factor 'factor 0' has real values, so its size must be None. Got 2.",
        ),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
