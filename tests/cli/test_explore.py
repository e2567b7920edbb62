"""`axiswise explore`: which members of which runs, on which data, into which file."""

import pytest
from typer.testing import CliRunner

from axiswise import data, evaluate, grid, models, objectives, train
from axiswise.cli import app
from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.report import write_report
from axiswise.scores import mig
from axiswise.studies import Run


def study(scale):
    """Does it run?

    Two runs on points, one on images."""
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.1), steps=1, seed=range(2))
    images = grid(model=models.mlp((1, 16, 16), 2), objective=objectives.BetaVAE(0.1), steps=1, seed=range(3))
    return [
        Run("points/square", points, members, (mig,), held_out=True),
        Run("images/sprites", data.small_sprites, images, (mig,)),
    ]


def points():
    return data.synth_linear(samples=100)


def axiswise(*arguments: object) -> list[str]:
    result = CliRunner().invoke(app, ["explore", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    run_study(study, "smoke", folder, name="file.py:study", workers=1)
    return folder


def test_the_explorer_of_a_study_is_that_of_its_images_and_the_report_links_to_it(folder):
    page = write_report(folder)
    assert "explorer.html" not in page.read_text()
    lines = axiswise(folder)
    assert lines[:2] == ["runs: images/sprites", "other data (choose with --run): points/square"]
    assert lines[2].startswith(f"explorer: {folder / 'explorer.html'} (0.")
    assert lines[2].endswith("decoders that run in it: 3")
    assert '<a href="explorer.html">' in page.read_text()
    again = page.read_bytes()
    write_report(folder)
    assert page.read_bytes() == again  # law 7


def test_a_run_is_chosen_by_its_name_and_explored_on_its_test_set(folder, tmp_path):
    lines = axiswise(folder, "--run", "points/", "-o", tmp_path / "page.html")
    assert lines[0] == "runs: points/square"
    assert '"points":10,' in (tmp_path / "page.html").read_text()


def test_a_run_folder_will_do_and_members_are_chosen(tmp_path):
    run, square = tmp_path / "run", points()
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(0.1), steps=1, seed=range(3))
    evaluate(train(members, square, out=run), square, [mig], out=run)
    lines = axiswise(run, "--members", f"2,{members[0].address[:8]}")
    assert lines[-1].endswith("decoders that run in it: 2; members shown without: 1")
    text = (run / "explorer.html").read_text()
    assert text.index('"name":"seed = 2"') < text.index('"name":"seed = 0"')


def test_data_that_a_name_does_not_make_is_asked_for(tmp_path):
    changed = data.with_noise(data.small_sprites(), 0.1)
    train(grid(model=models.mlp((1, 16, 16), 2), objective=objectives.BetaVAE(), steps=1), changed, out=tmp_path)
    with pytest.raises(AxiswiseError, match=r"which its name alone cannot make. Name a function that makes it: --data"):
        axiswise(tmp_path)
    assert axiswise(tmp_path, "--data", "small_sprites")[-1].endswith("decoders that run in it: 1")
    (tmp_path / "mine.py").write_text("from axiswise import data\nmade = data.small_sprites()\nside = 16\n")
    assert axiswise(tmp_path, "--data", f"{tmp_path / 'mine.py'}:made")[-1].endswith("decoders that run in it: 1")
    with pytest.raises(
        AxiswiseError, match=r"--data must name a dataset, or a function .*\. Got int from .*mine.py:side"
    ):
        axiswise(tmp_path, "--data", f"{tmp_path / 'mine.py'}:side")
    with pytest.raises(AxiswiseError, match=r"or a function that makes one, as file.py:function\. Got 'mine.py'\."):
        axiswise(tmp_path, "--data", "mine.py")


def test_mistakes_are_named(folder, tmp_path):
    (tmp_path / "there.html").touch()
    with pytest.raises(AxiswiseError, match=r"there.html is there already. Choose another name, or add --force"):
        axiswise(folder, "-o", tmp_path / "there.html")
    with pytest.raises(AxiswiseError, match=r"--run must name one of points/square, images/sprites. Got 'other'"):
        axiswise(folder, "--run", "other")
    with pytest.raises(AxiswiseError, match=r"--run chooses among the runs of a study"):
        axiswise(folder / "images/sprites", "--run", "other")
    with pytest.raises(AxiswiseError, match=r"Expected a run or study folder"):
        axiswise(tmp_path)


OWN = """
from torch import nn
from axiswise import data, grid, models, objectives
from axiswise.scores import mig
from axiswise.studies import Run

def nets():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 4)), nn.Sequential(nn.Linear(2, 64), nn.Unflatten(1, (1, 8, 8)))

def noisy():
    return data.with_noise(data.small_sprites((4, 4, 2), side=8, travel=(4.0, 3.0)), 0.1)

def study(scale):
    model = models.custom(nets, (1, 8, 8), 2)
    return [Run("sprites/noisy", noisy, grid(model=model, objective=objectives.BetaVAE(), steps=1), (mig,))]
"""


def test_a_study_of_images_has_an_explorer_as_soon_as_it_has_run(tmp_path, monkeypatch):
    """Also one of a file, with networks and data of its own: the study that runs knows them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "explored_study.py").write_text(OWN)
    command = ["run", "explored_study.py:study", "--scale", "smoke", "--out", "out"]
    first = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "explorer: out/explorer.html (" in first.output
    assert '<a href="explorer.html">' in (tmp_path / "out" / "report.html").read_text()
    made = (tmp_path / "out" / "explorer.html").stat().st_mtime_ns
    again = CliRunner().invoke(app, command, catch_exceptions=False)
    assert "explorer" not in again.output
    assert (tmp_path / "out" / "explorer.html").stat().st_mtime_ns == made  # what is complete is left alone
