"""The Lasso of many targets on the same variables."""

import numpy as np
from numpy import ndarray

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Shaped

SWEEPS = 10  # before the weights that still move are solved for
ROUNDS = 1_000  # far more than are ever needed, since solving ends what sweeps only approach


def lasso(
    gram: Float[ndarray, "d d"], products: Float[ndarray, "d t"], penalty: float, *, tolerance: float = 1e-10
) -> Float[ndarray, "d t"]:
    r"""Weights that predict each of t targets from d variables with the least squared error and few weights not 0.

    .. math:: w_t = \arg\min_w \frac{1}{2n} \lVert y_t - X w \rVert^2 + \alpha \lVert w \rVert_1
        = \arg\min_w \tfrac12 w^\top G w - c_t^\top w + \alpha \lVert w \rVert_1

    with :math:`G = X^\top X / n` and :math:`c_t = X^\top y_t / n` for centred data. The samples enter through G and c
    alone, so that all targets share them, and one coordinate after another is set to its optimum for all targets at
    once. Coordinates of variables that nearly repeat each other approach their optimum slowly; from time to time the
    weights are therefore solved for, given which of them are not 0 and their signs. The weight of a constant variable
    is 0.

    References:
        Friedman, Hastie and Tibshirani, *Regularization paths for generalized linear models via coordinate descent*,
        Journal of Statistical Software 33(1), 2010, section 2.2; Lee, Battle, Raina and Ng, *Efficient sparse coding
        algorithms*, NIPS 2006, algorithm 1, for solving given the signs.

    Arguments:
        gram: Mean products of the variables with each other.
        products: Mean products of the variables with the targets.
        penalty: The weight α > 0 of the absolute values.
        tolerance: The largest change of a weight in the last sweep.

    Example:
        >>> lasso(np.eye(2), np.array([[1.0], [0.05]]), 0.1).tolist()
        [[0.9], [0.0]]
    """
    if not penalty > 0:
        raise AxiswiseError(f"`penalty` must be positive. Got {penalty}.")
    weights = np.zeros_like(products)
    pending = np.arange(products.shape[1])  # targets whose weights still move
    for _ in range(ROUNDS):
        weights[:, pending], change = _swept(gram, products[:, pending], penalty, weights[:, pending])
        pending = pending[change > tolerance]
        if not len(pending):
            return weights
        weights[:, pending], optimal = _solved(gram, products[:, pending], penalty, weights[:, pending])
        pending = pending[~optimal]
    raise AxiswiseError(
        f"The Lasso did not settle in {ROUNDS * SWEEPS} sweeps. Got {len(pending)} targets whose weights still move; "
        "raise `tolerance`."
    )


def _swept(
    gram: Float[ndarray, "d d"], products: Float[ndarray, "d t"], penalty: float, weights: Float[ndarray, "d t"]
) -> tuple[Float[ndarray, "d t"], Float[ndarray, " t"]]:
    """The weights after a few sweeps over the coordinates, and how far those of each target moved in the last one."""
    diagonal = np.diagonal(gram)
    change = np.zeros(products.shape[1])
    for _ in range(SWEEPS):
        change[:] = 0.0
        for row in np.flatnonzero(diagonal > 0):
            before = weights[row].copy()
            rest = products[row] - gram[row] @ weights + diagonal[row] * before
            weights[row] = np.sign(rest) * np.maximum(np.abs(rest) - penalty, 0.0) / diagonal[row]
            np.maximum(change, np.abs(weights[row] - before), out=change)
        if not change.any():
            break
    return weights, change


def _solved(
    gram: Float[ndarray, "d d"], products: Float[ndarray, "d t"], penalty: float, weights: Float[ndarray, "d t"]
) -> tuple[Float[ndarray, "d t"], Shaped[ndarray, " t"]]:
    """The best point on the way to where the error has no slope while signs stay, and whether that is the optimum."""
    before, signs = weights.T, np.sign(weights.T)  # (t, d)
    used = signs != 0
    inverse = np.linalg.pinv(np.where(used[:, :, None] & used[:, None, :], gram, 0.0), hermitian=True)
    step = np.where(used, (inverse @ (products.T - penalty * signs)[..., None])[..., 0] - before, 0.0)
    # On the way a weight may pass 0, where its sign and with it the slope changes: stop there or at the end.
    crossing = np.where(before * (before + step) < 0, -before / np.where(step == 0, 1.0, step), 1.0)
    points = before[:, None, :] + np.insert(crossing, 0, 1.0, -1)[..., None] * step[:, None, :]  # (t, 1 + d, d)
    there = np.insert(np.where(crossing < 1, 1, 0)[:, :, None] * np.eye(len(gram), dtype=int), 0, 0, 1)
    points[there == 1] = 0.0
    costs = 0.5 * np.square(points @ _root(gram)).sum(-1) - (points * products.T[:, None, :]).sum(-1)
    best = (costs + penalty * np.abs(points).sum(-1)).argmin(-1)
    after = np.take_along_axis(points, best[:, None, None], 1)[:, 0].T
    slope = products - gram @ after
    allowed = 1e-9 * penalty + 1e-14 * np.abs(products).max(initial=0.0)  # rounding of the slope
    unused = np.abs(slope) <= penalty + allowed
    at_rest = np.abs(slope - penalty * np.sign(after)) <= allowed
    return after, np.where(after == 0, unused, at_rest).all(0)


def _root(gram: Float[ndarray, "d d"]) -> Float[ndarray, "d d"]:
    """A matrix whose product with its transpose is the given one."""
    values, vectors = np.linalg.eigh(gram)
    return vectors * np.sqrt(values.clip(min=0.0))
