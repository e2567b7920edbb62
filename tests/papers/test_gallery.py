"""The page of all papers and the errata: drawn from records, the same bytes from the same records."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.records import read_runs, read_tensors, write_json, write_tensors
from axiswise.records._files import append_rows
from axiswise.records._layout import records_files
from axiswise.report.figures import contact, scatter_factors
from axiswise_papers._gallery import PAPERS, SURE, errata, publish, summary_table, with_palette, write_gallery
from axiswise_papers._verify import verify, write
from axiswise_papers.ledger import CLAIMS, STUDIES

STUDY = "rolinek2019.table_s4"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Compact records of one study at smoke scale, and verdicts of exact claims."""
    folder = tmp_path_factory.mktemp("gallery")
    run_study(STUDIES[STUDY], "smoke", folder / "runs" / STUDY, name=STUDY)
    assert publish(folder / "runs", folder / "results", [STUDY, "sikka2019.figure_2"]) == [
        folder / "results" / "rolinek2019" / "table_s4"
    ]
    exact = [claim for claim in CLAIMS if claim.id in ("sikka.prop2", "sikka.fig1", "zietlow.order")]
    judged = list(verify([replace(claim, trained=()) for claim in exact], STUDIES, "default", folder / "runs"))
    write(folder / "results" / "verdicts.json", judged, {"command": "c", "scale": "default", "device": "cpu"})
    return folder / "results"


def test_no_weights_are_published(results):
    kept = {path.name for path in results.rglob("*") if path.is_file()}
    assert kept == {"verdicts.json", "study.json", "run.json", "records.jsonl.gz", "codes.safetensors"}


def test_the_page_shows_claims_pictures_and_records(results):
    page = write_gallery(results, CLAIMS).read_text("utf-8")
    for words in ("sikka.prop2", "holds corrected", "axiswise run rolinek2019.table_s4", "data:image/png", "Errata"):
        assert words in page
    assert 'href="rolinek2019/table_s4/linear/ratio-1.0/records.jsonl.gz"' in page
    runs = STUDIES[STUDY]("smoke")
    trained = sum(len(run.members) for run in runs)
    assert trained > len({member.address for run in runs for member in run.members})  # the same on several datasets
    assert f"{trained} members, " in page
    for paper in PAPERS:
        assert f'id="{paper.name}"' in page
    assert write_gallery(results, CLAIMS).read_text("utf-8") == page


def test_published_records_are_those_of_the_runs(results):
    runs, published = (
        {run: list(records) for run, records in read_runs(folder).items()}
        for folder in (results.parent / "runs" / STUDY, results / "rolinek2019" / "table_s4")
    )
    assert runs
    assert published == runs


def test_of_arrays_only_those_that_figures_need_are_published(tmp_path):
    source, name = tmp_path / "runs" / "zietlow2021.small_attack", "reconstructions.safetensors"
    write_json(source / "study.json", {"format": "axiswise-study-2"})
    images = {variant: np.full((2, 1, 3, 3), place) for place, variant in enumerate(("original", "changed", "noise"))}
    for variant in (*images, "reversed"):
        run = source / "beta-vae" / variant
        append_rows(run / "records.jsonl", [{"member": "m", "measure": "mig"}])
        write_json(run / "run.json", {"format": "axiswise-run-2"})
        arrays = {"x": images.get(variant, np.zeros(1)), "m": np.ones(1)}
        write_tensors(run / "arrays" / name, arrays, {"format": "axiswise-arrays-2"})
        write_tensors(run / "arrays" / "codes.safetensors", arrays, {"format": "axiswise-arrays-2"})
    (target,) = publish(tmp_path / "runs", tmp_path / "results", ["zietlow2021.small_attack"])
    found = {path.relative_to(target).as_posix(): path for path in target.rglob("*.safetensors")}
    assert found.keys() == {f"beta-vae/{variant}/arrays/{name}" for variant in images}
    for variant, expected in images.items():
        stored = read_tensors(found[f"beta-vae/{variant}/arrays/{name}"], "axiswise-arrays-2")
        assert stored.arrays.keys() == {"x"}
        np.testing.assert_array_equal(stored.arrays["x"], expected)


def test_published_pictures_have_a_palette_and_look_the_same():
    square = np.random.default_rng(0).random((100, 2))
    drawn = scatter_factors(square, square, ["width", "height"])
    reduced = with_palette(drawn)
    assert reduced == with_palette(drawn)
    assert len(reduced) < 0.5 * len(drawn)
    before, after = (Image.open(io.BytesIO(png)) for png in (drawn, reduced))
    assert (after.mode, after.size) == ("P", before.size)
    differences = np.abs(np.asarray(after.convert("RGB"), float) - np.asarray(before.convert("RGB"), float))
    assert differences.mean() < 0.1
    assert (differences.max(-1) > 16.0).mean() < 0.01
    wave = np.sin(np.linspace(0.0, 20.0, 200)) / 2.0 + 0.5
    smooth = contact(np.outer(wave, wave)[None, None], None)
    assert with_palette(smooth) == smooth  # a palette would make it larger


@pytest.mark.parametrize("old", ["records.jsonl", "records.jsonl.gz"])
def test_publishing_again_replaces_what_was_there(results, old):
    target = results / "rolinek2019" / "table_s4"
    (target / "old" / "run").mkdir(parents=True)
    (target / "old" / "run" / old).write_text("")
    before = {path: path.read_bytes() for path in records_files(target / "linear").values()}
    publish(results.parent / "runs", results, [STUDY])
    assert not (target / "old" / "run").exists()
    assert {path: path.read_bytes() for path in records_files(target / "linear").values()} == before


def test_a_folder_without_verdicts_is_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"Expected a folder of results with a verdicts.json.* Got "):
        write_gallery(tmp_path, CLAIMS)


def test_the_summary_counts_verdicts():
    claims = [{"id": "sikka.a", "verdict": "holds"}, {"id": "sikka.b", "verdict": "not run here"}]
    assert "| sikka2019 | 2 | 1 | – | – | – | – | 1 |" in summary_table({"claims": claims}).splitlines()


def test_the_page_of_errata_opens_with_what_they_do_not_mean():
    opening = errata(CLAIMS).partition("## ")[0]
    assert "What this page does not mean" in opening
    for sure, meaning in SURE.items():
        assert f"*{sure}*: {meaning}" in opening


@pytest.mark.parametrize(
    "erratum",
    [pytest.param(each, id=f"{claim.id} {each.place}") for claim in CLAIMS for each in claim.errata],
)
def test_an_erratum_quotes_and_says_how_sure_we_are(erratum):
    assert "“" in erratum.printed
    assert "”" in erratum.printed
    assert erratum.sure in SURE


def test_every_erratum_is_on_the_page_of_errata():
    page = errata(CLAIMS)
    for claim in CLAIMS:
        for erratum in claim.errata:
            assert f"(`{claim.id}`)" in page
            assert erratum.right in page
