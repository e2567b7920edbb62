"""The loop takes the steps of any program: here of a sum and of two players, against closed forms."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import vmap

from axiswise.errors import AxiswiseError
from axiswise.optimizers import SGD, Adam
from axiswise.population import loop as module
from axiswise.population.loop import Loop
from axiswise.population.program import Losses, Program, Update, WeightGroup, bind, over_members
from axiswise.records import read_tensors, write_tensors
from axiswise.schedules import Linear

FORMAT = "axiswise-counter-1"


class Numbers:
    """The input of step n is n itself, for each update."""

    def __init__(self, updates=1):
        self.updates = updates

    def block(self, numbers):
        return torch.arange(numbers.start, numbers.stop, dtype=torch.float64)

    def inputs(self, row):
        return (row,) * self.updates


class Value(nn.Module):
    """One number."""

    def __init__(self):
        super().__init__()
        self.value = nn.Parameter(torch.zeros(()))
        self.register_buffer("calls", torch.zeros(()))


def counting(weights, buffers, number):
    """Its gradient is −n, so that plain descent at rate 1 adds n."""
    value = weights["sum"]["sum.value"]
    return Losses({"sum": -(number * value).sum()}, {"number": number.clone()}, {"sum.calls": buffers["sum.calls"] + 1})


def fresh(steps=25, copies=2):
    program = Program(
        {"sum": WeightGroup({"sum": Value()}, [SGD(lr=1.0)] * copies)},
        Numbers(),
        (Update(("sum",), counting),),
        steps=steps,
        interval=10,
        threads=1,
    )
    zero = torch.zeros(copies, dtype=torch.float64)
    return Loop(program, {"sum.value": zero}, {"sum.calls": zero})


def test_steps_are_taken_recorded_and_reported():
    loop, blocks = fresh(), []
    loop.advance(on_block=blocks.append)
    finished = loop.finish()
    assert [number for block in blocks for number in block] == list(range(25))
    assert finished.history["step"].tolist() == [0, 10, 20, 24]
    assert finished.history["number"].tolist() == [0, 10, 20, 24]
    assert finished.weights["sum.value"].tolist() == [300.0, 300.0]
    assert finished.buffers["sum.calls"].tolist() == [25.0, 25.0]
    assert finished.seconds > 0


def test_steps_are_taken_on_the_gpu_where_the_state_is(monkeypatch):
    """Kernels and graphs begin on the current GPU: "cuda:1" would be read by the first one."""
    loop, entered, events = fresh(steps=3), torch.cuda.device_of, []

    @contextmanager
    def device_of(tensor):
        events.append(tensor.data_ptr())
        with entered(tensor):
            yield
        events.append("left")

    monkeypatch.setattr(torch.cuda, "device_of", device_of)
    loop.advance(on_block=lambda numbers: events.extend(numbers))
    assert events == [loop.weights["sum.value"].data_ptr(), 0, 1, 2, "left"]


def test_initial_weights_are_left_as_they_were():
    zero = torch.zeros(2, dtype=torch.float64)
    loop = Loop(fresh().program, {"sum.value": zero}, {"sum.calls": zero})
    loop.advance()
    assert zero.tolist() == [0.0, 0.0]


def test_a_loop_of_any_kind_is_stored_and_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SAVE_SECONDS", -1.0)
    monkeypatch.setattr(module, "SAVING_SHARE", 1e9)  # after every block
    monkeypatch.setattr(module, "LONGEST_BLOCK", 7)
    path, stopped = tmp_path / "counter.safetensors", fresh()

    def save():
        arrays, about = stopped.state()
        write_tensors(path, arrays, {"format": FORMAT, **about})

    def stop(numbers):
        if 12 in numbers:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped.advance(save=save, on_block=stop)
    whole, resumed = fresh(), fresh()
    whole.advance()
    resumed.resume(read_tensors(path, FORMAT))
    assert 12 < resumed.step < 25
    resumed.advance()
    one, other = whole.finish(), resumed.finish()
    assert torch.equal(one.weights["sum.value"], other.weights["sum.value"])
    assert torch.equal(one.buffers["sum.calls"], other.buffers["sum.calls"])
    for name, entries in one.history.items():
        np.testing.assert_array_equal(other.history[name], entries)


def test_the_state_of_another_program_is_refused():
    with pytest.raises(AxiswiseError, match=r"'weights/sum' of shape \(3, 1\). Got \(2, 1\). It is of another"):
        fresh(copies=3).resume(fresh().state())


def test_a_state_that_is_kept_does_not_change_with_the_loop():
    loop, kept = fresh(), []
    loop.advance(on_block=lambda numbers: kept.append(loop.state()))
    sums = [state.arrays["weights/sum"][0, 0] for state in kept]
    assert sums == [sum(range(state.about["step"])) for state in kept]


def test_a_term_that_is_a_weight_is_recorded_as_it_was():
    def recording(weights, buffers, number):
        losses = counting(weights, buffers, number)
        return losses._replace(terms={"value": weights["sum"]["sum.value"][:1]})

    start = fresh(steps=4)
    program = replace(start.program, updates=(Update(("sum",), recording),), interval=1)
    zero = torch.zeros(2, dtype=torch.float64)
    loop = Loop(program, {"sum.value": zero}, {"sum.calls": zero})
    loop.advance()
    assert loop.finish().history["value"].flatten().tolist() == [0.0, 0.0, 1.0, 3.0]


def test_before_its_first_step_nothing_of_a_group_changes():
    module = nn.Linear(1, 1, bias=False)
    group = WeightGroup({"line": module}, [SGD(lr=0.1, weight_decay=1.0)], first=3)

    def undefined(weights, buffers, number):
        value = weights["line"]["line.weight"].sum()
        return Losses({"line": value * torch.where(number < 3, torch.nan, 0.0)}, {})

    for steps, expected in ((3, 1.0), (4, 0.9)):
        program = Program({"line": group}, Numbers(), (Update(("line",), undefined),), steps=steps)
        loop = Loop(program, {"line.weight": torch.ones(1, 1, 1, dtype=torch.float64)})
        loop.advance()
        assert loop.finish().weights["line.weight"].item() == pytest.approx(expected, abs=1e-15)


def test_equal_updates_of_other_sizes_are_traced_apart():
    class Sizes(Numbers):
        def inputs(self, row):
            return (row.expand(4), row.expand(6))

    def adding(weights, buffers, numbers):
        return Losses({"sum": -(numbers.sum() * weights["sum"]["sum.value"]).sum()}, {})

    update = Update(("sum",), adding)
    program = replace(fresh(steps=3).program, inputs=Sizes(), updates=(update, update))
    loop = Loop(program, {"sum.value": torch.zeros(2, dtype=torch.float64)})
    loop.advance()
    assert loop.finish().weights["sum.value"].tolist() == [30.0, 30.0]


@pytest.mark.parametrize(
    ("optimizers", "weights", "message"),
    [
        ([SGD()] * 2, {}, r"needs weights 'line.weight' of shape \(2, 1, 3\), a row for each optimizer. Got None."),
        ([SGD()] * 2, {"line.weight": torch.zeros(2, 3, 1)}, r"of shape \(2, 1, 3\).* Got \(2, 3, 1\)."),
        ([SGD(), Adam()], {"line.weight": torch.zeros(2, 1, 3)}, r"must be of one kind.* Got .*Adam.*SGD"),
        ([Adam(), Adam(amsgrad=True)], {"line.weight": torch.zeros(2, 1, 3)}, r"must be of one kind"),
    ],
)
def test_weights_and_optimizers_that_do_not_fit_are_refused(optimizers, weights, message):
    group = WeightGroup({"line": nn.Linear(3, 1, bias=False)}, optimizers)
    with pytest.raises(AxiswiseError, match=message):
        Loop(Program({"line": group}, Numbers(), (), steps=1), weights)


MATRIX = torch.tensor([[1.0, 0.5], [-0.25, 2.0]], dtype=torch.float64)


@pytest.mark.parametrize("updates", [1, 3])
@pytest.mark.parametrize("stacked", [True, False])
def test_players_move_by_their_own_losses_as_a_plain_loop_moves_them(updates, stacked):
    """A game of two players in three copies: min over a and max over b of aᵀMb + ‖a‖² − ‖b‖², the first later."""
    rates = [Adam(lr=Linear(0.1, 0.01, 12)), Adam(lr=0.05), Adam(lr=0.02, beta1=0.5)]
    start = {"a": torch.randn(3, 1, 2, dtype=torch.float64), "b": torch.randn(3, 1, 2, dtype=torch.float64)}
    modules = {name: nn.Linear(2, 1, bias=False) for name in "ab"}

    def value(a, b):
        return a["a.weight"] @ MATRIX @ b["b.weight"].T + a["a.weight"].square().sum() - b["b.weight"].square().sum()

    def game(weights, buffers, number):
        found = over_members(value, stacked=stacked)(weights["a"], weights["b"]).flatten()
        return Losses({"a": found.sum(), "b": -found.sum()}, {"value": found})

    only_b, both = Update(("b",), game), Update(("b", "a"), game)
    groups = {"a": WeightGroup({"a": modules["a"]}, rates, first=4), "b": WeightGroup({"b": modules["b"]}, rates)}
    program = Program(groups, Numbers(updates), (*[only_b] * (updates - 1), both), steps=12)
    loop = Loop(program, {f"{name}.weight": stack for name, stack in start.items()})
    loop.advance()
    finished = loop.finish()
    for copy, rate in enumerate(rates):
        a, b = (start[name][copy].clone().requires_grad_() for name in "ab")
        players = [torch.optim.Adam([own], lr=1.0, betas=(rate.beta1, 0.999)) for own in (a, b)]
        for step in range(12):
            for player in players:
                player.param_groups[0]["lr"] = rate.lr.at(step) if isinstance(rate.lr, Linear) else rate.lr
            for update in range(updates):
                found = value({"a.weight": a}, {"b.weight": b})
                a.grad, down = torch.autograd.grad(found, [a, b])
                b.grad = -down
                players[1].step()
                if update == updates - 1 and step >= 4:
                    players[0].step()
        assert (finished.weights["a.weight"][copy] - a).abs().max() < 1e-12
        assert (finished.weights["b.weight"][copy] - b).abs().max() < 1e-12


def test_one_row_after_another_is_what_vmap_gives():
    modules = {"layer": nn.Linear(2, 3).double()}
    stacks = {"layer.weight": torch.randn(4, 3, 2).double(), "layer.bias": torch.randn(4, 3).double()}
    x = torch.randn(5, 2).double()

    def one(weights, x):
        return {"output": bind(modules, weights)["layer"](x)}

    for rows in (4, 1):
        own = {name: stack[:rows] for name, stack in stacks.items()}
        together = over_members(one, stacked=True, shared=[1])(own, x)["output"]
        apart = over_members(one, stacked=False, shared=[1])(own, x)["output"]
        assert together.shape == apart.shape == (rows, 5, 3)
        assert (together - apart).abs().max() < 1e-14
        assert (together - vmap(lambda weights: one(weights, x)["output"])(own)).abs().max() == 0
