"""Where data files are: the folder of original files, and the cache of what is computed from them."""

import os
from pathlib import Path

from axiswise._arguments import checked
from axiswise.records._files import expanded


@checked
def data_folder() -> Path:
    """Folder of the original files: ``$AXISWISE_DATA``, or ``axiswise/data`` in the user's cache.

    Example:
        >>> data_folder().is_absolute()
        True
    """
    return _folder("AXISWISE_DATA", "data")


@checked
def cache_folder() -> Path:
    """Folder of files converted from the originals: ``$AXISWISE_CACHE``, or ``axiswise/prepared`` in the user's cache.

    Example:
        >>> cache_folder().is_absolute()
        True
    """
    return _folder("AXISWISE_CACHE", "prepared")


def _folder(variable: str, name: str) -> Path:
    chosen = os.environ.get(variable)
    if chosen:
        return expanded(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "axiswise" / name
