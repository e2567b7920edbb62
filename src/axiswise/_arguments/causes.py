"""What arguments have to do with an error of arithmetic, of memory or of shapes that a function ended in."""

import errno
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from axiswise._arguments.words import dtype_of, either, is_array, shown

SIZES = re.compile("must match the size|Expected size for|expand\\(|invalid for input of size|number of dimensions")


def said_of(error: Exception, function: str, given: Mapping[str, Any]) -> str | None:
    """What the arguments have to do with an error of the arithmetic or of the memory; None for any other error."""
    if type(error).__name__.endswith("LinAlgError"):  # NumPy's and PyTorch's
        return overflow(function, given)
    if isinstance(error, NotImplementedError) and "meta tensor" in str(error):
        names = [f"`{name}`" for name, value in given.items() if getattr(value, "is_meta", False)]
        return f"{either(names or given)} must have values. Got a tensor of the device meta, which has none."
    if isinstance(error, RuntimeError) and any(part in str(error) for part in ("same dtype", "same device")):
        kinds = {
            name: f"{dtype_of(each)} on {getattr(each, 'device', 'cpu')}"
            for name, each in given.items()
            if is_array(each)
        }
        if len(set(kinds.values())) < 2:  # a tensor of the caller's own code was of another kind
            return None
        told = ", ".join(f"`{name}` {kind}" for name, kind in kinds.items())
        return f"The arguments of {function} must be of one type and on one device. Got {told}."
    if isinstance(error, RuntimeError) and not any(map(callable, given.values())) and SIZES.search(str(error)):
        told = ", ".join(f"`{name}` = {shown(value)}" for name, value in given.items())
        why = " ".join(str(error).split())
        return f"The arguments of {function} must have shapes that fit together. Got {told}: {why}."
    if isinstance(error, MemoryError) or any(part in str(error) for part in ("DefaultCPUAllocator", "Storage size")):
        asked = re.search(r"allocate ([\d.]+ \w+)", str(error))
        told = ", ".join(f"`{name}` = {shown(value)}" for name, value in given.items())
        return f"{function} needs more memory than there is{(asked and f' ({asked[1]} at once)') or ''}. Got {told}."
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        names = [name for name, value in given.items() if isinstance(value, str | Path)]
        return f"{either(f'`{name}`' for name in names)} must be a path that the file system takes. Got one too long."
    return None


def overflow(function: str, given: Mapping[str, Any]) -> str:
    """What the arguments have to do with a result that is not finite."""
    sizes = [f"`{name}` up to {_largest(value):.3g}" for name, value in given.items() if _has_numbers(value)]
    told = ", ".join(sizes or (f"`{name}`" for name in given))
    return (
        f"{function} is NaN or infinite for these arguments ({told}): they are too large, too small or too nearly "
        "dependent for its arithmetic. Scale them."
    )


def _has_numbers(value: Any) -> bool:
    return isinstance(value, float | int) or (is_array(value) and math.prod(value.shape) > 0)


def _largest(value: Any) -> float:
    return float(abs(value).max()) if is_array(value) else float(abs(value))
