"""Which device is chosen: the one that is named, else where things were moved to or begun, else the best there is."""

import json

import pytest
import torch

from axiswise import data, engines, evaluate, grid, models, objectives, scores, train
from axiswise.population._cohort import Cohort
from axiswise.population._device import best_device, choose_device
from axiswise.population._trained import Trained
from axiswise.population.population import Population, device_for
from axiswise.population.train import opening_line
from axiswise.studies import Run

CPU, CUDA, SECOND = torch.device("cpu"), torch.device("cuda"), torch.device("cuda", 1)


@pytest.fixture
def cuda(monkeypatch):
    """A switch: whether this machine has CUDA. What is moved there stays where it is, and the moves are noted."""
    moves = []

    def to(self, device):
        moves.append(torch.device(device).type)
        return self

    def switch(there: bool) -> list[str]:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2 * there)
        moves.clear()
        return moves

    monkeypatch.setattr(data.FactorDataset, "to", to)
    monkeypatch.setattr(Trained, "to", lambda self, device: self)
    return switch


def members(seeds: int) -> list:
    return grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=3, seed=range(seeds))


@pytest.fixture
def square():
    return data.synth_linear(samples=100)


def test_the_best_device_is_cuda_and_else_the_cpu(cuda, monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    cuda(True)
    assert best_device() == CUDA
    cuda(False)
    assert best_device() == CPU


@pytest.mark.parametrize(
    ("there", "named", "places", "begun_on", "expected"),
    [
        (True, None, [CPU], None, CUDA),
        (False, None, [CPU], None, CPU),
        (True, "cpu", [SECOND], "cuda", CPU),
        (True, None, [CPU, SECOND], "cpu", SECOND),
        (True, None, [CPU], "cpu", CPU),
        (True, None, [CPU], "cuda:1", SECOND),
        (False, None, [CPU], "cuda", CPU),
    ],
)
def test_the_named_device_comes_first_then_the_place_then_the_beginning(cuda, there, named, places, begun_on, expected):
    cuda(there)
    assert choose_device(named, *places, begun_on=begun_on) == expected


def test_training_takes_the_best_device_and_says_so(cuda, square, capsys):
    moves = cuda(True)
    assert train(members(2), square).trained[0].status == "trained"
    assert moves == ["cuda"]
    assert "axiswise: training 2 members on cuda\n" in capsys.readouterr().err
    moves = cuda(True)
    train(members(2), square, device="cpu", progress=False)
    assert moves == ["cpu"]
    assert capsys.readouterr().err == ""


def test_a_population_comes_back_where_the_dataset_is_unless_a_device_is_named(cuda, square, monkeypatch):
    places = []
    monkeypatch.setattr(Trained, "to", lambda self, device: (places.append(str(device)), self)[1])
    cuda(True)
    train(members(1), square)
    train(members(1), square, device="cuda")
    assert places == ["cpu", "cuda"]


def test_a_folder_goes_on_where_it_was_begun_or_says_that_it_does_not(cuda, square, tmp_path):
    moves = cuda(False)
    train(members(1), square, out=tmp_path)
    assert json.loads((tmp_path / "run.json").read_text())["device"] == "cpu"
    cuda(True)
    train(members(2), square, out=tmp_path)
    assert moves == ["cpu"]
    with pytest.warns(UserWarning, match=r"was begun on cpu, and the rest is trained on cuda: .* not bit for bit"):
        train(members(3), square, out=tmp_path, device="cuda")
    train(members(3), square, out=tmp_path, device="cuda")  # nothing is left to train, and nothing to warn of


def test_members_are_measured_where_they_were_trained(cuda, square):
    cuda(False)
    population = train(members(1), square)
    cuda(True)
    assert device_for(population, CPU, None) == CPU
    assert device_for(population, SECOND, None) == SECOND
    assert device_for(population, SECOND, "cpu") == CPU
    population.trained[0].about["device"] = "cuda:0"
    assert device_for(population, CPU, None) == torch.device("cuda", 0)
    cuda(False)
    assert device_for(population, CPU, None) == CPU
    moves = cuda(True)
    evaluate(population, square, [scores.mig], device="cuda", points=20)
    assert moves == ["cuda"]


def test_a_study_takes_the_best_device_and_goes_on_there(cuda, square, tmp_path):
    def study(scale):
        return [Run("square", lambda: square, members(1), (scores.active_units,))]

    lines = []
    cuda(True)
    engines.run_study(study, "smoke", tmp_path / "new", log=lines.append)
    header = json.loads((tmp_path / "new/study.json").read_text())
    assert lines[0] == "training on cuda"
    assert header["device"] == "cuda"
    assert header["command"].endswith("--device cuda")
    cuda(False)
    engines.run_study(study, "smoke", tmp_path / "old", log=lines.append)
    moves = cuda(True)
    engines.run_study(study, "smoke", tmp_path / "old", log=lines.append)
    assert set(moves) == {"cpu"}


@pytest.mark.gpu
def test_a_plain_call_trains_on_a_gpu_and_returns_to_the_data(square):
    population = train(members(2), square)
    assert population.trained[0].about["device"] == "cuda:0"
    assert population.encode(square.x(torch.arange(5))).mean.device == CPU
    (record,) = evaluate(Population(population.trained[:1]), square, [scores.active_units])
    assert record.device == "cuda:0"


@pytest.mark.parametrize(
    ("device", "precision", "steps", "compiled"),
    [
        ("cuda", "bf16", 2000, True),
        ("cuda", "bf16", 1999, False),
        ("cuda", None, 2000, False),
        ("cpu", None, 2000, False),
    ],
)
def test_whoever_trains_for_long_on_a_gpu_is_told_of_the_compiler(device, precision, steps, compiled):
    members = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=steps, seed=range(2))
    line = opening_line(2, torch.device(device), [Cohort(tuple(members), 1, precision)])
    assert ("; their steps are compiled first" in line) is compiled
