r"""Hoyer's sparsity: of how few latents does an embedding consist?"""

from typing import NamedTuple

import numpy as np
from numpy import ndarray

from axiswise._arguments import checked
from axiswise.scores._value import Of, Value, as_html, as_text
from axiswise.scores.inputs import Inputs, read_codes
from axiswise.scores.score import as_value, score
from axiswise.shapes import Codes, Float, OnMissing


class Hoyer(NamedTuple, Of[Value]):
    """The mean sparsity of embeddings, that of each, and how they were scaled."""

    score: Value
    """Mean over the embeddings, between 0 (dense) and 1 (sparse)."""
    per_sample: Float[ndarray, "... n"]
    """Sparsity of each embedding."""
    scaled: bool
    """Whether latents were divided by their deviations first; scores with and without are not comparable."""
    latents: int
    """How many latents: scores of different numbers of latents are not comparable."""
    inputs: Inputs
    """What it was computed from: factors and their levels, rows that were dropped, what is constant."""
    estimator: str = "mean over samples"

    __repr__ = as_text
    _repr_html_ = as_html


@score(invariances=["permute", "flip", "scale"], best=None)
@checked
def hoyer(codes: Codes, *, missing: OnMissing = "raise", scale: bool = True) -> Hoyer[Value]:
    r"""Scores how much of each embedding lies in a few of its d latents, on average over embeddings.

    .. math:: \mathrm{Hoyer}(z) = \frac{\sqrt d - \lVert z \rVert_1 / \lVert z \rVert_2}{\sqrt d - 1} \in [0, 1]

    It is 0 if all :math:`|z_i|` are equal and 1 if one alone is not 0, whatever the length of z. Latents are divided by
    their deviation over the samples first, since otherwise one latent of a large unit would make every embedding
    sparse; they are not centred, since it is distance from 0 that counts. So constant latents, whose deviation is 0,
    are set to 0: they are off. An embedding of zeros only counts as dense, 0, and so does that of a single latent,
    which has no others to be sparse among.

    References:
        Hurley and Rickard, *Comparing measures of sparsity*, 2008; as a score of VAEs in Mathieu, Rainforth, Siddharth
        and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019, section 6.3.

    Arguments:
        codes: Posterior means, any leading axes (members) before samples and latents.
        missing: Whether rows with missing values (NaN) raise an error or are dropped.
        scale: Whether to divide latents by their deviations.

    Example:
        >>> hoyer(np.array([[0.0, 5.0, 0.0], [2.0, -2.0, 2.0]]), scale=False).per_sample.tolist()
        [1.0, 0.0]
    """
    codes, inputs = read_codes(codes, missing, least=2 if scale else 1)
    *leading, samples, latents = codes.shape
    members = [_sparsity(member, scale) for member in codes.reshape(-1, samples, latents)]
    per_sample = np.stack(members).reshape(*leading, samples)
    mean = per_sample.mean(-1)
    return Hoyer(as_value(mean), per_sample, scale, latents, inputs)


def _sparsity(codes: Float[ndarray, "n z"], scale: bool) -> Float[ndarray, " n"]:
    if scale:
        # In units of the largest first, so that squares neither overflow nor vanish.
        largest = np.abs(codes).max(0)
        codes = codes / np.where(largest > 0, largest, 1.0)
        varies = np.ptp(codes, axis=0) > 0
        codes = np.where(varies, codes / np.where(varies, codes.std(0), 1.0), 0.0)
    dimensions = codes.shape[-1]
    longest = np.abs(codes).max(-1, keepdims=True)
    zero = longest[:, 0] == 0
    if dimensions == 1:
        return np.zeros(len(codes))
    codes = np.abs(codes / np.where(longest > 0, longest, 1.0))
    ratio = codes.sum(-1) / np.where(zero, 1.0, np.sqrt(np.square(codes).sum(-1)))
    found = (np.sqrt(dimensions) - ratio) / (np.sqrt(dimensions) - 1)
    return np.where(zero, 0.0, found.clip(0.0, 1.0))
