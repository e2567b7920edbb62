r"""Wasserstein distance of a Gaussian with the covariance of the codes from independence."""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.numerics import covariance
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_codes
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, OnMissing


class GaussianWassersteinCorrelation(NamedTuple, Of[Value]):
    """The squared distance from independence, in the codes' units and without."""

    score: Value
    """Squared distance; lower is better."""
    normalised: Value
    """The same, divided by the total variance; 0 if that is 0."""
    variance: Value
    """Total variance of the codes."""
    samples: int
    """Samples the estimate was made from."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "Gaussian, sample covariance"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "shift"], chance=0.0, best=0.0)
@checked
def gaussian_wasserstein_correlation(
    codes: Codes, *, missing: OnMissing = "raise"
) -> GaussianWassersteinCorrelation[Value]:
    r"""Scores how far the codes' covariance is from a diagonal one, as a distance. It needs no factors.

    .. math:: W_2^2\big(N(0, \Sigma), N(0, D)\big) = \operatorname{tr} \Sigma + \operatorname{tr} D
        - 2 \operatorname{tr} \big( D^{1/2} \Sigma D^{1/2} \big)^{1/2} = 2 \operatorname{tr} \Sigma - 2
        \operatorname{tr} \big( D^{1/2} \Sigma D^{1/2} \big)^{1/2}, \qquad D = \operatorname{diag} \Sigma

    It is 0 if latents are uncorrelated, and finite always, unlike `gaussian_total_correlation`. In exchange it depends
    on the latents' units; `normalised` does not depend on a unit that all of them share. Constant latents add nothing.

    References:
        Xiao and Wang, *Disentangled representation learning with Wasserstein total correlation*, 2019; as a score in
        Locatello et al., *Challenging common assumptions*, ICML 2019, section 5.2.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.

    Example:
        >>> codes = np.random.default_rng(0).multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 100_000)
        >>> round(gaussian_wasserstein_correlation(codes).score, 2), round(4 - 2 * (1.9**0.5 + 0.1**0.5), 2)
        (0.61, 0.61)
    """
    codes, inputs = read_codes(codes, missing)
    *leading, samples, latents = codes.shape
    found = np.array([_distance(covariance(member)) for member in codes.reshape(-1, samples, latents)])
    distance, variance = found.T.reshape(2, *leading)
    normalised = np.divide(distance, variance, out=np.zeros_like(distance), where=variance > 0)
    return GaussianWassersteinCorrelation(as_value(distance), as_value(normalised), as_value(variance), samples, inputs)


def _distance(covariances: Float[ndarray, "z z"]) -> tuple[float, float]:
    """The squared distance from the diagonal part, and the total variance."""
    deviations = np.sqrt(np.diagonal(covariances))
    values = np.linalg.eigvalsh(deviations[:, None] * covariances * deviations).clip(min=0.0)
    variance = float(np.trace(covariances))
    return max(2 * variance - 2 * float(np.sqrt(values).sum()), 0.0), variance
