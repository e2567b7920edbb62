"""The generated datasets against their definitions."""

import hashlib
import re
from importlib.resources import files

import numpy as np
import pytest
import torch
from scipy import ndimage
from scipy.stats import chi2, kstest

from axiswise.data.circles import circles
from axiswise.data.digit_mixture import digit_mixture
from axiswise.data.digits import ten_digits
from axiswise.data.linear_gaussian import linear_gaussian
from axiswise.data.local_versus_global import local_versus_global
from axiswise.data.moving_digit import moved, moving_digit
from axiswise.errors import AxiswiseError

MIXING = [[2.0, 0.0], [-1.0, 1.0], [0.5, 3.0]]
CHANCE = 1e-3  # of a right generator failing a test; seeds are fixed


def everything(dataset):
    index = torch.arange(len(dataset))
    return dataset.x(index).double().numpy(), dataset.factors(index).numpy()


def covariance_test(x, covariance):
    """The chance of a sample covariance this far from the true one, mean 0 known: the likelihood-ratio test.

    n (tr W − log |W| − d) is χ² with d (d + 1) / 2 degrees of freedom, up to O(1 / n), where W is the sample covariance
    of the whitened data (Anderson, *An introduction to multivariate statistical analysis*, section 10.8).
    """
    whitened = np.linalg.solve(np.linalg.cholesky(covariance), x.T)
    w = whitened @ whitened.T / len(x)
    statistic = len(x) * (np.trace(w) - np.linalg.slogdet(w)[1] - len(w))
    return chi2.sf(statistic, len(w) * (len(w) + 1) / 2)


@pytest.mark.parametrize(("noise", "seed"), [(1.0, 0), (0.25, 1), (4.0, 2)])
def test_the_linear_gaussian_covariance(noise, seed):
    mixing = np.array(MIXING)
    x, sources = everything(linear_gaussian(MIXING, noise, samples=20_000, seed=seed))
    covariance = mixing @ mixing.T + noise * np.eye(3)
    assert covariance_test(x, covariance) > CHANCE
    assert covariance_test(x, 1.05 * covariance) < 1e-6  # the test is sensitive
    # With the sources: their distribution, and their correlation with x.
    joint = np.block([[covariance, mixing], [mixing.T, np.eye(2)]])
    assert covariance_test(np.c_[x, sources], joint) > CHANCE
    distances = (x * np.linalg.solve(covariance, x.T).T).sum(1)
    assert kstest(distances, chi2(3).cdf).pvalue > CHANCE


def test_the_linear_gaussian_parts_are_normal_and_independent():
    x, sources = everything(linear_gaussian(MIXING, 0.25, samples=20_000))
    residual = (x - sources @ np.array(MIXING).T) / 0.5
    for column in np.c_[sources, residual].T:
        assert kstest(column, "norm").pvalue > CHANCE
    assert covariance_test(np.c_[sources, residual], np.eye(5)) > CHANCE


def test_without_noise_x_is_the_mixed_sources():
    x, sources = everything(linear_gaussian(MIXING, 0.0, samples=50))
    np.testing.assert_allclose(x, sources @ np.array(MIXING).T, rtol=1e-6, atol=1e-6)  # the rounding of float32


def test_the_default_mixing_is_that_of_figure_1():
    mixing = np.array(linear_gaussian(samples=5).arguments["mixing"])
    assert mixing.shape == (128, 2)
    eigenvalues = np.linalg.eigvalsh(mixing @ mixing.T + np.eye(128))
    np.testing.assert_allclose(eigenvalues[-3:], [1, 1.25, 66.25], rtol=1e-12)  # as the paper's collapse at them says


def test_a_mixing_may_be_any_matrix():
    first = linear_gaussian(MIXING, samples=10)
    for other in (torch.tensor(MIXING), np.array(MIXING), tuple(tuple(row) for row in MIXING)):
        second = linear_gaussian(other, samples=10)
        assert first.identity == second.identity
        assert np.array_equal(everything(first)[0], everything(second)[0])
    assert first.identity["arguments"] == {"mixing": MIXING, "noise": 1.0, "samples": 10, "seed": 0}


def test_the_ten_digits_are_those_named():
    pixels = (ten_digits() * 255).round().to(torch.uint8).numpy()
    digest = hashlib.sha256(pixels.tobytes()).hexdigest()
    assert digest == "e8737cc300f9abd04535ad92cecf10409fc564bdc2441c3f7a23a0280f104a57"
    assert digest in files("axiswise.data").joinpath("digits.txt").read_text(encoding="utf-8")


def test_a_digit_mixture_mixes_digits():
    dataset = digit_mixture((3, 8, 1), noise=0.0, samples=50)
    x, sources = everything(dataset)
    images = ten_digits().numpy()
    expected = np.einsum("nk,khw->nhw", sources, images[[3, 8, 1]])
    np.testing.assert_allclose(x.reshape(-1, 28, 28), expected, atol=1e-6)
    assert dataset.space.names == ("digit 3", "digit 8", "digit 1")
    assert dataset.identity["arguments"] == {"digits": [3, 8, 1], "noise": 0.0, "samples": 50, "seed": 0}


def test_the_digit_mixture_s_covariance():
    """In the digits' span, and in a few of the directions that contain nothing but noise."""
    dataset = digit_mixture(samples=5000)
    assert (dataset.name, dataset.shape, len(dataset.space)) == ("digit_mixture", (784,), 10)
    x, _ = everything(dataset)
    directions, values, _ = np.linalg.svd(ten_digits().numpy().reshape(10, -1).T)
    eigenvalues = np.r_[values**2, np.zeros(5)] + 1
    stated = [461, 81, 69, 63, 50, 42, 37, 34, 27, 20, 1, 1, 1, 1, 1]
    assert eigenvalues.round().tolist() == stated
    assert covariance_test(x @ directions[:, :15], np.diag(eigenvalues)) > CHANCE


def test_the_moving_digit_is_where_the_sources_say():
    dataset = moving_digit(samples=20_000)
    assert (len(dataset), dataset.shape, dataset.space.names) == (20_000, (1, 48, 48), ("source 0", "source 1"))
    position, sources = dataset.tensors["position"].double().numpy(), dataset.factors(torch.arange(20_000)).numpy()
    mixing = 2 * np.eye(2) + 0.73
    np.testing.assert_allclose(dataset.arguments["mixing"], mixing, rtol=1e-15)
    covariance = mixing @ mixing.T + np.eye(2)
    assert covariance_test(position, covariance) > CHANCE
    assert covariance_test(np.c_[sources, position - sources @ mixing.T], np.eye(4)) > CHANCE
    assert abs(np.sqrt(covariance[0, 0]) - 3.0) < 0.01


@pytest.mark.parametrize("side", [48, 51])
def test_a_digit_is_moved_bilinearly(side):
    """SciPy's shift of order 1 is bilinear; on a larger canvas, since it loses what comes from beyond the edge."""
    dataset = moving_digit(samples=8, side=side, seed=3)
    x, _ = everything(dataset)
    for image, (right, up) in zip(x[:, 0], dataset.tensors["position"].double().numpy(), strict=True):
        canvas = np.zeros((side + 40, side + 40))
        start = 20 + (side - 28) // 2
        canvas[start : start + 28, start : start + 28] = ten_digits()[3].numpy()
        half = (side - 28) % 2 / 2
        expected = ndimage.shift(canvas, (half - up, half + right), order=1)[20:-20, 20:-20]
        np.testing.assert_allclose(image, expected, atol=3e-6)  # float32 positions up to 32, between inks up to 1 apart


def test_a_digit_moves_right_and_up_and_keeps_its_ink():
    digit = ten_digits()[3].float()
    tensors = {"digit": digit, "position": torch.tensor([[0.0, 0.0], [5.25, 7.5]]), "canvas": torch.arange(64.0)}
    still, away = moved(tensors, torch.arange(2))[:, 0].double()
    assert torch.equal(still[18:46, 18:46], digit.double())
    torch.testing.assert_close(away.sum(), still.sum(), rtol=1e-5, atol=0.0)
    pixel = torch.arange(64.0, dtype=torch.float64)
    down, right = (away.sum(axis) @ pixel / away.sum() - still.sum(axis) @ pixel / still.sum() for axis in (1, 0))
    assert abs(right - 5.25) < 1e-5
    assert abs(down + 7.5) < 1e-5


def test_what_leaves_the_canvas_is_cut_off():
    x, _ = everything(moving_digit([[40.0], [0.0]], 0.0, side=28, samples=200))
    assert 0.0 <= x.min() <= x.max() <= 1.0
    ink = x.sum((1, 2, 3))
    assert ink.min() == 0.0 < ink.max()


def test_images_of_any_index_shape():
    dataset = moving_digit(samples=12)
    assert dataset.x(torch.tensor(3)).shape == (1, 48, 48)
    assert torch.equal(dataset.x(torch.arange(12).reshape(3, 4))[1, 2], dataset.x(torch.tensor(6)))


def test_circles_are_circles():
    dataset = circles(5, 7, large_radius=4.0, small_radius=0.5)
    x, factors = everything(dataset)
    assert dataset.space.grid
    assert dataset.space.sizes == (5, 7)
    assert dataset.space.kinds == ("discrete", "circular")
    point = x @ [1, 1j]
    expected = 4 * np.exp(2j * np.pi * factors[:, 0] / 5) + 0.5 * np.exp(2j * np.pi * factors[:, 1] / 7)
    np.testing.assert_allclose(point, expected, atol=5e-7)
    centres = point.reshape(5, 7).mean(1)
    np.testing.assert_allclose(np.abs(centres), 4, atol=1e-6)
    np.testing.assert_allclose(np.abs(point.reshape(5, 7) - centres[:, None]), 0.5, atol=1e-6)


def test_the_variances_of_circles_lie_between_the_figure_s_betas():
    x, factors = everything(circles())
    within = np.cov(x[factors[:, 0] == 2].T, bias=True)
    np.testing.assert_allclose(within, 4.5 * np.eye(2), atol=1e-5)
    np.testing.assert_allclose(np.cov(x.T, bias=True), 54.5 * np.eye(2), atol=1e-5)
    assert 3.8 < 4.5 < 54.5 < 60


def slope(covariance):
    """The angle of the first principal direction, in degrees from 0 to 180."""
    direction = np.linalg.eigh(covariance)[1][:, -1]
    return np.rad2deg(np.arctan2(direction[1], direction[0])) % 180


def test_local_and_global_directions_differ():
    x, factors = everything(local_versus_global())
    for column in factors.T:
        assert kstest(column, "norm").pvalue > CHANCE
    assert covariance_test(factors, np.eye(2)) > CHANCE

    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    covariance = turn @ np.diag([36, 20.25]) @ turn.T + np.diag([0, 20.25 / 12 + 0.0225])
    expected = slope(covariance)
    assert abs(expected - 48) < 0.5
    # The angle of a sample's direction has the deviation √(λ₁ λ₂ / n) / (λ₁ − λ₂), for normal data; 4 of them are 2.9°.
    low, high = np.linalg.eigvalsh(covariance)
    error = np.rad2deg(np.sqrt(low * high / len(x)) / (high - low))
    assert abs(slope(np.cov(x.T)) - expected) < 4 * error < 3

    near = np.linalg.norm(x[:, None] - x[None, :40], axis=-1) < 2.0  # an inset: less than half the way to a neighbour
    insets = [x[chosen] for chosen in near.T if chosen.sum() >= 100]
    assert len(insets) >= 30
    for inset in insets:
        angle = slope(np.cov(inset.T))
        assert min(angle, 180 - angle) < 3


def test_the_covariance_of_the_whole():
    """By quadrature over the rounded coordinate, since Sheppard's correction is only nearly exact."""
    long, short, spacing, thickness = 6.0, 4.5, 4.5, 0.15
    turn = np.array([[np.cos(0.5), -np.sin(0.5)], [np.sin(0.5), np.cos(0.5)]])
    cloud = turn @ np.diag([long**2, short**2]) @ turn.T
    grid = np.linspace(-60, 60, 600_001)
    density = np.exp(-(grid**2) / (2 * cloud[1, 1])) / np.sqrt(2 * np.pi * cloud[1, 1]) * (grid[1] - grid[0])
    stripe = spacing * np.floor(grid / spacing + 0.5)
    variance = density @ stripe**2 + thickness**2
    mixed = cloud[0, 1] / cloud[1, 1] * (density @ (grid * stripe))
    stated = cloud + np.diag([0, spacing**2 / 12 + thickness**2])
    np.testing.assert_allclose([[cloud[0, 0], mixed], [mixed, variance]], stated, rtol=1e-4)  # the grid's steps
    x, _ = everything(local_versus_global(np.rad2deg(0.5), samples=100_000))
    # Deviations of entries of a sample covariance are at most √(2 / n) of the variances; four of them.
    np.testing.assert_allclose(np.cov(x.T), stated, atol=4 * np.sqrt(2e-5) * stated.max())


def test_points_lie_on_stripes():
    dataset = local_versus_global(30.0, thickness=0.1, spacing=2.0, samples=5000)
    x, factors = everything(dataset)
    cloud = (factors @ np.diag([6.0, 4.5])) @ [1, 1j] * np.exp(1j * np.pi / 6)
    np.testing.assert_allclose(x[:, 0], cloud.real, atol=3e-6)
    across = (x[:, 1] - 2.0 * np.floor(cloud.imag / 2.0 + 0.5)) / 0.1
    assert kstest(across, "norm").pvalue > CHANCE


@pytest.mark.parametrize("make", [linear_gaussian, digit_mixture, moving_digit, local_versus_global])
def test_the_seed_is_everything(make):
    first, again, other = (everything(make(samples=20, seed=seed))[0] for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert make(samples=20).identity == make(samples=20).identity != make(samples=20, seed=1).identity


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: linear_gaussian(np.ones(2)), "`mixing` must be a matrix with a row for each observed value"),
        (lambda: linear_gaussian(torch.zeros(0, 2)), "Got shape (0, 2)."),
        (
            lambda: linear_gaussian([[1.0, 2.0], [3.0]]),
            "`mixing` must be a matrix of numbers, its rows of equal length",
        ),
        (lambda: linear_gaussian([[1.0, float("nan")]]), "`mixing` must be finite. Got NaN or infinite entries."),
        (lambda: linear_gaussian(MIXING, -1.0), "`noise` is a variance: it must be finite and not negative. Got -1.0."),
        (lambda: linear_gaussian(MIXING, samples=0), "`samples` must be at least 1. Got 0."),
        (lambda: digit_mixture(()), "`digits` must name at least one of the digits 0 … 9, each once. Got ()."),
        (lambda: digit_mixture((1, 1)), "each once. Got (1, 1)."),
        (lambda: digit_mixture([10]), "each once. Got [10]."),
        (lambda: digit_mixture(noise=float("nan")), "`noise` is a variance: it must be finite and not negative."),
        (
            lambda: moving_digit(MIXING),
            "`mixing` must have two rows, one for the shift to the right and one for the shift",
        ),
        (lambda: moving_digit(digit=10), "`digit` must be one of 0 … 9. Got 10."),
        (lambda: moving_digit(side=27), "`side` must be at least 28 pixels, to hold the digit. Got 27."),
        (lambda: circles(0), "`count` must be at least 1. Got 0."),
        (lambda: circles(points=-1), "`points` must be at least 1. Got -1."),
        (lambda: circles(large_radius=0.0), "`large_radius` must be positive and finite. Got 0.0."),
        (lambda: circles(small_radius=float("inf")), "`small_radius` must be positive and finite. Got inf."),
        (lambda: local_versus_global(float("inf")), "`angle` must be finite. Got inf."),
        (lambda: local_versus_global(long=4.5), "has a principal direction. Got long=4.5 and short=4.5."),
        (lambda: local_versus_global(thickness=5.0), "stripes are apart. Got spacing=4.5 and thickness=5.0."),
        (lambda: local_versus_global(samples=0), "`samples` must be at least 1. Got 0."),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
