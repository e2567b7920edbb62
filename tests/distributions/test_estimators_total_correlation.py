"""Total correlation against closed forms, all batches there are, and what other implementations compute."""

import itertools
import math

import pytest
import torch
from scipy import stats

from axiswise.distributions import Diagonal, DiagonalParameters
from axiswise.distributions.estimators import minibatch_log_weights, stratified_log_weights, total_correlation
from axiswise.errors import AxiswiseError

LIKE = torch.zeros((), dtype=torch.float64)


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize(("batch", "size"), [(1, 1), (2, 2), (2, 100), (3, 3), (5, 5), (5, 6), (5, 100), (64, 737_280)])
def test_rows_of_weights_sum_to_one(batch, size):
    for weights in (minibatch_log_weights(batch, LIKE), stratified_log_weights(batch, size, LIKE)):
        assert weights.shape == (batch, batch)
        assert weights.dtype == torch.float64
        torch.testing.assert_close(weights.exp().sum(1), torch.ones(batch).double(), rtol=1e-13, atol=0.0)
    torch.testing.assert_close(weights.exp().diagonal(), torch.full((batch,), 1.0 / size).double())
    torch.testing.assert_close(weights.exp().sum(0), torch.ones(batch).double())  # every posterior counts alike


def test_stratified_weights_are_those_of_the_paper():
    weights, others = stratified_log_weights(5, 100, LIKE).exp(), 4
    for row in range(5):
        expected = [1.0 / others] * 5
        expected[row] = 1.0 / 100
        expected[(row + 1) % 5] = (100 - others) / (100 * others)
        assert weights[row].tolist() == pytest.approx(expected, rel=1e-13)


def test_weights_of_others_do_not_sum_to_one():
    """Written with a stride of the batch, "diagonals" are columns: rows are equal but for one, which sums to 1.23."""
    others, stride, size = 4, 5, 100
    stratified = (size - others) / (size * others)
    theirs = torch.full((5, 5), 1.0 / others, dtype=torch.float64)
    theirs.view(-1)[::stride] = 1.0 / size
    theirs.view(-1)[1::stride] = stratified
    theirs[others - 1, 0] = stratified
    assert theirs[others - 1].sum().item() == pytest.approx(1.23, rel=1e-12)
    assert theirs.diagonal()[1:].tolist() != pytest.approx([1.0 / size] * 4)
    assert not torch.allclose(theirs, stratified_log_weights(5, size, LIKE).exp())


@pytest.mark.parametrize("batch", [2, 3, 5])
def test_stratified_density_is_unbiased(batch):
    """Over all orders of the others, the weighted densities at a draw of the first posterior average to all six's."""
    q = Diagonal().unpack(doubles(6, 4, seed=0))
    densities = q.log_density(doubles(2, seed=1)).exp()
    weights = stratified_log_weights(batch, 6, LIKE).exp()[0]
    orders = torch.tensor([(0, *others) for others in itertools.permutations(range(1, 6), batch - 1)])
    torch.testing.assert_close((densities[orders] @ weights).mean(), densities.mean(), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize("latents", [1, 10])
def test_equal_posteriors_have_none(latents):
    """As disentanglement_lib tests its own, which has no weights: −9 ln 10000 = −82.893 for 10 latents, B = 10000."""
    batch = 200
    q = Diagonal().unpack(torch.zeros(batch, 2 * latents, dtype=torch.float64))
    sample = doubles(batch, latents, seed=2)
    for weights in (minibatch_log_weights(batch, sample), stratified_log_weights(batch, 10_000, sample)):
        assert abs(total_correlation(q, sample, weights).item()) < 1e-12
    without = total_correlation(q, sample, torch.zeros(batch, batch, dtype=torch.float64)).item()
    assert without == pytest.approx(-(latents - 1) * math.log(batch), abs=1e-11)
    assert -9.0 * math.log(10_000) == pytest.approx(-82.893, abs=1e-3)


def test_constants_do_not_change_the_gradient():
    mean = doubles(7, 3, seed=3).requires_grad_()
    sample = mean + doubles(7, 3, seed=4)
    weights = minibatch_log_weights(7, sample)
    values = [total_correlation(DiagonalParameters(mean, mean - mean), sample, w) for w in (weights, 0.0 * weights)]
    torch.testing.assert_close(
        values[0] - values[1], torch.tensor(2.0 * math.log(7), dtype=torch.float64), rtol=1e-12, atol=0.0
    )
    gradients = [torch.autograd.grad(value, mean, retain_graph=True)[0] for value in values]
    torch.testing.assert_close(*gradients, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("batch", "size"), [(4000, None), (2000, 40_000)])
def test_a_gaussian_aggregate_has_the_closed_form(batch, size):
    """Means of N(0, C) and posterior variance s² make q(z) = N(0, C + s²I), of TC −½ log det of its correlations."""
    noise, root = 0.5, torch.tensor([[1.0, 0.0], [1.5, 0.5]])
    mean = doubles(batch, 2, seed=5).float() @ root.T
    q = DiagonalParameters(mean, torch.full_like(mean, math.log(noise**2)))
    sample = q.sample(doubles(batch, 2, seed=6).float())
    weights = stratified_log_weights(batch, size, sample) if size else minibatch_log_weights(batch, sample)
    found = total_correlation(q, sample, weights).item()

    covariance = root @ root.T + noise**2 * torch.eye(2)
    deviations = covariance.diagonal().sqrt()
    truth = -0.5 * torch.logdet(covariance / deviations / deviations[:, None]).item()
    joint = stats.multivariate_normal(torch.zeros(2).numpy(), covariance.numpy()).logpdf(sample.numpy())
    ratios = joint - stats.norm(0.0, deviations.numpy()).logpdf(sample.numpy()).sum(1)
    assert found == pytest.approx(truth, abs=3.0 * ratios.std() / math.sqrt(batch))
    assert found == pytest.approx(ratios.mean(), abs=0.01)  # at these draws, where only q(z) is estimated


def test_a_factorised_aggregate_has_none_at_any_draw():
    """Posteriors on a grid are a product of mixtures: with the whole set as batch the densities cancel exactly."""
    axis = torch.tensor([-2.0, -0.5, 0.1, 3.0], dtype=torch.float64)
    mean = torch.cartesian_prod(axis, axis, axis)
    q = DiagonalParameters(mean, torch.full_like(mean, -1.0))
    sample = q.sample(doubles(64, 3, seed=7))
    assert abs(total_correlation(q, sample, minibatch_log_weights(64, sample)).item()) < 1e-13


def test_copies_of_a_latent_share_its_entropy():
    """K separate points on a diagonal: each latent has log K nats, and so have all d together."""
    mean = 100.0 * torch.arange(5.0).double()[:, None].expand(5, 3)
    q = DiagonalParameters(mean, torch.zeros_like(mean))
    found = total_correlation(q, q.mean, minibatch_log_weights(5, mean))
    assert found.item() == pytest.approx(2.0 * math.log(5), rel=1e-12)


def test_one_observation():
    """A batch that is a set of one has no correlation; one of a larger set cannot be weighted, which is an error."""
    q = Diagonal().unpack(doubles(1, 4, seed=8))
    for weights in (minibatch_log_weights(1, q.mean), stratified_log_weights(1, 1, q.mean)):
        assert abs(total_correlation(q, q.mean, weights).item()) < 1e-14
    with pytest.raises(
        AxiswiseError, match=r"at least 2 observations, and at most the dataset's 9\. Got a batch of 1;"
    ):
        stratified_log_weights(1, 9, LIKE)
    with pytest.raises(
        AxiswiseError, match=r"at most the dataset's 3\. Got a batch of 4; .* `minibatch_log_weights`\."
    ):
        stratified_log_weights(4, 3, LIKE)
