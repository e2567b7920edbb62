"""`axiswise export`: which member, into which folder, and what it refuses."""

import json

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from axiswise import data, grid, load, models, objectives, train
from axiswise.cli import app
from axiswise.cli.export import SHOWN, find_member
from axiswise.errors import AxiswiseError

OWN = """
from torch import nn
def nets():
    return nn.Linear(3, 4), nn.Linear(2, 3)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder of three members."""
    folder = tmp_path_factory.mktemp("run")
    weights = [objectives.BetaVAE(beta) for beta in (1.0, 4.0, 16.0)]
    train(grid(model=models.linear(3, 2), objective=weights, steps=1), data.synth_linear(samples=50), out=folder)
    return folder


def axiswise(*arguments: object) -> list[str]:
    """The lines that a command prints."""
    result = CliRunner().invoke(app, ["export", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output.splitlines()


@pytest.mark.parametrize("by", ["position", "address", "beginning"])
def test_a_member_is_named_by_its_position_or_its_address(run, by, tmp_path):
    wanted = load(run).trained[1]
    address = wanted.member.address
    member = {"position": "1", "address": address, "beginning": address[:6]}[by]
    lines = axiswise(run, "--member", member, "--out", tmp_path / "out")
    names = ["encoder.safetensors", "decoder.safetensors", "README.md", "config.json"]
    assert lines == [str(tmp_path / "out" / name) for name in names]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["address"] == address
    for name, tensor in load_file(tmp_path / "out" / "encoder.safetensors").items():
        assert torch.equal(tensor, wanted.weights[f"encoder.{name}"])


def test_the_folder_is_called_by_address_and_format_if_none_is_given(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    axiswise(run, "--member", 0, "--to", "torch-export")
    (folder,) = (tmp_path / "exports").iterdir()
    assert folder.name == f"{load(run).members[0].address}-torch-export"
    assert {"encoder.pt2", "decoder.pt2"} < {path.name for path in folder.iterdir()}


def test_the_only_member_need_not_be_named_and_own_code_is_imported(tmp_path, monkeypatch):
    (tmp_path / "mynets.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    import mynets

    model = models.custom(mynets.nets, 3, 2)
    population = train(
        grid(model=model, objective=objectives.BetaVAE(), steps=1), data.synth_linear(samples=50), out=tmp_path / "run"
    )
    axiswise(tmp_path / "run", "--own", f"{tmp_path / 'mynets.py'}:nets", "--out", tmp_path / "out")
    encoder, _ = mynets.nets()
    encoder.load_state_dict(load_file(tmp_path / "out" / "encoder.safetensors"))
    assert torch.equal(encoder.weight, population.trained[0].weights["encoder.weight"])


def test_without_a_member_all_are_listed(run, tmp_path):
    members = load(run).members
    listed = "; ".join(f"{n} {member.address} {member.objective} seed 0" for n, member in enumerate(members))
    with pytest.raises(AxiswiseError) as caught:
        axiswise(run, "--out", tmp_path / "out")
    start = "--member must be the position or address of one of 3 members. Got none. There are: "
    assert str(caught.value) == f"{start}{listed}."
    assert not (tmp_path / "out").exists()


def test_a_name_that_no_member_or_several_have_is_refused(run):
    population = load(run)
    with pytest.raises(AxiswiseError, match=r"one of 3 members\. Got '3x', which none has\. There are: 0 "):
        find_member(population, "3x")
    with pytest.raises(AxiswiseError, match=r"Got '', which several have\."):
        find_member(population, "")
    assert [find_member(population, str(number)) for number in range(3)] == [0, 1, 2]


def test_of_many_members_some_are_listed(tmp_path):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=0, seed=range(SHOWN + 2))
    with pytest.raises(AxiswiseError, match=r"Got none\. .*; and 2 more\.") as caught:
        find_member(train(members, data.synth_linear(samples=50)), None)
    assert str(caught.value).count("seed ") == SHOWN


def test_a_study_is_refused_with_the_folders_of_its_runs(tmp_path):
    about = {"format": "axiswise-study-1", "study": "mine", "scale": "smoke", "runs": ["a/good", "b"]}
    (tmp_path / "study.json").write_text(json.dumps(about))
    with pytest.raises(AxiswiseError, match=r"Got .*, which is a study\. Choose one of its runs: .*/a/good, .*/b\."):
        axiswise(tmp_path)


def test_another_format_is_refused(run):
    with pytest.raises(AxiswiseError, match=r"--to must be one of state-dict, onnx, torch-export\. Got 'pickle'\."):
        axiswise(run, "--to", "pickle")
