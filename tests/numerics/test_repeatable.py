"""Convolutions that keep their type: what is set while they run, who sets it, and that it is put back."""

import pytest
import torch

import axiswise as aw
from axiswise import data, models, objectives
from axiswise.evaluation import evaluate
from axiswise.numerics import repeatable
from axiswise.population import grid, train

CUDNN = torch.backends.cudnn
EXACT = (True, False, "ieee", "ieee")


def settings():
    return CUDNN.deterministic, CUDNN.benchmark, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision


@pytest.fixture(params=[("tf32", "tf32"), ("ieee", "tf32")], ids=["as PyTorch sets them", "one set by hand"])
def before(request, monkeypatch):
    """Settings that are not those that are asked for."""
    monkeypatch.setattr(CUDNN, "benchmark", True)
    kept = CUDNN.allow_tf32, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision
    CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision = request.param
    yield settings()
    CUDNN.allow_tf32, CUDNN.conv.fp32_precision, CUDNN.rnn.fp32_precision = kept


def test_the_older_switch_is_left_as_it_was():
    assert CUDNN.allow_tf32 is True
    with repeatable():
        assert CUDNN.allow_tf32 is False
    assert CUDNN.allow_tf32 is True


def test_settings_hold_while_it_lasts_and_are_put_back(before):
    assert before[1] is True
    with repeatable():
        assert settings() == EXACT
        assert CUDNN.allow_tf32 is False  # the older switch can be read: PyTorch raises where it contradicts the others
    assert settings() == before
    with pytest.raises(InterruptedError), repeatable():
        raise InterruptedError
    assert settings() == before


def test_the_last_of_several_threads_puts_settings_back(before):
    first, second = repeatable(), repeatable()  # two trainings, the first of which ends while the second goes on
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert settings() == EXACT
    second.__exit__(None, None, None)
    assert settings() == before


def test_changes_measures_and_explanations_use_them(before):
    seen = []

    def pattern(tensors, factors):
        seen.append(("change", settings()))
        return torch.zeros(*factors.shape[:-1], 3)

    def measure(codes):
        seen.append(("measure", settings()))
        return codes.mean(dim=(1, 2))

    def encode(x):
        seen.append(("explanation", settings()))
        return x[:, :2], torch.full((len(x), 2), -3.0)

    square = data.synth_linear(samples=50)
    changed = data.manipulated(square, data.Change("nothing", 0.1, pattern))
    seen.clear()  # the change was asked once for its shape
    changed.x(torch.arange(5))
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1.0), steps=2)
    evaluate(train(members, square), square, [measure])
    aw.explain(encode, lambda z: torch.cat([z, z[:, :1]], 1), square.x(torch.arange(50)))
    assert {who for who, _ in seen} == {"change", "measure", "explanation"}
    assert {found for _, found in seen} == {EXACT}
    assert settings() == before
