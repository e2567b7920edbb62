"""Dropout by a member's stream: PyTorch's own formulas, the right rate, and masks for each seed, step and layer."""

import math

import pytest
import torch
from torch import nn
from torch.func import jvp, vmap
from torch.nn import functional

from axiswise.models._dropout import SeededDropout, seeded
from axiswise_benchmarks.catalogue import SeededGenerator

# A layer in training and a shape it takes, also without a batch where PyTorch knows that.
LAYERS = {
    "dropout": (nn.Dropout(0.3), (5, 7)),
    "dropout of all": (nn.Dropout(1.0), (5, 7)),
    "1d": (nn.Dropout1d(0.3), (5, 6, 7)),
    "1d, one sample": (nn.Dropout1d(0.3), (6, 7)),
    "2d": (nn.Dropout2d(0.3), (5, 6, 3, 2)),
    "3d": (nn.Dropout3d(0.3), (5, 6, 2, 2, 3)),
    "3d, one sample": (nn.Dropout3d(0.3), (6, 2, 2, 3)),
    "alpha": (nn.AlphaDropout(0.3), (5, 7)),
    "alpha, of all": (nn.AlphaDropout(1.0), (5, 7)),
    "feature alpha": (nn.FeatureAlphaDropout(0.3), (5, 6, 3)),
    "feature alpha, of vectors": (nn.FeatureAlphaDropout(0.3), (5, 6)),
    "randomised ReLU": (nn.RReLU(0.1, 0.5), (5, 7)),
    "in place": (nn.Dropout(0.3, inplace=True), (5, 7)),
    "alpha, in place": (nn.AlphaDropout(0.3, inplace=True), (5, 7)),
    "randomised ReLU, in place": (nn.RReLU(inplace=True), (5, 7)),
}


def evaluated(function, mode, x):
    """What a function makes of a copy of x, the gradient by x, and the copy afterwards."""
    x = x.clone().requires_grad_()
    copy = 1.0 * x
    with mode:
        found = function(copy)
    return found, torch.autograd.grad(found.sin().sum(), x)[0], copy


def modes():
    """Ours, and PyTorch's functions with nothing but the generator replaced."""
    seed, step = torch.tensor(3), 4
    return SeededDropout(seed, torch.tensor(float(step))), SeededGenerator(seed, step)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_pytorchs_own_by_other_random_numbers(name):
    """Values, gradients and what is left in place."""
    layer, shape = LAYERS[name]
    x = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    ours, theirs = (evaluated(layer, mode, x) for mode in modes())
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "masked": {"attn_mask": torch.tensor([[True, False, True]]).expand(3, 3)},
    "biased, scaled": {"attn_mask": torch.arange(9.0, dtype=torch.float64).reshape(3, 3), "scale": 0.3},
}


@pytest.mark.parametrize("how", ATTENTION.values(), ids=ATTENTION)
def test_attention_is_pytorchs_own_by_other_random_numbers(how):
    x = torch.randn(2, 4, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def attend(x):
        return functional.scaled_dot_product_attention(x.cos(), x.sin(), x, dropout_p=0.4, **how)

    ours, theirs = (evaluated(attend, mode, x) for mode in modes())
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-12, atol=1e-12)


def test_attention_with_fewer_keys_than_queries_repeats_them():
    query, key = torch.randn(2, 4, 3, 5), torch.randn(2, 2, 3, 5)
    found = []
    for heads, grouped in ((key, True), (key.repeat_interleave(2, 1), False)):
        with modes()[0]:
            found.append(
                functional.scaled_dot_product_attention(query, heads, heads, dropout_p=0.4, enable_gqa=grouped)
            )
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("need_weights", [True, False])
def test_layers_of_attention_are_pytorchs_own_by_other_random_numbers(need_weights):
    layer = nn.MultiheadAttention(6, 2, dropout=0.4, dtype=torch.float64)
    x = torch.randn(3, 2, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def attend(x):
        return layer(x, x, x, need_weights=need_weights)[0]

    ours, theirs = (evaluated(attend, mode, x) for mode in modes())
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(ours[1], theirs[1], rtol=1e-12, atol=1e-12)


def ones(layer, shape, seed=0, step=0):
    with SeededDropout(torch.tensor(seed), torch.tensor(step)):
        return layer(torch.ones(shape))


@pytest.mark.parametrize("p", [0.05, 0.5, 0.9])
def test_rate_and_scale(p):
    """A share p is zero, up to five standard errors, and all others are 1 / (1 - p)."""
    count = 100_000
    found = ones(nn.Dropout(p), count)
    zeros = found == 0
    assert abs(zeros.double().mean().item() - p) < 5 * math.sqrt(p * (1 - p) / count)
    assert found[~zeros].unique().tolist() == [pytest.approx(1 / (1 - p), rel=1e-6)]


def test_alpha_dropout_keeps_mean_and_variance():
    """Of standard normal values; both estimates within five standard errors of a normal's, somewhat more."""
    count = 200_000
    x = torch.randn(count, generator=torch.Generator().manual_seed(0))
    with SeededDropout(torch.tensor(0), torch.tensor(0)):
        found = functional.alpha_dropout(x, 0.2, training=True).double()
    assert abs(found.mean().item()) < 5 / math.sqrt(count)
    assert abs(found.var().item() - 1.0) < 5 * math.sqrt(3 / count)


def test_channels_are_dropped_as_a_whole():
    found = ones(nn.Dropout2d(0.5), (40, 50, 3, 4)).flatten(2)
    assert (found == found[..., :1]).all()
    assert abs((found[..., 0] == 0).double().mean().item() - 0.5) < 5 * 0.5 / math.sqrt(2000)


def test_seeds_steps_and_layers_have_masks_of_their_own():
    """Two masks agree where independent ones would: on p² + (1 - p)² of their entries, up to five standard errors."""
    count = 20_000
    layer = nn.Dropout(0.5)
    masks = [ones(layer, count), ones(layer, count, seed=1), ones(layer, count, step=1)]
    with SeededDropout(torch.tensor(0), torch.tensor(0)):
        masks += [layer(torch.ones(count)) for _ in range(2)]  # the first is that of above
    assert torch.equal(masks[0], masks[3])
    distinct = masks[:3] + masks[4:]
    for place, one in enumerate(distinct):
        for other in distinct[:place]:
            assert abs((one == other).double().mean().item() - 0.5) < 5 * 0.5 / math.sqrt(count)


def test_networks_of_a_step_share_the_count_and_leave_the_generator_alone():
    layer, x, before = nn.Dropout(0.5), torch.ones(1000), torch.get_rng_state()
    networks = seeded({"encoder": layer, "decoder": layer}, torch.tensor(0), torch.tensor(0))
    first, second, third = networks["encoder"](x), networks["decoder"](x), networks["encoder"](x)
    assert len({tuple(mask.tolist()) for mask in (first, second, third)}) == 3
    assert torch.equal(first, ones(layer, 1000))
    assert torch.equal(torch.get_rng_state(), before)


def test_nothing_is_dropped_in_evaluation():
    x = torch.randn(4, 6, 3, 2)
    with SeededDropout(torch.tensor(0), torch.tensor(0)) as mode:
        for layer in (nn.Dropout(0.5), nn.Dropout2d(0.5), nn.AlphaDropout(0.5), nn.FeatureAlphaDropout(0.5)):
            assert torch.equal(layer.eval()(x), x)
        assert torch.equal(nn.RReLU().eval()(x), functional.rrelu(x))
        assert torch.equal(nn.Dropout(0.0)(x), x)
    assert mode.calls == 0


def test_members_have_the_masks_they_have_alone():
    seeds, x = torch.arange(3), torch.ones(3, 50)

    def one(seed, row):
        with SeededDropout(seed, torch.tensor(2)):
            return functional.dropout(row, 0.5)

    assert torch.equal(vmap(one)(seeds, x), torch.stack([one(seed, row) for seed, row in zip(seeds, x, strict=True)]))


def test_directional_derivatives_see_one_mask():
    """A direction goes through the mask that the value goes through, whichever the direction, for every member."""
    x, directions = torch.ones(50), torch.randn(4, 50)

    def drop(seed, x):
        with SeededDropout(seed, torch.tensor(0)):
            return functional.dropout(x, 0.5)

    def moved(seed):
        return vmap(lambda direction: jvp(lambda x: drop(seed, x), (x,), (direction,))[1])(directions)

    expected = torch.stack([directions * drop(seed, x) for seed in torch.arange(3)])
    torch.testing.assert_close(vmap(moved)(torch.arange(3)), expected)
