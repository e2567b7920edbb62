"""The order of latents against numpy's sort."""

import math

import numpy as np
import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise.geometry import latent_order


def test_latents_are_sorted_by_their_mean_variance():
    variance = torch.rand(2, 3, 50, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = latent_order(variance)
    np.testing.assert_array_equal(found.order, variance.numpy().mean(2).argsort(-1))
    np.testing.assert_allclose(found.variance, np.sort(variance.numpy().mean(2), -1))


def test_equal_variances_keep_their_order():
    assert latent_order(torch.tensor([[0.5, 0.2, 0.5, 0.2, 0.5]])).order.tolist() == [1, 3, 0, 2, 4]


@pytest.mark.parametrize("wrong", [-0.5, math.nan])
def test_refuses_what_is_no_variance(wrong):
    with pytest.raises(AxiswiseError, match=rf"none of them negative or NaN\. Got {wrong}\.|`variance` must be finite"):
        latent_order(torch.tensor([[0.1, wrong]]))


@pytest.mark.usefixtures("as_installed")
def test_refuses_variances_without_samples():
    with pytest.raises(AxiswiseError, match=r"`variance` must have axes \(…, n, z\). Got shape \(3,\)"):
        latent_order(torch.ones(3))
