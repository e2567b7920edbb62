"""A latent as a function of the factors: against conditional means that are known."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

from axiswise.attack._latent import following, most_mixed


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 1)).double()


@pytest.fixture(scope="module")
def factors():
    return 2 * torch.rand(4000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) - 1


@pytest.mark.parametrize(
    "law", [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: (3 * a).sin() - b], ids=["sum", "product", "sine"]
)
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_it_is_the_conditional_mean(network, factors, law, noise):
    """Noise in the latent affects it only by what 257 weights fit of the noise of 4,000 observations."""
    truth = law(*factors.unbind(1))
    own = noise * torch.randn(4000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    weights = following(network, dict(network.named_parameters()), factors, 5.0 + truth + own)
    s = functional_call(network, weights, (factors,))[:, 0]
    error = (s - (truth - truth.mean())).square().mean().sqrt()
    assert error < 0.02 + noise * (257 / 4000) ** 0.5
    assert s.mean().abs() < 0.02


def test_the_weights_given_are_not_changed(network, factors):
    weights = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    before = {name: weight.clone() for name, weight in weights.items()}
    following(network, weights, factors[:200], factors[:200, 0])
    for name, weight in weights.items():
        torch.testing.assert_close(weight, before[name], rtol=0, atol=0)


def test_the_most_mixed_latent_is_the_one_between_two_factors(factors):
    """Of one factor, of both in equal parts, of both in unequal parts, and of none."""
    a, b = factors.unbind(1)
    noise = torch.randn(4000, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    codes = torch.stack([a, 3 * a + b, a + b, noise], 1)
    kinds = ["continuous", "continuous"]
    assert most_mixed(codes, factors, kinds) == 2
    assert most_mixed(codes[:, [0, 1, 3]], factors, kinds) == 1


def test_a_factor_that_does_not_vary_is_no_second_one(factors):
    constant = torch.cat([factors, torch.ones(4000, 1, dtype=torch.float64)], 1)
    codes = torch.stack([constant[:, 0], constant[:, 0] + 0.5 * constant[:, 1]], 1)
    assert most_mixed(codes, constant, ["continuous"] * 3) == 1
