"""MLflow."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axiswise._arguments import checked
from axiswise.population import Entry
from axiswise.trackers._scalars import Tracker, needed, scalars, settings


@contextmanager
@checked
def mlflow(experiment: str, uri: str | None = None) -> Iterator[Tracker]:
    """Logs the histories to MLflow, a run for each member: its settings are parameters, its terms metrics.

    Needs the package mlflow, or mlflow-skinny for a server elsewhere: ``pip install 'axiswise[mlflow]'``.

    Arguments:
        experiment: Name of the experiment; it is made if it is not there.
        uri: Where MLflow stores it, such as "http://localhost:5000" or "sqlite:///mlflow.db"; None is MLflow's own
            choice (``MLFLOW_TRACKING_URI``, or a file here).

    Example:
        >>> with mlflow("sprites", "sqlite:///mlflow.db") as track:  # doctest: +SKIP
        ...     train(members, dataset, on_history=track)
    """
    entities = needed("mlflow.entities", "mlflow")
    client: Any = needed("mlflow", "mlflow").MlflowClient(uri)
    known = client.get_experiment_by_name(experiment)
    home = known.experiment_id if known else client.create_experiment(experiment)
    runs: dict[str, str] = {}

    def track(entry: Entry) -> None:
        member, now = entry.member, int(time.time() * 1000)
        if member.address not in runs:
            runs[member.address] = client.create_run(home, run_name=member.address).info.run_id
            parameters = [entities.Param(name, str(value)) for name, value in settings(member).items()]
            client.log_batch(runs[member.address], params=parameters)
        metrics = [entities.Metric(term, value, now, entry.step) for term, value in scalars(entry).items()]
        client.log_batch(runs[member.address], metrics=metrics)

    status = "FAILED"
    try:
        yield track
        status = "FINISHED"
    finally:
        for run in runs.values():
            client.set_terminated(run, status)
