"""Pieces of studies within a time limit: nothing is lost that was begun, and what is done adds up."""

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import torch

from axiswise.engines import run_study
from axiswise.population import loop
from axiswise.records import read_runs, read_study_header
from axiswise.studies import find_study

from .conftest import BENCHMARKS

STUDY = "sikka2019.fixed_decoder"  # at scale smoke four runs of six members, 60 steps each
FIRST, REST = f"{STUDY}:decoder/true", f"{STUDY}:decoder/[!t]*"
STEPS = 6 * 60


@pytest.fixture
def script_of(script):
    return script("campaign")


def values(folder):
    return {
        run: {(one.member, one.measure): one.value for one in records} for run, records in read_runs(folder).items()
    }


def done(script_of, piece):
    """Does a piece in this process, and says what was done."""
    seconds, before = SimpleNamespace(value=0.0), piece.steps_taken()
    script_of.work(piece, "cpu", None, torch.get_num_threads(), seconds)
    return script_of.told(piece, before, seconds.value)


def test_pieces_add_up_to_the_study(script_of, tmp_path):
    pieces = [script_of.Piece(name, "smoke", tmp_path / "work") for name in (REST, FIRST)]
    for piece, runs in zip(pieces, (3, 1), strict=True):
        told = done(script_of, piece)
        assert (told["runs_done"], told["runs_left"], told["model_steps_left"]) == (runs, [], 0)
        assert told["model_steps_per_second"] == pytest.approx(runs * STEPS / told["training_seconds"], rel=0.2)
        script_of.copied(piece, tmp_path / "results")
    run_study(find_study(STUDY), "smoke", tmp_path / "whole", name=STUDY, device="cpu")
    results = tmp_path / "results" / "sikka2019" / "fixed_decoder"
    assert values(results) == values(tmp_path / "whole")
    header = read_study_header(results)
    assert header["runs"] == read_study_header(tmp_path / "whole")["runs"]
    assert not [path for path in results.rglob("*") if path.suffix == ".safetensors"]
    script_of.copied(piece, tmp_path / "results")  # once more
    assert read_study_header(results)["seconds"] == header["seconds"]


def test_a_piece_that_is_stopped_goes_on(script_of, tmp_path, monkeypatch):
    piece = script_of.Piece(FIRST, "smoke", tmp_path)

    def over(self, units):
        raise KeyboardInterrupt

    monkeypatch.setattr(loop, "LONGEST_BLOCK", 5)
    with monkeypatch.context() as patch:
        patch.setattr(script_of.Watch, "advance", over)
        told = done(script_of, piece)
    assert (told["runs_done"], told["runs_left"]) == (0, ["decoder/true"])
    assert 0 < told["model_steps_left"] < STEPS
    left = told["model_steps_left"]
    told = done(script_of, piece)
    assert (told["runs_left"], told["model_steps_left"]) == ([], 0)
    assert told["model_steps_per_second"] == pytest.approx(left / told["training_seconds"], rel=0.2)


@pytest.mark.slow
def test_a_campaign_ends_in_time(tmp_path):
    """Of a study that takes minutes, a state is left, from which it goes on, and no result."""
    piece, options = "rolinek2019.table_1:*", ["--scale", "paper", "--device", "cpu", "--seconds", "60"]
    folders = ["--into", tmp_path / "results", "--work", tmp_path / "work"]
    began = time.monotonic()
    command = [sys.executable, BENCHMARKS / "campaign.py", piece, *options, *folders]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert time.monotonic() - began < 60 + 60  # and what a busy machine takes to load PyTorch
    (told,) = (json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{"))
    assert (told["piece"], told["runs_done"]) == (piece, 0)
    assert told["runs_left"]
    assert told["model_steps_left"] > 0
    assert not (tmp_path / "results").exists()
