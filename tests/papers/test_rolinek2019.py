"""Tables 1 and 2 of rolinek2019: the study's runs, the printed values, and the rules that statements are judged by."""

import math

import numpy as np
import pytest
import torch

from axiswise.distributions import Deterministic, Diagonal, Full
from axiswise.errors import AxiswiseError
from axiswise.evaluation import conduct
from axiswise.geometry import haar_chance
from axiswise.papers import study_named
from axiswise.papers.rolinek2019.figures import (
    NAMES,
    PRINTED_AS,
    PRUNED_TO,
    TASKS,
    cells,
    main,
    markdown,
    published,
    read,
    statements,
    uniform_matrices,
)
from axiswise.papers.rolinek2019.studies import COLUMNS, TABLE_MEASURES, gently_bent, table_2

NUMBER = 9  # statements about each task


def row(measure, seed, value, **detail):
    return {"measure": measure, "seed": seed, "value": value, "detail": detail, "latents": 2, "steps": 10_000}


def made_up(seeds=10, noise=0.01, **changes):
    """Rows of all tasks as the paper describes them; `changes` gives other means, named column_measure."""
    means = {
        "beta-vae": {"dto": 0.1, "disentanglement": 0.9, "polarization": 0.97},
        "vae": {"dto": 0.0, "disentanglement": 0.0, "polarization": 1.0},
        "autoencoder": {"dto": 0.5, "disentanglement": 0.5, "polarization": math.nan},
        "full-covariance": {"dto": 0.5, "disentanglement": 0.5, "polarization": 0.97},
        "random": {"dto": 0.55, "disentanglement": 0.2, "polarization": math.nan},
        "ten-latents": {"dto": 0.1, "disentanglement": 0.9, "polarization": 0.9},
    }
    shake = np.random.default_rng(0).normal(0.0, noise, (3, len(COLUMNS), 3, seeds))
    shake -= shake.mean(-1, keepdims=True)  # means are those that were asked for
    found = {}
    for i, task in enumerate(TASKS):
        for j, column in enumerate(COLUMNS):
            active = changes.get(f"{column}_active", PRUNED_TO[task] if column == "vae" else 2)
            found[f"{task}/{column}"] = [
                row(measure, seed, changes.get(f"{column}_{measure}", mean) + shake[i, j, k, seed], active=active)
                for k, (measure, mean) in enumerate(means[column].items())
                for seed in range(seeds)
            ]
    return found


def verdicts(rows):
    return [judged.verdict for judged in statements(rows)]


def test_every_statement_holds_for_what_the_paper_describes():
    assert verdicts(made_up()) == ["holds"] * 3 * NUMBER


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (0, {"autoencoder_dto": 0.01}),
        (1, {"full-covariance_dto": 0.01}),
        (2, {"autoencoder_disentanglement": 1.0}),
        (3, {"full-covariance_disentanglement": 1.0}),
        (4, {"beta-vae_dto": 0.7, "autoencoder_dto": 0.9, "full-covariance_dto": 0.9}),
        (5, {"vae_active": 2}),
        (6, {"beta-vae_polarization": 0.4, "ten-latents_polarization": 0.3}),
        (7, {"ten-latents_polarization": 0.3}),
        (8, {"ten-latents_polarization": 0.99}),
    ],
)
def test_every_statement_can_be_contradicted(number, changes):
    found = verdicts(made_up(**changes))
    assert found[number::NUMBER] == ["contradicted"] * 3
    others = {6: {7}}.get(number, set())  # fewer than half with two latents is fewer still with ten
    assert {place for place, verdict in enumerate(found[:NUMBER]) if verdict != "holds"} == {number, *others}


@pytest.mark.parametrize(
    ("number", "changes"),
    [
        (0, {"autoencoder_dto": 0.1}),
        (1, {"full-covariance_dto": 0.1}),
        (2, {"autoencoder_disentanglement": 0.9}),
        (3, {"full-covariance_disentanglement": 0.9}),
        (4, {"beta-vae_dto": haar_chance(2).score, "autoencoder_dto": 9.0, "full-covariance_dto": 9.0}),
        (6, {"beta-vae_polarization": 0.5, "ten-latents_polarization": 0.5}),
        (7, {"ten-latents_polarization": 0.5}),
        (8, {"ten-latents_polarization": 0.97}),
    ],
)
def test_a_difference_that_seeds_could_make_is_undecided(number, changes):
    rows = made_up(noise=0.05, **changes)
    for place in range(number, 3 * NUMBER, NUMBER):
        judged = statements(rows)[place]
        bound = {4: haar_chance(2).score, 6: 0.5, 7: 0.5}.get(number, 0.0)
        assert judged.found.low < bound < judged.found.high
        assert judged.verdict == "undecided"


def test_a_pruned_member_leaves_orderings_of_dto_undecided():
    """Over a single latent the distance is 0 by definition: that is no alignment."""
    rows = made_up(**{"beta-vae_dto": 0.0})
    pruned = next(entry for entry in rows["linear/beta-vae"] if entry["measure"] == "dto")
    pruned["detail"]["active"] = 1
    judged = statements(rows)
    assert [judged[place].verdict for place in (0, 1, 4)] == ["undecided"] * 3
    assert [judged[place].found.left_out for place in (0, 1, 4)] == [1, 1, 1]
    assert judged[NUMBER].verdict == "holds"
    assert "(1 of 10 pruned)" in markdown(rows)


def test_a_share_of_training_comes_with_its_batches():
    """Published shares are of 600 epochs; fewer batches give a smaller share of the same initial phase."""
    assert "0.900 ± 0.010, from batch 1,000 of 10,000 on" in markdown(made_up())


def test_a_member_without_a_value_leaves_an_ordering_undecided():
    rows = made_up()
    next(entry for entry in rows["linear/autoencoder"] if entry["measure"] == "disentanglement")["value"] = None
    assert verdicts(rows)[2] == "undecided"


def test_cells_agree_where_the_interval_meets_what_is_printed():
    printed = {(cell.task, cell.column, cell.quantity): cell for cell in published()}
    rows = made_up(noise=1e-6, **{"beta-vae_dto": 0.2049, "autoencoder_dto": 0.6751})
    agrees = {(cell.task, cell.column, cell.quantity): cell.agrees for cell in cells(rows)}
    assert agrees["non-linear", "beta-vae", "dto"]  # .18 ± .02, and the last digit is rounded
    assert not agrees["linear", "beta-vae", "dto"]
    assert not agrees["non-linear", "autoencoder", "dto"]  # .54 ± .13
    assert agrees["linear", "vae", "dto"] is None
    assert set(printed) <= set(agrees)


def test_the_printed_cells_are_those_of_both_tables():
    found = {(cell.task, cell.column, cell.quantity): (cell.mean, cell.deviation) for cell in published()}
    assert len(found) == len(published()) == 18
    assert found["non-linear", "beta-vae", "dto"] == (0.18, 0.02)
    assert found["linear", "ten-latents", "polarization"] == (0.967, 0.0)
    assert {task for task, _, _ in found} == set(PRINTED_AS.values()) == {"linear", "non-linear"}
    assert set(PRINTED_AS) == set(TASKS)
    assert {column for _, column, _ in found} == set(COLUMNS) - {"vae"}  # whose cells are blank
    assert set(NAMES) == set(COLUMNS)


def test_uniform_matrices_are_the_printed_random_decoders():
    """And the closed distance of a turned plane, by a plain singular value decomposition."""
    for cell in published():
        if cell.column == "random":
            mean, deviation = uniform_matrices({"linear": 3, "non-linear": 6}[cell.task], 2)
            # Ten decoders, say, know their mean to deviation / √10; two standard errors and the rounding.
            assert abs(mean - cell.mean) < 2 * deviation / math.sqrt(10) + 0.005
            assert abs(mean - cell.mean) < 0.02
    matrices = torch.rand(4000, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).numpy()
    best = np.abs(np.linalg.svd(matrices)[2])
    collected = np.maximum(best[:, 0, 0] + best[:, 1, 1], best[:, 0, 1] + best[:, 1, 0])
    distances = np.sqrt(4 - 2 * collected)
    found, spread = uniform_matrices(3, 2)
    assert abs(found - distances.mean()) < 4 * spread * math.sqrt(1 / 4000 + 1 / 20_000)
    assert spread == pytest.approx(distances.std(), rel=0.1)


def test_gently_bent_is_a_glorot_network_that_a_plain_vae_cannot_keep():
    dataset = gently_bent()
    index = torch.arange(len(dataset))
    x, square = dataset.x(index).double(), dataset.factors(index)
    variances = torch.linalg.eigvalsh(torch.cov(x.T))
    assert variances[-1] < 0.5  # β/2 at β = 1: no latent is worth its divergence
    assert variances[-2] > 10 * 0.5e-3  # and at β = 1e-3 two are
    # A network of ten hidden units through W₂: x − b₂ lies in its range, and is as smooth as W₁ allows.
    assert square.min() >= 0.0
    assert square.max() <= 1.0
    steepest = 2 * (6 / 12) ** 0.5 * 10 * (6 / 16) ** 0.5  # ∞-norm of W₂ diag(tanh′) W₁ at most
    near = (square[:200, None] - square[None, :200]).abs().amax(-1)
    apart = (x[:200, None] - x[None, :200]).abs().amax(-1)
    assert (apart <= steepest * near + 1e-5).all()
    assert dataset.identity != gently_bent(seed=1).identity


@pytest.mark.parametrize("scale", ["smoke", "default", "paper"])
def test_the_study_has_every_column_of_both_tables(scale):
    runs = study_named("rolinek2019.table_2")(scale)
    assert [run.name for run in runs] == [f"{task}/{column}" for task in TASKS for column in COLUMNS]
    for run in runs:
        task, column = run.name.split("/")
        first = run.members[0]
        posterior = {"full-covariance": Full(), "autoencoder": Deterministic(), "random": Deterministic()}
        assert first.model.posterior == posterior.get(column, Diagonal())
        assert first.model.latents == (10 if column == "ten-latents" else 2)
        assert first.model.likelihood.scale**2 == pytest.approx(0.5)  # ‖x − x̂‖² without a half
        assert (first.steps == 0) == (column == "random")
        assert first.history == 500
        assert run.held_out
        if column == "vae":
            assert first.objective.beta == 1.0
        if column in ("beta-vae", "full-covariance", "ten-latents") and scale == "paper":
            assert first.objective.beta == (1e-4 if task == "linear" else 1e-3)
        if scale == "paper" and column != "random":
            assert first.steps == 600 * 40_000 / 64
            assert first.optimizer.lr == 1e-3
        assert len(run.members) == (2 if scale == "smoke" else 10)


def test_tables_are_made_from_a_study(tmp_path, capsys):
    def small(scale):
        return [run for run in table_2(scale) if run.name.startswith("linear/")]

    small.__doc__ = table_2.__doc__
    conduct(small, "smoke", tmp_path / "study", name="rolinek2019.table_2")
    main([str(tmp_path / "study"), str(tmp_path / "out")])
    assert (tmp_path / "out" / "table_2.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "table_2.md").read_text("utf-8") in capsys.readouterr().out
    rows = read(tmp_path / "study")
    assert len(rows["linear/beta-vae"]) == 2 * len(TABLE_MEASURES)
    reasons = {entry["measure"]: entry["reason"] for entry in rows["linear/random"]}
    assert reasons["loss"] == "nothing was recorded in training"
    assert reasons["dto"] is None
    assert len(statements(rows)) == NUMBER


@pytest.mark.slow
def test_the_smoke_scale_runs(tmp_path):
    conduct(table_2, "smoke", tmp_path / "study", name="rolinek2019.table_2")
    main([str(tmp_path / "study"), str(tmp_path / "out")])
    assert len(statements(read(tmp_path / "study"))) == 3 * NUMBER


def test_messages(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected the study's folder and a folder to write into\. Got a"):
        main(["a"])
    with pytest.raises(
        AxiswiseError, match=r"Expected the folder of the study rolinek2019\.table_2\. Got .*no records"
    ):
        read(tmp_path)
