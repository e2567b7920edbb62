"""Freed memory is kept: measured by page faults, in a process of its own, since the setting lasts."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import torch
from axiswise.numerics._memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        blocks = [torch.ones(1 << 18) for _ in range(40)]  # 40 MB in all
        del blocks
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
keep_freed_memory()
faults()
print(before, faults())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the threshold is glibc's")
def test_freed_memory_is_not_paged_in_again():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 10
