"""What Python and notebooks show of results: a few lines, and HTML in which names are text."""

import re

import numpy as np
import pytest
import torch

from axiswise import data, models, objectives, scores
from axiswise.evaluation import evaluate
from axiswise.explanation import explain
from axiswise.population import Population, from_models, grid, train
from axiswise.records import Explanation, Record

TABLES = ["dataset", "population", "model", "record", "agreement", "udr", "match", "mig"]
FACTORS = {"shape": ["square", "heart"] * 50, "size": np.arange(100) % 4}


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
        "model": population[0],
        "trained": population.trained[0],
        "explanation": explain(population[0].encode, population[0].decode, square.x(torch.arange(100))),
        "record": evaluate(population, square, [scores.mig], points=100)[0],
        "agreement": scores.agreement(codes),
        "udr": scores.udr(codes),
        "match": scores.match_latents(codes[0], codes[1:]),
        "mig": scores.mig(codes, factors),
        "inputs": scores.mig(codes, factors).inputs,
    }


@pytest.mark.parametrize("name", [*TABLES, "trained", "explanation", "inputs"])
def test_a_few_lines_in_python(shown, name):
    text = repr(shown[name])
    assert text.count("\n") < 10
    assert len(text) < 1500
    assert text.startswith(type(shown[name]).__name__ + "(")


@pytest.mark.parametrize("name", TABLES)
def test_a_small_table_in_a_notebook(shown, name):
    html = shown[name]._repr_html_()
    assert "<table>" in html
    assert html.startswith('<div style="overflow-x:auto">')  # a narrow page scrolls the table, not itself
    assert len(html) < 3000


def rows(html: str) -> list[list[str]]:
    """The texts of the cells of all tables, row by row."""
    found = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in re.findall(r"<tr>(.*?)</tr>", html)]
    return [[re.sub(r"<[^>]*>", "", cell) for cell in row] for row in found]


def test_a_score_of_a_stack_has_a_row_for_each_member():
    codes = np.random.default_rng(0).normal(size=(20, 100, 2))
    found = scores.dci(codes, FACTORS)
    html = found._repr_html_()
    head, *members = rows(html)
    assert head == ["member", "score", "completeness", "informativeness"]
    assert [row[0] for row in members] == [str(number) for number in range(12)]
    assert [row[1] for row in members] == [f"{value:.4g}" for value in found.score[:12]]
    assert "<strong>DCI</strong> of 20 members" in html
    assert "<p>… and 8 more</p>" in html
    assert "<p>settings: samples 67, 33; estimator gradient boosting" in html
    assert "<p>inputs: samples 100; factors shape (heart, square), size; varying latents 2</p>" in html
    assert "importance (20, 2, 2)" in html
    assert [row[0] for row in rows(scores.mig(codes[:6].reshape(2, 3, 100, 2), FACTORS)._repr_html_())[1:]] == [
        "0, 0", "0, 1", "0, 2", "1, 0", "1, 1", "1, 2"
    ]  # fmt: skip


def test_members_without_a_score_say_why():
    codes = np.random.default_rng(0).normal(size=(3, 100, 2))
    codes[1] = 0
    with pytest.warns(scores.UndefinedScore):
        collapsed = scores.udr(codes)
    head, *members = rows(collapsed._repr_html_())
    assert head == ["member", "score", "reasons"]
    assert members[1] == ["1", "0", collapsed.reasons[1]]
    assert "varying latents 0 to 2" in collapsed._repr_html_()
    assert rows(scores.udr(codes[::2])._repr_html_())[0] == ["member", "score"]  # no reasons, no column


def test_a_score_of_one_code_is_a_line_for_each_field_and_small_tables():
    codes = np.random.default_rng(0).normal(size=(100, 2))
    found = scores.mig(codes, FACTORS)
    html = found._repr_html_()
    table = rows(html)
    assert table[:3] == [["score", f"{found.score:.4g}"], ["bins", "20"], ["samples", "100"]]
    assert f"<strong>{found.score:.4g}</strong>" in html
    inputs = ["inputs", "samples 100; factors shape (heart, square), size; varying latents 2"]
    assert table[5:7] == [inputs, ["factor", "gaps", "entropies"]]
    assert [row[0] for row in table[7:9]] == ["shape", "size"]
    assert table[9] == ["information", "z0", "z1"]
    assert table[10] == ["shape", *(f"{value:.3f}".rstrip("0") for value in found.information[0])]
    assert not any(word in html for word in ("None", "neighbours", "constant", "dropped", "["))
    assert "correlations (13, 13)" in scores.gaussian_total_correlation(np.eye(14)[:, :13])._repr_html_()


def test_values_that_are_not_finite_are_shown():
    codes = np.random.default_rng(0).normal(size=(100, 2))
    with pytest.warns(scores.UndefinedScore):
        constant = scores.mig(codes, FACTORS | {"one": np.zeros(100, int)})
    assert ["one", "NaN", "0"] in rows(constant._repr_html_())
    assert "constant one" in constant._repr_html_()
    infinite = scores.gaussian_total_correlation(np.column_stack([codes, codes]))
    assert rows(infinite._repr_html_())[0] == ["score", "inf"]


def test_a_score_of_no_members():
    stack = scores.mig(np.random.default_rng(0).normal(size=(3, 100, 2)), FACTORS)
    none = stack._replace(score=stack.score[:0], gaps=stack.gaps[:0], information=stack.information[:0])
    assert "<strong>MIG</strong> of 0 members" in none._repr_html_()
    assert "<table>" not in none._repr_html_()


def test_matches_are_named_by_latent():
    codes = np.random.default_rng(0).normal(size=(100, 2))
    html = scores.match_latents(codes, codes[:, ::-1])._repr_html_()
    assert ["z0", "1", "1"] in rows(html)
    assert ["correlations", "z0", "z1"] in rows(html)
    assert "<strong>0.7071</strong>" not in html  # the threshold is not the result


# Populations and models


def test_a_population_shows_what_differs():
    square = data.synth_linear(samples=100)
    betas = [objectives.BetaVAE(beta) for beta in (0.5, 4.0)]
    population = train(grid(model=models.linear(3, 2), objective=betas, steps=2, seed=range(10)), square)
    html = population._repr_html_()
    assert html.startswith('<div style="overflow-x:auto"><p>20 members; architecture linear; latents 2; ')
    assert f"status trained; training seconds of each member {round(population[0].trained.seconds, 3):.4g}</p>" in html
    head, *members = rows(html)
    assert head == ["", "beta", "seed", "address"]
    assert members[11] == ["11", "4", "1", population[11].member.address]
    assert "<p>… and 8 more</p>" in html
    assert repr(population[:1]) == "Population(1 member)"
    one = population[:1]._repr_html_()
    assert "<p>1 member</p>" in one
    assert ["beta", "0.5"] in rows(one)
    assert "<p>0 members</p>" in population[:0]._repr_html_()
    many = Population(population.trained * 100)._repr_html_()
    assert "2,000 members" in many
    assert len(many) < len(html) + 20  # as long as that of twenty: they are counted


def test_members_of_different_kinds_are_one_table():
    square = data.synth_linear(samples=100)
    members = [
        *grid(model=models.linear(3, 2), objective=objectives.BetaVAE(2.0), steps=2),
        *grid(model=models.linear(3, 1), objective=objectives.FactorVAE(gamma=5.0), steps=2),
    ]
    head, first, second = rows(train(members, square)._repr_html_())
    assert head[:3] == ["", "latents", "objective"]
    found = [dict(zip(head, row, strict=True)) for row in (first, second)]
    assert [row["beta"] for row in found] == ["2", "–"]
    assert [row["gamma"] for row in found] == ["–", "5"]


def test_a_model_shows_its_settings_and_sizes(shown):
    model = shown["model"]
    assert repr(model) == "Model(linear, BetaVAE(beta=0.01), seed 0, trained)"
    found = dict(rows(model._repr_html_()))
    wanted = {"beta": "0.01", "seed": "0", "status": "trained", "prior": "StandardNormal()"}
    sizes = {"likelihood": "Gaussian(scale=1.0)", "encoder": "1 layer, 16 weights", "decoder": "1 layer, 9 weights"}
    assert wanted | sizes == {name: found[name] for name in wanted | sizes}
    assert list(found)[-1] == "address"


def test_a_model_from_elsewhere_shows_what_is_known():
    encoder = torch.nn.LazyLinear(4)  # which has no size before its first call
    lines = [dict(rows(model._repr_html_())) for model in from_models([(encoder, None), (torch.sin, torch.nn.ReLU())])]
    assert [found["encoder"] for found in lines] == ["1 layer, 0 weights", "a function"]
    assert "decoder" not in lines[0]
    assert lines[1]["decoder"] == "0 layers, 0 weights"
    assert not any(name in lines[0] for name in ("optimizer", "steps", "latents"))


def test_what_is_shown(shown):
    assert f"score={shown['agreement'].score}" in repr(shown["agreement"])
    assert "matches=array of shape (30, 30, 20)" in repr(shown["agreement"])
    assert "…" in repr(shown["inputs"])  # a hundred names of levels
    record = shown["record"]
    assert repr(record).startswith(f"Record(measure='mig', value={record.value!r}, member='{record.member}'")
    assert repr(record).endswith(f"… and {len(record) - 7} fields more)")
    assert repr(Record(measure="mig", value=0.5)) == "Record(measure='mig', value=0.5)"
    assert "<th>first</th>" in shown["dataset"]._repr_html_()
    assert "status='trained'" in repr(shown["trained"])


def test_names_are_text_and_no_markup():
    tagged = "<script>alert(1)</script>"
    values = np.arange(6)
    factors = {tagged: values % 2, "other": values % 3}
    dataset = data.arrays(torch.rand(6, 3), factors, name=tagged)
    codes = np.random.default_rng(0).normal(size=(6, 2))
    model = from_models([(torch.sin, None)], name=tagged)
    for html in (
        dataset._repr_html_(),
        model._repr_html_(),
        model[0]._repr_html_(),
        from_models([(torch.sin, None)] * 2, name=tagged)._repr_html_(),
        scores.mig(np.stack([codes, codes]), factors)._repr_html_(),
        Explanation(tagged, (), (tagged,), {}, {}, conclusion=tagged)._repr_html_(),
        Record(measure=tagged, value=0.5, member="a")._repr_html_(),
        scores.mig(codes, factors)._repr_html_(),
    ):
        assert "<script>" not in html
        assert "&lt;script&gt;" in html
