"""Measures of how training ended, from the history: means over its last tenth, since single batches are noisy."""

from collections.abc import Mapping

from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import NotDefined
from axiswise.shapes import Float


@checked
def loss(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """The loss that was minimised, in nats: the mean of the last tenth of the history, of batches of the training set.

    It does not depend on the dataset that is evaluated; for that see :func:`axiswise.geometry.elbo`.

    Example:
        >>> import numpy as np
        >>> loss({"loss": np.array([[9.0] * 10 + [1.0]])})
        array([1.])
    """
    return _at_end(history, "loss")


@checked
def reconstruction(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """Its reconstruction term, −E log p(x | z), as `loss` takes it from the history.

    Example:
        >>> import numpy as np
        >>> reconstruction({"reconstruction": np.array([[9.0] * 10 + [1.0]])})
        array([1.])
    """
    return _at_end(history, "reconstruction")


@checked
def kl(history: Mapping[str, ndarray]) -> Float[ndarray, "..."]:
    """Its divergence KL(q(z | x) ‖ p(z)), before weighting, as `loss` takes it from the history.

    Example:
        >>> import numpy as np
        >>> kl({"kl": np.array([[9.0] * 10 + [2.0]])})
        array([2.])
    """
    return _at_end(history, "kl")


def _at_end(history: Mapping[str, ndarray], name: str) -> Float[ndarray, "..."]:
    if name not in history or 0 in history[name].shape or not history[name].ndim:
        raise NotDefined(f"`history` must have steps of {name!r}. Got {', '.join(map(str, history)) or 'nothing'}.")
    term = history[name]
    return term[..., -max(1, term.shape[-1] // 10) :].mean(-1)
