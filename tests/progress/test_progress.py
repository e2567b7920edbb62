"""Training shows how far it is, unless it shall not."""

from types import SimpleNamespace

import pytest

from axiswise import data, grid, models, objectives, progress, train
from axiswise.population import loop
from axiswise.population._cost import OVERHEAD

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
    device, first, *_, last = err.splitlines()
    assert device == "axiswise: training 2 members on cpu"
    assert first.startswith("  training: ")
    assert last == "  training: 100 %"


def test_a_terminal_has_a_bar(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # by which rich takes any stream for a terminal
    train(MEMBERS, SQUARE)
    out, err = capsys.readouterr()
    assert out == ""
    assert "training" in err
    assert "━" in err


def test_training_says_which_members_go_on_where_they_were_stopped(capsys, tmp_path):
    def stop(entry):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(MEMBERS, SQUARE, out=tmp_path, on_history=stop)
    assert capsys.readouterr().err.splitlines()[0] == "axiswise: training 2 members on cpu"
    more = grid(model=models.linear(3, 1), objective=objectives.BetaVAE(), steps=1)
    train([*MEMBERS, *more], SQUARE, out=tmp_path)
    first = capsys.readouterr().err.splitlines()[0]
    assert first == "axiswise: training 3 members on cpu, 2 of them from where they were stopped"


@pytest.mark.parametrize("silent", [False, None])
def test_it_may_be_silent(capsys, monkeypatch, silent):
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    train(MEMBERS, SQUARE, progress=silent)
    assert capsys.readouterr() == ("", "")


def test_time_left_is_that_of_the_work_and_not_of_the_steps(monkeypatch):
    """By a clock that every multiplication moves: a light cohort first, and then a heavy one with as many steps."""
    model = models.mlp(3, 2, encoder=(300, 300), decoder=(300, 300))
    heavy = grid(model=model, objective=objectives.BetaVAE(), steps=20, batch=100, seed=range(2))
    light = grid(model=models.linear(3, 2), objective=objectives.BetaVAE(), steps=20, batch=4, seed=range(2))
    products = 3 * 300 + 300 * 300 + 300 * 4 + 2 * 300 + 300 * 300 + 300 * 3
    cost = {300: OVERHEAD["cpu"] + 2 * 100 * products, 4: OVERHEAD["cpu"] + 2 * 4 * 18}
    lines, clock, taken = [], [0.0], [0]
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    class Timed(progress.Lines):
        def advance(self, units):
            taken[0] += 1  # blocks have one step here
            clock[0] += (cost[4] if taken[0] <= 20 else cost[300]) / 1e6
            super().advance(units)

    monkeypatch.setattr(loop, "LONGEST_BLOCK", 1)
    train([*light, *heavy], SQUARE, progress=Timed(lines.append))
    whole = 20 * (cost[4] + cost[300]) / 1e6
    assert len(lines) == taken[0] == 40
    known = [(line, done) for done, line in enumerate(lines, 1) if line.endswith("left")]
    assert len(known) >= 20
    for line, done in known:
        spent = (min(done, 20) * cost[4] + max(0, done - 20) * cost[300]) / 1e6
        number, unit, _ = line.rpartition(", ")[2].split()
        left = float(number) * {"s": 1, "min": 60}[unit]
        assert abs(left - (whole - spent)) < 0.1 * whole  # by steps, 200 s would be left after the first 200


def test_compilation_is_not_taken_for_the_pace_of_training(monkeypatch):
    lines, clock = [], [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    shown = progress.Lines(lines.append)
    shown.begin("training", 1000)
    for seconds, units in ((30.0, 2), (11.0, 3), (11.0, 95), (11.0, 900)):
        clock[0] += seconds
        shown.advance(units)
    assert lines == [
        "  training: 0 %",
        "  training: 0 %",
        "  training: 10 %, 3.4 min left",
        "  training: 100 %",
    ]


def test_ones_own_receives_it():
    own = Counted()
    train(MEMBERS, SQUARE, progress=own)
    assert own.calls[0] == ("training", 600)
    assert own.calls[-1] == "end"
    assert sum(own.calls[1:-1]) == 600
