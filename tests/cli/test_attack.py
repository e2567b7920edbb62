"""`axiswise attack`: the whole of it in small, and what it refuses before hours are spent."""

import pytest
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.errors import AxiswiseError
from axiswise.records import read_json

SMALL = ["--budget", "40", "--seeds", "2", "--objectives", "beta-vae,pcl", "--apart", "-1", "--epsilon", "0.15"]


def attacked(*arguments):
    found = CliRunner().invoke(app, ["attack", *arguments])
    if found.exception and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found


def test_members_that_are_all_alike_are_not_attacked(tmp_path):
    with pytest.raises(AxiswiseError, match=r"must score at least 0.9 more than the entangled ones.*\nmember  seed"):
        attacked("small_sprites", *SMALL, "--apart", "0.9", "--out", str(tmp_path))
    assert not (tmp_path / "change.safetensors").exists()


@pytest.mark.slow
def test_everything_is_done_drawn_and_resumed(tmp_path):
    arguments = ["small_sprites", *SMALL, "--out", str(tmp_path / "out"), "--json", str(tmp_path / "scores.json")]
    arguments[arguments.index("40")] = "300"
    first = attacked(*arguments)
    assert "page: " in first.stdout
    for name in ("attack.html", "change.png", "planes.png", "change.safetensors", "judgement/report.html"):
        assert (tmp_path / "out" / name).is_file()
    scores = read_json(tmp_path / "scores.json", "axiswise-attack-1")["scores"]
    assert {(row["objective"], row["score"]) for row in scores} == {
        (arm, score) for arm in ("beta-vae", "pcl") for score in ("mig", "dci", "factor_vae", "sap")
    }
    page = (tmp_path / "out" / "attack.html").read_bytes()
    attacked(*arguments)
    assert (tmp_path / "out" / "attack.html").read_bytes() == page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["circles"], r"The attack is on images \(c, h, w\). Got observations of shape \(2,\)."),
        (["small_sprites", "--seeds", "0"], "--seeds must be at least 1. Got 0."),
        (["small_sprites", "--objectives", "vae"], "Expected names of objectives .* Got vae."),
        (["small_sprites", "--epsilon", "0"], "`epsilon` must be positive and finite"),
        (["small_sprites", "--epsilon", "0.6"], "`epsilon` must be less than half"),
        (["sprites"], "Expected the name of a dataset .* Got 'sprites'."),
    ],
)
def test_what_cannot_be_attacked_is_refused(arguments, message, tmp_path):
    with pytest.raises(AxiswiseError, match=message):
        attacked(*arguments, "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out" / "population").exists()
