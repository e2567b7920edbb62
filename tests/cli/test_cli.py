"""The command line: what it prints, what it refuses, and how it exits."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from axiswise import __version__
from axiswise.cli import app
from axiswise.engines import run_study
from axiswise.records import read_json
from axiswise.studies import all_studies
from axiswise_papers.ledger import CLAIMS

PROGRAM = [sys.executable, "-m", "axiswise"]


def axiswise(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, **options)


def test_help_and_version_do_not_import_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from axiswise.cli import app\n"
        "for arguments in (['--help'], ['run', '--help'], ['bench', '--help'], ['data', '--help'],\n"
        "                  ['verify', '--help'], ['score', '--help'], ['explain', '--help'], ['status', '--help'],\n"
        "                  ['list', '--help'], ['export', '--help'],\n"
        "                  ['--version']):\n"
        "    result = CliRunner().invoke(app, arguments); assert result.exit_code == 0, result.output\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_version():
    assert CliRunner().invoke(app, ["--version"]).output == f"axiswise {__version__}\n"


@pytest.mark.parametrize("command", [(), ("run",), ("data",), ("data", "list")])
def test_help_shows_flags_without_values_and_whole_sentences(command):
    text = CliRunner().invoke(app, [*command, "--help"]).output
    assert "--help " in text
    assert "<bool>" not in text
    commands = text.partition("Commands:\n")[2].partition("  bench ")[0]
    assert "..." not in commands


def test_the_command_line_is_frozen():
    """A new option is a decision, not an accident."""
    import typer

    def options(command, path=()):
        found = {}
        for name, sub in getattr(command, "commands", {}).items():
            found |= options(sub, (*path, name))
        own = sorted(o for p in command.params for o in p.opts if o != "--help")
        return {" ".join(path): own} | found if not hasattr(command, "commands") or not path else found

    assert options(typer.main.get_command(app)) == {
        "": ["--version"],
        "attack": [
            *("--apart", "--budget", "--count", "--device", "--epsilon", "--force", "--json", "--objectives"),
            *("--out", "--path", "--seeds", "dataset"),
        ],
        "bench data": ["--device", "--force", "--json", "--members", "--repeats"],
        "bench geometry": ["--force", "--json", "--points"],
        "bench networks": ["--deviations", "--device", "--force", "--json", "--members", "--only", "--processes"],
        "bench population": ["--conv", "--device", "--force", "--json", "--members", "--only", "--repeats"],
        "bench scores": ["--exact", "--force", "--json", "--members"],
        "bench study": ["--device", "--force", "--json", "--out", "--scale", "name"],
        "data get": ["--path", "name"],
        "data list": ["--long"],
        "data show": ["--force", "--out", "--path", "name"],
        "gallery": ["results"],
        "explain": [
            *("--beta", "--data", "--factors", "--force", "--likelihood", "--out", "--points", "--seed", "factory"),
        ],
        "explore": [
            "--data",
            "--each",
            "--force",
            "--megabytes",
            "--members",
            "--out",
            "--own",
            "--run",
            "-o",
            "folder",
        ],
        "export": ["--member", "--out", "--own", "--to", "folder"],
        "list": ["--force", "--json"],
        "report": ["folder"],
        "run": [
            *("--address", "--device", "--engine", "--only", "--out", "--precision", "--retrain", "--scale"),
            *("--seeds-from", "--shared-disk", "--workers", "study"),
        ],
        "score": [
            *(
                "--agreement",
                "--circular",
                "--continuous",
                "--discrete",
                "--drop-missing",
                "--force",
                "--json",
                "--kinds",
                "--out",
                "--scores",
            ),
            *("--seed", "--test-codes", "--test-factors", "codes", "factors", "more"),
        ],
        "status": ["--force", "--json", "folder"],
        "theory": ["--betas", "--dimension", "--force", "--json", "--latents", "--mixing", "--noise", "--out"],
        "verify": [
            *("--device", "--force", "--json", "--long", "--out", "--publish", "--results", "--retrain"),
            *("--scale", "--seeds-from", "--train", "--workers", "claims"),
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["run", "quikstart"], "Expected the name of a study (quickstart, "),
        (["run", "quickstart", "--device", "abacus"], "--device must name a device of this machine (cpu"),
        (["run", "quickstart", "--scale", "huge"], "--scale must be one of smoke, default, paper. Got 'huge'."),
        (["run", "quickstart", "--workers", "0"], "--workers must be at least 1. Got 0."),
        (["run", "quickstart", "--engine", "rai"], "--engine must be local or ray. Got 'rai'."),
        (["run", "quickstart", "--address", "auto"], "--address is that of a Ray cluster. Got 'auto' without --engine"),
        (
            ["run", "quickstart", "--shared-disk"],
            "--shared-disk is that of a Ray cluster. Got it without",
        ),
        (["run", "quickstart", "--engine", "ray", "--workers", "2"], "--workers are those of --engine local. Got 2"),
        (["verify", "sika"], "Expected papers, or ids of claims (sikka"),
        (["verify", "sikka.fig3x"], "Expected papers, or ids of claims (sikka, sikka.terms, "),
        (["verify", "--scale", "huge"], "--scale must be one of smoke, default, paper. Got 'huge'."),
        (["verify", "sikka", "--publish", "x"], "--publish keeps the verdicts of all claims together. Got sikka."),
        (
            ["verify", "--seeds-from", "9", "--publish", "x"],
            "--publish keeps what the usual seeds give. Got --seeds-from",
        ),
        (["export", "nowhere"], "Expected a run folder with a run.json at nowhere. There is none."),
        (["gallery", "nowhere"], "Expected a folder of results with a verdicts.json"),
        (["status", "nowhere"], "Expected a run or study folder (with run.json or study.json). Got nowhere"),
        (["data", "get", "dsprite"], "Expected the name of a dataset (dsprites, color_dsprites, "),
        (["data", "get", "npz"], "The dataset npz is made of files of your own. Name them with --path."),
        (
            ["data", "get", "mnist", "--path", "."],
            "The dataset mnist has files of its own and takes no --path.",
        ),
        (["report", "nowhere"], "Expected a run or study folder (with run.json or study.json). Got nowhere"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, reason, tmp_path):
    done = axiswise(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"axiswise: {reason}")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_another_study_is_refused(tmp_path):
    (tmp_path / "study.json").write_text(json.dumps({"format": "axiswise-study-1", "study": "other", "scale": "smoke"}))
    done = axiswise("run", "rolinek2019.figure_s4", "--scale", "smoke", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "holds study 'other' at scale 'smoke'. Got 'rolinek2019.figure_s4' at 'smoke'" in done.stderr


def test_list_shows_every_study_and_claim():
    studies, claims, _ = CliRunner().invoke(app, ["list"]).output.split("\n\n")
    assert [line.split()[0] for line in claims.splitlines()] == ["claim", *(claim.id for claim in CLAIMS)]
    assert [line.split()[0] for line in studies.splitlines()] == [
        "study",
        "quickstart",
        "objectives",
        "comparison",
        "allen2024.linear",
        "allen2024.bent",
        "allen2024.theorem_3",
        "allen2024.figure_2",
        "allen2024.plateau",
        "mathieu2019.figure_3",
        "mathieu2019.divergences",
        "mathieu2019.appendix_c",
        "mathieu2019.discussion",
        "mathieu2019.figure_2_top",
        "mathieu2019.figure_2_bottom",
        "mathieu2019.figure_4",
        "rolinek2019.table_1",
        "rolinek2019.table_2",
        "rolinek2019.table_s4",
        "rolinek2019.figure_s4",
        "rolinek2019.table_2_images",
        "rolinek2019.figure_3",
        "rolinek2019.figure_s4_sprites",
        "sikka2019.propositions",
        "sikka2019.fixed_decoder",
        "sikka2019.figure_1",
        "sikka2019.figure_2",
        "sikka2019.figure_3",
        "zietlow2021.theorem_1",
        "zietlow2021.figure_1",
        "zietlow2021.small_attack",
        "zietlow2021.table_1",
        "zietlow2021.table_1_shapes3d",
        "zietlow2021.figure_5",
        "zietlow2021.figure_10",
        "zietlow2021.preserved",
        "zietlow2021.preserved_images",
    ]


def test_list_shows_costs_and_where_they_were_measured(tmp_path, monkeypatch):
    costs: dict[str, dict] = {
        "cpu": {"machine": "two cores", "versions": "torch 2", "command": "axiswise verify"},
        "gpu": {"machine": "one H200", "versions": "torch 3", "command": "axiswise run"},
    }
    provenance = {column: dict(about) for column, about in costs.items()}
    for column in costs.values():
        column["studies"] = dict.fromkeys(all_studies(), "not measured: no time")
    costs["cpu"]["claims"] = {claim.id: 0.5 for claim in CLAIMS}
    costs["cpu"]["studies"] |= {"rolinek2019.table_1": 246.0, "sikka2019.propositions": 30.0}
    costs["gpu"]["studies"]["rolinek2019.table_1"] = 42.0
    for module in ("axiswise.studies._costs", "axiswise_papers._costs", "axiswise.studies"):
        monkeypatch.setattr(f"{module}.read_costs", lambda package: costs)
    done = CliRunner().invoke(app, ["list", "--json", str(tmp_path / "list.json")])
    lines = {line.split()[0]: line for line in done.output.splitlines() if line}
    assert " 40 4.1 min 42 s  Training soon" in lines["rolinek2019.table_1"]
    assert " 60       –    –  How well" in lines["comparison"]
    assert "exact             0.5 s      –  For any" in lines["sikka.prop4"]
    assert "exact + train      30 s      –  The best" in lines["sikka.prop1"]
    assert "train + gpu   ≥ 4.1 min ≥ 42 s  The polarized" in lines["rolinek.table1"]
    assert "axiswise, axiswise_papers, CPU: two cores; torch 2; axiswise verify" in done.output
    assert "axiswise, axiswise_papers, GPU: one H200; torch 3; axiswise run" in done.output
    written = read_json(tmp_path / "list.json", "axiswise-list-2")
    claims = {claim["claim"]: claim for claim in written["claims"]}
    assert claims["sikka.prop1"]["cpu"] == {"seconds": 30.5, "unknown": []}
    unknown = ["rolinek2019.table_2_images not measured: no time"]
    assert claims["rolinek.table1"]["gpu"] == {"seconds": 42.0, "unknown": unknown}
    studies = {study["study"]: study for study in written["studies"]}
    assert studies["comparison"]["cpu"] == {"seconds": None, "unknown": ["comparison not measured: no time"]}
    assert written["measured"] == {"axiswise": provenance, "axiswise_papers": provenance}


def test_data_commands(tmp_path):
    listed = CliRunner().invoke(app, ["data", "list"]).output
    assert all(name in listed for name in ("dsprites", "pinwheel", "synth_linear", "synth_nonlinear"))
    got = CliRunner().invoke(app, ["data", "get", "synth_linear"])
    assert "50,000 observations of shape (3,)" in got.output
    shown = CliRunner().invoke(app, ["data", "show", "synth_nonlinear", "--out", str(tmp_path / "sheet.png")])
    assert shown.exit_code == 0
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")


def test_a_study_runs_reports_and_runs_again_without_training(tmp_path):
    out = tmp_path / "run"
    first = axiswise("run", "rolinek2019.figure_s4", "--scale", "smoke", "--out", str(out))
    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[:2] == ["training on cpu", "[1/2] linear/beta: 6 members, 100 steps"]
    page = (out / "report.html").read_bytes()
    weights = {path: path.stat().st_mtime_ns for path in out.rglob("members/*.safetensors")}
    assert len(weights) == 12
    rows = [json.loads(line) for line in (out / "non-linear/beta/records.jsonl").read_text().splitlines()]
    measures = {"mig", "disentanglement", "dto", "polarization", "loss", "reconstruction", "kl"}
    assert {row["measure"] for row in rows} == measures
    again = axiswise("run", "rolinek2019.figure_s4", "--scale", "smoke", "--out", str(out))
    assert again.returncode == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("members/*.safetensors")} == weights
    assert (out / "report.html").read_bytes() == page  # law 7: the same records give the same bytes


def test_missing_data_is_skipped_with_the_reason(tmp_path, monkeypatch):
    """A run whose data is unavailable is logged, and the others run."""
    from axiswise.errors import DataUnavailable
    from axiswise.studies import Run
    from axiswise_papers.rolinek2019.studies import figure_s4

    def absent():
        raise DataUnavailable("no such file anywhere")

    def study(scale):
        """Two runs, one without data.

        The other goes on.
        """
        _, run = figure_s4(scale)
        return [Run("images/absent", absent, run.members, run.measures), run]

    lines = []
    run_study(study, "smoke", tmp_path / "out", log=lines.append)
    about = json.loads((tmp_path / "out" / "study.json").read_text())
    assert about["skipped"] == {"images/absent": "no such file anywhere"}
    assert about["runs"] == ["non-linear/beta"]
    assert "skipped images/absent: no such file anywhere" in lines


def test_bench_prints_and_writes_ratios(tmp_path, monkeypatch):
    from axiswise_benchmarks import population as benchmark

    monkeypatch.setattr(benchmark, "WARM_UP", 2)
    arguments = ["bench", "population", "--members", "3", "--repeats", "1", "--json", str(tmp_path / "bench.json")]
    unknown = CliRunner().invoke(app, [*arguments, "--only", "mnist"])
    assert str(unknown.exception).startswith("--only must name rows of the table (non-linear task, batch 32; ")
    arguments += ["--only", "non-linear task, batch 16"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert row["job"] == "non-linear task, batch 16"
    assert row["ratio"] == pytest.approx(row["loop_ms"] / row["population_ms"])
    assert f"{row['ratio']:7.1f}" in done.output


def test_bench_networks_prints_and_writes_deviations(tmp_path):
    arguments = ["bench", "networks", "--only", "mnist", "--json", str(tmp_path / "bench.json")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    (row,) = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert row["network"] == "mnist"
    assert 0.0 < row["cpu"] < 1e-10
    assert f"{row['cpu']:8.0e}" in done.output
    assert row["eager"] is None


def test_bench_data_compares_batches_with_the_step(tmp_path, monkeypatch):
    from axiswise import data
    from axiswise.numerics import uniform

    small = data.arrays(uniform(0, "images", 0, (40, 1, 64, 64)))
    for name in ("dsprites", "shapes3d"):
        monkeypatch.setattr(data, name, lambda: small)
    arguments = ["bench", "data", "--members", "2", "--repeats", "1", "--json", str(tmp_path / "bench.json")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    rows = json.loads((tmp_path / "bench.json").read_text())["rows"]
    assert [set(row) for row in rows] == [{"dataset", "batch_ms", "step_ms", "share"}] * 2
    assert all(row["share"] == pytest.approx(row["batch_ms"] / row["step_ms"]) for row in rows)


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["run", "quickstart", "--scale", "smoke"], "The report of a study"),
        (["report", "runs/nothing"], "A report"),
        (["attack", "small_sprites"], "The page of an attack"),
        (["data", "show", "synth_linear"], "A contact sheet"),
        (["theory"], "The picture of the theory"),
    ],
)
def test_without_matplotlib_it_is_said_before_anything_is_trained(tmp_path, monkeypatch, arguments, what):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = CliRunner().invoke(app, arguments)
    assert str(done.exception) == f"{what} needs matplotlib. Install it: pip install 'axiswise[report]'."
    assert list(tmp_path.iterdir()) == []
