"""`axiswise score --agreement`: models in one file or several, what it prints and writes, and what it refuses."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.errors import AxiswiseError
from axiswise.scores import agreement, udr


def run(*arguments: object) -> str:
    found = CliRunner().invoke(app, ["score", *map(str, arguments)], catch_exceptions=False)
    assert found.exit_code == 0
    return found.output


@pytest.fixture
def codes(tmp_path, monkeypatch) -> np.ndarray:
    """Three models with two latents in common, in files of the working folder."""
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    codes = generator.normal(size=(3, 200, 3))
    common = generator.normal(size=(200, 2))
    codes[0][:, :2], codes[1][:, 1:], codes[2][:, ::2] = common, -common, common + 0.1
    for name, member in zip("abc", codes, strict=True):
        np.save(f"{name}.npy", member)
    np.save("stack.npy", codes)
    return codes


def test_files_of_models_are_compared(codes, tmp_path):
    output = run("a.npy", "b.npy", "c.npy", "--agreement", "--json", "found.json")
    found, ranking = agreement(codes), udr(codes)
    assert output.startswith("3 members, 200 samples, 3 latents")
    lines = [line.split() for line in output.splitlines()]
    assert next(line for line in lines if line[:1] == ["agreement"])[1] == f"{found.score:.3f}"
    ends = found.over_points[1:3] + found.over_members[1:3]
    assert all(f"{end:.3f}" in output for end in ends)
    assert "at least 2, 3 of 3 members have, itself among them, on average: 2, 2" in output
    for name, own, rank in zip("abc", found.per_member, ranking.score, strict=True):
        assert [f"{name}.npy", f"{own:.3f}", f"{rank:.3f}", "3"] in lines
    best = "abc"[int(found.per_member.argmax())]
    assert f"latents of {best}.npy, which agrees most" in output
    assert [line[-3:] for line in lines[-3:]] == [["3", "of", "3"], ["3", "of", "3"], ["1", "of", "3"]]
    stored = json.loads((tmp_path / "found.json").read_text())
    assert stored["format"] == "axiswise-agreement-1"
    assert stored["members"] == stored["files"] == ["a.npy", "b.npy", "c.npy"]
    assert stored["agreement"]["score"] == found.score
    assert stored["agreement"]["over_members"]["high"] == found.over_members.high
    assert stored["agreement"]["matches"] == found.matches.tolist()
    assert stored["udr"]["score"] == ranking.score.tolist()
    chance = stored["chance"]["agreement"]["score"]
    assert [f"{chance:.3f}", "1.000"] == next(line for line in lines if line[:1] == ["agreement"])[8:10]
    noise = np.random.default_rng(1).normal(size=codes.shape)
    assert chance == pytest.approx(agreement(noise).score, abs=0.05)  # of 200 points, not of infinitely many
    assert chance > 0.03


def test_a_stack_is_compared_alone_or_with_others(codes):
    alone = run("stack.npy", "--agreement")
    assert [line.split()[0] for line in alone.splitlines() if line.startswith("stack")] == [
        "stack.npy[0]",
        "stack.npy[1]",
        "stack.npy[2]",
    ]
    assert run("stack.npy", "a.npy", "--agreement").startswith("4 members, 200 samples")


def test_members_of_fewer_latents_and_constant_ones_are_told(codes):
    np.save("few.npy", codes[0][:, :2])
    codes[1][:, 0] = 0.5
    np.save("b.npy", codes[1])
    output = run("b.npy", "few.npy", "--agreement")
    assert "note: few.npy: 2 latents; those that others have besides, up to 3, have no match" in output
    assert f"{1.0:.3f}" in output.splitlines()[3]
    assert next(line for line in output.splitlines() if line.startswith("z0 ")).split()[1] == "constant"
    np.save("flat.npy", np.zeros((200, 3)))
    assert "note: member 1: codes do not vary in any latent" in run("a.npy", "flat.npy", "--agreement")


def test_rows_with_missing_values_are_dropped_if_asked(codes):
    codes[1, 7, 0] = np.nan
    np.save("b.npy", codes[1])
    with pytest.raises(AxiswiseError, match=r"`codes` must be finite. Got values of members \[1\]"):
        run("a.npy", "b.npy", "--agreement")
    output = run("a.npy", "b.npy", "--agreement", "--drop-missing")
    assert output.startswith("2 members, 199 samples")
    assert "note: 1 of 200 rows dropped: values are missing" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a.npy", "--agreement"], r"compares at least two models. Got one \(\(200, 3\) in a.npy\); give more"),
        (["a.npy", "short.npy", "--agreement"], r"the same n points. Got \(200, 3\) in a.npy, \(9, 3\) in short.npy"),
        (["a.npy", "line.npy", "--agreement"], r"must have axes \(n, z\), or .* Got .* \(9,\) in line.npy"),
        (["a.npy", "b.npy", "--agreement", "--kinds", "discrete"], r"without factors. Leave out --kinds"),
        (["a.npy", "b.npy", "--agreement", "--json", "b.npy"], r"b.npy is read by this command"),
        (["a.npy"], r"Expected codes and their factors. Got codes alone; --agreement"),
        (["a.npy", "b.npy", "c.npy"], r"Expected codes and their factors. Got 2 files besides; --agreement"),
    ],
)
def test_refuses(codes, arguments, message):
    np.save("short.npy", codes[0][:9])
    np.save("line.npy", codes[0][:9, 0])
    with pytest.raises(AxiswiseError, match=message):
        run(*arguments)
