"""Measures of how training ended, from the history: means over its last tenth, since single batches are noisy."""

from collections.abc import Mapping

from numpy import ndarray

from axiswise.shapes import Float


def loss(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """The loss that was minimised, in nats.

    Example:
        >>> import numpy as np
        >>> loss({"loss": np.array([[9.0] * 10 + [1.0]])})
        array([1.])
    """
    return _at_end(history["loss"])


def reconstruction(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """Its reconstruction term, −E log p(x | z).

    Example:
        >>> import numpy as np
        >>> reconstruction({"reconstruction": np.array([[9.0] * 10 + [1.0]])})
        array([1.])
    """
    return _at_end(history["reconstruction"])


def kl(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """Its divergence KL(q(z | x) ‖ p(z)), before weighting.

    Example:
        >>> import numpy as np
        >>> kl({"kl": np.array([[9.0] * 10 + [2.0]])})
        array([2.])
    """
    return _at_end(history["kl"])


def _at_end(term: Float[ndarray, "... t"]) -> Float[ndarray, "..."]:
    return term[..., -max(1, term.shape[-1] // 10) :].mean(-1)
