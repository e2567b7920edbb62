"""What a stopping rule is."""

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from numpy import ndarray


@runtime_checkable
class StoppingRule(Protocol):
    """Says whether a member stops, from its validation so far.

    It is a pure function: it remembers nothing, so that a resumed training stops where an undisturbed one does. A rule
    of your own is a frozen dataclass of numbers, strings and tuples, which are stored with the members.

    Example:
        >>> from dataclasses import dataclass
        >>> import numpy as np
        >>> @dataclass(frozen=True)
        ... class Reached:
        ...     elbo: float
        ...     def stops(self, history):
        ...         return bool(history["elbo"][-1] >= self.elbo)
        >>> isinstance(Reached(-10.0), StoppingRule), Reached(-10.0).stops({"elbo": np.array([-30.0, -9.0])})
        (True, True)
    """

    def stops(self, history: Mapping[str, ndarray]) -> bool:
        """Whether the member stops now.

        Arguments:
            history: Its validation so far: "step", "loss" and the other terms, first axis the evaluations. The last
                entry is the newest.
        """
        ...
