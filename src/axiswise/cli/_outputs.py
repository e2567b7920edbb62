"""What several commands take: seeds, and files to write, never over what is read and over others only if asked to."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError, PackageMissing

LAST_SEED = 2**63 - 1
SMALLEST = 1e-100  # of scales, noises and weights: squares and ratios of them, and of their inverses, are finite
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]
"""The option `--force` of commands that write files."""


@checked
def check_output(path: Path | None, *, force: bool, inputs: Iterable[str | Path | None] = ()) -> None:
    """Raises if a file may not be written, before any work is done for it.

    Arguments:
        path: The file; None if nothing is written.
        force: Whether it may replace a file that is there already.
        inputs: Files that the command reads; ``FILE:KEY`` names an array of a file.

    Example:
        >>> check_output(Path("/dev/null"), force=True)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: /dev/null must be a regular file, or nothing yet, to be written. Got a device...
    """
    from axiswise.records._files import check_regular

    if path is None:
        return
    check_regular(path)
    if not path.exists():
        return
    for read in inputs:
        for name in {str(read), str(read).rpartition(":")[0]} if read is not None else ():
            if name and Path(name).is_file() and path.samefile(name):
                raise AxiswiseError(f"{path} is read by this command, so it cannot be written to. Choose another name.")
    if not force:
        raise AxiswiseError(f"{path} is there already. Choose another name, or add --force to replace it.")


def check_drawing(what: str) -> None:
    """Raises if matplotlib, which draws pages and pictures, is not installed: before any work is done for them.

    Arguments:
        what: What needs it, for the message.

    Example:
        >>> check_drawing("The report")
    """
    if find_spec("matplotlib") is None:
        raise PackageMissing(what, "matplotlib")


@contextmanager
def naming_options(*names: str) -> Iterator[None]:
    """Within it, errors about arguments of those names are about options.

    Example:
        >>> with naming_options("device"):
        ...     raise AxiswiseError("`device` must name a device of this machine.")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: --device must name a device of this machine.
    """
    try:
        yield
    except AxiswiseError as error:
        for name in names:
            if str(error).startswith(f"`{name}` must"):
                raise AxiswiseError(f"--{name}{str(error).removeprefix(f'`{name}`')}") from error
        raise


def as_json(value: Any) -> Any:
    """Arrays as lists, named tuples as objects and NaN as null, at any depth."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(key): as_json(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [as_json(entry) for entry in value]
    if isinstance(value, np.ndarray | np.generic):
        return as_json(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
