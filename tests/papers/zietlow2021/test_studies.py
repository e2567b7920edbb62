"""Studies of zietlow2021: what they train, and that their smoke scale runs, is judged and drawn."""

import pytest
import torch

from axiswise.attack.arms import OBJECTIVES
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.records import describe
from axiswise_papers._tables import read_study
from axiswise_papers.zietlow2021 import shapes, sprites
from axiswise_papers.zietlow2021.claims import CLAIMS
from axiswise_papers.zietlow2021.discs import EPSILON, RESTARTS, restarts, small_attack, small_sprites_apart
from axiswise_papers.zietlow2021.figures import FIGURES
from axiswise_papers.zietlow2021.studies import STUDIES
from axiswise_papers.zietlow2021.tables import document, published

PICTURES = {name: {f"{name}.png", "images.png"} for name in ("small_attack", "table_1", "table_1_shapes3d")}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache folder of its own, in which the change is learned once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AXISWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run_to(name, out, keep=lambda run: True):
    def some(scale):
        return [run for run in STUDIES[name](scale) if keep(run)]

    some.__doc__ = STUDIES[name].__doc__
    return run_study(some, "smoke", out, name=f"zietlow2021.{name}")


def check(name, folder):
    """Every claim about the study is judged, and every picture drawn, twice with the same bytes."""
    rows = read_study(folder)
    parts = [part for claim in CLAIMS for part in claim.trained if part.study == f"zietlow2021.{name}"]
    assert parts
    for part in parts:
        assert {finding.decision for finding in part.judge(rows)} <= {"holds", "undecided", "contradicted", "not run"}
    drawn = FIGURES[name](folder)
    assert set(drawn) == PICTURES.get(name, {f"{name}.png"})
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
    assert FIGURES[name](folder) == drawn
    return rows


@pytest.mark.parametrize("name", ["theorem_1", "figure_1", "figure_5", "figure_10", "preserved", "preserved_images"])
def test_a_study_runs_is_judged_and_drawn(name, tmp_path, cache):
    check(name, run_to(name, tmp_path))


@pytest.mark.parametrize("name", ["table_1", "table_1_shapes3d"])
def test_tables_run_on_small_discs(name, tmp_path, cache):
    kept = ("beta-vae/original", "beta-vae/changed", "beta-vae/noise", "pcl/original", "slow-vae/changed")
    rows = check(name, run_to(name, tmp_path, lambda run: run.name in kept))
    assert {entry["dataset"] for own in rows.values() for entry in own} == {"small_sprites"}
    assert {"mig", "dci", "factor_vae", "sap", "active_units", "change_share"} <= {
        entry["measure"] for entry in rows["beta-vae/changed"]
    }
    assert "change_share" not in {entry["measure"] for entry in rows["beta-vae/original"]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table_1", "table_1_shapes3d"])
def test_the_whole_smoke_scale_runs(name, tmp_path, cache):
    check(name, run_to(name, tmp_path))


def test_the_small_attack_runs_and_resumes(tmp_path, cache):
    folder = run_to("small_attack", tmp_path / "study")
    rows = check("small_attack", folder)
    assert run_to("small_attack", tmp_path / "study") == folder
    assert read_study(folder) == rows
    original = small_sprites_apart()
    points = torch.arange(len(original))
    x = original.x(points)
    datasets = {run.name: run.dataset() for run in small_attack("smoke")}
    for name, dataset in datasets.items():
        difference = (dataset.x(points) - x).abs().max()
        assert difference <= EPSILON + 2**-23
        assert (difference == 0) == name.endswith("original")
    changed, exchanged = (datasets[f"beta-vae/{end}"].identity for end in ("changed", "reversed"))
    assert changed != exchanged


def test_runs_judge_by_other_seeds_than_chose():
    runs = small_attack("default")
    assert [run.name for run in runs] == [f"beta-vae/{end}" for end in ("original", "changed", "noise", "reversed")]
    assert all(len(run.members) == 20 for run in runs)
    assert not {member.seed for member in runs[0].members} & set(RESTARTS)
    assert {member.model.latents for member in restarts("default", RESTARTS)} == {len(small_sprites_apart().space)}


@pytest.mark.parametrize(
    ("name", "dataset", "factors", "channels"), [("table_1", "dsprites", 5, 1), ("table_1_shapes3d", "shapes3d", 6, 3)]
)
def test_tables_are_trained_as_printed(name, dataset, factors, channels):
    runs = {run.name: run for run in STUDIES[name]("paper")}
    assert list(runs) == [f"{arm}/{variant}" for arm in OBJECTIVES for variant in ("original", "changed", "noise")]
    for name, run in runs.items():
        member = run.members[0]
        assert (len(run.members), member.model.latents) == (document()["seeds"]["value"], factors)
        assert member.model.network.shape == (channels, 64, 64)
        weight = document()["weights"][dataset].get(name.partition("/")[0])
        main_weight = getattr(member.objective, "gamma" if name.startswith("factor-vae") else "beta", None)
        assert weight is None or main_weight == weight
    epsilons = document()["epsilon"]
    assert (epsilons["dsprites"], epsilons["shapes3d"]) == (sprites.EPSILON, shapes.EPSILON)


def test_the_change_is_learned_as_printed():
    printed, learning = document()["learning"], shapes.shapes3d_learning("paper")
    assert learning.epsilon == document()["epsilon"]["shapes3d"]
    assert document()["ensemble"]["shapes3d"] == shapes.ENSEMBLE
    assert (learning.decoder_batches, learning.samples) == (printed["decoder_batches"], printed["samples"])
    optimizer = learning.optimizer
    assert (optimizer.lr, optimizer.beta1, optimizer.beta2, optimizer.eps) == tuple(
        printed[name] for name in ("rate", "beta1", "beta2", "eps")
    )
    chosen = shapes.to_choose_from("default")
    assert {member.objective.beta for member in chosen} == {32.0}
    assert len({member.seed for member in chosen}) == 20
    studies = ("table_1_shapes3d", "figure_5", "figure_10", "preserved_images")
    judged = {member.seed for name in studies for run in STUDIES[name]("default") for member in run.members}
    assert not judged & {member.seed for member in chosen}


def test_the_change_of_dsprites_is_the_one_that_is_described():
    """It is for members of Table 1's setting, but not for those that Table 1 judges it by."""
    change = sprites.dsprites_change()
    assert change.epsilon == document()["epsilon"]["dsprites"]
    assert change.arguments["learning"] == describe(sprites.dsprites_learning())
    chosen = {member.address: member for member in sprites.to_choose_from(sprites.STEPS["default"])}
    for role in ("entangled", "disentangled"):
        (address,) = change.arguments[role]
        assert chosen[address].objective == sprites.OBJECTIVES["beta-vae"]
    judged = {member.address for run in STUDIES["table_1"]("default") for member in run.members}
    assert not judged & set(chosen)


def test_weights_are_searched_around_the_printed_ones():
    runs = {run.name: run for run in STUDIES["figure_5"]("default")}
    assert len(runs) == 8
    assert {member.objective.beta for member in runs["beta-vae/changed"].members} == {8.0, 16.0, 32.0, 64.0, 128.0}
    assert {member.objective.gamma for member in runs["factor-vae/original"].members} == {1.75, 3.5, 7.0, 14.0, 28.0}


def test_the_printed_cells_are_those_of_the_tables():
    found = published()
    assert len(found) == 2 * (15 + 1) + 3 * 2 * 15
    assert (found["shapes3d", "slow-vae", "mig", "noise"].mean, found["shapes3d", "pcl", "dci", "changed"].mean) == (
        0.60,
        0.67,
    )
    assert (found["dsprites", "pcl", "factor_vae", "changed"].mean, found["dsprites", "pcl", "sap", "noise"].mean) == (
        0.82,
        0.10,
    )
    assert found["shapes3d", "beta-vae", "sap", "original"].deviation == 0.08
    assert ("dsprites", "autoencoder", "mig", "noise") not in found


def test_every_study_has_figures_and_says_what_it_costs():
    assert set(FIGURES) == set(STUDIES)
    for name, study in STUDIES.items():
        assert f"Command: ``axiswise run zietlow2021.{name}" in study.__doc__
        assert "Cost: " in study.__doc__


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected the folder of a study\. Got .*no records"):
        read_study(tmp_path)
