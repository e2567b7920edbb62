import io
import os
from collections.abc import Iterator

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import settings

# A busy machine may take any time: speed is measured by the benchmarks.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Hides GPUs from all tests but those of a GPU: training would take one where no device is named."""
    chosen = config.option.markexpr
    if "gpu" not in chosen or "not gpu" in chosen:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True, scope="session")
def _one_thread_a_worker():
    """The tests run in several processes: one thread each keeps them from fighting over the cores."""
    torch.set_num_threads(1)


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Turns the test run's signature checks off, so that a function meets bad arguments as it does at a user's."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def python_object() -> bytes:
    """A numpy file that claims to hold Python objects; what it holds would open the file "exploded" if it were run."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    return file.getvalue() + b"cbuiltins\nopen\n(Vexploded\nVw\ntR."
