"""The fast path against the plain one: on a CPU its operators are PyTorch's own, on a GPU they are kernels."""

import sys
from dataclasses import replace

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from axiswise import data, distributions, grid, models, objectives, optimizers, train
from axiswise.errors import AxiswiseError
from axiswise.numerics import uniform
from axiswise.population import Member, loop
from axiswise.population._acceleration import Accelerated, aten, cast_once, compiled, fused, own
from axiswise.population._cohort import Cohort
from axiswise.population._cohort_loop import cohort_loop, with_values
from axiswise.population._preparation import fast_precision
from axiswise.population.program import Precision
from axiswise.studies.objectives import POSTERIORS, catalogue
from axiswise_benchmarks.networks import NETWORKS

NAMED = {network.name: network for network in NETWORKS}
OBJECTIVES = {
    "β-VAE": objectives.BetaVAE(4.0),
    "FactorVAE": objectives.FactorVAE(10.0),
    "deterministic ELBO": objectives.DeterministicELBO(),
}


def images(count: int = 24, device: str = "cpu", space: data.FactorSpace | None = None) -> data.FactorDataset:
    x = uniform(0, "images", 0, (count, 1, 64, 64), dtype=torch.float32)
    factors = {} if space is None else {"factors": space.levels(torch.arange(count)), "names": space.names}
    return data.arrays(x, **factors).to(torch.device(device))


def trained(members: list[Member], dataset, precision: Precision | None, dtype=torch.float64):
    """Weights and history after training in one cohort, on the path of that precision."""
    loop = cohort_loop(Cohort(tuple(members), 1, precision), dataset, dtype)
    loop.advance()
    weights = [loop.finish().weights[name].flatten(1) for name in loop.program.groups["model"].shapes]
    return torch.cat(weights, 1), loop.history


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_operators_give_the_steps_that_pytorch_gives(objective):
    members = grid(model=models.conv64(latents=2), objective=objective, batch=2, steps=2, seed=range(2))
    dataset = images()
    plain, history = trained(members, dataset, None)
    fast, same = trained(members, dataset, "fp32")
    torch.testing.assert_close(fast, plain, rtol=1e-10, atol=1e-12)
    assert history.keys() == same.keys()


@pytest.mark.parametrize("kind", [distributions.Gaussian, distributions.Laplace, distributions.OptimalGaussian])
def test_numbers_in_which_members_differ_are_not_rounded_to_bfloat16(kind):
    """A likelihood of a decoder's output in bfloat16 has the density that it has with plain numbers."""
    (name,), x = kind.stacks, torch.full((2, 3), 0.1)
    number = torch.tensor(0.3, dtype=torch.float64)
    with Accelerated("bf16"):
        raw = nn.functional.linear(torch.ones(2, 4), torch.zeros(3, 4))
        plain = kind(0.3).log_density(x, raw)
        stacked = with_values(kind(1.0), {name: number}).log_density(x, raw)
    assert raw.dtype == torch.bfloat16
    torch.testing.assert_close(stacked, plain, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(
    ("saved", "moves"), [(aten.detach.default, True), (aten.alias.default, True), (aten.clone.default, False)]
)
def test_relu_and_its_derivative_move_into_the_convolutions(saved, moves):
    """However PyTorch writes values saved for the backward pass; an unknown way costs a pass, and no more."""
    network = nn.Sequential(
        nn.Conv2d(1, 3, 4, 2, 1), nn.ReLU(), nn.Conv2d(3, 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(2, 1, 4, 2, 1)
    ).double()
    x = torch.randn(2, 1, 8, 8, dtype=torch.float64)
    weights = [parameter.detach().requires_grad_() for parameter in network.parameters()]

    def step(x, *weights):
        named = dict(zip((name for name, _ in network.named_parameters()), weights, strict=True))
        found = torch.func.functional_call(network, named, (x,))
        return [found, *torch.autograd.grad(found.square().sum(), weights)]

    with Accelerated("fp32"):
        graph = make_fx(step)(x, *weights)
    marks = [node for node in graph.graph.nodes if node.target in (aten.detach.default, aten.alias.default)]
    for node in marks:
        node.target = saved
    expected = graph(x, *weights)
    fused(graph.graph)
    graph.recompile()
    targets = [node.target for node in graph.graph.nodes]
    assert marks
    assert aten.relu.default not in targets
    assert (aten.threshold_backward.default in targets) is not moves
    assert targets.count(own.down.default) + targets.count(own.up.default) == 5  # 3 forth, 2 back: not to the data
    for found, value in zip(graph(x, *weights), expected, strict=True):
        torch.testing.assert_close(found, value, rtol=0, atol=0)


def test_a_derivative_stays_where_the_result_would_lie_otherwise_in_memory():
    """Behind a dense layer a gradient lies as the rest of the step was traced for, and a convolution's does not."""
    network = nn.Sequential(nn.Linear(2, 48), nn.Unflatten(1, (3, 4, 4)), nn.ReLU(), nn.ConvTranspose2d(3, 1, 4, 2, 1))
    network, x = network.double(), torch.randn(2, 2, dtype=torch.float64)
    weights = [parameter.detach().requires_grad_() for parameter in network.parameters()]

    def step(x, *weights):
        named = dict(zip((name for name, _ in network.named_parameters()), weights, strict=True))
        return torch.autograd.grad(torch.func.functional_call(network, named, (x,)).square().sum(), weights)

    with Accelerated("fp32"):
        graph = make_fx(step)(x, *weights)
    expected = graph(x, *weights)
    fused(graph.graph)
    graph.recompile()
    assert aten.threshold_backward.default in [node.target for node in graph.graph.nodes]
    for found, value in zip(graph(x, *weights), expected, strict=True):
        torch.testing.assert_close(found, value, rtol=0, atol=0)


def test_what_cannot_be_compiled_is_replayed(monkeypatch):
    def refuse(*arguments, **options):
        raise ValueError("no compiler\nanywhere")

    monkeypatch.setattr("torch._inductor.compile", refuse)
    graph = make_fx(lambda x: x + 1)(torch.zeros(2))
    with pytest.warns(UserWarning, match=r"The step is not compiled.* PyTorch says: ValueError: no compiler$"):
        run = compiled(graph, [torch.zeros(2)])
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 2.0))


def test_compiled_steps_take_inputs_however_they_lie(monkeypatch):
    """The compiler is told of contiguous inputs, and given such."""
    layouts = []

    def record(graph, inputs, options):
        layouts.extend(tensor.is_contiguous() for tensor in inputs)
        return lambda *tensors: layouts.extend(tensor.is_contiguous() for tensor in tensors) or graph(*tensors)

    monkeypatch.setattr("torch._inductor.compile", record)
    strided = torch.randn(3, 8)[:, :5]
    run = compiled(make_fx(lambda x: 2 * x)(strided), [strided])
    assert torch.equal(run(strided), 2 * strided)
    assert layouts == [True, True]


def test_casts_of_one_weight_are_shared_and_no_others():
    """A network called twice casts its weights once; intermediate values are cast as often as before."""

    def step(weight, x):
        part = weight[:, :3]
        once, twice = (torch.mm(x.bfloat16(), part.bfloat16()) for _ in range(2))
        inner = once.float() + 1.0
        return inner.bfloat16() + twice + inner.bfloat16()

    weight, x = torch.randn(4, 5), torch.randn(2, 4)
    graph = make_fx(step)(weight, x)
    expected = graph(weight, x)
    assert [node.target for node in graph.graph.nodes].count(aten._to_copy.default) == 7
    cast_once(graph.graph)
    graph.recompile()
    assert [node.target for node in graph.graph.nodes].count(aten._to_copy.default) == 5  # x, weight, once, inner twice
    torch.testing.assert_close(graph(weight, x), expected, rtol=0, atol=0)


def test_a_relu_that_shares_its_convolution_stays():
    """The convolution's own result is used as well, so that it must not be cut off."""
    layer, x = nn.Conv2d(1, 2, 3).double(), torch.randn(1, 1, 5, 5, dtype=torch.float64)
    with Accelerated("fp32"):
        graph = make_fx(lambda x: (y := layer(x)).relu() + y)(x)
    fused(graph.graph)
    graph.recompile()
    assert aten.relu.default in [node.target for node in graph.graph.nodes]
    torch.testing.assert_close(graph(x), layer(x).relu() + layer(x))


@pytest.mark.parametrize(
    "layer",
    [
        nn.Conv2d(2, 4, 3, groups=2),
        nn.Conv2d(2, 4, 3, dilation=2),
        nn.Conv2d(2, 4, 3, stride=(1, 2)),
        nn.Conv2d(2, 4, 3, padding="same"),
        nn.Conv2d(2, 4, (2, 3), stride=2, bias=False),
        nn.ConvTranspose2d(2, 4, 3, groups=2),
        nn.ConvTranspose2d(2, 4, 3, dilation=2),
        nn.ConvTranspose2d(2, 4, 3, stride=(2, 1)),
        nn.ConvTranspose2d(2, 4, 3, stride=2, output_padding=1),
        nn.Linear(9, 4),
    ],
    ids=str,
)
def test_any_layer_gives_its_plain_result(layer):
    x = torch.randn(3, 2, 9, 9)
    with Accelerated("fp32"):
        found = layer(x)
    torch.testing.assert_close(found, layer(x), rtol=1e-5, atol=1e-6)
    with Accelerated("bf16"):
        narrow = layer(x)
    assert narrow.dtype == torch.bfloat16
    torch.testing.assert_close(narrow.float(), layer(x), rtol=0.05, atol=0.05)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "output_padding"),
    [(1, 1, 0, 0), (3, 1, 1, 0), (3, 2, 1, 1), (4, 2, 1, 0), (5, 3, 2, 2), ((2, 5), 3, 1, (0, 2))],
)
def test_transposed_convolutions_run_by_the_operator(kernel, stride, padding, output_padding):
    layer = nn.ConvTranspose2d(3, 2, kernel, stride, padding, output_padding).double()
    x = torch.randn(2, 3, 6, 4, dtype=torch.float64)
    with Accelerated("fp32"):
        found, graph = layer(x), make_fx(layer)(x)
    torch.testing.assert_close(found, layer(x), rtol=1e-12, atol=1e-12)
    assert [node.target for node in graph.graph.nodes].count(own.up.default) == 1


@pytest.mark.parametrize(
    ("layer", "side"),
    [
        (nn.Conv2d(3, 4, 5), 5),
        (nn.Conv2d(3, 4, 4, 2, 1), 3),
        (nn.Conv2d(3, 4, (4, 5), 2, 1, bias=False), 3),
        (nn.ConvTranspose2d(3, 4, 5), 1),
        (nn.ConvTranspose2d(3, 4, (2, 3), 2, bias=False), 1),
    ],
    ids=str,
)
def test_images_that_are_seen_at_once_go_through_a_dense_layer(layer, side):
    """Values and gradients are those of the convolution, and no kernel of convolutions is called."""
    layer, x = layer.double(), torch.randn(2, 3, side, side, dtype=torch.float64, requires_grad=True)
    expected = layer(x)
    with Accelerated("fp32"):
        found, graph = layer(x), make_fx(layer)(x)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)
    wanted = [x, *layer.parameters()]
    slopes = (torch.autograd.grad(each.sin().sum(), wanted) for each in (found, expected))
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    targets = {node.target for node in graph.graph.nodes}
    assert not targets & {own.down.default, own.up.default, aten.convolution.default}


def test_everything_but_products_and_activations_is_computed_in_float32():
    layer, x = nn.Linear(4, 4), torch.randn(8, 4)
    with Accelerated("bf16"):
        hidden = torch.relu(layer(x)).reshape(2, 16).tanh()
        results = [hidden.exp(), hidden * 2.0, hidden.sum(), torch.nn.functional.softplus(hidden), hidden[0] + 1]
    assert hidden.dtype == torch.bfloat16
    assert {result.dtype for result in results} == {torch.float32}


@pytest.mark.parametrize("layer", [nn.Upsample(scale_factor=2), nn.UpsamplingBilinear2d(scale_factor=2)], ids=str)
def test_enlarged_images_keep_the_type_of_products(layer):
    x = torch.rand(2, 3, 4, 5).bfloat16()
    with Accelerated("bf16"):
        found = layer(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), layer(x.float()), rtol=0.01, atol=0)  # rounded once for each direction


def test_bfloat16_products_leave_weights_and_gradients_in_float32():
    members = grid(model=models.conv64(latents=2), objective=objectives.BetaVAE(), batch=4, steps=3, seed=range(2))
    narrow, history = trained(members, images(), "bf16", torch.float32)
    wide, expected = trained(members, images(), "fp32", torch.float32)
    assert narrow.dtype == torch.float32
    assert not torch.equal(narrow, wide)
    for found, value in zip(history["loss"], expected["loss"], strict=True):
        assert abs(found / value - 1).max() < 1e-3


def test_precision_is_checked():
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(1))
    square = data.synth_linear(samples=100)
    with pytest.raises(AxiswiseError, match=r"`precision` 'bf16' needs a CUDA device.* Got cpu and torch.float32"):
        train(members, square, precision="bf16")


@pytest.mark.usefixtures("as_installed")
def test_an_unknown_precision_is_named():
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(1))
    with pytest.raises(AxiswiseError, match=r"`precision` must be .fp32., .bf16. or None\. Got 'fp16'"):
        train(members, data.synth_linear(samples=100), precision="fp16")


@pytest.mark.parametrize(
    ("described", "dtype", "expected"),
    [
        ([models.conv64(latents=2)], torch.float32, "bf16"),
        ([models.conv64(latents=2)], torch.float64, "fp32"),
        ([models.linear(3, 2)], torch.float32, "fp32"),
        ([models.conv64(latents=2), models.mlp(3, 2)], torch.float32, "fp32"),
        ([NAMED["batch norm"].vae()], torch.float32, "bf16"),
        ([NAMED["residual group norm"].vae()], torch.float32, "fp32"),
        ([NAMED["attention on maps"].vae()], torch.float32, "fp32"),
    ],
)
def test_bfloat16_is_the_default_where_it_was_measured(described, dtype, expected, monkeypatch):
    module = sys.modules[fast_precision.__module__]  # its name is also that of the function
    monkeypatch.setattr(module, "find_spec", lambda name: name)  # as if Triton were here
    members = grid(model=described, objective=objectives.BetaVAE(), batch=4, steps=1, seed=range(2))
    assert fast_precision(None, dtype, torch.device("cuda"), members) == expected
    assert fast_precision("fp32", dtype, torch.device("cuda"), members) == "fp32"
    assert fast_precision(None, dtype, torch.device("cpu"), members) is None


@pytest.mark.gpu
@pytest.mark.kernels
def test_kernels_give_the_steps_that_pytorch_gives(kernels):
    """In single precision, of networks in which ReLUs move into convolutions of either direction.

    Weights are thirty times as long as the way they go, and rounded thrice.
    """

    def nets():
        encoder = [nn.Conv2d(1, 6, 4, 2, 1), nn.ReLU(), nn.Conv2d(6, 9, 3, 2, 1), nn.ReLU(), nn.Flatten()]
        decoder = [nn.Linear(2, 144), nn.Unflatten(1, (9, 4, 4)), nn.ReLU(), nn.ConvTranspose2d(9, 6, 3, 2, 1, 1)]
        decoder = [*decoder, nn.ReLU(), nn.ConvTranspose2d(6, 1, 3, 2, 1, 1)]
        return nn.Sequential(*encoder, nn.Linear(144, 4)), nn.Sequential(*decoder)

    model, optimizer = models.custom(nets, (1, 16, 16), 2), optimizers.SGD(1e-3)
    small = data.arrays(uniform(0, "images", 0, (24, 1, 16, 16), dtype=torch.float32))
    members = grid(model=model, objective=objectives.BetaVAE(), batch=3, steps=3, seed=range(2), optimizer=optimizer)
    start, _ = trained([replace(member, steps=0) for member in members], small, None)
    plain, _ = trained(members, small, None)
    fast, _ = trained(members, small.to(kernels), "fp32", torch.float32)
    moved = (plain - start).norm()
    assert (fast.cpu() - plain).norm() < 1e-5 * moved


@pytest.mark.gpu
@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_kernels_and_graphs_give_the_steps_that_pytorch_gives_on_a_gpu(objective):
    members = grid(model=models.conv64(latents=4), objective=objective, batch=8, steps=23, seed=range(3))
    plain, history = trained(members, images(64, "cuda"), None)
    fast, same = trained(members, images(64, "cuda"), "fp32")
    torch.testing.assert_close(fast, plain, rtol=1e-9, atol=1e-11)
    for name, terms in history.items():
        for found, value in zip(same[name], terms, strict=True):
            torch.testing.assert_close(torch.tensor(found), torch.tensor(value), rtol=1e-9, atol=1e-9)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("precision", "dtype", "tolerance"), [("fp32", torch.float64, 1e-9), ("bf16", torch.float32, 1e-2)]
)
def test_members_do_not_depend_on_their_company_on_a_gpu(precision, dtype, tolerance):
    """To rounding, by plain descent: Adam's first steps have the size of the rate wherever a gradient is not zero."""
    members = grid(
        model=models.conv64(latents=4),
        objective=objectives.BetaVAE(),
        batch=8,
        steps=20,
        seed=range(3),
        optimizer=optimizers.SGD(1e-5),
    )
    together, _ = trained(members, images(64, "cuda"), precision, dtype)
    for position, member in enumerate(members):
        alone, _ = trained([member], images(64, "cuda"), precision, dtype)
        start, _ = trained([replace(member, steps=0)], images(64, "cuda"), precision, dtype)
        moved = (together[position] - start[0]).norm()
        assert moved > 0
        assert (alone[0] - together[position]).norm() < tolerance * moved


STOPPED = {
    "dcgan64": (models.dcgan64(1, 4), objectives.BetaVAE()),
    **{
        name: (models.conv64(latents=4, posterior=POSTERIORS.get(name, distributions.Diagonal())), objective)
        for name, objective in catalogue(27).items()
    },
}


@pytest.mark.gpu
@pytest.mark.parametrize(("model", "objective"), STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_run_goes_on_bit_for_bit_on_a_gpu(model, objective, precision, tmp_path, monkeypatch):
    members = grid(model=model, objective=objective, batch=8, steps=27, seed=range(3))
    dataset = data.transitions(
        images(64, "cuda", data.FactorSpace((data.Factor("a", 8), data.Factor("b", 8)), grid=True))
    )
    whole = train(members, dataset, precision=precision)

    class Stop(Exception):
        pass

    def stop(entry):
        if entry.step >= 10:
            raise Stop

    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 5)
    with pytest.raises(Stop):
        train(members, dataset, out=tmp_path, precision=precision, on_history=stop)
    assert list((tmp_path / "cohorts").iterdir())
    resumed = train(members, dataset, out=tmp_path, precision=precision)
    for one, other in zip(whole.trained, resumed.trained, strict=True):
        assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
        assert all(torch.equal(one.buffers[name], other.buffers[name]) for name in one.buffers)


@pytest.mark.gpu
def test_a_member_that_diverges_leaves_its_neighbours_alone_on_a_gpu():
    calm = grid(model=models.conv64(latents=4), objective=objectives.BetaVAE(), batch=8, steps=20, seed=range(2))
    wild = [replace(calm[0], seed=7, optimizer=optimizers.Adam(1e18))]
    together = train([*calm, *wild], images(64, "cuda"), precision="bf16")
    alone = train(calm, images(64, "cuda"), precision="bf16")
    assert [member.status for member in together.trained][:2] == ["trained", "trained"]
    assert together.trained[2].status != "trained"
    for one, other in zip(alone.trained, together.trained, strict=False):
        assert all(torch.isfinite(other.weights[name]).all() for name in one.weights)
