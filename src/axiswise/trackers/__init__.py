"""Trackers: the history of every member as it is made, in a table or in a program that people watch training with.

Each is a context manager that gives a function for ``train(..., on_history=...)``, and closes what it opened::

    with trackers.tensorboard("runs/square/tensorboard") as track:
        train(members, dataset, on_history=track)

Members are told apart by their addresses. Terms over latents are one number each, ``kl_of_latents/3``; those of an
evaluation on a validation set begin with ``validation/``. A tracker of your own is any function of a
`population.Entry`.
"""

from axiswise.trackers._scalars import Tracker, scalars
from axiswise.trackers.csv_file import csv_file
from axiswise.trackers.mlflow import mlflow
from axiswise.trackers.tensorboard import tensorboard
from axiswise.trackers.wandb import wandb

__all__ = ["Tracker", "csv_file", "mlflow", "scalars", "tensorboard", "wandb"]
