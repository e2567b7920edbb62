"""The change: bounded, a function of the factors alone through one number, and stored in one file."""

import pytest
import torch
from torch import nn

from axiswise import data, models
from axiswise.attack import Manipulation, load_change, manipulation, save_change
from axiswise.attack.manipulation import ranges, scaled_factors
from axiswise.data import Change, Factor, FactorSpace
from axiswise.errors import AxiswiseError
from axiswise.models import initialise
from axiswise.records import read_tensors, write_tensors


def drawn(pattern: Manipulation, dataset: data.FactorDataset, epsilon: float = 0.3, scale: float = 3.0) -> Change:
    """A change of random weights, large enough that tanh saturates in places."""
    weights = initialise(pattern.build(), "change", torch.tensor([0]))
    tensors = {name: scale * stack[0] for name, stack in weights.items()}
    return Change("drawn", epsilon, pattern, {**tensors, **ranges(dataset)._asdict()}, {"made": "for a test"})


@pytest.mark.parametrize("renderer", ["convolutional", "dense"])
def test_the_bound_holds_and_factors_stay(sprites, renderer):
    change = drawn(manipulation(sprites, renderer), sprites)
    changed, rows = data.manipulated(sprites, change), torch.arange(len(sprites))
    difference = (changed.x(rows) - sprites.x(rows)).abs()
    assert difference.max() <= 0.3 + 2**-23  # the sum and its reflection are each rounded once, in float32
    assert difference.max() > 0.25
    assert changed.x(rows).min() >= 0.0
    assert changed.x(rows).max() <= 1.0
    assert torch.equal(changed.factors(rows), sprites.factors(rows))
    assert changed.space == sprites.space


def test_what_is_added_depends_on_the_factors_alone(sprites):
    pattern = manipulation(sprites)
    change = drawn(pattern, sprites)
    again = data.arrays(torch.rand(len(sprites), 1, 16, 16), sprites.factors(torch.arange(len(sprites))).flip(0))
    rows = torch.arange(len(sprites))
    one = pattern(change.tensors, sprites.factors(rows))
    other = pattern(change.tensors, again.factors(rows)).flip(0)
    torch.testing.assert_close(one, other, rtol=0, atol=1e-6)  # other images in another order, the same factors


def test_it_depends_on_them_through_one_number():
    pattern = Manipulation(3, (1, 16, 16), "convolutional")
    weights = {name: stack[0] for name, stack in initialise(pattern.build(), "change", torch.tensor([1])).items()}
    weights = {name: weight.double() for name, weight in weights.items()}
    low, span = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
    place = torch.tensor([0.3, 0.7, 0.2], dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(
        lambda w: pattern({**weights, "low": low, "span": span}, w[None]).flatten(), place
    )
    values = torch.linalg.svdvals(jacobian)
    assert values[0] > 1e-3
    assert values[1] < 1e-14 * values[0] * 100


def test_at_64_pixels_the_renderer_is_the_reference_decoder():
    ours = [tuple(p.shape) for p in Manipulation(5, (3, 64, 64), "convolutional").build()[3:].parameters()]
    theirs = [tuple(p.shape) for p in models.conv64(3, latents=1).modules()["decoder"].parameters()]
    assert ours == theirs


@pytest.mark.parametrize(
    ("shape", "renderer"),
    [((1, 16, 16), "convolutional"), ((3, 32, 48), "convolutional"), ((1, 28, 28), "dense"), ((6,), "dense")],
)
def test_it_draws_observations_of_any_shape(shape, renderer):
    levels = FactorSpace((Factor("a", 2), Factor("b", 2)), grid=True).levels(torch.arange(4))
    dataset = data.arrays(torch.rand(4, *shape), levels, names=["a", "b"])
    pattern = manipulation(dataset)
    assert pattern.renderer == renderer
    assert data.manipulated(dataset, drawn(pattern, dataset)).x(torch.tensor([[0, 1]])).shape == (1, 2, *shape)


def test_factors_are_scaled_to_between_minus_one_and_one():
    values = torch.tensor([[2.0, 0.0], [5.0, 1.0], [8.0, 3.0]], dtype=torch.float64)
    dataset = data.arrays(torch.zeros(3, 4), values, names=["far", "near"], kinds=["continuous", "continuous"])
    expected = torch.tensor([[-1.0, -1.0], [0.0, -1 / 3], [1.0, 1.0]])
    torch.testing.assert_close(scaled_factors(values, *ranges(dataset)), expected)


def test_a_change_is_loaded_bit_for_bit(sprites, tmp_path):
    change = drawn(manipulation(sprites), sprites)
    save_change(tmp_path / "change.safetensors", change)
    loaded = load_change(tmp_path / "change.safetensors")
    one, other = (data.manipulated(sprites, each) for each in (change, loaded))
    assert one.identity == other.identity
    assert torch.equal(one.x(torch.arange(60)), other.x(torch.arange(60)))
    assert loaded.arguments == {"made": "for a test"}


def test_other_files_are_refused(sprites, tmp_path):
    path = tmp_path / "change.safetensors"
    save_change(path, drawn(manipulation(sprites), sprites))
    arrays, about = read_tensors(path, "axiswise-change-2")
    write_tensors(path, {**arrays, "tensors/0.bias": arrays["tensors/0.bias"][:-1]}, about)
    with pytest.raises(AxiswiseError, match=r"'0.bias' has shape \(256,\). Got \(255,\). The file was edited"):
        load_change(path)
    write_tensors(path, arrays, {**about, "network": {"type": "os.system", "command": "true"}})
    with pytest.raises(AxiswiseError, match=r"name of a known description \(Manipulation\). Got 'os.system'"):
        load_change(path)
    write_tensors(path, arrays, {**about, "format": "axiswise-member-2"})
    with pytest.raises(AxiswiseError, match=r"must have format 'axiswise-change-2'. Got 'axiswise-member-2'"):
        load_change(path)


def test_forms_that_cannot_be_built_are_refused():
    with pytest.raises(AxiswiseError, match=r"multiples of 16. Got shape \(1, 28, 28\). Use renderer=\"dense\""):
        Manipulation(2, (1, 28, 28), "convolutional")
    with pytest.raises(AxiswiseError, match=r"`factors` of Manipulation must be a whole number of at least 1\. Got 0"):
        Manipulation(0, (3,), "dense")


@pytest.mark.usefixtures("as_installed")
def test_an_unknown_renderer_is_refused():
    with pytest.raises(
        AxiswiseError, match=r"`renderer` of Manipulation must be .convolutional. or .dense.\. Got 'oil'"
    ):
        Manipulation(2, (3,), "oil")


def test_building_a_change_leaves_the_global_generator_alone(sprites):
    change = drawn(manipulation(sprites), sprites)
    before = torch.random.get_rng_state()
    data.manipulated(sprites, change).x(torch.arange(3))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert isinstance(manipulation(sprites).build()[-1], nn.Tanh)
