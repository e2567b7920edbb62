r"""Linear support vector machines on a single number, solved exactly and many at a time.

SAP is 29 to 32 times as fast with them as with scikit-learn's ``LinearSVC``, and equal to 4e-5, on 10,000 samples of 10
latents and five factors: ``axiswise bench scores``, recorded in ``results/speed/scores_cpu.json``.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy import ndarray
from scipy.sparse import csr_array

from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int

ITERATIONS = 100  # Newton's method takes five to fifteen
CONVERGED = 1e-20  # decrease that a step promises, relative to the loss of a line at zero
ROUGHLY = 1e-5  # what is enough in the end, where outliers and a large C leave only rounding; liblinear stops at 1e-4
ROUNDING = 1e-6  # slope at the end of a step, relative to that at its start, that counts as none
FLATTER = 0.5  # the slope to which a part of a step must lead, relative to that at its start
BISECTIONS = 60
SINGULAR = 1e-15  # determinant of a Hessian, relative to the product of its diagonal, below which it is rounding
SMALLEST = 1e-100  # deviation below which a code is not divided by it: its square would vanish


class Lines(NamedTuple):
    """A linear function of each code for each class; the class of the largest is the prediction."""

    slopes: Float[ndarray, "z c"]
    intercepts: Float[ndarray, "z c"]


def linear_svms(codes: Float[ndarray, "n z"], labels: Int[ndarray, "n k"], *, C: float) -> list[Lines]:
    r"""Fits one-versus-rest support vector machines to every single code, for every column of labels.

    For each class, with :math:`y_i = 1` on it and −1 elsewhere, it finds the line :math:`wx + b` that minimises

    .. math:: \tfrac12 (w^2 + b^2) + C \sum_i s_i \max(0,\ 1 - y_i (w x_i + b))^2, \qquad
        s_i = \begin{cases} n / (c\, n_{y_i}) & \text{on the class} \\ 1 & \text{elsewhere} \end{cases}

    with :math:`c` classes of :math:`n_y` samples each; of two classes both have their weight, and the lines are
    each other's negative. This is what scikit-learn's ``LinearSVC(class_weight="balanced")``
    minimises; note that the intercept is penalised too, so that shifts of a code matter.

    The loss is convex and piecewise quadratic in two unknowns. Samples with a loss are on one side of a threshold, so
    that with each code sorted once and its powers summed up, loss, gradient and Hessian at any line are a few
    differences of partial sums, found by bisection. Newton's method with a line search then solves all classes of all
    codes together, to rounding.

    References:
        Fan, Chang, Hsieh, Wang and Lin, *LIBLINEAR: a library for large linear classification*, JMLR 9, 2008,
        section 2 and appendix A. Keerthi and DeCoste, *A modified finite Newton method for fast solution of large scale
        linear SVMs*, JMLR 6, 2005.

    Arguments:
        codes: Samples of each code.
        labels: Classes, numbered from 0 without gaps in each column; at least two of them.
        C: Weight of the losses, > 0.

    Example:
        >>> codes = np.array([[-1.0], [-2.0], [1.0], [2.0]])
        >>> (lines,) = linear_svms(codes, np.array([[0], [0], [1], [1]]), C=1.0)
        >>> lines.slopes.round(3).tolist(), abs(lines.intercepts.round(3)).tolist()
        ([[-0.8, 0.8]], [[0.0, 0.0]])
    """
    if C <= 0:
        raise AxiswiseError(f"`C` must be positive. Got {C:g}.")
    counts = [np.bincount(column) for column in labels.T]
    if any(len(count) < 2 or not count.all() for count in counts):
        raise AxiswiseError(
            "Each column of `labels` must hold at least two classes, numbered from 0 without gaps. "
            f"Got classes of {[count.tolist() for count in counts]} samples."
        )
    ends = np.cumsum([len(count) for count in counts])
    fitted = [np.split(found, ends[:-1], axis=-1) for found in _solve(_sums(codes, labels, counts, C))]
    return [Lines(*lines) for lines in zip(*fitted, strict=True)]


def highest_line(lines: Lines, points: Float[ndarray, "m z"]) -> Int[ndarray, "m z"]:
    """Says which line is the highest at each point, where the points of each code are sorted upwards.

    Each line is the highest from its last crossing with a flatter one to its first with a steeper one, so that the
    winners change a few times along the sorted points and nothing is computed point by point. Of lines that are the
    same the first wins.

    Example:
        >>> lines = Lines(np.array([[-1.0, 0.0, 1.0]]), np.array([[0.0, 1.0, 0.0]]))
        >>> highest_line(lines, np.array([[-3.0], [-0.5], [0.5], [3.0]])).T
        array([[0, 1, 1, 2]])
    """
    slopes, intercepts = lines
    steeper = slopes[:, :, None] - slopes[:, None]  # of line i than line j, at (z, i, j)
    lower = intercepts[:, None] - intercepts[:, :, None]
    first = np.arange(slopes.shape[1])
    beaten = (steeper == 0) & ((lower > 0) | ((lower == 0) & (first[:, None] > first)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        crossing = lower / steeper
    begins = np.where(steeper > 0, crossing, -np.inf).max(-1)
    ends = np.where(steeper < 0, crossing, np.inf).min(-1)
    visible = (begins <= ends) & ~beaten.any(-1)
    winners = np.empty(points.shape, dtype=np.int64)
    for code, column in enumerate(points.T):
        shown = np.flatnonzero(visible[code])
        shown = shown[np.lexsort((slopes[code, shown], begins[code, shown]))]  # where several begin, the steepest wins
        changes = column.searchsorted(begins[code, shown[1:]])
        winners[:, code] = shown.repeat(np.diff(changes, prepend=0, append=len(column)))
    return winners


class _Powers(NamedTuple):
    """Sums of u and of u² over the samples before each place."""

    first: Float[ndarray, " m"]
    second: Float[ndarray, " m"]

    def between(self, start: Int[ndarray, " p"], end: Int[ndarray, " p"]) -> Float[ndarray, "3 p"]:
        """Sums of 1, u and u² from one place to another."""
        return np.stack([end - start, self.first[end] - self.first[start], self.second[end] - self.second[start]])


class _Sums(NamedTuple):
    """Partial sums over sorted, standardised codes, from which the loss of any line follows.

    A problem is a code and a class; classes are numbered through all columns of labels.
    """

    codes: Float[ndarray, "z n"]
    """Standardised and sorted."""
    powers: _Powers
    """Partial sums of each code, n + 1 of them, one code after the other."""
    places: Int[ndarray, " zkn"]
    """Problem and place in the sorted code of every sample in every column, as one number; sorted."""
    class_powers: _Powers
    """Partial sums in that order, kn + 1 of them for each code."""
    sizes: Int[ndarray, " c"]
    """Samples of each class."""
    on: Float[ndarray, " c"]
    """Weight of a sample of the class."""
    off: Float[ndarray, " c"]
    """Weight of another sample."""
    mean: Float[ndarray, " z"]
    deviation: Float[ndarray, " z"]


def _sums(
    codes: Float[ndarray, "n z"], labels: Int[ndarray, "n k"], counts: list[Int[ndarray, " _"]], C: float
) -> _Sums:
    samples, columns = labels.shape
    codes = np.ascontiguousarray(codes.T)
    # Standardised, so that the partial sums do not cancel: the penalty is written for the code as it was.
    mean, deviation = codes.mean(-1), codes.std(-1)
    deviation = np.where(deviation > SMALLEST, deviation, 1.0)
    standard = (codes - mean[:, None]) / deviation[:, None]
    order = standard.argsort(-1)
    standard = np.take_along_axis(standard, order, -1)

    sizes = np.concatenate(counts)
    numbered = (labels + np.cumsum([0, *map(len, counts[:-1])])).astype(np.int32)
    problems = len(standard) * len(sizes)
    # Half as wide where that suffices: most of the time here goes into fresh memory.
    narrow = np.int32 if problems * (samples + 1) < 2**31 else np.int64
    first = (np.arange(problems) * (samples + 1)).reshape(-1, len(sizes)).astype(narrow)
    rows = np.arange(0, samples * columns + 1, columns)
    places = np.empty((len(standard), samples * columns), dtype=narrow)
    powers, class_powers = _no_powers(len(standard), samples), _no_powers(len(standard), samples * columns)
    for number, (values, own) in enumerate(zip(standard, order, strict=True)):
        # From rows to columns, a sparse matrix is sorted by class in linear time, and keeps the order within each.
        entries = (values.repeat(columns), numbered[own].ravel(), rows)
        by_class = csr_array(entries, shape=(samples, len(sizes))).tocsc()
        np.add(first[number].repeat(sizes), by_class.indices, out=places[number], casting="unsafe")
        for sums, summed in ((powers, values), (class_powers, by_class.data)):
            summed.cumsum(out=sums[0, number, 1:])
            np.square(summed).cumsum(out=sums[1, number, 1:])
    balanced = [samples / (len(count) * count) for count in counts]
    return _Sums(
        standard,
        _Powers(*powers.reshape(2, -1)),
        places.ravel(),
        _Powers(*class_powers.reshape(2, -1)),
        sizes,
        C * np.concatenate(balanced),
        C * np.concatenate([weights[::-1] if len(weights) == 2 else np.ones(len(weights)) for weights in balanced]),
        mean,
        deviation,
    )


def _no_powers(latents: int, samples: int) -> Float[ndarray, "2 z m"]:
    """Room for partial sums, which begin with nothing."""
    sums = np.empty((2, latents, samples + 1))
    sums[..., 0] = 0.0
    return sums


class _Derivatives(NamedTuple):
    """Of the losses of lines, by slope and intercept."""

    gradient: Float[ndarray, "2 p"]
    hessian: Float[ndarray, "3 p"]
    active: Int[ndarray, "4 p"]
    """Which samples have a loss: between which places they are."""


def _derivatives(sums: _Sums, problem: Int[ndarray, " p"], line: Float[ndarray, "2 p"]) -> _Derivatives:
    """Derivatives of the loss at a line for each of some problems, given in their order."""
    w, b = line
    samples, classes = sums.codes.shape[1], len(sums.sizes)
    code, level = np.divmod(problem, classes)
    with np.errstate(over="ignore"):  # thresholds of flat lines are at infinity, as they should
        slope = np.where(w == 0, np.finfo(np.float64).tiny, w)
        thresholds = np.stack([(1 - b) / slope, (-1 - b) / slope])
    place = np.empty(thresholds.shape, dtype=np.int64)
    edges = code.searchsorted(np.arange(len(sums.codes) + 1)).tolist()
    for number, (start, end) in enumerate(pairwise(edges)):
        place[:, start:end] = sums.codes[number].searchsorted(thresholds[:, start:end])
    # Partial sums have one place more than there are samples, for each code.
    begin = code * (samples + 1)
    middle, end = begin + place[1], begin + samples
    first = (sums.sizes.cumsum() - sums.sizes)[level] + code * (len(sums.places) // len(sums.codes) + 1)
    last = first + sums.sizes[level]
    on, off = sums.places.searchsorted((problem * (samples + 1) + place).astype(sums.places.dtype)) + code
    # Rising lines: samples of the class lose below their threshold, the others above theirs; falling lines reversed.
    rising = slope > 0
    inside = sums.class_powers.between(np.where(rising, first, on), np.where(rising, on, last))
    outside = sums.powers.between(np.where(rising, middle, begin), np.where(rising, end, middle))
    outside -= sums.class_powers.between(np.where(rising, off, first), np.where(rising, last, off))
    inside *= sums.on[level]
    outside *= sums.off[level]
    s0, s1, s2 = inside + outside
    d0, d1, _ = inside - outside

    mean, deviation = sums.mean[code], sums.deviation[code]
    tilt = -mean / deviation  # the intercept of the code as it was is b + tilt w, its slope w / deviation
    before = b + tilt * w
    gradient = [
        w / deviation**2 + tilt * before + 2 * (w * s2 + b * s1 - d1),
        before + 2 * (w * s1 + b * s0 - d0),
    ]
    hessian = [deviation**-2 + tilt**2 + 2 * s2, tilt + 2 * s1, 1 + 2 * s0]
    return _Derivatives(np.stack(gradient), np.stack(hessian), np.stack([rising, on, off, middle]))


def _solve(sums: _Sums) -> tuple[Float[ndarray, "z c"], Float[ndarray, "z c"]]:
    """Slopes and intercepts of all problems, by Newton's method."""
    classes = len(sums.sizes)
    total = sums.on * sums.sizes + sums.off * (sums.codes.shape[1] - sums.sizes)
    problem = np.arange(len(sums.codes) * classes)
    found = np.empty((2, len(problem)))
    line = np.zeros_like(found)
    at, settled = _derivatives(sums, problem, line), np.zeros(len(problem), dtype=bool)
    for attempt in range(1, ITERATIONS + 1):
        (g, h), (p, q, r) = at.gradient, at.hessian
        step = np.stack([q * h - r * g, q * g - p * h]) / np.maximum(p * r - q * q, SINGULAR * p * r)
        descent = (at.gradient * step).sum(0)
        # A whole step that changes no sample's part has reached the minimum, whatever rounding leaves of the gradient.
        enough = CONVERGED if attempt < ITERATIONS else ROUGHLY
        done = settled | (-descent <= enough * total[problem % classes])
        found[:, problem[done]] = (line + step)[:, done]
        if done.all():
            deviation, mean = sums.deviation.repeat(classes), sums.mean.repeat(classes)
            slope = found[0] / deviation
            return slope.reshape(-1, classes), (found[1] - slope * mean).reshape(-1, classes)
        problem, start, step, descent = problem[~done], line[:, ~done], step[:, ~done], descent[~done]
        line, now = _search(sums, problem, start, step, descent)
        settled = (now.active == at.active[:, ~done]).all(0) & (line == start + step).all(0)
        at = now
    raise AxiswiseError(
        f"Newton's method did not fit the support vector machines of {len(problem)} classes in {ITERATIONS} steps. "
        f"Got codes with deviations from {sums.deviation.min():g} to {sums.deviation.max():g}; standardise them."
    )


def _search(
    sums: _Sums,
    problem: Int[ndarray, " p"],
    start: Float[ndarray, "2 p"],
    step: Float[ndarray, "2 p"],
    descent: Float[ndarray, " p"],
) -> tuple[Float[ndarray, "2 p"], _Derivatives]:
    """Goes whole steps, or where the loss rises again at their end, part of it: to where it still falls, but slower.

    Along a step the slope of a convex loss only grows: as long as it is negative the loss has fallen all the way. That
    is decided by gradients, which are accurate where the differences of losses would be rounding.
    """
    line = start + step
    at = _derivatives(sums, problem, line)
    low, high, length = np.zeros(len(problem)), np.ones(len(problem)), np.ones(len(problem))
    wrong = np.flatnonzero((at.gradient * step).sum(0) > -ROUNDING * descent)
    for _ in range(BISECTIONS):
        if len(wrong) == 0:
            break
        length[wrong] = (low[wrong] + high[wrong]) / 2
        line[:, wrong] = start[:, wrong] + length[wrong] * step[:, wrong]
        part = _derivatives(sums, problem[wrong], line[:, wrong])
        for whole, own in zip(at, part, strict=True):
            whole[:, wrong] = own
        slope = (part.gradient * step[:, wrong]).sum(0)
        rising, early = slope > 0, slope < FLATTER * descent[wrong]
        high[wrong[rising]] = length[wrong[rising]]
        low[wrong[early]] = length[wrong[early]]
        wrong = wrong[rising | early]
    return line, at
