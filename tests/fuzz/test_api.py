"""Every public function, called with wrong arguments: a clear error that names one, or a result that is a number.

``AXISWISE_FUZZ_CALLS`` is the number of calls and ``AXISWISE_FUZZ_SEED`` the seed; ``campaign.py`` prints more.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CALLS = os.environ.get("AXISWISE_FUZZ_CALLS", "1500")
SEED = os.environ.get("AXISWISE_FUZZ_SEED", "0")


@pytest.mark.fuzz
def test_wrong_arguments_are_refused_by_name(tmp_path):
    """In a process of its own: calls may take all memory, and change what a process shares."""
    command = [sys.executable, str(Path(__file__).with_name("campaign.py")), "--calls", CALLS, "--seed", SEED]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
