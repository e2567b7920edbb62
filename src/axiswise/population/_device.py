"""Where to compute: on the device that is named, or else on the best there is."""

import platform
from functools import cache
from pathlib import Path

import torch

from axiswise.errors import AxiswiseError

CPU = torch.device("cpu")


def best_device() -> torch.device:
    """The best device of this machine: CUDA, if it has that, else the CPU.

    Apple's "mps" is used only if it is named: it has no float64, in which geometry and theory are computed.

    Example:
        >>> best_device().type in ("cuda", "cpu")
        True
    """
    return torch.device("cuda") if torch.cuda.is_available() else CPU


@cache
def hardware(device: torch.device) -> str:
    """The name of a processor or GPU, on which rounding depends: machines of a cluster may have several kinds.

    Example:
        >>> len(hardware(CPU)) > 0
        True
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    about = Path("/proc/cpuinfo")  # Linux alone
    lines = about.read_text().splitlines() if about.exists() else []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or platform.machine()


def device_named(device: str | torch.device) -> torch.device:
    """The device of that name, if this machine has it.

    Example:
        >>> device_named("abacus")
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: `device` must name a device of this machine (cpu...). Got 'abacus'.
    """
    found = find_device(device)
    if found is None:
        usable = ", ".join(_usable())
        raise AxiswiseError(f"`device` must name a device of this machine ({usable}). Got {str(device)!r}.")
    return found


def find_device(device: str | torch.device) -> torch.device | None:
    """The device of that name, None if this machine has none."""
    try:
        found = torch.device(device)
    except RuntimeError:
        return None
    there = found.type in _usable() and (found.index or 0) < max(1, torch.cuda.device_count())
    return found if there else None


def choose_device(
    device: str | torch.device | None, *places: torch.device, begun_on: str | None = None
) -> torch.device:
    """Where to compute: on the device that is named; else where anything was moved to; else where it was begun.

    Where nothing is named, moved or begun, the best device is taken. Tensors in main memory say nothing: all data are
    there at first. What was begun on a device that this machine lacks goes on elsewhere, equal up to rounding.

    Arguments:
        device: What the caller named.
        places: Where data and weights are.
        begun_on: Where an earlier part of the same work was done.

    Example:
        >>> choose_device(None, CPU, begun_on="cpu"), choose_device("cpu", torch.device("cuda"))
        (device(type='cpu'), device(type='cpu'))
        >>> choose_device(None, CPU, torch.device("cuda", 1), begun_on="cpu")
        device(type='cuda', index=1)
    """
    if device is not None:
        return device_named(device)
    moved = next((place for place in places if place.type != "cpu"), None)
    return moved or (find_device(begun_on) if begun_on else None) or best_device()


def _usable() -> list[str]:
    backends = {"cuda": torch.cuda.is_available, "mps": torch.backends.mps.is_available}
    return ["cpu", *(name for name, is_available in backends.items() if is_available())]
