"""What trackers write, read back by the packages that it is for, against the histories that training returns."""

import csv
import json
import math
import sys

import pytest

from axiswise import data, models, objectives, trackers
from axiswise.errors import AxiswiseError
from axiswise.population import grid, train

STEPS, EVERY = 12, 4


def trained_with(track):
    members = grid(
        model=models.linear(3, 2),
        objective=[objectives.BetaVAE(beta) for beta in (0.5, 4.0)],
        steps=STEPS,
        batch=8,
        history=3,
    )
    parts = data.synth_linear(samples=100).split()
    return train(members, parts.train, validation=parts.validation, every=EVERY, on_history=track, progress=False)


def expected(trained) -> dict[str, dict[int, float]]:
    """The numbers of a member's history and validation, by term and step."""
    found: dict[str, dict[int, float]] = {}
    for start, curves in (("", trained.history), ("validation/", trained.validation)):
        for name, values in curves.items():
            columns = {name: values} if values.ndim == 1 else {f"{name}/{row}": own for row, own in enumerate(values.T)}
            for term, column in columns.items():
                if name != "step":
                    found[start + term] = dict(zip(curves["step"].tolist(), column.tolist(), strict=True))
    return found


def assert_same(found, trained, tolerance=0.0):
    wanted = expected(trained)
    assert {"loss", "validation/loss"} < set(wanted)
    assert any(term.endswith("/1") for term in wanted)  # of latents
    assert found.keys() == wanted.keys()
    for term, curve in wanted.items():
        assert found[term].keys() == curve.keys(), term
        for step, value in curve.items():
            assert math.isclose(found[term][step], value, rel_tol=tolerance, abs_tol=tolerance), (term, step)


def test_a_csv_file_has_every_number_and_is_continued(tmp_path):
    path = tmp_path / "history.csv"
    for _ in range(2):
        with trackers.csv_file(path) as track:
            population = trained_with(track)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines.count(lines[0]) == 1
    rows = list(csv.DictReader(lines))
    for trained in population.trained:
        found: dict[str, dict[int, float]] = {}
        own = [row for row in rows if row["member"] == trained.member.address]
        for row in own:
            found.setdefault(row["term"], {})[int(row["step"])] = float(row["value"])
        assert_same(found, trained)
        assert len(own) == 2 * sum(map(len, found.values()))
        assert {row["seed"] for row in own} == {"0"}


def test_tensorboard_reads_every_number(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with trackers.tensorboard(tmp_path) as track:
        population = trained_with(track)
    for trained in population.trained:
        events = reader.EventAccumulator(str(tmp_path / trained.member.address)).Reload()
        found = {term: {event.step: event.value for event in events.Scalars(term)} for term in events.Tags()["scalars"]}
        assert_same(found, trained, 1e-6)  # it stores single precision
        (text,) = events.Tensors("settings/text_summary")
        stored = json.loads(text.tensor_proto.string_val[0].decode().strip("`\n"))
        assert (stored["objective"], stored["beta"]) == ("BetaVAE", trained.member.objective.beta)


def test_mlflow_reads_every_number_and_how_it_ended(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # so that the test needs no database
    uri = (tmp_path / "mlruns").as_uri()
    with trackers.mlflow("square", uri) as track:
        population = trained_with(track)
    client = mlflow.MlflowClient(uri)
    experiment = client.get_experiment_by_name("square").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert runs.keys() == {trained.member.address for trained in population.trained}
    for trained in population.trained:
        run = runs[trained.member.address]
        assert (run.info.status, run.data.params["beta"]) == ("FINISHED", str(trained.member.objective.beta))
        found = {
            term: {metric.step: metric.value for metric in client.get_metric_history(run.info.run_id, term)}
            for term in run.data.metrics
        }
        assert_same(found, trained)

    def broken(entry):
        track(entry)
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError), trackers.mlflow("square", uri) as track:
        trained_with(broken)
    (failed,) = client.search_runs([experiment], "attributes.status = 'FAILED'")
    assert failed.info.run_name == population.trained[0].member.address


def test_a_wandb_run_is_logged_in_order(tmp_path, monkeypatch):
    """The package is large and not of the development environment: here is what it is called with."""
    calls = []

    class FakeRun:
        def __enter__(self):
            return self

        def __exit__(self, *ended):
            calls.append("finished")

        def log(self, terms):
            calls.append(terms)

    class FakePackage:
        @staticmethod
        def init(**settings):
            calls.append(settings)
            return FakeRun()

    monkeypatch.setitem(sys.modules, "wandb", FakePackage)
    with trackers.wandb("square", tmp_path) as track:
        population = trained_with(track)
    started = [call for call in calls if "name" in call]
    assert [run["name"] for run in started] == [trained.member.address for trained in population.trained]
    assert {(run["mode"], run["dir"], run["reinit"]) for run in started} == {("offline", str(tmp_path), "create_new")}
    assert calls[-2:] == ["finished"] * 2
    logged = [call for call in calls if "step" in call]
    assert sorted({call["step"] for call in logged}) == sorted(
        {*range(0, STEPS, 3), *range(EVERY, STEPS + 1, EVERY), 11}
    )
    assert all(len(call) > 2 for call in logged)


def test_a_missing_package_is_said_before_training(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(AxiswiseError, match=r"needs mlflow.*pip install 'axiswise\[mlflow\]'"), trackers.mlflow("x"):
        raise AssertionError
