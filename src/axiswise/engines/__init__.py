"""Where the runs of a study are conducted: in this process, or in worker processes of this machine."""

from axiswise.engines.local import conduct, cores

__all__ = ["conduct", "cores"]
