r"""Active units: how many latents does a model use?"""

from typing import Literal, NamedTuple

from numpy import ndarray

from axiswise._arguments import checked
from axiswise.errors import AxiswiseError
from axiswise.scores._value import Count, Of, as_html, as_text
from axiswise.scores.score import as_codes, as_value
from axiswise.shapes import Codes, Float, Shaped


class ActiveUnits(NamedTuple, Of[Count]):
    """How many latents are active, which ones, and by what criterion."""

    score: Count
    """Number of active latents; an integer for one model, an array of the leading axes for a stack of them."""
    active: Shaped[ndarray, "... z"]
    """Whether each latent is active."""
    means: Float[ndarray, "... z"]
    """What the threshold was compared with: the mean posterior variance or divergence of each latent."""
    threshold: float
    """The threshold."""
    estimator: str
    """The criterion in words."""

    __repr__ = as_text
    _repr_html_ = as_html


@checked
def active_units(
    variance: Codes | None = None,
    kl: Codes | None = None,
    *,
    by: Literal["variance", "kl"] | None = None,
    variance_below: float = 0.8,
    kl_above: float = 0.01,
) -> ActiveUnits[Count]:
    r"""Counts the latents that carry information, from the posteriors: those that are not as wide as the prior.

    .. math:: \#\{z : \mathbb E_x\, \sigma_z^2(x) < 0.8\} \qquad\text{or}\qquad
        \#\{z : \mathbb E_x\, \mathrm{KL}(q(z \mid x) \,\|\, p(z)) > 0.01\}

    In a polarized regime, where variances are near 0 or near 1, both agree. The first presumes a prior of variance 1.

    It needs posteriors rather than codes and factors, so it declares no invariances; `evaluate` gives it both.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, section
        5.3 (variance below 0.8); Duan et al., *Unsupervised model selection for variational disentangled
        representation learning*, ICLR 2020, appendix (divergence above 0.01).

    Arguments:
        variance: Posterior variances, any leading axes (members) before samples and latents.
        kl: Divergence of each latent's posterior from its prior, in nats.
        by: Which of them decides; if None, the variance where it is given.
        variance_below: A latent is active if its mean variance is below this.
        kl_above: A latent is active if its mean divergence is above this.

    Example:
        >>> import torch
        >>> variance = torch.tensor([[0.01, 0.99, 0.3], [0.03, 1.01, 0.2]])
        >>> found = active_units(variance)
        >>> found.score, found.active.tolist()
        (2, [True, False, True])
    """
    if by not in ("variance", "kl", None):
        raise AxiswiseError(f'`by` must be "variance", "kl" or None. Got {by!r}.')
    criterion = by or ("variance" if variance is not None else "kl")
    given = variance if criterion == "variance" else kl
    if given is None:
        missing = f"`{criterion}`" if by else "`variance` or `kl`"
        raise AxiswiseError(f"{missing} must be given. Got None; a model without posteriors has no active units.")
    means = as_codes(given, criterion).mean(-2)
    if criterion == "variance":
        active, threshold, words = means < variance_below, variance_below, f"mean variance below {variance_below:g}"
    else:
        active, threshold, words = means > kl_above, kl_above, f"mean KL above {kl_above:g} nats"
    return ActiveUnits(as_value(active.sum(-1)), active, means, threshold, words)
