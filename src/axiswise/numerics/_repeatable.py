"""What PyTorch must be set to before convolutions on a GPU are exact to their type, and the same each time."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch
from torch.backends.cudnn import rnn

from axiswise._arguments import checked

# PyTorch makes modules of these settings only as it is loaded.
# pyright: reportAttributeAccessIssue=false

_changing = Lock()
_entered: list[tuple[bool, bool, str, str]] = []  # the settings that each one still open, in any thread, found first


@contextmanager
@checked
def repeatable() -> Iterator[None]:
    """While this lasts, convolutions on CUDA keep the type they are given and add up in one order.

    Left alone, PyTorch rounds what it convolves in float32 to ten bits (TF32) and may add up in any order. Observations
    drawn by a network then depend on how many are drawn at once: by .0036 of their range in a change of dSprites that
    is at most .1 large, and no two times quite the same. What was set before is put back. On a CPU nothing changes.

    Example:
        >>> with repeatable():
        ...     torch.backends.cudnn.conv.fp32_precision, torch.backends.cudnn.deterministic
        ('ieee', True)
    """
    cudnn = torch.backends.cudnn
    with _changing:
        found = cudnn.deterministic, cudnn.benchmark, cudnn.conv.fp32_precision, rnn.fp32_precision
        _entered.append(_entered[0] if _entered else found)  # settings are the process's: others may have changed them
        cudnn.deterministic, cudnn.benchmark = True, False
        _set_precisions("ieee", "ieee")
    try:
        yield
    finally:
        with _changing:
            before = _entered.pop()
            if not _entered:
                cudnn.deterministic, cudnn.benchmark = before[:2]
                _set_precisions(*before[2:])


def _set_precisions(convolutions: str, recurrent: str) -> None:
    """Sets both of cuDNN's precisions, and the older switch with them: read where it contradicts them, it raises."""
    cudnn = torch.backends.cudnn
    cudnn.allow_tf32 = convolutions == "tf32"
    cudnn.conv.fp32_precision, rnn.fp32_precision = convolutions, recurrent
