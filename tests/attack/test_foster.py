"""What codes tell of a function of the factors: against the closed form of Gaussians."""

import pytest
import torch
from torch import nn
from torch.func import functional_call

from axiswise.attack.foster import _explained, _nearest, fostered


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 1)).double()


@pytest.fixture(scope="module")
def factors():
    return torch.randn(4000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def noisy(signal, explained, seed):
    """A code that explains a share of a signal of variance 1."""
    noise = torch.randn(signal.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return signal + ((1 - explained) / explained) ** 0.5 * noise


def test_it_finds_the_direction_that_one_code_knows_better(network, factors):
    """Of Gaussians, a code explains the share r of a linear function and rᵏ of a Hermite polynomial of degree k.

    With r = .5 along the diagonal against .1 along the axes, .5ᵏ − .1ᵏ is largest at k = 1: the diagonal itself, at .4.
    """
    diagonal = factors.sum(1, keepdim=True) / 2**0.5
    entangled = [noisy(diagonal, 0.5, 1)]
    disentangled = [noisy(factors, 0.1, 2)]
    found = fostered(network, dict(network.named_parameters()), factors, entangled, disentangled)
    assert found.entangled == pytest.approx(0.5, abs=0.06)
    assert found.disentangled == pytest.approx(0.1, abs=0.06)
    s = functional_call(network, found.weights, (factors,))[:, 0]
    assert torch.corrcoef(torch.stack([s, diagonal[:, 0]]))[0, 1].abs() > 0.95
    assert s.mean().abs() < 1e-10


def test_exchanged_it_finds_another(network, factors):
    """Against a code of the diagonal, codes of the axes have the difference to tell."""
    across = (factors[:, 0] - factors[:, 1]) / 2**0.5
    sum_ = factors.sum(1, keepdim=True) / 2**0.5
    weights = dict(network.named_parameters())
    found = fostered(network, weights, factors, [noisy(factors, 0.5, 2)], [noisy(sum_, 0.5, 1)])
    s = functional_call(network, found.weights, (factors,))[:, 0]
    assert torch.corrcoef(torch.stack([s, across]))[0, 1].abs() > 0.9
    assert found.disentangled < 0.1


def test_sides_are_means_over_members(network, factors):
    """One of two members that knows nothing halves what the side explains."""
    diagonal = factors.sum(1, keepdim=True) / 2**0.5
    blind = torch.randn(4000, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    weights = dict(network.named_parameters())
    found = fostered(network, weights, factors, [noisy(diagonal, 0.8, 1), blind], [blind])
    assert found.entangled == pytest.approx(0.4, abs=0.06)


def test_an_observation_does_not_explain_itself(factors):
    """A code that knows nothing explains nothing; one of forty-one neighbours being oneself would be .024."""
    blind = torch.randn(4000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    found = _explained(factors[:, 0], [[_nearest(blind)], [_nearest(blind)]])
    assert max(abs(share.item()) for share in found) < 0.01


def test_the_weights_given_are_not_changed(network, factors):
    weights = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    kept = {name: weight.clone() for name, weight in weights.items()}
    fostered(network, weights, factors[:200], [factors[:200]], [factors[:200, :1]])
    for name, weight in weights.items():
        torch.testing.assert_close(weight, kept[name], rtol=0, atol=0)
