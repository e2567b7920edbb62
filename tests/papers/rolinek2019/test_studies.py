"""Studies of rolinek2019 at their smoke scale: they run, are judged and are drawn."""

import pytest

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise_papers._tables import read_study
from axiswise_papers._verify import AT_LENGTH
from axiswise_papers.rolinek2019.claims import CLAIMS
from axiswise_papers.rolinek2019.figures import FIGURES
from axiswise_papers.rolinek2019.studies import STUDIES, TABLE_MEASURES, table_2, table_2_images

PICTURES = {"table_s4": {"table_s4.png", "figure_s5.png"}}


def run_to(study, name, out, keep=lambda run: True):
    def some(scale):
        return [run for run in study(scale) if keep(run)]

    some.__doc__ = study.__doc__
    run_study(some, "smoke", out, name=f"rolinek2019.{name}")
    return out


def check(name, folder):
    """Every claim about the study is judged, and every picture drawn."""
    rows = read_study(folder)
    parts = [part for claim in CLAIMS for part in claim.trained if part.study == f"rolinek2019.{name}"]
    assert parts
    for part in parts:
        assert {finding.decision for finding in part.judge(rows)} <= {"holds", "undecided", "contradicted", "not run"}
    drawn = FIGURES[name](folder)
    assert set(drawn) == PICTURES.get(name, {f"{name}.png"})
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
    return rows


@pytest.mark.parametrize("name", ["table_s4", "figure_s4", "figure_3", "figure_s4_sprites"])
def test_a_study_runs_is_judged_and_drawn(name, tmp_path):
    check(name, run_to(STUDIES[name], name, tmp_path))


def test_the_regime_is_measured_for_every_threshold(tmp_path):
    rows = check("table_1", run_to(STUDIES["table_1"], "table_1", tmp_path, lambda run: run.name.startswith("linear")))
    shares = {row["measure"] for row in rows["linear/ten-latents"]}
    assert {f"polarized_regime(active_below={threshold})" for threshold in (0.5, 0.8, 0.9)} <= shares


def test_tables_are_made_from_a_study(tmp_path):
    folder = run_to(table_2, "table_2", tmp_path / "study", lambda run: run.name.startswith("linear/"))
    rows = check("table_2", folder)
    assert len(rows["linear/beta-vae"]) == 2 * len(TABLE_MEASURES)
    reasons = {entry["measure"]: entry["reason"] for entry in rows["linear/random"]}
    assert reasons["loss"] == "nothing was recorded in training"
    assert reasons["dto"] is None


def test_images_are_stood_for_by_small_sprites(tmp_path):
    kept = ("dsprites/beta-vae", "dsprites/full-covariance", "dsprites/autoencoder", "mnist/vae")
    folder = run_to(table_2_images, "table_2_images", tmp_path, lambda run: run.name in kept)
    rows = check("table_2_images", folder)
    assert {entry["dataset"] for own in rows.values() for entry in own} == {"small_sprites"}
    assert "disentanglement" not in {entry["measure"] for entry in rows["mnist/vae"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table_1", "table_2", "table_2_images"])
def test_the_whole_smoke_scale_runs(name, tmp_path):
    check(name, run_to(STUDIES[name], name, tmp_path))


def test_every_study_has_figures_and_says_what_it_costs():
    assert {name.removesuffix(AT_LENGTH) for name in FIGURES} == set(STUDIES)
    for name, study in STUDIES.items():
        assert f"Command: ``axiswise run rolinek2019.{name}" in study.__doc__
        assert "Cost: " in study.__doc__


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected the folder of a study\. Got .*no records"):
        read_study(tmp_path)
