"""Stacked convolutions against PyTorch's own, their derivatives, and the kernels against the reference."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.func import grad, jacfwd, jvp, vmap
from torch.nn.functional import conv2d, conv_transpose2d

from axiswise.errors import AxiswiseError
from axiswise.numerics import _convolution as convolution
from axiswise.numerics._convolution import down, pushed_up, transposed, up


def normal(*shape, seed=0, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)


@st.composite
def sizes(draw):
    """Members, samples, channels, image, kernel, stride and padding, odd ones included."""
    kernel = draw(st.tuples(st.integers(1, 5), st.integers(1, 5)))
    stride, padding = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    sides = [draw(st.integers(max(1, k - 2 * padding), 9)) for k in kernel]
    p, n, c, o = (draw(st.integers(1, 4)) for _ in range(4))
    return (p, n, c, *sides), (p, o, c, *kernel), stride, padding


def by_member(function, *stacks):
    return torch.stack([function(*arguments) for arguments in zip(*stacks, strict=True)])


@settings(max_examples=30)
@given(sizes(), st.integers(0, 99))
def test_down_is_conv2d_of_each_member_and_up_its_adjoint(sizes, seed):
    images, kernels, stride, padding = sizes
    x, weight, bias = normal(*images, seed=seed), normal(*kernels, seed=seed + 1), normal(*kernels[:2], seed=seed + 2)
    found = down(x, weight, bias, stride=stride, padding=padding)
    expected = by_member(lambda a, w, b: conv2d(a, w, b, stride, padding), x, weight, bias)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    y = normal(*found.shape, seed=seed + 3)
    back = up(y, weight, size=(images[-2], images[-1]), stride=stride, padding=padding)
    forth = down(x, weight, stride=stride, padding=padding)
    torch.testing.assert_close((back * x).sum(), (forth * y).sum(), rtol=1e-10, atol=1e-10)


def test_up_is_conv_transpose2d_of_each_member():
    y, weight, bias = normal(3, 2, 4, 5, 5), normal(3, 4, 2, 4, 4, seed=1), normal(3, 2, seed=2)
    found = up(y, weight, bias, size=(10, 10), stride=2, padding=1)
    expected = by_member(lambda a, w, b: conv_transpose2d(a, w, b, 2, 1), y, weight, bias)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    odd = up(y, weight, size=(11, 11), stride=2, padding=1)
    expected = by_member(lambda a, w: conv_transpose2d(a, w, None, 2, 1, output_padding=1), y, weight)
    torch.testing.assert_close(odd, expected, rtol=1e-12, atol=1e-12)


@st.composite
def enlargements(draw):
    """Samples, channels, image, kernel, stride, padding and output padding of a transposed convolution."""
    kernel, small = (draw(st.tuples(st.integers(1, 5), st.integers(1, 5))) for _ in range(2))
    stride, padding = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    extra = draw(st.tuples(st.integers(0, stride - 1), st.integers(0, stride - 1)))
    sides = [(s - 1) * stride - 2 * padding + k + e for s, k, e in zip(small, kernel, extra, strict=True)]
    assume(min(sides) > 0)
    n, o, c = (draw(st.integers(1, 4)) for _ in range(3))
    return (n, o, *small), (o, c, *kernel), stride, padding, extra


@settings(max_examples=60)
@given(enlargements(), st.integers(0, 99), st.sampled_from([1, 1 << 21]))
def test_a_transposed_convolution_and_its_gradients_are_those_of_pytorch(sizes, seed, block):
    """To the rounding of sums of 100 products at most, also where each sample is a part by itself."""
    images, kernels, *how = sizes
    tensors = [normal(*shape, seed=seed + k) for k, shape in enumerate((images, kernels, kernels[1:2]))]
    tensors = [tensor.requires_grad_() for tensor in tensors]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "BLOCK_BYTES", block)
        found = transposed(*tensors, *how)
    expected = conv_transpose2d(*tensors, *how)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)
    weights = normal(*expected.shape, seed=seed + 3)
    gradients = [torch.autograd.grad(result, tensors, weights) for result in (found, expected)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


SHAPES = [(1, 1, 0, 0), (3, 1, 1, 0), (3, 2, 1, 1), (4, 2, 1, 0), (5, 3, 2, 2), ((2, 5), 3, 1, (0, 2)), (2, 3, 0, 1)]


@pytest.mark.parametrize(("kernel", "stride", "padding", "output_padding"), SHAPES)
@pytest.mark.parametrize("operator", [up, pushed_up])
def test_a_transposed_convolution_is_that_of_pytorch(operator, kernel, stride, padding, output_padding):
    sides = (kernel, kernel) if isinstance(kernel, int) else kernel
    x, weight, bias = normal(2, 3, 6, 4), normal(3, 2, *sides, seed=1), normal(2, seed=2)
    how = {"stride": stride, "padding": padding, "output_padding": output_padding}
    found = transposed(x, weight, bias, **how, operator=operator)
    torch.testing.assert_close(found, conv_transpose2d(x, weight, bias, **how), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("how", [{"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2}, {"stride": (2, 1)}])
def test_weights_of_a_wider_type_are_cast_or_refused(how):
    """By the operator and where PyTorch convolves; the bias is added in the type of the images."""
    x, weight, bias = normal(2, 4, 5, 5, dtype=torch.float32), normal(4, 2, 3, 3, seed=1), normal(2, seed=2)
    bias = bias if how.get("groups", 1) == 1 else None
    found = transposed(x, weight, bias, **how, cast=True)
    expected = conv_transpose2d(x, weight.float(), None if bias is None else bias.float(), **how)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(RuntimeError, match=r"(?i)type"):
        transposed(x, weight, bias, **how)


CASES = {
    "numbers": ((3, 4, 5, 5), (4, 2, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "lists": ((3, 4, 5, 5), (4, 2, 3, 3), {"stride": [2, 2], "padding": [1, 1], "output_padding": [1, 0]}),
    "one entry": ((3, 4, 5, 5), (4, 2, 3, 3), {"stride": (2,)}),
    "groups": ((3, 4, 5, 5), (4, 2, 3, 3), {"groups": 2}),
    "dilation": ((3, 4, 5, 5), (4, 2, 3, 3), {"dilation": 2}),
    "two strides": ((3, 4, 5, 5), (4, 2, 3, 3), {"stride": (2, 1)}),
    "two paddings": ((3, 4, 5, 5), (4, 2, 3, 3), {"padding": (0, 1)}),
    "one image": ((4, 5, 5), (4, 2, 3, 3), {}),
    "no image": ((0, 4, 5, 5), (4, 2, 3, 3), {}),
}
BY_PRODUCTS = {"numbers", "lists", "one entry"}


@pytest.mark.parametrize("name", CASES)
def test_what_products_do_not_cover_is_left_to_pytorch(name, monkeypatch):
    calls, plain = [], convolution._by_products
    monkeypatch.setattr(convolution, "_by_products", lambda *a: calls.append(1) or plain(*a))
    images, kernels, how = CASES[name]
    x, weight = normal(*images), normal(*kernels, seed=1)
    torch.testing.assert_close(transposed(x, weight, **how), conv_transpose2d(x, weight, **how), rtol=1e-12, atol=1e-13)
    assert bool(calls) == (name in BY_PRODUCTS)


@pytest.mark.parametrize(
    "how",
    [
        {"output_padding": 1},
        {"stride": (2, 2, 2)},
        {"padding": 9},
        {"padding": -1},
        {"stride": 0},
        {"bias": torch.ones(3).double()},
    ],
    ids=str,
)
def test_what_pytorch_refuses_is_refused_in_its_words(how):
    x, weight = normal(3, 4, 5, 5), normal(4, 2, 3, 3, seed=1)
    with pytest.raises(RuntimeError) as expected:
        conv_transpose2d(x, weight, **how)
    with pytest.raises(RuntimeError) as found:
        transposed(x, weight, **how)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("operator", [up, pushed_up])
@pytest.mark.parametrize("which", ["images", "weights", "both"])
def test_derivatives_in_many_directions_are_those_of_pytorch(operator, which):
    """Also by weights that depend on the same variable as the images."""
    x, weight, bias = normal(3, 4, 5, 5), normal(4, 2, 3, 3, seed=1), normal(2, seed=2)
    moves, turns = normal(6, 3, 4, 5, 5, seed=3), normal(6, 4, 2, 3, 3, seed=4)

    def pushed(convolve):
        def function(t):
            images = x if which == "weights" else x + torch.einsum("t,t...->...", t, moves)
            weights = weight if which == "images" else weight + torch.einsum("t,t...->...", t, turns)
            return convolve(images, weights, bias, 2, 1).tanh()

        return jacfwd(function)(torch.zeros(6, dtype=torch.float64))

    found = pushed(lambda *arguments: transposed(*arguments, operator=operator))
    torch.testing.assert_close(found, pushed(conv_transpose2d), rtol=1e-12, atol=1e-13)


def test_the_operator_itself_is_mapped_over_images_alone():
    y, weight = normal(3, 1, 2, 4, 5, 5), normal(3, 1, 4, 2, 3, 3, seed=1)
    with pytest.raises(AxiswiseError, match=r"`axiswise::up` is mapped over images alone"):
        vmap(lambda a, w: torch.ops.axiswise.up(a, w, None, None, 1, 0, 7, 7, False))(y, weight)


def test_transforms_may_be_nested_around_a_transposed_convolution():
    x, weight, other = normal(2, 3, 3, 3), normal(3, 2, 3, 3, seed=1), normal(2, 3, 3, 3, seed=2)

    def second(convolve):
        def slope(a):
            return jvp(lambda b: convolve(b, weight, None, 2, 1).sin(), (a,), (other,))[1]

        mixed = grad(lambda a: slope(a).square().sum())(x)
        return jvp(slope, (x,), (other,))[1], mixed

    for one, two in zip(second(transposed), second(conv_transpose2d), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("direction", ["down", "up"])
def test_derivatives_of_first_and_second_order_in_both_modes(direction):
    weight = normal(2, 2, 2, 3, 2, seed=1).requires_grad_()
    if direction == "down":
        images, bias = normal(2, 1, 2, 5, 4).requires_grad_(), normal(2, 2, seed=2).requires_grad_()

        def function(images, weight, bias):
            return down(images, weight, bias, stride=2, padding=1)
    else:
        images, bias = normal(2, 1, 2, 3, 2).requires_grad_(), normal(2, 2, seed=2).requires_grad_()

        def function(images, weight, bias):
            return up(images, weight, bias, size=(5, 3), stride=2, padding=1)

    assert torch.autograd.gradcheck(function, (images, weight, bias), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, (images, weight, bias))


def test_mapped_over_members_and_over_directions():
    """As a step uses them: mapped over members, with derivatives in many directions mapped inside, differentiated."""
    x, weight = normal(3, 2, 2, 5, 5).requires_grad_(), normal(3, 4, 2, 3, 3, seed=1).requires_grad_()
    directions = normal(3, 5, 2, 2, 5, 5, seed=2)

    def pushed(convolve):
        def one(x, weight, directions):
            return vmap(lambda v: jvp(lambda a: convolve(a, weight).tanh(), (x,), (v,))[1])(directions)

        return vmap(one)(x, weight, directions)

    ours = pushed(lambda a, w: down(a.unsqueeze(0), w.unsqueeze(0), stride=2, padding=1).squeeze(0))
    plain = pushed(lambda a, w: conv2d(a, w, None, 2, 1))
    torch.testing.assert_close(ours, plain, rtol=1e-12, atol=1e-12)
    for found, expected in zip(
        torch.autograd.grad(ours.square().sum(), (x, weight)),
        torch.autograd.grad(plain.square().sum(), (x, weight)),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


def test_gradients_of_weights_are_not_rounded_to_the_images_type():
    x, weight = normal(2, 4, 3, 8, 8, dtype=torch.bfloat16), normal(2, 4, 3, 3, 3, seed=1, dtype=torch.float32)
    y = down(x, weight.requires_grad_(), stride=2, padding=1)
    (gradient,) = torch.autograd.grad(y.float().square().sum(), weight)
    assert y.dtype == torch.bfloat16
    assert gradient.dtype == torch.float32


def as_views(weight, bias):
    """Both as a step has them: slices of one matrix, a row a member, with something before, between and after."""
    rows = [weight.flatten(1), bias]
    matrix = torch.cat([part for row in rows for part in (torch.full_like(bias[:, :1], torch.nan), row)], 1)
    size = weight[0].numel()
    return matrix[:, 1 : 1 + size].view(weight.shape), matrix[:, 2 + size :]


def as_slices(images):
    """The same images inside larger ones, channels last in memory, as a step that splits channels has them."""
    p, n, c, h, w = images.shape
    larger = images.new_full((p, n, h + 1, w + 2, c + 3), torch.nan)[:, :, 1:, 1:-1, 1:-2].permute(0, 1, 4, 2, 3)
    return larger.copy_(images)


# Largest errors, as parts of the largest number. Triton's interpreter cannot multiply in bfloat16.
TOLERANCES = {torch.float64: 1e-13, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
BY_KERNELS = [pytest.param(dtype, marks=pytest.mark.kernels) for dtype in (torch.float32, torch.float16)]


def assert_kernels_equal_the_reference(device, dtype, sizes, seed=0):
    """Operators with everything fused, and all gradients, against float64 on the rounded operands."""
    images, kernels, stride, padding = sizes
    rounded = [normal(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate((images, kernels, kernels[:2]))]
    x, weight, bias = (tensor.double() for tensor in rounded)
    fast_x = rounded[0].to(device)
    fast_weight, fast_bias = as_views(rounded[1].to(device), rounded[2].to(device))
    plain = torch.ops.axiswise.down(x, weight, bias, None, stride, padding, False)
    gate = normal(*plain.shape, seed=seed + 5, dtype=dtype)
    y = normal(*plain.shape, seed=seed + 6, dtype=dtype)
    fast_y = as_slices(y.to(device))
    wide_gate = normal(*images, seed=seed + 7, dtype=dtype)
    wide_bias = normal(images[0], images[2], seed=seed + 8, dtype=dtype)
    size = (images[-2], images[-1])
    own = torch.ops.axiswise
    pairs = [
        (
            own.down(x, weight, bias, gate.double(), stride, padding, True),
            own.down(fast_x, fast_weight, fast_bias, gate.to(device), stride, padding, True),
        ),
        (
            own.up(y.double(), weight, None, wide_gate.double(), stride, padding, *size, False),
            own.up(fast_y, fast_weight, None, wide_gate.to(device), stride, padding, *size, False),
        ),
        (
            own.up(y.double(), weight, wide_bias.double(), None, stride, padding, *size, True),
            own.up(fast_y, fast_weight, wide_bias.to(device), None, stride, padding, *size, True),
        ),
        *(
            pair
            for big in (False, True)
            for pair in zip(
                own.weights(x, y.double(), *kernels[-2:], stride, padding, torch.float64, big),
                own.weights(fast_x, fast_y, *kernels[-2:], stride, padding, torch.float64, big),
                strict=True,
            )
        ),
    ]
    for expected, found in pairs:
        scale = expected.abs().max().clamp_min(1e-3)
        assert ((found.double().cpu() - expected).abs().max() / scale).item() < TOLERANCES[dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float64, *BY_KERNELS, torch.bfloat16], ids=str)
@settings(max_examples=40)
@given(sizes(), st.integers(0, 2**31))
def test_kernels_equal_the_reference(kernels, dtype, sizes, seed):
    assert_kernels_equal_the_reference(kernels, dtype, sizes, seed)


# Members, samples, channels and sides of the big image; weights; stride and padding.
LAYERS = {
    "more than a tile of channels": ((2, 3, 130, 5, 4), (2, 200, 130, 2, 3), 2, 1),
    "channels of half a tile": ((1, 2, 48, 5, 6), (1, 70, 48, 5, 5), 1, 2),
    "many pixels, in slices": ((2, 2, 3, 40, 41), (2, 5, 3, 3, 3), 1, 1),
    "output padding": ((2, 3, 16, 8, 6), (2, 17, 16, 3, 3), 2, 1),
    "phases without taps": ((2, 3, 3, 8, 7), (2, 9, 3, 2, 2), 3, 1),
    "all phases together": ((2, 3, 3, 12, 10), (2, 9, 3, 4, 4), 2, 1),
    "all phases of three": ((2, 1, 1, 9, 6), (2, 17, 1, 4, 4), 3, 1),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [*BY_KERNELS, torch.bfloat16], ids=str)
@pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
def test_kernels_equal_the_reference_in_every_tile(kernels, dtype, layer):
    """Of more numbers than a tile holds, in each direction, the last of them cut off."""
    assert_kernels_equal_the_reference(kernels, dtype, layer)


@pytest.mark.gpu
@pytest.mark.kernels
def test_images_of_a_member_may_lie_farther_apart_than_32_bits_count(kernels):
    """What is between them is never written, so that it takes no memory on a CPU."""
    near = normal(1, 3, 2, 4, 4, dtype=torch.float16, device=kernels)
    storage = torch.UntypedStorage(9 << 29, device=kernels)
    far = near.new_empty(0).set_(storage, 0, near.shape, (0, 1 << 30, 16, 4, 1)).copy_(near)
    weight, own = normal(1, 2, 2, 3, 3, seed=1, device=kernels), torch.ops.axiswise
    for function in (
        lambda x: own.down(x, weight, None, None, 1, 1, False),
        lambda x: own.up(x, weight, None, None, 2, 1, 7, 7, False),
        lambda x: own.up(x, weight, None, None, 2, 1, 8, 8, False),
        lambda x: own.weights(x, near, 3, 3, 1, 1, torch.float32, False)[0],
        lambda x: own.weights(near, x, 3, 3, 1, 1, torch.float32, False)[0],
    ):
        assert torch.equal(function(far), function(near))


@pytest.mark.kernels
def test_kernels_compile_for_a_gpu_that_is_not_here(tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, str(Path(__file__).parent / "triton_compile.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_a_member_does_not_depend_on_its_company_on_a_gpu():
    """Bit for bit, also in bfloat16: the order of every sum is a member's own."""
    x, weight = (
        normal(5, 64, 32, 16, 16, dtype=torch.bfloat16, device="cuda"),
        normal(5, 64, 32, 4, 4, seed=1, device="cuda", dtype=torch.float32),
    )
    y = torch.ops.axiswise.down(x, weight, None, None, 2, 1, True)
    gradient = torch.ops.axiswise.weights(x, y, 4, 4, 2, 1, torch.float32, False)[0]
    for member in range(5):
        own = slice(member, member + 1)
        alone = torch.ops.axiswise.down(x[own], weight[own], None, None, 2, 1, True)
        assert torch.equal(alone[0], y[member])
        found = torch.ops.axiswise.weights(x[own], alone, 4, 4, 2, 1, torch.float32, False)[0]
        assert torch.equal(found[0], gradient[member])


@pytest.mark.gpu
@pytest.mark.kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_adam_kernel_equals_pytorch(kernels, dtype):
    from axiswise.numerics._kernels.triton_adam import adam
    from axiswise.optimizers import Adam

    rates, width = [1e-3, 1e-2, 0.3], 5001
    parameters = normal(3, width, dtype=dtype, device=kernels)
    expected = [row.clone().requires_grad_() for row in parameters]
    optimizers = [torch.optim.Adam([row], lr=rate) for row, rate in zip(expected, rates, strict=True)]
    state = Adam().start(parameters)
    for step in range(5):
        gradient = normal(3, width, seed=step + 1, dtype=dtype, device=kernels)
        for row, own, optimizer in zip(expected, gradient, optimizers, strict=True):
            row.grad = own.clone()
            optimizer.step()
        values = {
            "lr": torch.tensor([rates], dtype=torch.float64),
            **{name: torch.full((1, 3), value, dtype=torch.float64) for name, value in
               (("beta1", 0.9), ("beta2", 0.999), ("eps", 1e-8), ("weight_decay", 0.0), ("clip", 0.0))},
        }  # fmt: skip
        factors = Adam().coefficients(values, torch.tensor([[float(step)]], dtype=torch.float64))
        mean, square, eps, scale = (
            factors[name][0].to(kernels, dtype)[:, None].contiguous() for name in ("mean", "square", "eps", "scale")
        )
        adam(parameters, gradient, state["mean"], state["square"], mean, square, eps, scale)
    tolerance = 1e-12 if dtype == torch.float64 else 2e-6
    for found, row in zip(parameters, expected, strict=True):
        torch.testing.assert_close(found, row.detach(), rtol=tolerance, atol=tolerance)
