"""Warnings point to the user's own line, through all that lies between it and the reason."""

import subprocess
import sys

SCRIPT = """
import numpy as np
import axiswise as aw

codes = np.random.default_rng(0).normal(size=(60, 2))
factors = np.stack([np.arange(60) % 3, np.zeros(60, int)], -1)
found = aw.scores.mig(codes, factors)
print(found)
"""


def test_a_warning_names_the_line_that_called(tmp_path):
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    first, second = done.stderr.splitlines()
    assert first.startswith(f"{script}:7: UndefinedScore: factor 1: constant, so that there is no score of it")
    assert second.strip() == "found = aw.scores.mig(codes, factors)"
    assert "entropies=[1.099, 0.]" in done.stdout  # without the padding of columns, or a sign
