"""The one setting of the C library's allocator."""

from functools import cache

import torch

KEPT_BYTES = (1 << 25) - (1 << 16)  # just below the largest threshold of glibc, 32 MB


@cache
def keep_freed_memory() -> None:
    """Has the C library keep the memory that one operation frees for the next, once in a process.

    glibc returns freed blocks above a threshold to the system, and the system clears new ones page by page. That costs
    a third of the time of a training step of small members, and a fifth of a pass of Jacobians. The threshold is the
    largest block freed so far, up to 32 MB. So one such block is freed here, which is never written to. glibc then
    keeps at most twice as much. Other C libraries are not affected.

    Example:
        >>> keep_freed_memory()
    """
    torch.empty(KEPT_BYTES, dtype=torch.uint8)
