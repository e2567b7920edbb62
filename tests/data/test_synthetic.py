import re

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from scipy.stats import kstest
from sklearn.neural_network import MLPRegressor

from axiswise import numerics
from axiswise.data import synth_linear, synth_nonlinear
from axiswise.data.synth_linear import synth_linear_matrix
from axiswise.errors import AxiswiseError


def everything(dataset):
    index = torch.arange(len(dataset))
    return dataset.x(index).double().numpy(), dataset.factors(index).numpy()


@pytest.mark.parametrize("ratio", [1.0, 1.2, 2.0])
def test_the_embedding_is_stretch_then_rotation(ratio):
    rotation = Rotation.from_rotvec(np.deg2rad(45) * np.array([1, -1, 1]) / np.sqrt(3)).as_matrix()
    expected = rotation @ np.array([[ratio, 0], [0, 1], [0, 0]])
    np.testing.assert_allclose(synth_linear_matrix(ratio).numpy(), expected, atol=1e-15)
    x, square = everything(synth_linear(ratio, samples=1000))
    np.testing.assert_allclose(x, square @ expected.T, atol=2e-7)  # the rounding of float32 up to 2


@pytest.mark.parametrize("ratio", [1.5, 2.0])
def test_the_covariance_of_the_linear_set(ratio):
    x, _ = everything(synth_linear(ratio))
    eigenvalues = np.linalg.eigvalsh(np.cov(x.T))
    # Var(s²) = (μ₄ − σ⁴) / n, with μ₄ = 1/80 and σ² = 1/12 for a unit interval; four of these deviations.
    error = 4 * np.sqrt((1 / 80 - 1 / 144) / 50_000)
    assert abs(eigenvalues[2] - ratio**2 / 12) < ratio**2 * error
    assert abs(eigenvalues[1] - 1 / 12) < error
    assert abs(eigenvalues[0]) < 1e-13


@pytest.mark.parametrize("make", [synth_linear, synth_nonlinear])
def test_the_factors_are_uniform_and_independent(make):
    dataset = make()
    _, square = everything(dataset)
    assert len(dataset) == 50_000
    assert dataset.space.kinds == ("continuous", "continuous")
    for column in square.T:
        assert kstest(column, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(square.T)[0, 1]) < 4 / np.sqrt(50_000)


def test_the_nonlinear_set_is_a_tanh_network_of_ten():
    x, square = everything(synth_nonlinear(samples=500, seed=3))

    def draw(name, *shape):
        return numerics.normal(3, name, 0, shape, dtype=torch.float64).numpy()

    # scikit-learn's network, given the same weights (it stores them transposed).
    network = MLPRegressor(hidden_layer_sizes=(10,), activation="tanh").partial_fit(square, x)
    network.coefs_ = [draw("hidden weights", 10, 2).T, draw("output weights", 6, 10).T]
    network.intercepts_ = [draw("hidden biases", 10), draw("output biases", 6)]
    np.testing.assert_allclose(x, network.predict(square), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_the_nonlinear_set_is_bent(seed):
    x, square = everything(synth_nonlinear(samples=4000, seed=seed))
    affine = np.c_[square, np.ones(4000)]
    residual = x - affine @ np.linalg.lstsq(affine, x, rcond=None)[0]
    assert residual.std() > 0.05


@pytest.mark.parametrize("make", [synth_linear, synth_nonlinear])
def test_the_seed_is_everything(make):
    first, again, other = (
        everything(make(samples=20)),
        everything(make(samples=20)),
        everything(make(samples=20, seed=1)),
    )
    assert np.array_equal(first[0], again[0])
    assert not np.array_equal(first[0], other[0])
    assert make(samples=20).identity != make(samples=20, seed=1).identity


def test_arguments_are_the_identity():
    assert synth_linear(samples=20).identity == {
        "name": "synth_linear",
        "arguments": {"ratio": 2.0, "samples": 20, "seed": 0},
    }
    assert synth_nonlinear(samples=20).identity == {"name": "synth_nonlinear", "arguments": {"samples": 20, "seed": 0}}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: synth_linear(0.0), "`ratio` must be positive and finite. Got 0.0."),
        (lambda: synth_linear(float("nan")), "`ratio` must be positive and finite. Got nan."),
        (lambda: synth_linear(samples=0), "`samples` must be at least 1. Got 0."),
        (lambda: synth_nonlinear(samples=-1), "`samples` must be at least 1. Got -1."),
    ],
)
def test_bad_input_is_explained(make, message):
    with pytest.raises(AxiswiseError, match=re.escape(message)):
        make()
