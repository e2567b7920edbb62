"""`axiswise theory`: the table, the files, other mixing matrices, the figure, and what is refused."""

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.cli.theory import _values
from axiswise.errors import AxiswiseError
from axiswise.report.figures.theory import Theory, distinct, theory_curves


def axiswise(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["theory", *arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def rows(folder) -> list[dict[str, float]]:
    with (folder / "theory.csv").open() as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def test_figure_1_is_the_default(tmp_path):
    output = axiswise("--out", str(tmp_path), "--json", str(tmp_path / "theory.json"))
    lines = {line.strip().split("  ")[-1].strip(): line.split() for line in output.splitlines()[1:7]}
    assert lines["ELBO peaks"][:2] == ["1", "2"]
    assert lines["least TIE"][0].startswith("1.137")
    assert lines["least TIE"][7] == "19.163"
    assert lines["latent 2 off"][:2] == ["1.25", "1"]
    assert lines["latent 1 off"][:2] == ["66.25", "0"]
    assert "200 values of β in" in output
    assert (tmp_path / "theory.png").read_bytes().startswith(b"\x89PNG")
    found = rows(tmp_path)
    assert len(found) == 204  # the grid, 1, the least TIE and two corners
    best = max(found, key=lambda row: row["elbo"])
    assert best["beta"] == 1
    assert best["mie"] == pytest.approx(0, abs=1e-9)
    assert best["elbo"] == pytest.approx(best["log_likelihood"], abs=1e-7)
    assert min(row["tie"] for row in found) == pytest.approx(19.1625, abs=1e-4)
    assert {name for name in found[0] if name.startswith("tie_branch")} == {f"tie_branch_{n}" for n in (1, 2, 3, 4)}
    about = json.loads((tmp_path / "theory.json").read_text())
    assert about["format"] == "axiswise-theory-1"
    assert about["off_from"] == pytest.approx([66.25, 1.25])
    assert (about["shape"], about["noise"], about["betas"], about["device"]) == ([128, 2], 1.0, 200, "cpu")
    assert {"python", "torch", "axiswise"} <= set(about["versions"])
    assert [row["what"] for row in about["rows"]] == [*lines][: len(about["rows"])]


@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_another_mixing_matrix(tmp_path, ending):
    mixing = np.array([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    path = tmp_path / f"mixing.{ending}"
    np.save(path, mixing) if ending == "npy" else np.savetxt(path, mixing, delimiter=",")
    axiswise("--mixing", str(path), "--noise", "0.5", "--betas", "0.5,1,2.5,30", "--out", str(tmp_path / "out"))
    found = {row["beta"]: row for row in rows(tmp_path / "out")}
    # Eigenvalues 9.5 and 1.5 over a noise of 0.5: latents are off from β = 19 and 3 on.
    assert [found[beta]["active"] for beta in (0.5, 1, 2.5, 30)] == [2, 2, 2, 0]
    assert found[3]["active"] == 1
    assert found[19]["active"] == 0
    # Orthogonal columns: at β = 1 the posterior is diagonal and true.
    assert found[1]["tie"] == pytest.approx(0, abs=1e-9)
    # With all latents off: the entropy of N(0, σ²I) against the data of variances 9.5, 1.5, 0.5.
    assert found[30]["elbo"] == pytest.approx(-0.5 * (3 * np.log(np.pi) + 2 * 11.5), rel=1e-9)


def test_another_size_and_many_latents(tmp_path):
    output = axiswise("--dimension", "12", "--latents", "7", "--betas", "0.2:4:20", "--out", str(tmp_path))
    assert "20 values of β" in output
    assert not [name for name in rows(tmp_path)[0] if name.startswith("tie_branch")]
    assert (tmp_path / "theory.png").exists()


def test_values_of_beta():
    np.testing.assert_allclose(_values("2,0.5,2", 1.0), [0.5, 2.0])
    np.testing.assert_allclose(_values("0.1:10:3", 1.0), [0.1, 1.0, 10.0])
    default = _values(None, 66.25)
    assert (len(default), round(default[0].item(), 12), round(default[-1].item(), 9)) == (200, 0.1, 99.375)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            ["--betas", "1,-2"],
            "--betas must be positive numbers, as in 0.5,1,2 or 0.1:100:200, from 1e-100 to 1e+100. Got '-2'.",
        ),
        (
            ["--betas", "nan"],
            "--betas must be positive numbers, as in 0.5,1,2 or 0.1:100:200, from 1e-100 to 1e+100. Got 'nan'.",
        ),
        (["--betas", "1:2"], "--betas must be LOW:HIGH:COUNT, with a COUNT of at least 2. Got '1:2'."),
        (["--betas", "3:2:10"], "--betas must be LOW:HIGH:COUNT, LOW below HIGH. Got '3:2:10'."),
        (["--noise", "0"], "--noise must lie between 1e-100 and 1e+100. Got 0."),
        (["--latents", "5", "--dimension", "4"], "--latents must lie between 1 and --dimension, 4. Got 5."),
        (["--mixing", "a.npy", "--latents", "2"], "--mixing determines the numbers of dimensions and latents."),
        (["--mixing", "a.txt"], "--mixing must name a .npy or a .csv file. Got a.txt."),
        (["--mixing", "words.csv"], "words.csv is not a matrix of numbers"),
        (["--mixing", "flat.npy"], "flat.npy must hold a matrix, a row for each observed value. Got shape (3,)."),
        (["--mixing", "twice.csv"], "`mixing` must have full column rank"),
        (["--mixing", "nan.csv"], "`mixing` must be finite. Got nan in 1 of 3 places."),
    ],
)
def test_mistakes_are_refused_and_nothing_is_written(arguments, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("flat.npy", np.ones(3))
    (tmp_path / "words.csv").write_text("one,two\n")
    (tmp_path / "twice.csv").write_text("1,2\n1,2\n0,0\n")
    (tmp_path / "nan.csv").write_text("1\nnan\n2\n")
    with pytest.raises(AxiswiseError) as refused:
        axiswise(*arguments)
    assert str(refused.value).startswith(reason)
    assert not (tmp_path / "runs").exists()


def test_help_does_not_import_torch():
    code = (
        "import sys; from typer.testing import CliRunner; from axiswise.cli import app\n"
        "result = CliRunner().invoke(app, ['theory', '--help']); assert result.exit_code == 0, result.output\n"
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def curves(branches: np.ndarray, tie: np.ndarray | None = None) -> Theory:
    beta = np.geomspace(0.1, 10, 21)
    some = (np.log(beta) - 0.2) ** 2
    return Theory(
        beta, -some, 1 - some, -beta, 1 / beta, some, branches.min(1) if tie is None else tie, branches,
        np.stack([2 - beta / 10, 1 - beta / 10], 1), np.array([20.0, 3.0]),
    )  # fmt: skip


def test_figure_draws_each_branch_once_and_marks_the_extremes():
    beta = np.geomspace(0.1, 10, 21)
    low, high = 5 + (np.log(beta) - 0.2) ** 2, 19 + np.log(beta)
    figure = theory_curves.__wrapped__(curves(np.stack([low, high, low, high], 1)))
    panels = figure.axes
    assert [axes.get_title(loc="left")[0] for axes in panels] == list("ABCDEF")
    assert {axes.get_xscale() for axes in panels} == {"log"}
    drawn = [line for line in panels[4].lines if len(line.get_xdata()) == 21]
    np.testing.assert_array_equal(np.stack([line.get_ydata() for line in drawn], 1), np.stack([low, high, low], 1))
    corners = [line.get_xdata()[0] for line in panels[0].lines if line.get_linestyle() == "--"]
    assert corners == [3.0]  # the other is beyond the last β
    peak = next(line for line in panels[0].lines if line.get_marker() == "o")
    assert peak.get_xdata()[0] == beta[np.argmin(np.abs(np.log(beta) - 0.2))]
    (inset,) = panels[4].child_axes
    assert inset.get_xlim()[0] >= 0.4 * peak.get_xdata()[0]


def test_figure_of_many_branches_is_a_band_and_of_none_says_so():
    beta = np.geomspace(0.1, 10, 21)
    branches = np.arange(1.0, 11.0) + beta[:, None]
    band = theory_curves.__wrapped__(curves(branches)).axes[4].collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx(20.0)
    nothing = theory_curves.__wrapped__(curves(branches[:, :0], np.full(21, np.nan)))
    assert [text.get_text() for text in nothing.axes[4].texts] == ["no value"]
    assert theory_curves(curves(branches)) == theory_curves(curves(branches))  # the same numbers, the same bytes


def test_distinct_branches():
    values = np.array([[1.0, 1.0 + 1e-9, 2.0], [5.0, 5.0, 5.0]])
    assert distinct(values).tolist() == [[1.0, 2.0], [5.0, 5.0]]
    assert distinct(np.zeros((4, 0))).shape == (4, 0)


def test_few_values_are_all_listed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["theory", "--betas", "0.5,1.1,3", "--json", "t.json"])
    assert result.exit_code == 0, result.output
    listed = {row["beta"]: row["what"] for row in json.loads((tmp_path / "t.json").read_text())["rows"]}
    assert {0.5: "smallest β", 1.0: "ELBO peaks", 1.1: "", 3.0: "largest β"}.items() <= listed.items()
