import pytest
import torch


@pytest.fixture(autouse=True, scope="session")
def _one_thread_a_worker():
    """The tests run in several processes: one thread each keeps them from fighting over the cores."""
    torch.set_num_threads(1)
