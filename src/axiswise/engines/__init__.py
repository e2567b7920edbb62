"""Where the runs of a study are trained: in this process, or in worker processes of this machine."""

from axiswise.engines._local import cores, run_study

__all__ = ["cores", "run_study"]
