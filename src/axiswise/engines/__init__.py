"""Where the runs of a study are trained: in this process, in worker processes, or on the nodes of a Ray cluster."""

from axiswise.engines._local import cores
from axiswise.engines._run import Engine, run_study

__all__ = ["Engine", "cores", "run_study"]
