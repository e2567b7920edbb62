from collections.abc import Iterator

import jaxtyping
import pytest
import torch


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
