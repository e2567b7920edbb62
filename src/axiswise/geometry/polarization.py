r"""The polarized regime: does training split the latents into precise ones and pure noise, and when?"""

from collections.abc import Mapping
from typing import NamedTuple

import torch

from axiswise._arguments import checked
from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.geometry.activity import ACTIVE_BELOW
from axiswise.numerics.gaussian import kl_from_standard_normal
from axiswise.shapes import Array, Float, Int, Num, Tensor

NEGLIGIBLE_KL = 1e-6  # nats: terms of order one cancel in the KL, so that single precision means nothing below this
PASSIVE_WITHIN = 0.1  # what "much smaller than 1" and "about 1" mean in the definition of a passive latent


class Polarization(NamedTuple):
    """How much of training was polarized, and which latents the regime left behind."""

    score: Float[Tensor, "..."]
    """Share of the recorded times from which on the relative error stays below the tolerance; NaN after divergence."""
    active: Int[Tensor, "..."]
    """Active latents at the end: E σ² below `active_below`."""
    passive: Int[Tensor, "..."]
    """Passive latents at the end: not active, E μ² below 0.1 and E σ² within 0.1 of 1."""
    mixed: Int[Tensor, "..."]
    """The others at the end. In a polarized regime there are none."""
    delta: Float[Tensor, "... t"]
    """The relative error Δ_KL at each recorded time."""
    approximate_kl: Float[Tensor, "... t"]
    """L_≈KL at each recorded time, in nats."""


class Regime(NamedTuple):
    """How polarized a model is now, and what each latent is."""

    score: Float[Tensor, "..."]
    """The relative error Δ_KL: below 0.03 passes for polarized."""
    active: Int[Tensor, "..."]
    """Active latents: E σ² below `active_below`."""
    passive: Int[Tensor, "..."]
    """Passive latents: not active, E μ² below 0.1 and E σ² within 0.1 of 1."""
    mixed: Int[Tensor, "..."]
    """The others. In a polarized regime there are none."""
    kl: Float[Tensor, "..."]
    """L_KL, in nats."""
    approximate_kl: Float[Tensor, "..."]
    """L_≈KL, in nats."""
    kinds: Int[Tensor, "... z"]
    """What each latent is: 1 active, 0 passive, −1 mixed."""


@checked
def polarization(
    history: Mapping[str, Num[Array, "..."]], *, active_below: float = ACTIVE_BELOW, tolerance: float = 0.03
) -> Polarization:
    r"""Measures from when on the KL loss is that of a polarized regime, in which passive latents cost nothing.

    .. math:: L_{\approx\mathrm{KL}} = \frac{1}{2} \sum_{j \in V_a} \mathbb E\left[\mu_j^2 - \log \sigma_j^2 - 1\right],
        \qquad \Delta_{\mathrm{KL}} = \frac{|L_{\mathrm{KL}} - L_{\approx\mathrm{KL}}|}{L_{\mathrm{KL}}},

    with :math:`V_a` the latents that are active at the time. The score is the share of the recorded times from which
    on :math:`\Delta_{\mathrm{KL}}` stays below `tolerance` until the end. Where both losses are below 10⁻⁶ nats, as
    when every latent has collapsed, they agree, and the relative error is 0 rather than 0/0.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        definition 1, equations 10 and 30, table 1. The threshold of activity: Zietlow, Rolinek and Martius,
        *Demystifying inductive biases for β-VAE based architectures*, ICML 2021.

    Arguments:
        history: Means over samples at times t of training: "kl" (…, t), and (…, t, z) each of "mean_square" E μ²,
            "variance" E σ² and "log_variance" E log σ². Other entries are ignored.
        active_below: A latent is active while its E σ² is below this.
        tolerance: What relative error passes for polarized.

    Example:
        >>> history = {
        ...     "kl": torch.tensor([2.0, 2.85, 2.81]),
        ...     "mean_square": torch.tensor([[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]]),
        ...     "variance": torch.tensor([[0.5, 0.9], [0.01, 1.0], [0.004, 1.0]]),
        ...     "log_variance": torch.tensor([[-0.7, -0.1], [-5.6, 0.0], [-5.6, 0.0]]),
        ... }
        >>> found = polarization(history)
        >>> round(found.score.item(), 2), found.active.item(), found.passive.item(), found.mixed.item()
        (0.67, 1, 1, 0)
    """
    kl, mean_square, variance, log_variance = _read(history)
    delta, approximate, kinds = _classify(kl, mean_square, variance, log_variance, active_below)
    steady = (delta < tolerance).flip(-1).cumprod(-1)  # 1 as long as every later time is below the tolerance, too
    diverged = delta.isnan().any(-1)
    score = steady.double().mean(-1).masked_fill(diverged, torch.nan)
    active, passive, mixed = _counts(kinds[..., -1, :])
    return Polarization(score, active, passive, mixed, delta, approximate)


@checked
def regime(posterior: Parameters, *, active_below: float = ACTIVE_BELOW) -> Regime:
    r"""Measures how polarized a model is now, from its posteriors alone.

    .. math:: \Delta_{\mathrm{KL}} = \frac{|L_{\mathrm{KL}} - L_{\approx\mathrm{KL}}|}{L_{\mathrm{KL}}}, \qquad
        L_{\mathrm{KL}} = \frac12 \sum_j \mathbb E\left[\mu_j^2 + \sigma_j^2 - \log \sigma_j^2 - 1\right],

    with :math:`L_{\approx\mathrm{KL}}` over active latents and without their σ²: see :func:`polarization`, which
    follows it through training. This needs no history, so that a model of any origin has it. Codes without noise have
    an infinite divergence and no regime: the score is NaN.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        definition 1, equations 10 and 30.

    Arguments:
        posterior: Parameters of q(z | x), any leading axes (members) before samples and latents.
        active_below: A latent is active if its E σ² is below this.

    Example:
        >>> from axiswise.distributions import DiagonalParameters
        >>> means, log_variances = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), torch.tensor([-6.0, 0.0]).expand(2, 2)
        >>> found = regime(DiagonalParameters(means, log_variances))
        >>> round(found.score.item(), 4), found.active.item(), found.passive.item(), found.kinds.tolist()
        (0.0004, 1, 1, [1, 0])
    """
    mean, variance, log_variance = (
        part.double() for part in (posterior.mean, posterior.variance, posterior.log_variance)
    )
    if mean.ndim < 2 or 0 in mean.shape:
        raise AxiswiseError(f"`posterior` must have axes (…, n, z), none of them empty. Got shape {tuple(mean.shape)}.")
    kl = kl_from_standard_normal(mean, variance, log_variance).sum(-1).mean(-1)
    moments = (mean.square().mean(-2), variance.mean(-2), log_variance.mean(-2))
    delta, approximate, kinds = _classify(kl, *moments, active_below)
    active, passive, mixed = _counts(kinds)
    return Regime(delta, active, passive, mixed, kl, approximate, kinds)


def _classify(
    kl: Float[Tensor, "..."],
    mean_square: Float[Tensor, "... z"],
    variance: Float[Tensor, "... z"],
    log_variance: Float[Tensor, "... z"],
    active_below: float,
) -> tuple[Float[Tensor, "..."], Float[Tensor, "..."], Int[Tensor, "... z"]]:
    """The relative error, the approximate divergence, and what each latent is: 1 active, 0 passive, −1 mixed."""
    active = variance < active_below
    approximate = 0.5 * torch.where(active, mean_square - log_variance - 1.0, 0.0).sum(-1)
    both_vanish = (kl.abs() < NEGLIGIBLE_KL) & (approximate.abs() < NEGLIGIBLE_KL)
    delta = torch.where(both_vanish, 0.0, (kl - approximate).abs() / kl)
    passive = (mean_square < PASSIVE_WITHIN) & ((variance - 1.0).abs() < PASSIVE_WITHIN) & ~active
    return delta, approximate, active.long() - (~active & ~passive).long()


def _counts(kinds: Int[Tensor, "... z"]) -> tuple[Int[Tensor, "..."], Int[Tensor, "..."], Int[Tensor, "..."]]:
    """How many latents are active, passive and mixed."""
    return (kinds == 1).sum(-1), (kinds == 0).sum(-1), (kinds == -1).sum(-1)


def _read(history: Mapping[str, Array]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    names = ("kl", "mean_square", "variance", "log_variance")
    missing = [name for name in names if name not in history]
    if missing:
        raise NotDefined(  # such as an autoencoder, which has no divergence to approximate
            f"`history` must hold {', '.join(names)}, which objectives with a divergence record. "
            f"Got none of {', '.join(missing)}."
        )
    kl, mean_square, variance, log_variance = (torch.as_tensor(history[name]).detach().double() for name in names)
    for name, values in zip(names[1:], (mean_square, variance, log_variance), strict=True):
        if values.shape[:-1] != kl.shape or values.shape != mean_square.shape:
            raise AxiswiseError(
                f'`history["{name}"]` must have axes (…, t, z) where "kl" has (…, t), z the same for all. '
                f'Got shape {tuple(values.shape)} with "kl" of shape {tuple(kl.shape)}.'
            )
    if kl.ndim < 1 or kl.shape[-1] == 0:
        raise AxiswiseError(
            f'`history["kl"]` must hold at least one time. Got shape {tuple(kl.shape)}; train for longer.'
        )
    return kl, mean_square, variance, log_variance
