"""What the studies of zietlow2021 measure beside the library's own measures. The member axis is the first."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from axiswise.analytic import direction_alignment, principal_directions
from axiswise.data import Change
from axiswise.geometry import ACTIVE_BELOW, jacobian
from axiswise.numerics import assignment
from axiswise.shapes import Float, Int, Num, Tensor

CHANGE_POINTS = 512  # observations at which a change is drawn, to see whether it depends on their factors
PLANE_POINTS = 5000  # observations that two-dimensional planes are fitted to
BINS = 20  # of a latent, an angle or a radius


class LatentLaw(NamedTuple):
    """How far the second moments of a posterior are from those of the prior."""

    score: Float[Tensor, "..."]
    """The largest |E μ² + E σ² − 1| of any latent: 0 at every optimum."""
    mean_square_alone: Float[Tensor, "..."]
    """The largest |E μ² − 1| of an active latent: what the polarized regime leaves of it; NaN if none is active."""
    moments: Float[Tensor, "... z"]
    """E μ² + E σ² of each latent."""
    variances: Float[Tensor, "... z"]
    """E σ² of each latent."""


class PrincipalAngle(NamedTuple):
    """How far the columns of a linear decoder are from the principal directions of the data."""

    score: Float[Tensor, "..."]
    """Degrees, mean over latents, each paired with a direction of its own; columns of zeros are left out."""
    angles: Float[Tensor, "... z"]
    """Degrees of each latent."""


class Embedding(NamedTuple):
    """Which coordinates of the plane two latents are."""

    score: Float[Tensor, "..."]
    """Mean |correlation| of latents with the coordinates of PCA, each latent with one of its own."""
    level: Float[Tensor, "..."]
    """The same with the coordinates themselves, along and across the stripes."""


class Plane(NamedTuple):
    """How the plane of two latents codes a hue and an orientation: by angle and radius, or along its axes."""

    score: Float[Tensor, "..."]
    """Share explained in polar coordinates less that along the axes: above 0 if angle and radius explain more."""
    polar_hue: Float[Tensor, "..."]
    """Share of the hue, as a point of the circle, that the angle explains."""
    polar_orientation: Float[Tensor, "..."]
    """Share of the orientation that the radius explains."""
    axis_hue: Float[Tensor, "..."]
    """Share of the hue that one latent explains."""
    axis_orientation: Float[Tensor, "..."]
    """Share of the orientation that the other explains."""
    polar_pair: Int[Tensor, "... 2"]
    """The two latents whose polar coordinates explain the most."""
    axis_pair: Int[Tensor, "... 2"]
    """The latent of the hue and that of the orientation."""
    hues: Float[Tensor, "... h"]
    """Mean of the hue's latent at each hue."""


def latent_law(codes: Float[Tensor, "... n z"], variance: Float[Tensor, "... n z"]) -> LatentLaw:
    r"""Measures by how much any latent misses the law that the divergence imposes at an optimum.

    .. math:: \mathbb E \mu_j^2 + \mathbb E \sigma_j^2 = 1

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, Lemma 1,
        corrected; :func:`~axiswise.analytic.latent_scale` derives it.

    Arguments:
        codes: Posterior means, any leading axes (members).
        variance: Posterior variances.

    Example:
        >>> codes, variance = torch.tensor([[0.6, 0.0], [-0.6, 0.0]]), torch.tensor([[0.64, 1.0], [0.64, 0.9]])
        >>> found = latent_law(codes, variance)
        >>> round(found.score.item(), 3), round(found.mean_square_alone.item(), 3)
        (0.05, 0.64)
    """
    squares, widths = codes.double().square().mean(-2), variance.double().mean(-2)
    moments = squares + widths
    active = widths < ACTIVE_BELOW
    alone = torch.where(active, (squares - 1.0).abs(), -torch.inf).amax(-1)
    alone = torch.where(active.any(-1), alone, torch.nan)
    return LatentLaw((moments - 1.0).abs().amax(-1), alone, moments, widths)


def principal_angle(
    x: Float[Tensor, "n x"], codes: Float[Tensor, "... n z"], decode: Callable[[Tensor], Tensor]
) -> PrincipalAngle:
    r"""Measures the angles between the columns of a linear decoder and the data's principal directions.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        Theorem 1.

    Arguments:
        x: Observations.
        codes: Posterior means, any leading axes (members).
        decode: E[x | z], linear in z.

    Example:
        >>> x = torch.randn(500, 2, generator=torch.Generator().manual_seed(0)) * torch.tensor([3.0, 1.0])
        >>> turn = torch.tensor([[0.8, -0.6], [0.6, 0.8]])
        >>> round(principal_angle(x - x.mean(0), x, lambda z: z @ turn).score.item())  # arctan ¾
        37
    """
    slopes = jacobian(decode, codes[..., :1, :])[..., 0, :, :]
    cosines = direction_alignment(slopes, principal_directions(x, codes.shape[-1]).directions).cosines
    angles = cosines.clamp(max=1.0).acos().rad2deg()
    return PrincipalAngle(angles.nanmean(-1), angles)


def embedding(x: Float[Tensor, "n 2"], codes: Float[Tensor, "... n 2"]) -> Embedding:
    """Measures which coordinates of the plane two latents are: those of PCA, or the given ones.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021,
        figure 1.

    Arguments:
        x: Points of the plane.
        codes: Posterior means, any leading axes (members).

    Example:
        >>> x = torch.randn(500, 2, generator=torch.Generator().manual_seed(0)) @ torch.tensor([[3.0, 2.0], [0.0, 1.0]])
        >>> found = embedding(x, -x.flip(-1))
        >>> round(found.level.item(), 3), bool(found.score < 0.95)
        (1.0, True)
    """
    points = x.double()
    principal = (points - points.mean(0)) @ principal_directions(points).directions
    return Embedding(_paired_correlation(codes, principal), _paired_correlation(codes, points))


def hue_and_orientation(
    codes: Float[Tensor, "p n z"], factors: Num[Tensor, "n k"], *, hue: int = 1, orientation: int = 5
) -> Plane:
    r"""Regresses a hue and an orientation on the polar coordinates of two latents, and on the latents themselves.

    .. math:: \eta^2(y \mid t) = \frac{\mathrm{Var}\, \mathbb E[y \mid t]}{\mathrm{Var}\, y}, \qquad
        \max_{j < k} \tfrac12 \left( \eta^2(e^{i h} \mid \arg(z_j + i z_k)) + \eta^2(o \mid |z_j + i z_k|) \right)
        \quad\text{or}\quad
        \max_{j \ne k} \tfrac12 \left( \eta^2(e^{i h} \mid z_j) + \eta^2(o \mid z_k) \right),

    with the regressor t in twenty bins of equal counts, the hue h as a point of the circle, and every latent divided by
    its standard deviation about its mean. The two latents are picked for each of the two, as the paper's are by hand.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, appendix
        C.2, figures 10 and 11: entangled models code hue as the angle and orientation as the radius.

    Arguments:
        codes: Posterior means of every member.
        factors: Factors as levels.
        hue: Column of the hue; wall hue in 3D Shapes.
        orientation: Column of the orientation.

    Example:
        >>> hue, orientation = torch.arange(1000) % 10, torch.arange(1000) // 10 % 10
        >>> angle, radius = 2 * torch.pi * hue / 10, 1.0 + orientation
        >>> polar = torch.stack((radius * angle.cos(), radius * angle.sin()), -1)
        >>> factors = torch.stack((hue, orientation), -1)
        >>> found = hue_and_orientation(polar[None], factors, hue=0, orientation=1)
        >>> round(found.polar_hue.item(), 2), round(found.polar_orientation.item(), 2), bool(found.score > 0.2)
        (0.95, 1.0, True)
    """
    levels = factors[:PLANE_POINTS, [hue, orientation]].double()
    turns = 2.0 * torch.pi * levels[:, 0] / (levels[:, 0].max() + 1.0)
    circle, line = torch.stack((turns.cos(), turns.sin()), -1), levels[:, 1:]
    found = [_plane(code, circle, line, levels[:, 0].long()) for code in codes[:, :PLANE_POINTS].double()]
    return Plane(*(torch.stack([torch.as_tensor(value) for value in column]) for column in zip(*found, strict=True)))


def change_share(change: Callable[[], Change]) -> Callable[..., Any]:
    r"""Makes a measure of how much of a change depends on the factors.

    .. math:: \frac{\mathbb E_w \|m(w) - \bar m\|^2}{\mathbb E_w \|m(w)\|^2}

    It is 0 for a change that is the same for every observation, which entangles nothing.

    Arguments:
        change: Makes the change.

    Example:
        >>> same = Change("same", 0.1, lambda tensors, factors: torch.ones(len(factors), 1, 2, 2))
        >>> measure = change_share(lambda: same)
        >>> measure.__name__, measure(torch.zeros(2, 5, 1), torch.zeros(5, 3)).tolist()
        ('change_share', [0.0, 0.0])
    """

    def measure(codes: Float[Tensor, "p n z"], factors: Num[Tensor, "n k"]) -> Float[Tensor, " p"]:
        learned = change()
        tensors = {name: tensor.to(factors.device) for name, tensor in learned.tensors.items()}
        with torch.no_grad():
            drawn = learned.pattern(tensors, factors[:CHANGE_POINTS]).double().flatten(1)
        share = (drawn - drawn.mean(0)).square().sum() / drawn.square().sum()
        return share.nan_to_num(0.0).expand(len(codes)).clone()

    measure.__name__ = "change_share"
    return measure


def _paired_correlation(codes: Float[Tensor, "... n z"], known: Float[Tensor, "n k"]) -> Float[Tensor, "..."]:
    """Mean |correlation| of latents with columns, each latent with one of its own."""
    latents, columns = (
        (part - part.mean(-2, keepdim=True)) / part.std(-2, correction=0, keepdim=True)
        for part in (codes.double(), known)
    )
    found = (latents.mT @ columns / len(columns)).abs().nan_to_num(0.0)
    pairing = torch.from_numpy(assignment(found.cpu().numpy()).columns).to(found.device)
    return found.gather(-1, pairing[..., None])[..., 0].mean(-1)


def _plane(
    codes: Float[Tensor, "n z"], circle: Float[Tensor, "n 2"], line: Float[Tensor, "n 1"], levels: Int[Tensor, " n"]
) -> tuple[Any, ...]:
    """The fields of `Plane` for one member."""
    spread = codes.std(0, correction=0)
    unit = (codes - codes.mean(0)) / torch.where(spread > 0, spread, 1.0)
    latents = unit.shape[-1]
    pairs = [(first, second) for first in range(latents) for second in range(first + 1, latents)]
    polar = {
        (first, second): (
            _explained(circle, torch.atan2(unit[:, second], unit[:, first])),
            _explained(line, torch.hypot(unit[:, first], unit[:, second])),
        )
        for first, second in pairs
    }
    hue, orientation = ([_explained(known, latent) for latent in unit.T] for known in (circle, line))
    axes = {
        (first, second): (hue[first], orientation[second])
        for first in range(latents)
        for second in range(latents)
        if first != second
    }
    around, along = (max(found, key=lambda pair, found=found: sum(found[pair])) for found in (polar, axes))
    means = [unit[levels == level, along[0]].mean() for level in range(int(levels.max()) + 1)]
    score = (sum(polar[around]) - sum(axes[along])) / 2
    return score, *polar[around], *axes[along], torch.tensor(around), torch.tensor(along), torch.stack(means)


def _explained(known: Float[Tensor, "n d"], regressor: Float[Tensor, " n"]) -> float:
    """Share of the variance of some columns that is between bins of a regressor, of equally many points each."""
    ranks = regressor.argsort(stable=True).argsort(stable=True)
    bins = torch.nn.functional.one_hot(ranks * BINS // len(ranks), BINS).to(known.dtype)
    centred = known - known.mean(0)
    between = (bins.T @ centred).square().sum(-1) / bins.sum(0).clamp_min(1.0)
    return float(between.sum() / centred.square().sum())
