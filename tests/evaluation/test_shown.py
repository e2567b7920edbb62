"""What Python and notebooks show of results: a few lines, and HTML in which names are text."""

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives, scores
from axiswise.evaluation import evaluate
from axiswise.explanation import explain
from axiswise.population import grid, train
from axiswise.records import Record


@pytest.fixture(scope="module")
def shown() -> dict[str, object]:
    """One of each kind, with more numbers than anyone would read."""
    square = data.synth_linear(samples=200)
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(1e-2), steps=300, seed=range(2))
    population = train(members, square)
    codes = np.random.default_rng(0).normal(size=(30, 100, 20))
    factors = [f"level {row}" for row in range(100)]
    return {
        "dataset": square,
        "population": population,
        "trained": population.trained[0],
        "explanation": explain(population[0].encode, population[0].decode, square.x(torch.arange(100))),
        "record": evaluate(population, square, [scores.mig], points=100)[0],
        "agreement": scores.agreement(codes),
        "udr": scores.udr(codes),
        "match": scores.match_latents(codes[0], codes[1:]),
        "mig": scores.mig(codes, factors),
        "inputs": scores.mig(codes, factors).inputs,
    }


@pytest.mark.parametrize(
    "name", ["dataset", "population", "trained", "explanation", "record", "agreement", "udr", "match", "mig", "inputs"]
)
def test_a_few_lines_in_python(shown, name):
    text = repr(shown[name])
    assert text.count("\n") < 10
    assert len(text) < 1500
    assert text.startswith(type(shown[name]).__name__ + "(")


@pytest.mark.parametrize("name", ["dataset", "population", "record", "agreement", "udr", "match", "mig"])
def test_a_small_table_in_a_notebook(shown, name):
    html = shown[name]._repr_html_()
    assert "<table>" in html
    assert len(html) < 3000


def test_what_is_shown(shown):
    assert f"score={shown['agreement'].score}" in repr(shown["agreement"])
    assert "matches=array of shape (30, 30, 20)" in repr(shown["agreement"])
    assert "…" in repr(shown["inputs"])  # a hundred names of levels
    record = shown["record"]
    assert repr(record).startswith(f"Record(measure='mig', value={record.value!r}, member='{record.member}'")
    assert repr(record).endswith(f"… and {len(record) - 7} fields more)")
    assert repr(Record(measure="mig", value=0.5)) == "Record(measure='mig', value=0.5)"
    assert "<td>first</td>" in shown["dataset"]._repr_html_()
    assert "status='trained'" in repr(shown["trained"])


def test_names_are_text_and_no_markup():
    tagged = "<script>alert(1)</script>"
    values = np.arange(6)
    factors = {tagged: values % 2, "other": values % 3}
    dataset = data.arrays(torch.rand(6, 3), factors, name=tagged)
    for html in (
        dataset._repr_html_(),
        Record(measure=tagged, value=0.5, member="a")._repr_html_(),
        scores.mig(np.random.default_rng(0).normal(size=(6, 2)), factors)._repr_html_(),
    ):
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
