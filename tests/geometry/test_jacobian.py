"""Law 5: the Jacobian is W for a linear decoder, and agrees with finite differences otherwise."""

import sys

import pytest
import torch
from torch import nn
from torch.func import grad, jacfwd, vmap

from axiswise.errors import AxiswiseError
from axiswise.geometry import jacobian
from axiswise.numerics import _convolution as convolution

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def normals(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def built(*layers: nn.Module) -> nn.Sequential:
    """A decoder in double precision whose weights do not depend on the global generator."""
    decoder = nn.Sequential(*layers).double().eval()
    generator = torch.Generator().manual_seed(1)
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.4, generator=generator)
    return decoder


def convolutional(latents: int) -> nn.Sequential:
    return built(
        nn.Linear(latents, 32),
        nn.ReLU(),
        nn.Unflatten(-1, (8, 2, 2)),
        nn.ConvTranspose2d(8, 4, 4, 2, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(4, 3, 4, 2, 1),
        nn.Sigmoid(),
    )


def perceptron(latents: int, outputs: int) -> nn.Sequential:
    return built(nn.Linear(latents, 12), nn.Tanh(), nn.BatchNorm1d(12), nn.Linear(12, outputs), nn.Sigmoid())


def finite_differences(decode, z: torch.Tensor) -> torch.Tensor:
    """Central differences, with the step that balances truncation (step²) against rounding (1e-16 / step)."""
    step = 6e-6
    columns = []
    for direction in step * torch.eye(z.shape[-1], dtype=z.dtype):
        difference = (decode(z + direction) - decode(z - direction)).detach() / (2 * step)
        columns.append(difference.reshape(*z.shape[:-1], -1))
    return torch.stack(columns, -1)


@pytest.mark.parametrize("shape", [(7, 3), (2, 5), (4, 4), (1, 3), (3, 1)])
def test_equals_the_matrix_of_a_linear_decoder(shape):
    weight, offset = normals(*shape), normals(shape[0])
    found = jacobian(lambda z: z @ weight.T + offset, normals(11, shape[1]))
    assert torch.equal(found, weight.expand(11, *shape))


def test_equals_the_matrices_of_a_stack_of_linear_decoders():
    weights = normals(4, 7, 3)
    found = jacobian(lambda z: z @ weights.mT, normals(4, 5, 3))
    torch.testing.assert_close(found, weights[:, None].expand(4, 5, 7, 3), rtol=1e-14, atol=0)


@pytest.mark.parametrize(
    "decode",
    [convolutional(3), perceptron(3, 20), perceptron(5, 2), perceptron(3, 3)],
    ids=["conv", "mlp", "wide", "square"],
)
def test_agrees_with_finite_differences(decode):
    z = normals(9, decode[0].in_features)
    found = jacobian(decode, z)
    torch.testing.assert_close(found, finite_differences(decode, z), rtol=1e-7, atol=1e-9)


def test_pixels_are_flattened_in_the_order_of_the_image():
    decode = convolutional(3)
    z = normals(2, 3)
    image = decode(z)
    found = jacobian(decode, z).reshape(2, *image.shape[1:], 3)
    torch.testing.assert_close(
        found[1, 2, 5, 6], torch.autograd.functional.jacobian(lambda z: decode(z)[1, 2, 5, 6], z)[1]
    )


def test_agrees_with_reverse_mode_of_each_row():
    decode = perceptron(4, 6)
    z = normals(5, 4)
    expected = torch.stack([torch.autograd.functional.jacobian(lambda row: decode(row[None])[0], row) for row in z])
    torch.testing.assert_close(jacobian(decode, z), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("outputs", [2, 8])
@pytest.mark.parametrize("chunk", [1, 2, 4, 100])
def test_chunks_change_nothing(outputs, chunk):
    decode = perceptron(4, outputs)
    z = normals(2, 9, 4)

    def stacked(points):
        return decode(points.flatten(0, 1)).unflatten(0, points.shape[:2])

    found = jacobian(stacked, z, chunk=chunk)
    assert found.shape == (2, 9, outputs, 4)
    torch.testing.assert_close(found, jacobian(stacked, z), rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(found[1], jacobian(decode, z[1]), rtol=1e-13, atol=1e-15)


def test_the_memory_of_a_pass_is_bounded(monkeypatch):
    monkeypatch.setattr(sys.modules["axiswise.geometry.jacobian"], "PASS_BYTES", 3 * 20 * 3 * 8)
    weight, rows = normals(20, 3), []

    def decode(z):
        rows.append(len(z))
        return z @ weight.T

    jacobian(decode, normals(7, 3))
    assert rows == [1, 3, 3, 1]  # one row to learn the number of pixels, then three at a time


def test_no_graph_is_kept_and_no_gradient_left():
    decode = convolutional(3)
    z = normals(4, 3).requires_grad_()
    found = jacobian(decode, z)
    assert not found.requires_grad
    assert z.grad is None
    assert all(parameter.grad is None for parameter in decode.parameters())


@pytest.mark.parametrize("outputs", [2, 8])
def test_a_decoder_that_records_no_graph_itself_is_differentiated_nevertheless(outputs):
    decode = perceptron(4, outputs)
    z = normals(3, 4)
    torch.testing.assert_close(jacobian(torch.no_grad()(decode), z), jacobian(decode, z), rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("decode", [convolutional(3), perceptron(5, 2)], ids=["conv", "wide"])
def test_single_precision_is_double_precision_rounded(device, decode):
    z = normals(6, decode[0].in_features)
    expected = jacobian(decode, z)
    try:
        found = jacobian(decode.float().to(device), z.float().to(device))
    finally:
        decode.double().cpu()
    assert found.dtype == torch.float32
    assert found.device.type == device
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0, 3)])
def test_refuses_points_without_axes(shape):
    with pytest.raises(AxiswiseError, match=r"`z` must have axes \(…, n, z\).* Got shape"):
        jacobian(lambda z: z, torch.zeros(shape))


def test_refuses_a_decoder_that_loses_the_samples():
    with pytest.raises(
        AxiswiseError, match=r"points of shape \(1, 3\) to observations of shape \(1,\) \+ \(…\)\. Got shape \(3,\)"
    ):
        jacobian(lambda z: z.sum(0), torch.zeros(5, 3))


def test_refuses_a_decoder_of_one_model_for_points_of_many():
    decode = convolutional(3)
    with pytest.raises(AxiswiseError, match=r"a decoder of one model needs `z` without a member axis"):
        jacobian(lambda z: decode(z.flatten(0, 1)), normals(2, 5, 3))


def odd(latents: int) -> nn.Sequential:
    """Transposed convolutions of many kinds, some of which are left to PyTorch, and an ordinary one."""
    return built(
        nn.Linear(latents, 36),
        nn.Tanh(),
        nn.Unflatten(-1, (4, 3, 3)),
        nn.ConvTranspose2d(4, 4, 3, 2, 1, 1),
        nn.ELU(),
        nn.ConvTranspose2d(4, 6, (3, 2), (2, 1), (1, 0)),
        nn.Tanh(),
        nn.ConvTranspose2d(6, 4, 3, groups=2, dilation=2),
        nn.Conv2d(4, 3, 3),
        nn.ReLU(),
        nn.ConvTranspose2d(3, 2, 5, 3, 2),
        nn.Sigmoid(),
    )


def hyper(latents: int):
    """A decoder whose weights depend on the latents of all rows, which here are the same."""
    first, second = normals(latents, 4 * 3 * 3), normals(latents, 4 * 2 * 3 * 3)

    def decode(z):
        images = (z @ first).reshape(-1, 4, 3, 3).tanh()
        weight = (z[0] @ second).reshape(4, 2, 3, 3)
        return torch.nn.functional.conv_transpose2d(images, weight, stride=2)

    return decode


def mapped(latents: int):
    """A decoder that maps over rows by itself."""
    plain = odd(latents)
    return lambda z: vmap(lambda row: plain(row[None])[0])(z)


def gradients(latents: int):
    """A decoder that differentiates by itself."""
    plain = convolutional(latents)
    return lambda z: vmap(grad(lambda row: plain(row[None]).square().sum()))(z).sin()


@pytest.mark.parametrize("make", [convolutional, odd, mapped, hyper, gradients])
@pytest.mark.parametrize("rows", [1, 4])
def test_equals_pytorchs_own_to_rounding(make, rows):
    """Convolutions as products, against `jacfwd` of PyTorch's own, for decoders of any make."""
    decode, z = make(3), normals(1, 3).expand(rows, 3)
    found = jacobian(decode, z, mode="forward")
    expected = torch.stack([jacfwd(lambda row: decode(row[None])[0].flatten())(row) for row in z]).detach()
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_transposed_convolutions_are_products_in_forward_mode(dtype, monkeypatch):
    calls, plain = [], convolution._by_products
    monkeypatch.setattr(convolution, "_by_products", lambda *a: calls.append(a[0].shape[1]) or plain(*a))
    decode = convolutional(3).to(dtype)
    z = normals(5, 3).to(dtype)
    jacobian(decode, z)
    assert calls == [5, 15, 5, 15]  # the values of each layer once, and their derivatives in three directions
    decode(z)
    jacobian(decode, z, mode="reverse")
    assert len(calls) == 4  # and nothing stays switched on


@pytest.mark.parametrize("outputs", [2, 8])
def test_both_modes_agree(outputs):
    decode = perceptron(4, outputs)
    z = normals(3, 4)
    torch.testing.assert_close(
        jacobian(decode, z, mode="forward"), jacobian(decode, z, mode="reverse"), rtol=1e-13, atol=1e-15
    )


def test_reverse_mode_pulls_back_few_outputs_at_a_time(monkeypatch):
    decode, z = perceptron(4, 8), normals(3, 4)
    expected = jacobian(decode, z, mode="forward")
    monkeypatch.setattr(sys.modules["axiswise.geometry.jacobian"], "PASS_BYTES", 3 * 3 * 8 * 8)
    torch.testing.assert_close(jacobian(decode, z, mode="reverse", chunk=3), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.usefixtures("as_installed")
def test_refuses_a_mode_that_is_none_or_cannot_be():
    with pytest.raises(AxiswiseError, match=r'`mode` must be "forward", "reverse" or None. Got \'sideways\'.'):
        jacobian(lambda z: z, normals(3, 2), mode="sideways")  # pyright: ignore[reportArgumentType]
    with pytest.raises(AxiswiseError, match=r"Reverse mode needs a decoder that can record a graph"):
        jacobian(torch.no_grad()(perceptron(4, 2)), normals(3, 4), mode="reverse")
    with pytest.raises(AxiswiseError, match=r"`chunk` must be at least 1. Got 0"):
        jacobian(lambda z: z, normals(3, 2), chunk=0)
