r"""Plug-in estimates of entropy and mutual information from counts, in nats.

A plug-in estimate takes the observed frequencies for the distribution. It is what the disentanglement literature
reports, and it is biased: for independent variables with :math:`a` and :math:`b` levels the mutual information of
:math:`n` samples is about :math:`(a - 1)(b - 1) / 2n` rather than 0 (Miller, *Note on the bias of information
estimates*, 1955). Two numbers are comparable only if their bins and their sample sizes are the same.
"""

import numpy as np
from numpy import ndarray
from scipy.special import xlogy

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Bins, Float, Int, Num

CACHED = 2**17  # numbers of cells that are counted at a time, 1 MB


@checked
def equal_width_bins(codes: Num[ndarray, "... n z"], bins: Bins = 20) -> Int[ndarray, "... n z"]:
    r"""Replaces each code by the number of its bin: `bins` bins of equal width from its smallest to its largest value.

    .. math:: b = \min\left(\left\lfloor \mathrm{bins} \cdot \frac{c - \min c}{\max c - \min c} \right\rfloor,\
        \mathrm{bins} - 1\right)

    Bins are closed on the left, the last one on both sides, and their edges are those of :func:`numpy.histogram`, so
    that a code lying exactly on an edge falls where the reference implementation puts it (Locatello et al.,
    *Challenging common assumptions*, ICML 2019, appendix). A constant code falls into one bin.

    References:
        Locatello et al., *Challenging common assumptions in the unsupervised learning of disentangled representations*,
        ICML 2019, appendix.

    Arguments:
        codes: Finite values, binned over the axis ``n`` for each latent and each leading index on its own.
        bins: How many bins, at least one.

    Example:
        >>> equal_width_bins(np.array([[0.1], [0.2], [0.3], [0.4], [0.5], [0.6]]), bins=3).T
        array([[0, 0, 1, 1, 2, 2]])
    """
    if 0 in codes.shape:
        raise AxiswiseError(f"`codes` must have axes (…, n, z), none of them empty. Got shape {codes.shape}.")
    rows = np.ascontiguousarray(np.swapaxes(np.asarray(codes, dtype=np.float64), -2, -1))  # samples last: one pass each
    low, high = rows.min(-1, keepdims=True), rows.max(-1, keepdims=True)
    # A constant code, or one whose bins would be narrower than the smallest normal number: every value in bin 0.
    width = np.where((high - low) / bins >= np.finfo(np.float64).tiny, high - low, 1.0)
    position = (rows - low) / width * bins
    binned = np.minimum(position.astype(np.int64), bins - 1)
    # Rounding may put a code one bin off when it is on an edge: the edges themselves, in floating point, decide.
    slack = 8 * np.finfo(np.float64).eps * bins * (1 + np.maximum(np.abs(low), np.abs(high)) / width)
    near = np.nonzero(np.abs(position - np.rint(position)) <= slack)
    values, numbers, latent = rows[near], binned[near], (*near[:-1], 0)
    start, step = low[latent], (width / bins)[latent]
    numbers -= (values < start + numbers * step) & (numbers > 0)
    numbers += (values >= start + (numbers + 1) * step) & (numbers < bins - 1)
    binned[near] = numbers
    return np.swapaxes(binned, -2, -1)


@checked
def joint_counts(codes: Int[ndarray, "... n z"], factors: Int[ndarray, "n k"]) -> Int[ndarray, "... k z levels bins"]:
    r"""Counts how often each level of each factor meets each value of each code.

    .. math:: C_{kzlb} = \#\{i : f_{ik} = l,\ c_{iz} = b\}

    Factors and codes with fewer levels than the largest are padded by zero counts, which no estimate sees.

    References:
        Cover and Thomas, *Elements of information theory*, 2nd edition, 2006, section 2.2: divided by their sum, the
        joint frequencies.

    Arguments:
        codes: Bin numbers, 0 ≤ code.
        factors: Levels, 0 ≤ factor, shared by all leading indices of `codes`.

    Example:
        >>> joint_counts(np.array([[0], [0], [1], [1]]), np.array([[0], [1], [1], [1]]))[0, 0]
        array([[1, 0],
               [1, 2]])
    """
    if (codes < 0).any() or (factors < 0).any():
        raise AxiswiseError(
            "`codes` and `factors` must be numbers of bins and levels. Got negative ones; bin them first."
        )
    _check_not_empty(codes, factors)
    *leading, samples, latents = codes.shape
    levels, bins = int(factors.max(initial=0)) + 1, int(codes.max(initial=0)) + 1
    stack = np.swapaxes(codes.reshape(-1, samples, latents), -2, -1)
    rows = np.ascontiguousarray(factors.T) * bins
    counts = np.empty((len(stack), len(rows), latents, levels, bins), np.int64)
    # One factor and a few codes of one member at a time: the numbers of their cells stay in the cache.
    few = max(1, CACHED // samples)
    offset = np.arange(few)[:, None] * (levels * bins)
    for member, tables in zip(stack, counts, strict=True):
        for start in range(0, latents, few):
            cells = member[start : start + few] + offset[: latents - start]
            for row, table in zip(rows, tables[:, start : start + few], strict=True):
                table[:] = np.bincount((cells + row).ravel(), minlength=table.size).reshape(table.shape)
    return counts.reshape(*leading, len(rows), latents, levels, bins)


@checked
def entropy(counts: Num[ndarray, "... levels"]) -> Float[ndarray, "..."]:
    r"""Estimates the entropy of a variable from counts of its levels: :math:`H = -\sum_l \hat p_l \ln \hat p_l`.

    References:
        Cover and Thomas, *Elements of information theory*, 2nd edition, 2006, chapter 2, *Entropy*, at the
        observed frequencies.

    Example:
        >>> bool(np.isclose(entropy(np.array([2, 2, 2])), np.log(3)))
        True
    """
    total = counts.sum(-1, keepdims=True)
    if not (total > 0).all():
        raise AxiswiseError(
            "`counts` must hold at least one sample along the last axis. Got none; drop the empty tables."
        )
    if not np.isfinite(total).all():
        raise AxiswiseError("`counts` must be finite, and their sums, too. Got NaN or infinity.")
    if (counts < 0).any():
        raise AxiswiseError("`counts` must not be negative. Got some that are.")
    frequencies = counts / total
    return np.asarray(0.0 - xlogy(frequencies, frequencies).sum(-1))  # never -0.0


@checked
def mutual_information(counts: Num[ndarray, "... a b"]) -> Float[ndarray, "..."]:
    r"""Estimates the mutual information of two discrete variables: :math:`I = H(A) + H(B) - H(A, B)`.

    It is not negative; what rounding leaves below zero is set to zero.

    References:
        Cover and Thomas, *Elements of information theory*, 2nd edition, 2006, chapter 2, *Relationship between
        entropy and mutual information*, at the observed frequencies.

    Arguments:
        counts: How often each level of the one meets each level of the other.

    Example:
        >>> bool(np.isclose(mutual_information(np.array([[2, 0], [0, 2]])), np.log(2)))
        True
    """
    joint = entropy(counts.reshape(*counts.shape[:-2], -1))
    return np.asarray(np.maximum(entropy(counts.sum(-1)) + entropy(counts.sum(-2)) - joint, 0.0))


@checked
def binned_information(
    codes: Num[ndarray, "... n z"], factors: Int[ndarray, "n k"], bins: Bins = 20
) -> Float[ndarray, "... k z"]:
    r"""Estimates the mutual information of each factor with each code that was cut into equal-width bins.

    .. math:: I_{kz} = H(f_k) + H(b_z) - H(f_k, b_z), \qquad b_z \text{ the bins of code } z

    References:
        Cover and Thomas, *Elements of information theory*, 2nd edition, 2006, chapter 2, *Relationship between
        entropy and mutual information*; bins as in Locatello et al., *Challenging common assumptions*, ICML 2019,
        appendix.

    Arguments:
        codes: Finite values, any leading axes (members).
        factors: Levels, 0 ≤ factor, shared by all members.
        bins: Bins of each code.

    Example:
        >>> levels = np.array([[0], [1], [0], [1]])
        >>> bool(np.isclose(binned_information(levels * 0.3, levels)[0, 0], np.log(2)))
        True
    """
    _check_not_empty(codes, factors)
    *leading, samples, latents = codes.shape
    levels = int(factors.max(initial=0)) + 1
    few = max(1, CACHED // (latents * levels * bins))
    blocks = [factors[:, start : start + few] for start in range(0, factors.shape[1], few)]
    # One member at a time, and a few factors: counts fit the cache, and a member is measured alone as among others.
    binned = (equal_width_bins(member, bins) for member in codes.reshape(-1, samples, latents))
    found = [np.concatenate([mutual_information(joint_counts(member, block)) for block in blocks]) for member in binned]
    return np.stack(found).reshape(*leading, factors.shape[1], latents)


def _check_not_empty(codes: ndarray, factors: ndarray) -> None:
    if 0 in (*codes.shape, *factors.shape):
        raise AxiswiseError(f"`codes` and `factors` must not be empty. Got shapes {codes.shape} and {factors.shape}.")
