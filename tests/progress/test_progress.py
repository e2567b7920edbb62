"""Training shows how far it is, unless it shall not."""

import pytest

from axiswise import data, grid, models, objectives, progress, train

SQUARE = data.synth_linear(samples=50)
MEMBERS = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=300, batch=4, seed=range(2))


class Counted:
    """A progress of one's own."""

    def __init__(self):
        self.calls = []

    def begin(self, title, total):
        self.calls.append((title, total))

    def advance(self, units):
        self.calls.append(units)

    def end(self):
        self.calls.append("end")


def test_training_writes_lines_where_there_is_no_terminal(capsys, monkeypatch):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    train(MEMBERS, SQUARE)
    out, err = capsys.readouterr()
    assert out == ""
    first, *_, last = err.splitlines()
    assert first.startswith("  training: ")
    assert last.startswith("  training: 100 %, ")
    assert last.endswith("model-steps/s, 0 s left")


def test_a_terminal_has_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes any stream for a terminal
    train(MEMBERS, SQUARE)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err
    assert "━" in err


@pytest.mark.parametrize("silent", [False, None])
def test_it_may_be_silent(capsys, monkeypatch, silent):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    train(MEMBERS, SQUARE, progress=silent)
    assert capsys.readouterr() == ("", "")


def test_ones_own_receives_it():
    own = Counted()
    train(MEMBERS, SQUARE, progress=own)
    assert own.calls[0] == ("training", 600)
    assert own.calls[-1] == "end"
    assert sum(own.calls[1:-1]) == 600
