from collections.abc import Iterator

import jaxtyping
import pytest


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Turns the test run's signature checks off, so that a function meets bad arguments as it does at a user's."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
