r"""Total correlation of a Gaussian with the covariance of the codes: are latents linearly related?"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.numerics import standardised
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_codes
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, Int, OnMissing


class GaussianTotalCorrelation(NamedTuple, Of[Value]):
    """The total correlation of the Gaussian that fits the codes, and what it is made of."""

    score: Value
    """Total correlation in nats; lower is better, infinite where latents that vary determine each other linearly."""
    correlations: Float[ndarray, "... z z"]
    """Correlation of each pair of latents, 0 with constant ones."""
    varying: int | Int[ndarray, "..."]
    """How many latents are not constant: the others carry no information and are left out."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "Gaussian, sample covariance"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift", "scale"], chance=0.0, best=0.0)
@checked
def gaussian_total_correlation(codes: Codes, *, missing: OnMissing = "raise") -> GaussianTotalCorrelation[Value]:
    r"""Scores how far the codes' covariance is from a diagonal one, as a divergence. It needs no factors.

    .. math:: \mathrm{KL}\Big(N(\mu, \Sigma) \,\Big\|\, \prod_z N(\mu_z, \Sigma_{zz})\Big)
        = \frac12 \Big( \sum_z \log \Sigma_{zz} - \log\det \Sigma \Big) = -\frac12 \log\det R

    with the correlations R. It is 0 if latents are uncorrelated, whatever else may relate them, and infinite if one of
    them is a linear function of others (to rounding: an eigenvalue of R below z ε times the largest). Constant latents
    are left out; a code without two varying latents scores 0.

    References:
        Watanabe, *Information theoretical analysis of multivariate correlation*, IBM Journal 4(1), 1960; as a score in
        Locatello et al., *Challenging common assumptions*, ICML 2019, section 5.2.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.

    Example:
        >>> codes = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 10_000)
        >>> round(gaussian_total_correlation(codes).score, 2), float((-0.5 * np.log(1 - 0.9**2)).round(2))
        (0.83, 0.83)
    """
    codes, inputs = read_codes(codes, missing)
    *leading, samples, latents = codes.shape
    if samples <= (most := int(np.max(inputs.varying_latents))):
        raise AxiswiseError(
            f"`codes` must have more samples than latents that vary, or all are linearly dependent. Got {samples} "
            f"samples of {most} latents; draw more."
        )
    members = [standardised(member) for member in codes.reshape(-1, samples, latents)]
    correlations = np.stack([member.T @ member / samples for member in members])
    varying = np.stack([member.any(0) for member in members])
    found = np.array([_divergence(matrix[used][:, used]) for matrix, used in zip(correlations, varying, strict=True)])
    stacked = correlations.reshape(*leading, latents, latents)
    count = varying.sum(-1).reshape(leading)
    return GaussianTotalCorrelation(as_value(found.reshape(leading)), stacked, as_value(count), samples, inputs)


def _divergence(correlations: Float[ndarray, "z z"]) -> float:
    if len(correlations) < 2:
        return 0.0
    values = np.linalg.eigvalsh(correlations)
    if values[0] <= len(values) * np.finfo(np.float64).eps * values[-1]:
        return np.inf
    return max(float(-0.5 * np.log(values).sum()), 0.0)
