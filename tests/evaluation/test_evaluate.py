"""Measures get what they need by name; rows hold what was measured, of which member, or the reason why not."""

import inspect
import math
import re
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas
import pytest
import torch

from axiswise import data, evaluate, geometry, grid, models, objectives, optimizers, scores, train
from axiswise.distributions import Anisotropic, Bernoulli, StudentT
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.evaluation import each, kl, loss, reconstruction
from axiswise.evaluation._quantities import QUANTITIES
from axiswise.population import Member, Population
from axiswise.population._device import hardware
from axiswise.records import Record, read_arrays, read_records
from axiswise.shapes import Float

SQUARE = data.synth_linear(samples=400)


@pytest.fixture(scope="module")
def population():
    members = grid(
        model=models.linear(3, 2),
        objective=[objectives.BetaVAE(b) for b in (0.001, 0.01)],
        steps=150,
        seed=range(2),
        history=50,
        optimizer=optimizers.Adam(lr=0.02),
    )
    return train(members, SQUARE)


def test_records_say_which_processor_trained_a_member(population):
    (own,) = {trained.about["hardware"] for trained in population.trained}
    assert own == hardware(torch.device("cpu"))
    moved = [replace(trained, about={**trained.about, "hardware": "abacus"}) for trained in population.trained]
    records = evaluate(Population(moved, None), SQUARE, [loss], points=100)
    assert {record.hardware for record in records} == {"abacus"}


def test_every_available_quantity_is_what_its_name_says(population):
    quantities = {}

    def everything(
        x,
        factors,
        kinds,
        codes,
        samples,
        variance,
        kl,
        posterior,
        decode,
        decode_raw,
        jacobians,
        gram,
        information,
        prior,
        likelihood,
        beta,
        history,
    ):
        quantities.update({name: value for name, value in locals().items() if name != "quantities"})
        return codes.mean(dim=(1, 2))

    evaluate(population, SQUARE, [everything], points=100)
    assert set(quantities) == set(QUANTITIES)
    x, codes = quantities["x"], quantities["codes"]
    assert x.shape == (100, 3)
    assert quantities["factors"].shape == (100, 2)
    assert quantities["kinds"] == ("continuous", "continuous")
    for position in range(4):
        model = population[position]
        q = model.encode(x)
        assert torch.allclose(codes[position], q.mean, atol=1e-6)
        assert torch.allclose(quantities["variance"][position], q.log_variance.exp(), atol=1e-6)
        expected = torch.distributions.kl_divergence(
            torch.distributions.Normal(q.mean, q.log_variance.exp().sqrt()), torch.distributions.Normal(0.0, 1.0)
        )
        assert torch.allclose(quantities["kl"][position], expected, atol=1e-5)
        assert torch.allclose(quantities["decode"](codes)[position], model.decode(q.mean), atol=1e-5)
        weight = model.decoder[0].weight
        assert torch.allclose(quantities["decode_raw"](codes)[position], model.decode(q.mean, raw=True), atol=1e-5)
        assert torch.allclose(quantities["jacobians"][position][7], weight, atol=1e-6)
        assert torch.allclose(quantities["gram"][position][7].float(), weight.T @ weight, atol=1e-5)
        assert torch.allclose(quantities["information"][position][7].float(), weight.T @ weight, atol=1e-5)
    assert quantities["beta"].tolist() == pytest.approx([0.001, 0.001, 0.01, 0.01])
    assert quantities["history"]["variance"].shape == (4, 4, 2)
    standardised = (quantities["samples"] - codes) / quantities["variance"].sqrt()
    assert 0.8 < standardised.std().item() < 1.2


def test_the_documentation_of_evaluate_lists_every_quantity():
    listed = evaluate.__doc__.partition("quantities it needs, of:")[2].partition("Each is computed once")[0]
    assert re.findall(r"`(\w+)`", listed) == list(QUANTITIES)


def test_rows_go_straight_into_a_data_frame(population):
    measures = [scores.mig, geometry.dto, geometry.polarization, loss, reconstruction, kl]
    frame = pandas.DataFrame(evaluate(population, SQUARE, measures, points=200))
    assert len(frame) == 24
    assert frame.groupby("measure").value.count().eq(4).all()
    row = frame.iloc[0]
    assert (row.measure, row.seed, row.hyperparameters, row.architecture) == ("mig", 0, {"beta": 0.001}, "linear")
    assert row.detail["bins"] == 20
    assert set(row.versions) == {"axiswise", "numpy", "python", "torch"}


def test_values_do_not_depend_on_the_other_members(population):
    alone = train([population.members[3]], SQUARE)
    for measure in (scores.mig, geometry.dto):
        together = evaluate(population, SQUARE, [measure], points=200)[3]["value"]
        assert evaluate(alone, SQUARE, [measure], points=200)[0]["value"] == pytest.approx(together, rel=1e-4, abs=1e-6)


def test_measures_that_draw_do_not_depend_on_the_other_members(population):
    drawing = [geometry.elbo, geometry.log_likelihood, geometry.mie, geometry.deterministic_elbo]
    drawing += [geometry.overlap, geometry.aggregate_mmd, scores.factor_vae, scores.beta_vae, scores.sap]
    together = evaluate(population, SQUARE, drawing, points=200)
    last = evaluate(Population(population.trained[3:]), SQUARE, drawing, points=200)
    assert [row["value"] for row in last] == pytest.approx([row["value"] for row in together[3::4]], rel=1e-4, abs=1e-6)
    assert all(row["reason"] is None for row in last)


def test_points_are_drawn_by_the_seed(population):
    def first(x):
        return [x[0, 0].item()] * 4

    values = [evaluate(population, SQUARE, [first], points=10, seed=seed)[0]["value"] for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]
    assert evaluate(population, SQUARE, [first], points=10**6)[0]["points"] == 400


def test_settings_are_fixed_by_partial_and_named(population):
    rows = evaluate(population, SQUARE, [partial(geometry.dto, latents="all"), partial(scores.mig, bins=5)], points=50)
    assert {row["measure"] for row in rows} == {"dto(latents=all)", "mig(bins=5)"}


def test_a_metric_for_one_model_works_in_each(population):
    class Result(NamedTuple):
        score: float
        note: str

    def spread(codes, factors, history):
        assert codes.shape == (50, 2)
        assert factors.shape == (50, 2)
        assert history["loss"].shape == (4,)
        return Result(float(codes.std()), "fine")

    rows = evaluate(population, SQUARE, [each(spread)], points=50)
    assert [row["measure"] for row in rows] == ["spread"] * 4
    direct = evaluate(population, SQUARE, [lambda codes: codes.flatten(1).std(1)], points=50)
    assert [row["value"] for row in rows] == pytest.approx([row["value"] for row in direct])


def test_each_member_gets_its_own_share_of_every_quantity(population):
    """A measure of one model in `each`, and the same of all members at once."""
    quantities = {name for name in QUANTITIES if not name.startswith("decode")}
    seen = []

    def keep(x, factors, kinds, codes, samples, variance, kl, posterior, jacobians, gram, information, prior,
             likelihood, beta, history):  # fmt: skip
        seen.append({name: value for name, value in locals().items() if name in quantities})
        return 0.0 if x.ndim == codes.ndim else codes.new_zeros(len(codes))

    evaluate(population, SQUARE, [keep, each(keep)], points=20)
    together, *alone = seen
    assert set(together) == quantities
    for row, own in enumerate(alone):
        for name in ("x", "factors", "kinds", "prior", "likelihood"):
            assert own[name] is together[name]
        for name in ("codes", "samples", "variance", "kl", "jacobians", "gram", "information", "beta"):
            assert torch.equal(own[name], together[name][row])
        assert torch.equal(own["posterior"].log_variance, together["posterior"].log_variance[row])
        assert np.array_equal(own["history"]["loss"], together["history"]["loss"][row])
        with pytest.raises(NotDefined, match=r"the objective records no 'moon'"):
            own["history"]["moon"]
    assert len(alone) == 4


def test_each_member_gets_the_prior_that_it_learned():
    model = models.linear(3, 2, prior=Anisotropic((0.0, 1.0), learned=True))
    members = grid(model=model, objective=objectives.BetaVAE(0.1), steps=20, seed=range(3))
    trained = train(members, SQUARE)

    def density(samples, prior):
        return prior.log_density(samples).mean(-1)

    rows = evaluate(trained, SQUARE, [density, each(density)], points=50)
    values = [row["value"] for row in rows]
    assert values[3:] == pytest.approx(values[:3], rel=1e-6)


def test_a_measure_that_each_cannot_take_apart_is_refused(population):
    def decodes(codes, decode_raw):
        return 0.0

    def alike(x, prior):
        return 0.0

    with pytest.raises(AxiswiseError, match=r"needs 'decode_raw' gets all members' latents at once"):
        evaluate(population, SQUARE, [each(decodes)], points=50)
    with pytest.raises(AxiswiseError, match=r"must need what differs between members. Got x, prior"):
        evaluate(population, SQUARE, [each(alike)], points=50)


def test_settings_of_a_measure_in_each_are_fixed_by_partial(population):
    def power(history, exponent=1):
        return float(history["loss"][-1]) ** exponent

    rows = evaluate(population, SQUARE, [each(power), partial(each(power), exponent=2)], points=50)
    assert [row["value"] for row in rows[4:]] == pytest.approx([row["value"] ** 2 for row in rows[:4]])


def test_an_error_within_a_measure_names_it_and_the_line(population):
    def scale(codes):
        return torch.linalg.cholesky(-codes.mT @ codes)  # raised beneath this line, in PyTorch

    def single(codes):
        return 1 / (len(codes) - len(codes))

    where = inspect.getsourcelines(scale)[1] + 1
    with pytest.raises(AxiswiseError, match=rf"Measure 'scale' raised .* \({__file__}, line {where}\)\.") as raised:
        evaluate(population, SQUARE, [scale])
    assert isinstance(raised.value.__cause__, torch.linalg.LinAlgError)
    where = inspect.getsourcelines(single)[1] + 1
    message = rf"Measure 'single' raised ZeroDivisionError: .* \({__file__}, line {where}\)\."
    with pytest.raises(AxiswiseError, match=message):
        evaluate(population, SQUARE, [each(single)])


def test_the_error_names_what_a_measure_may_need(population):
    def wants(codes, moon): ...

    with pytest.raises(AxiswiseError, match=r"Measure 'wants' needs 'moon'. A measure may need x, factors"):
        evaluate(population, SQUARE, [wants])

    def scalar(codes):
        return codes.mean()

    with pytest.raises(AxiswiseError, match=r"'scalar' must return one value for each of 4 members. Got shape \(\)"):
        evaluate(population, SQUARE, [scalar])
    with pytest.raises(AxiswiseError, match=r"`points` must be at least 1. Got 0"):
        evaluate(population, SQUARE, [scores.mig], points=0)


def test_data_without_factors_is_a_reason():
    plain = data.arrays(np.random.default_rng(0).normal(size=(50, 3)))
    trained = train(grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2), plain)
    (row,) = evaluate(trained, plain, [scores.mig])
    assert row["value"] is None
    assert row["reason"] == "dataset 'arrays' has no factors"


def test_a_diverged_member_is_a_row_with_the_reason():
    wild = Member(models.linear(3, 2), objectives.BetaVAE(), steps=40, history=10, optimizer=optimizers.Adam(lr=1e20))
    calm = Member(
        models.linear(3, 2), objectives.BetaVAE(0.01), steps=40, history=10, optimizer=optimizers.Adam(lr=0.05)
    )
    rows = evaluate(train([wild, calm], SQUARE), SQUARE, [scores.mig, geometry.dto], points=100)
    assert [(row["measure"], row["value"] is None) for row in rows] == [
        *(("mig", True), ("mig", False), ("dto", True), ("dto", False))
    ]
    assert rows[0]["reason"].startswith("diverged at step")


def test_rows_are_appended_to_the_run_folder(population, tmp_path):
    rows = evaluate(population, SQUARE, [scores.mig], points=50, out=tmp_path)
    evaluate(population, SQUARE, [geometry.dto], points=50, out=tmp_path)
    stored = list(read_records(tmp_path))
    assert stored[:4] == rows
    assert len(stored) == 8


def test_records_have_the_declared_fields_and_go_into_pandas(population):
    records = evaluate(population, SQUARE, [scores.mig], points=50)
    assert all(list(record) == list(Record.__annotations__) for record in records)
    assert [record.value for record in records] == [record["value"] for record in records]
    plain = [record.as_dict() for record in records]
    for frame in (pandas.DataFrame, pandas.json_normalize):
        pandas.testing.assert_frame_equal(frame(records), frame(plain))
    assert "hyperparameters.beta" in pandas.json_normalize(records)


def test_what_members_share_is_not_divided_among_them(population):
    """Four members and four factors: the factors' entropies are everybody's."""
    four = data.arrays(torch.rand(200, 3), torch.randint(0, 5, (200, 4)))
    first, second, *_ = evaluate(population, four, [scores.mig], points=200)
    assert len(first["detail"]["entropies"]) == 4
    assert first["detail"]["entropies"] == second["detail"]["entropies"]
    assert len(first["detail"]["gaps"]) == 4


def test_a_field_with_an_axis_of_members_is_divided_among_them(population):
    class Result(NamedTuple):
        score: Float[torch.Tensor, " p"]
        largest: Float[torch.Tensor, " p"]
        products: Float[torch.Tensor, "p p"]
        everywhere: Float[torch.Tensor, " k"]

    def compared(codes):
        flat = codes.flatten(1)
        return Result(flat.mean(1), flat.amax(1), flat @ flat.T, torch.arange(4.0))

    rows = evaluate(population, SQUARE, [compared, lambda codes: codes.flatten(1).amax(1)], points=50)
    details = [row["detail"] for row in rows[:4]]
    assert [detail["largest"] for detail in details] == [row["value"] for row in rows[4:]]
    assert [detail["products"][row] > 0 for row, detail in enumerate(details)] == [True] * 4
    assert np.shape([detail["products"] for detail in details]) == (4, 4)
    assert [detail["everywhere"] for detail in details] == [[0.0, 1.0, 2.0, 3.0]] * 4


@pytest.mark.parametrize("images", [True, False], ids=["images", "vectors"])
def test_what_is_stored_of_a_member_does_not_depend_on_the_others(images, tmp_path):
    """Alone, among others and in another order; a Student-t prior's divergence is estimated at drawn samples.

    Convolutional networks compute a member at a time on a CPU, so that nothing may differ; dense ones compute as one
    stack, whose products may be summed in another order.
    """
    if images:
        dataset = data.arrays(torch.rand(40, 1, 64, 64, generator=torch.Generator().manual_seed(0)))
        model = models.conv64(latents=3, prior=StudentT(5.0), likelihood=Bernoulli())
    else:
        dataset, model = SQUARE, models.linear(3, 2, prior=StudentT(5.0))
    members = grid(model=model, objective=objectives.BetaVAE(0.1), steps=3, batch=8, seed=[5, 9, 2])
    trained = train(members, dataset).trained

    def stored(order):
        population, out = Population([trained[place] for place in order]), tmp_path / str(order)
        evaluate(population, dataset, [scores.active_units], out=out)
        names = ("reconstructions", "traversals") if images else ("codes",)
        return {f"{name}/{key}": array for name in names for key, array in read_arrays(out, name).items()}

    together, shuffled = stored([0, 1, 2]), stored([2, 0, 1])
    assert together.keys() == shuffled.keys()
    alone = {name: array for place in range(3) for name, array in stored([place]).items()}
    assert together.keys() == alone.keys()
    for name, array in together.items():
        for other in (alone[name], shuffled[name]):
            if images:
                np.testing.assert_array_equal(other, array, err_msg=name)
            else:
                np.testing.assert_allclose(other, array, rtol=1e-5, atol=1e-6, err_msg=name)


def test_quantities_do_not_depend_on_the_other_members():
    """Every number of every quantity, alone and in another order; Student-t priors need the samples."""
    members = grid(
        model=models.mlp(6, 2, prior=StudentT(5.0)), objective=objectives.BetaVAE(0.1), steps=3, seed=[5, 9, 2]
    )
    dataset = data.synth_nonlinear(samples=100)
    trained = train(members, dataset).trained

    def found(order):
        seen = {}

        def keep(codes, samples, variance, kl, jacobians, gram, information, beta):
            numbers = {name: value for name, value in locals().items() if name in QUANTITIES}
            for row, place in enumerate(order):
                seen[place] = {name: value[row] for name, value in numbers.items()}
            return codes.mean(dim=(1, 2))

        evaluate(Population([trained[place] for place in order]), dataset, [keep], points=50)
        return seen

    together, shuffled = found([0, 1, 2]), found([2, 0, 1])
    for place in range(3):
        for other in (found([place])[place], shuffled[place]):
            for name, value in together[place].items():
                # Stacked products may be summed in another order than a single member's.
                np.testing.assert_allclose(other[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_products_take_the_place_of_jacobians_and_cut_what_is_taken_at_the_same_points(population, monkeypatch):
    monkeypatch.setattr("axiswise.evaluation._quantities.JACOBIAN_NUMBERS", 6 * 20)
    monkeypatch.setattr("axiswise.evaluation._quantities.PRODUCT_NUMBERS", 6 * 50)
    counts = {}

    def either(codes, posterior, *, jacobians=None, gram=None):
        counts["either"] = (jacobians, gram.shape[1], codes.shape[1], posterior.mean.shape[1])
        return codes.mean(dim=(1, 2))

    def both(jacobians, gram, information, codes):
        counts["both"] = (jacobians.shape[1], gram.shape[1], information.shape[1], codes.shape[1])
        return codes.mean(dim=(1, 2))

    def more(jacobians, codes, *, gram=None):
        counts["more"] = (jacobians.shape[1], gram.shape[1], codes.shape[1])
        return codes.mean(dim=(1, 2))

    def slopes(codes, jacobians=None):
        counts["slopes"] = (jacobians.shape[1], codes.shape[1])
        return codes.mean(dim=(1, 2))

    evaluate(population, SQUARE, [either, both, more, slopes], points=100)
    expected = {"either": (None, 50, 50, 50), "both": (20, 20, 20, 20), "more": (20, 20, 20), "slopes": (20, 20)}
    assert counts == expected


def test_a_measure_that_is_not_defined_is_a_row_with_its_reason(population):
    def unwilling(codes):
        raise NotDefined("Expected something else. Got these.")

    def mistaken(codes):
        raise AxiswiseError("A mistake.")

    rows = evaluate(population, SQUARE, [unwilling], points=50)
    assert {(row["value"], row["reason"]) for row in rows} == {(None, "Expected something else. Got these.")}
    with pytest.raises(AxiswiseError, match=r"A mistake\."):
        evaluate(population, SQUARE, [mistaken], points=50)


def test_a_value_that_is_not_finite_has_a_reason_of_its_own(population):
    def endless(codes):
        return torch.full(codes.shape[:1], math.inf)

    dead = train([replace(population.trained[0].member, objective=objectives.BetaVAE(1e4))], SQUARE)
    rows = evaluate(dead, SQUARE, [geometry.dto, endless], points=50)
    assert [(row["value"], row["reason"]) for row in rows] == [
        (None, "no latent is active"),
        (None, "the measure gave inf"),
    ]


def test_rows_go_to_the_folder_that_a_population_remembers(tmp_path):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(2))
    population = train(members, SQUARE, out=tmp_path)
    assert len(evaluate(population, SQUARE, [scores.mig], points=50, store=False)) == 2
    assert not (tmp_path / "records.jsonl").exists()
    assert evaluate(population, SQUARE, [scores.mig], points=50) == list(read_records(tmp_path))
    evaluate(population, SQUARE, [scores.mig], points=50, out=tmp_path / "elsewhere")
    assert len(list(read_records(tmp_path / "elsewhere"))) == 2


def test_what_is_measured_on_other_data_is_stored_only_where_it_is_said(tmp_path):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=1, seed=range(2))
    split = SQUARE.split()
    population = train(members, split.train, out=tmp_path / "run")
    evaluate(population, split.test, [scores.mig], points=20)
    (tested, *_), other = read_records(tmp_path / "run"), data.synth_linear(ratio=3.0, samples=400)
    for elsewhere in (other, SQUARE.take(torch.arange(50), first=50)):
        evaluate(population, elsewhere, [scores.mig], points=20)
        assert next(iter(read_records(tmp_path / "run"))) == tested
    (tmp_path / "run").rename(tmp_path / "moved")
    measured = []

    def counted(codes):
        measured.append(len(codes))
        return codes.mean((1, 2))

    with pytest.raises(AxiswiseError, match=r"Expected the run folder .*run, .* It is gone. Pass another `out`"):
        evaluate(population, split.test, [counted], points=20)
    assert measured == []  # it is refused before anything is measured
    assert len(evaluate(population, split.test, [counted], points=20, store=False)) == 2


MEMBERS_OF_TWO = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=2, batch=4, seed=range(2))


def test_records_are_not_stored_with_those_of_members_trained_on_other_data(tmp_path):
    elsewhere = data.synth_linear(samples=70)
    train(MEMBERS_OF_TWO, elsewhere, out=tmp_path / "other")
    population = train(MEMBERS_OF_TWO, SQUARE)
    with pytest.raises(AxiswiseError, match=r"other has members that were trained on .*70.* Choose another `out`"):
        evaluate(population, SQUARE, [scores.mig], points=20, out=tmp_path / "other")
    assert list(read_records(tmp_path / "other")) == []


def test_a_read_only_folder_is_measured_but_not_written(tmp_path, monkeypatch):
    population = train(MEMBERS_OF_TWO, SQUARE, out=tmp_path / "run")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.warns(UserWarning, match=r"run is read-only: what is measured is not stored. Pass an `out`"):
        assert len(evaluate(population, SQUARE, [scores.mig], points=20)) == 2
    assert list(read_records(tmp_path / "run")) == []
