"""A report from a made-up study: what it shows, that it is pure, that gaps are gaps, what it says of bad input."""

import base64
import json
import math
import re
import subprocess
import sys
import tracemalloc
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import image as png
from scipy import stats

from axiswise import report
from axiswise.errors import AxiswiseError
from axiswise.geometry import ACTIVE_BELOW, haar_chance
from axiswise.records._files import read_rows, write_rows
from axiswise.records._layout import records_files
from axiswise.report import _pictures, _terms, contact_sheet, heat_map_sheet, scatter_sheet, write_report
from axiswise.report._folder import read_folder


class Reader(HTMLParser):
    """Checks that every element is closed in order, and collects text, images and links."""

    def __init__(self, page: str):
        super().__init__()
        self.open, self.text, self.images, self.links = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.images.append(dict(attributes))
        if tag == "a":
            self.links.append(dict(attributes)["href"])
        assert tag != "script"
        if tag not in ("img", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


def read(path: Path) -> Reader:
    return Reader(path.read_text(encoding="utf-8"))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_report_says_what_was_trained_and_found(reported: Path):
    page = read(reported / "report.html")
    for words in (
        "Why variational autoencoders find the axes",
        "Linear β-VAEs on a square",
        "members 18",
        "datasets sprites, synth_linear",
        "steps 20,000",
        "device cpu",
        "dsprites/beta was skipped: the dataset is not in the data folder",
        "ae0001 diverged at step 1200",
        "1 member has no MIG, DtO, KL (the member diverged)",
        "6 members: synth_linear, linear, BetaVAE, samples = 50,000, β = 0.01, latents = 2",
        "They differ in ratio (1, 2).",
        "Made by axiswise run quickstart",
        "axiswise 0.1.0, python 3.11.7, torch 2.13.0",
        "synth_linear(ratio=1.0, samples=50000, seed=0)",
    ):
        assert words in page.words
    assert {"linear/ratio-1.0/records.jsonl", "sprites/AE/records.jsonl", "#section-linear"} <= set(page.links)
    for link in page.links:
        assert link.startswith("#") or (reported / link).is_file()


def test_report_is_one_file_with_every_figure_in_it(reported: Path):
    page = read(reported / "report.html")
    stored = {path.read_bytes() for path in (reported / "figures").glob("*.png")}
    embedded = [base64.b64decode(image["src"].removeprefix("data:image/png;base64,")) for image in page.images]
    assert stored == set(embedded)
    assert len(embedded) == len(stored)
    assert all(image["alt"] and int(image["width"]) <= 1076 for image in page.images)
    assert {path.name for path in (reported / "figures").iterdir()} == {
        *(f"linear-{name}.png" for name in ("planes", "curves-ratio", "dto-mig", "training", "latents")),
        *(f"sprites-{name}.png" for name in ("curves-beta", "strips", "dto-mig", "reconstructions")),
        *(f"sprites-traversals-{place}.png" for place in (1, 2, 3, 4)),
    }
    text = (reported / "report.html").read_text()
    assert not re.search(r'(src|href)="(https?:)?//', text)
    assert "url(" not in text


def test_table_holds_mean_and_interval_of_each_setting(reported: Path):
    rows = [json.loads(line) for line in (reported / "linear/ratio-1.0/records.jsonl").read_text().splitlines()]
    mig = np.array([row["value"] for row in rows if row["measure"] == "mig"])
    half = stats.t.ppf(0.975, 2) * stats.sem(mig)
    page = (reported / "report.html").read_text()
    assert f"<td>1</td><td>3</td><td>{mig.mean():.3f} ± {half:.3f}</td>" in page
    assert "Mean over members ± its 95 % interval" in page


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (
            [[0.10, 0.12, 0.11], [0.50, 0.52, 0.51]],
            "0.510 ± 0.025, and lowest at β = 1, 0.110 ± 0.025; the two intervals do not overlap.",
        ),
        ([[0.1, 0.5, 0.3], [0.4, 0.9, 0.5]], "the two intervals overlap."),
        (
            [[0.1, 0.5, None], [0.9, None, None]],
            "0.900 (1 of 3), and lowest at β = 1, 0.300 ± 2.541 (2 of 3); a single",
        ),
    ],
)
def test_findings_tell_settings_apart_by_their_intervals(tmp_path: Path, row, write_run, values, found):
    rows = [
        row("r", f"m{beta}{seed}", "mig", value, seed=seed, hyperparameters={"beta": beta})
        for beta, group in zip((1.0, 4.0), values, strict=True)
        for seed, value in enumerate(group)
    ]
    write_run(tmp_path, rows)
    assert found in read(write_report(tmp_path)).words


def test_findings_name_what_ties_with_the_highest_and_how_many_latents_are_active(tmp_path: Path, row, write_run):
    rows = []
    for beta, active, centre in ((1.0, 5, 0.9), (4.0, 3, 0.6), (16.0, 2, 0.88)):
        for seed, beside in enumerate((-0.03, 0.0, 0.03)):
            about = {"seed": seed, "hyperparameters": {"beta": beta}, "changes": [{"split": "test", "seed": 0}]}
            rows.append(row("r", f"m{beta}{seed}", "dto", centre + beside, detail={"active": active}, **about))
    write_run(tmp_path, rows)
    words = read(write_report(tmp_path)).words
    assert "is highest at β = 1, 0.900 ± 0.075, and lowest at β = 4, 0.600 ± 0.075; the two intervals do not" in words
    assert (
        "overlap. That of β = 16 overlaps with the highest. On average 5.0 and 3.0 latents are active there;" in words
    )
    assert "All is measured on points that were held out from training." in words


def test_a_correlation_that_comes_from_the_setting_is_told_apart(tmp_path: Path, row, write_run):
    """Between the two β alignment and MIG go together; among the seeds of either they do the opposite."""
    rows = []
    for beta, dto, mig in ((1.0, 0.2, 0.8), (4.0, 0.8, 0.2)):
        for seed in range(4):
            about = {"seed": seed, "hyperparameters": {"beta": beta}}
            for measure, value in (("dto", dto + seed / 100), ("mig", mig + seed / 100)):
                rows.append(row("r", f"m{beta}{seed}", measure, value, **about))
    write_run(tmp_path, rows)
    expected = stats.spearmanr([row["value"] for row in rows[::2]], [row["value"] for row in rows[1::2]]).statistic
    found = f"Rank correlation {expected:.2f} over 8 members, 1.00 among those of one setting.".replace("-", "−")
    assert found in read(write_report(tmp_path)).words


def test_terms_are_defined_once_before_they_are_used(reported: Path):
    page = (reported / "report.html").read_text()
    first = page.index('id="section-linear"')
    for name in ("member", "latents", "β", "MIG", "DtO", "polarization", "loss", "reconstruction", "KL", "±"):
        assert page.count(f"<dt>{name}</dt>") == 1
        assert page.index(f"<dt>{name}</dt>") < first
    assert "<dt>disentanglement</dt>" not in page  # not measured


def test_a_single_active_latent_has_no_alignment(tmp_path: Path, row, write_run):
    """Its DtO is 0 whatever the model does: neither the lowest, nor a dot, nor part of a correlation."""
    rows = []
    for seed in range(4):
        for beta, dto, mig, active in ((1.0, 0.5 + seed / 10, 0.5 - seed / 10, 2), (4.0, 0.0, 0.1, 1)):
            about = {"seed": seed, "hyperparameters": {"beta": beta}}
            rows.append(row("r", f"m{beta}{seed}", "dto", dto, detail={"active": active}, **about))
            rows.append(row("r", f"m{beta}{seed}", "mig", mig, **about))
    write_run(tmp_path, rows)
    words = read(write_report(tmp_path)).words
    assert "DtO : 0.650 ± 0.205." in words
    assert "DtO of members with a single active latent (4) is not drawn: it is always 0." in words
    assert "Rank correlation −1.00 over 4 members. Members with fewer than two active latents (4) are not" in words
    assert "β members MIG DtO active latents" in words
    assert "4 4 0.100 ± 0.000 0.000 ± 0.000‡ 1.00 ± 0.00" in words
    assert "‡ with members that have a single active latent (4 of 8): a single axis is always aligned." in words


def test_arrays_are_called_by_their_name_not_their_hash(tmp_path: Path, row, write_run):
    hashes = "9f86d081884c7d659a2feaa0c55ad015" * 2, "60303ae22b998861bce3b28f33eec1be" * 2
    data = [{"x": one, "space": [["shape", 40, "discrete"]] * 9} for one in hashes]
    for folder, used in ((tmp_path / "one", data[:1] * 2), (tmp_path / "two", data)):
        rows = [row("r", f"m{place}", "mig", 0.5, dataset="my photos", data=own) for place, own in enumerate(used)]
        write_run(folder, rows, dataset={"name": "my photos", "arguments": used[0]})
    alone, compared = (read(write_report(tmp_path / name)).words for name in ("one", "two"))
    assert "2 members: my photos, linear, BetaVAE, β = 0.01" in alone
    assert not any(one in words for one in hashes for words in (alone, compared))
    assert "They differ in X (… (60303a), … (9f86d0))." in compared  # what else would tell them apart


def test_reports_and_geometry_agree_on_what_is_active():
    assert _pictures.ACTIVE_BELOW == ACTIVE_BELOW
    assert f"below {ACTIVE_BELOW}" in _terms.MEASURES["active_latents"]
    words = _terms.MEASURES["dto"]
    assert all(f"{haar_chance(active).score:.2f} if" in words for active in (2, 3))


def test_same_records_give_the_same_bytes(reported: Path):
    first = files(reported)
    program = f"from pathlib import Path; import axiswise.report as r; r.write_report(Path({str(reported)!r}))"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
    assert files(reported) == first


def test_compressed_records_give_the_same_report(reported: Path, study: Path):
    for path in records_files(study).values():
        write_rows(path.with_name("records.jsonl.gz"), read_rows(path))
        path.unlink()
    page = write_report(study).read_text()
    assert "linear/ratio-1.0/records.jsonl.gz" in Reader(page).links
    assert page.replace("records.jsonl.gz", "records.jsonl") == (reported / "report.html").read_text()


def test_bytes_do_not_depend_on_the_callers_matplotlib_settings(tmp_path: Path, row, write_run):
    write_run(tmp_path, [row("r", f"m{seed}", "mig", seed / 4, seed=seed) for seed in range(4)])
    first = write_report(tmp_path).read_bytes()
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "savefig.dpi": 30}):
        assert write_report(tmp_path).read_bytes() == first
        assert matplotlib.rcParams["font.size"] == 20


def test_everything_written_by_others_is_escaped(tmp_path: Path, row, write_run, write_study):
    evil = '<script>alert("1")</script> & $x^{$'
    rows = [row(f"a/{evil}", evil, f"m {evil}", 0.5, objective=evil, status=evil, device=evil)]
    rows += [row("a", "b", "mig", None, reason=evil, hyperparameters={evil: 1.0}, versions={evil: evil})]
    write_run(tmp_path / "run", rows, dataset={"name": evil, "arguments": {evil: evil}})
    write_study(tmp_path, ["run"], title=evil, summary=evil, command=evil, skipped={evil: evil})
    page = read(write_report(tmp_path))
    assert page.words.count('<script>alert("1")</script> & $x^{$') >= 10


def test_scores_of_collapsed_members_are_marked(tmp_path: Path, row, write_run):
    rows = [
        row("r", f"m{beta}{seed}", measure, value, seed=seed, hyperparameters={"beta": beta}, detail=detail)
        for beta, active, value in ((1.0, 2, 0.5), (64.0, 0, 0.16))
        for seed in range(2)
        for measure, detail in (("mig", {"active_latents": active}), ("dto", {}))
    ]
    write_run(tmp_path, rows)
    page = read(write_report(tmp_path)).words
    assert "† with members that have no active latent (2 of 4): they have collapsed" in page
    assert page.count("0.160†") == 2  # of either member
    assert page.count("0.160 ± 0.000†") == 2  # in the table of settings, and where the lowest mean is named
    write_run(tmp_path / "alive", [one for one in rows if one["detail"].get("active_latents") != 0])
    assert "†" not in read(write_report(tmp_path / "alive")).words


def test_torn_last_line_is_ignored_and_the_last_of_equal_rows_counts(tmp_path: Path, row, write_run):
    write_run(tmp_path, [row("r", "m", "mig", 0.111), row("r", "m", "mig", 0.777)])
    whole = write_report(tmp_path).read_bytes()
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write('{"member": "m", "measure": "mi')
    assert write_report(tmp_path).read_bytes() == whole
    assert b"0.777" in whole
    assert b"0.111" not in whole


def test_lone_run_with_one_member(tmp_path: Path, row, write_run):
    tmp_path = tmp_path / "quick"
    write_run(tmp_path, [row("quick/one", "m", "mig", 0.5), row("quick/one", "m", "own_score", -3.25)])
    page = read(write_report(tmp_path))
    assert "One member: synth_linear, linear, BetaVAE" in page.words
    assert "own score" in page.words
    assert "−3.25" in page.words
    assert "records.jsonl" in page.links
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["quick-strips.png"]


def test_report_without_arrays_draws_the_measures(study: Path):
    for path in study.rglob("*.safetensors"):
        path.unlink()
    write_report(study)
    assert {path.name for path in (study / "figures").iterdir()} == {
        "linear-curves-ratio.png", "linear-dto-mig.png",
        "sprites-curves-beta.png", "sprites-strips.png", "sprites-dto-mig.png",
    }  # fmt: skip


def test_values_that_are_not_numbers_are_gaps(tmp_path: Path, row, write_run):
    tmp_path = tmp_path / "r"
    values = (math.nan, None, 0.25, math.inf)
    rows = [row("r", f"m{seed}", "mig", value, seed=seed) for seed, value in enumerate(values)]
    rows += [row("r", f"m{seed}", "dto", math.nan, seed=seed) for seed in range(4)]
    codes = {"factors": np.random.default_rng(0).random((5, 2)), "m0": np.full((5, 2), np.nan)}
    history = {"m0/step": np.arange(3), "m0/loss": np.array([1.0, np.nan, np.nan])}
    write_run(tmp_path, rows, {"codes": codes, "history": history})
    page = read(write_report(tmp_path))
    assert "0.250 (1 of 4)" in page.words
    assert "have no MIG, DtO (the value is not a finite number)" in page.words
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"r-strips.png", "r-training.png"}


def test_failing_to_write_leaves_the_earlier_report(tmp_path: Path, row, write_run, monkeypatch: pytest.MonkeyPatch):
    write_run(tmp_path, [row("r", "m", "mig", 0.5)])
    write_report(tmp_path)
    earlier = files(tmp_path)
    write_run(tmp_path, [row("r", "m", "mig", 0.9)])

    def fail(*_: object) -> str:
        raise OSError("disk full")

    for target in ("axiswise.report._writing.document", "os.fsync"):
        with monkeypatch.context() as patch:
            patch.setattr(target, fail)
            with pytest.raises(OSError, match="disk full"):
                write_report(tmp_path)
        assert files(tmp_path) == earlier | {"records.jsonl": (tmp_path / "records.jsonl").read_bytes()}


def test_latent_planes_of_many_settings_are_thinned(tmp_path: Path, row, write_run):
    rng = np.random.default_rng(0)
    betas = {f"m{place:02d}": 0.1 * (place + 1) for place in range(14)}
    rows = [row("r", member, "mig", 0.5, hyperparameters={"beta": beta}) for member, beta in betas.items()]
    codes = {"factors": rng.random((9, 2))} | {member: rng.normal(size=(9, 3)) for member in betas}
    write_run(tmp_path, rows, {"codes": codes})
    assert "Shown are 12 of 14 settings" in read(write_report(tmp_path)).words


def test_a_page_shows_some_of_many_members_and_says_so(tmp_path: Path, row, write_run, monkeypatch: pytest.MonkeyPatch):
    tmp_path = tmp_path / "r"
    monkeypatch.setattr("axiswise.report._document.SHOWN", 20)
    monkeypatch.setattr("axiswise.report._pictures.LINES", 5)
    rows = [
        row("r", f"m{place:04d}", "mig", None if place < 30 else place / 3000, seed=place,
            status=f"diverged at step {place}" if place < 30 else "trained",
            reason=f"diverged at step {place}" if place < 30 else None,
            hyperparameters={"beta": 1.0 + place % 30})
        for place in range(2100)
    ]  # fmt: skip
    history = {f"m{place:04d}/{term}": np.arange(3.0) for place in range(8) for term in ("step", "loss")}
    write_run(tmp_path, rows, {"history": history})
    page = write_report(tmp_path).read_text()
    words = Reader(page).words
    for said in (
        "Shown are 20 of 2,100 members, evenly spaced; the records have all.",
        "Shown are 20 of 30 settings, evenly spaced; the records have all.",
        "Of each kind at most 2,000 members are dots; means and intervals are those of all.",
        "a line that breaks off diverged. Shown are 5 of 8 members, evenly spaced.",
        "m0023 diverged at step 23; 6 more",
        "r : 6 more such gaps",
        f"They differ in β ({', '.join(map(str, range(1, 25)))}, 6 more).",
        "All 2100 members",
    ):
        assert said in words
    assert page.count("<tr>") == 1 + 20 + 1 + 20 + 1 + 1
    assert "<code>m0000</code>" in page
    assert "<code>m2099</code>" in page


def test_the_dots_that_are_drawn_of_many_cover_their_range():
    from axiswise.report.figures.charts import DOTS, _shown

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 10 * DOTS).astype(float), rng.random(10 * DOTS)
    shown = _shown(x, y)
    assert len(set(shown.tolist())) == DOTS
    for value in range(3):
        every, some = y[x == value], y[shown][x[shown] == value]
        assert abs(len(some) - len(every) / 10) <= 1
        assert stats.ks_2samp(every, some).statistic < 0.01
    assert _shown(x[:DOTS], y[:DOTS]) == slice(None)


def test_a_report_does_not_hold_its_rows(tmp_path: Path, row, write_run):
    rows = [
        row("r", f"m{member}", f"measure {measure}", 0.5, seed=member)
        for measure in range(10) for member in range(300)
    ]  # fmt: skip
    write_run(tmp_path, rows)
    peaks = []
    for read in (lambda: read_folder(tmp_path), lambda: list(read_rows(tmp_path / "records.jsonl"))):
        tracemalloc.start()
        held = read()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert held
    assert 10 * peaks[0] < peaks[1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda folder: (folder / "study.json").unlink(),
            r"Expected a run or study folder .* which has neither\. Pass",
        ),
        (lambda folder: (folder / "study.json").write_text("{"), r"study\.json is not readable as JSON"),
        (lambda folder: (folder / "study.json").write_text("[]"), r"must have format 'axiswise-study-2'. Got None"),
        (
            lambda folder: (folder / "study.json").write_text('{"format": "axiswise-study-9"}'),
            r"must have format 'axiswise-study-2'\. Got 'axiswise-study-9'",
        ),
        (
            lambda folder: (folder / "study.json").write_text('{"format": "axiswise-study-1", "runs": []}'),
            r"Expected a study with at least one run\. Got .* which lists none\. Run the study again",
        ),
        (
            lambda folder: (folder / "linear/ratio-1.0/run.json").unlink(),
            r"Expected the file .*run\.json, which the study lists\. Got none\. Run the study again",
        ),
        (
            lambda folder: (folder / "linear/ratio-1.0/records.jsonl").write_text(""),
            r"Expected at least one row in .*records\.jsonl\. Got none\. Measure the run first",
        ),
        (
            lambda folder: (folder / "linear/ratio-1.0/records.jsonl").unlink(),
            r"Expected at least one row in .*records\.jsonl\. Got none",
        ),
        (
            lambda folder: (folder / "linear/ratio-1.0/records.jsonl").write_text('{"member": "m"}\n'),
            r"Expected every row of .* to have `member` and `measure`\. Got one with member\. Remove it",
        ),
        (
            lambda folder: (folder / "linear/ratio-1.0/arrays/codes.safetensors").write_bytes(b"no"),
            r"codes\.safetensors is not a whole safetensors file .* delete it",
        ),
    ],
)
def test_bad_folders_are_named(study: Path, spoil, message: str):
    spoil(study)
    with pytest.raises(AxiswiseError, match=message):
        write_report(study)
    assert not (study / "report.html").exists()


def test_folder_that_does_not_exist(tmp_path: Path):
    with pytest.raises(AxiswiseError, match=r"Got .*absent, which does not exist\. Pass the folder"):
        write_report(tmp_path / "absent")


def test_importing_the_report_imports_no_torch_and_changes_no_settings():
    program = (
        "import sys, matplotlib\n"
        "names = {*matplotlib.rcParams} - {'backend'}\n"  # to look at the backend is to choose one
        "before = {name: matplotlib.rcParams[name] for name in names}\n"
        "import axiswise.report\n"
        "assert before == {name: matplotlib.rcParams[name] for name in names}\n"
        "print(sorted({'torch', 'matplotlib.pyplot'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    names = {"contact_sheet", "explorer", "heat_map_sheet", "page", "scatter_sheet", "write_report"}
    assert set(report.__all__) == names


@pytest.mark.parametrize("shape", [(1, 1, 8, 8), (7, 3, 8, 12), (30, 2, 4, 4)])
def test_contact_sheet(tmp_path: Path, shape: tuple[int, ...]):
    images = np.zeros(shape, np.float32)
    path = contact_sheet(images, tmp_path / "new" / "sheet.png", [f"${n}" for n in range(len(images))])
    black = (png.imread(path)[..., :3] == 0).all(-1)
    assert 0.3 < black.mean() < 1


def test_contact_sheet_shows_the_pixels_given(tmp_path: Path):
    image = np.zeros((1, 3, 2, 2), np.float32)
    image[0, 0, 0, 0] = 1
    sheet = png.imread(contact_sheet(image, tmp_path / "sheet.png"))[..., :3]
    height, width = sheet.shape[:2]
    assert sheet[height // 4, width // 4].tolist() == [1, 0, 0]
    assert sheet[3 * height // 4, width // 4].tolist() == [0, 0, 0]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 6])
def test_scatter_sheet(tmp_path: Path, dimensions: int):
    rng = np.random.default_rng(0)
    path = scatter_sheet(rng.random((40, dimensions)), rng.random((40, 2)), ["$a", "b"], tmp_path / "sheet.png")
    colours = {tuple(colour) for colour in png.imread(path)[..., :3].reshape(-1, 3).tolist()}
    assert len(colours) > 40


def test_sheets_say_what_they_need(tmp_path: Path):
    with pytest.raises(
        AxiswiseError, match=r"`images` must have the shape \(n, c, h, w\) with n ≥ 1\. Got \(8, 8\)\. Add"
    ):
        contact_sheet(np.zeros((8, 8)), tmp_path / "sheet.png")
    with pytest.raises(AxiswiseError, match=r"`titles` must be as many as the images, 2\. Got 1\. Give one for each"):
        contact_sheet(np.zeros((2, 1, 8, 8)), tmp_path / "sheet.png", ["one"])
    with pytest.raises(AxiswiseError, match=r"Got \(5, 2\), \(5, 3\) and \(2,\)\. Flatten images"):
        scatter_sheet(np.zeros((5, 2)), np.zeros((5, 3)), ["a", "b"], tmp_path / "sheet.png")
    names = {"factors": ["a", "b"], "latents": ["z0"], "quantity": "share", "path": tmp_path / "sheet.png"}
    with pytest.raises(AxiswiseError, match=r"each of the 2 factors .* of the 1 latents\. Got shapes \[\(1, 2\)\]"):
        heat_map_sheet([np.zeros((1, 2))], titles=["one"], **names)
    with pytest.raises(AxiswiseError, match=r"for each of the 2 factors .* Got shapes \[\]"):
        heat_map_sheet([], titles=[], **names)
    with pytest.raises(AxiswiseError, match=r"`titles` must be as many as the matrices, 1\. Got 0\."):
        heat_map_sheet([np.zeros((2, 1))], titles=[], **names)
    assert list(tmp_path.iterdir()) == []
