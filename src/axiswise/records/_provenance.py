"""The versions that produced a result."""

import platform
from importlib.metadata import PackageNotFoundError, version

from axiswise._arguments import checked


@checked
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on.

    Example:
        >>> sorted(versions())
        ['axiswise', 'numpy', 'python', 'torch']
    """
    found = {"python": platform.python_version()}
    for package in ("axiswise", "numpy", "torch"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "source tree"
    return found
