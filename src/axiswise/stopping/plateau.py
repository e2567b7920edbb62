"""Stop when a term no longer improves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from numpy import ndarray

from axiswise._arguments import Count, NonNegative, check_fields
from axiswise.errors import AxiswiseError

LARGER = {"accuracy": True, "elbo": True, "loss": False, "reconstruction": False}
"""The terms of which it is plain whether larger is better."""


@dataclass(frozen=True)
class Plateau:
    r"""A member stops once a term has not improved for some evaluations in a row.

    Evaluation k improves on the best so far, b, if :math:`v_k > b + \mathrm{least}`, and is the best from then on.
    Where smaller is better, v is minus the term. NaN improves on nothing, so that a member that diverged stops, too. A
    stopped member has the weights of its last evaluation, not of its best.

    References:
        Goodfellow, Bengio and Courville, *Deep Learning*, MIT Press 2016, algorithm 7.1, which has `least` = 0.

    Arguments:
        term: Name of a term of the validation: "elbo", "loss", "reconstruction", …
        patience: Evaluations in a row without an improvement after which the member stops.
        least: What an improvement must exceed, in units of the term.
        larger: Whether larger is better. None is what is plain: larger for "elbo" and "accuracy", smaller for "loss"
            and "reconstruction". For other terms it must be given.

    Example:
        >>> import numpy as np
        >>> rule = Plateau("elbo", patience=2, least=0.1)
        >>> rule.stops({"elbo": np.array([-5.0, -3.0, -2.95])})
        False
        >>> rule.stops({"elbo": np.array([-5.0, -3.0, -2.95, -3.1])})
        True
    """

    term: str
    patience: Count
    least: NonNegative = 0.0
    larger: bool | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if self.larger is None:
            if self.term not in LARGER:
                raise AxiswiseError(
                    f"Whether more of {self.term!r} is better is not plain (it is for {', '.join(LARGER)}). Say so: "
                    f"Plateau({self.term!r}, …, larger=True) or larger=False."
                )
            # What was plain is written down, so that the same rule has one form.
            object.__setattr__(self, "larger", LARGER[self.term])

    def stops(self, history: Mapping[str, ndarray]) -> bool:
        """Whether the last `patience` evaluations brought no improvement."""
        if self.term not in history or history[self.term].ndim != 1:
            numbers = sorted(name for name, values in history.items() if name != "step" and values.ndim == 1)
            kind = "is a vector" if self.term in history else "is not there"
            raise AxiswiseError(
                f"Plateau needs a term of the validation that is one number ({', '.join(numbers)}). Got {self.term!r}, "
                f"which {kind}. Name one of these."
            )
        best, waiting = -math.inf, 0
        for value in (history[self.term] if self.larger else -history[self.term]).tolist():
            best, waiting = (value, 0) if value > best + self.least else (best, waiting + 1)
        return waiting >= self.patience
