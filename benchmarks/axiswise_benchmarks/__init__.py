"""Benchmarks of axiswise, each a ratio to something measured in the same run: what `axiswise bench` calls."""
