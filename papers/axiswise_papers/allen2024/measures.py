"""What the studies of allen2024 measure beside the library's own measures. Member axis first, as `evaluate` has it."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch

from axiswise.analytic import ppca, sample_covariance
from axiswise.distributions import Gaussian, Likelihood
from axiswise.errors import NotDefined
from axiswise.geometry import jacobian, optimal_variance
from axiswise.numerics import assignment
from axiswise.shapes import Float, Int, Num, Tensor

ANGLE = 0.6  # radians between the sources and the latents in which the turned data have orthogonal columns
STORED = 8  # observations whose encodings are stored to compare paths of training
CURVE = torch.linspace(-3.0, 3.0, 241)  # latents at which the decoder of one latent is stored


class Principal(NamedTuple):
    """How far a linear VAE is from probabilistic PCA with R = I."""

    score: Float[Tensor, "..."]
    """Distance of the decoder's columns from ± those of PPCA, relative to each, mean over latents."""
    variances: Float[Tensor, "..."]
    """Mean |log| of posterior variances over σ²/λ."""
    lengths: Float[Tensor, "... z"]
    """Lengths of the columns, in the order of PPCA's."""


class Recovery(NamedTuple):
    """How far latents are the sources, or a rotation of them."""

    score: Float[Tensor, "..."]
    """Mean |correlation| of latents with sources z, each latent with one of its own."""
    turned: Float[Tensor, "..."]
    """The same with the rotated sources: Vᵀz of a linear mixing USVᵀ, or Rz."""
    columns: Float[Tensor, "..."]
    """Distance of the decoder's columns from ± s_i u_i, relative to s_i, mean over latents; NaN if f is not linear."""


class SideBySide(NamedTuple):
    """The deterministic ELBO of a VAE and the objective of PPCA, term by term, in nats."""

    score: Float[Tensor, "..."]
    """That of the VAE less that of PPCA."""
    vae: Float[Tensor, "... 4"]
    """Reconstruction, ½ H ⊙ Σ, prior, entropy."""
    ppca: Float[Tensor, "4"]
    """The same of PPCA with as many latents and the same noise."""
    local_law: Float[Tensor, "..."]
    """Mean |log| of posterior variances over those that the Jacobian at each point implies."""
    constant_law: Float[Tensor, "..."]
    """The same with the mean of JᵀJ over all points, as in PPCA, where it is constant."""


class Reconstructions(NamedTuple):
    """Where a VAE puts the points it is given."""

    score: Float[Tensor, "..."]
    """How many distinct reconstructions there are: groups further apart than half of what neighbouring points are."""
    to_point: Float[Tensor, "..."]
    """Root mean squared distance of reconstructions from their points."""
    to_centre: Float[Tensor, "..."]
    """From the centre of the small circle."""
    to_centroid: Float[Tensor, "..."]
    """From the centroid of all points."""
    points: Float[Tensor, "... n 2"]
    """The reconstructions."""


class Slopes(NamedTuple):
    """How steep the decoder of one latent is at codes and between them."""

    score: Float[Tensor, "..."]
    """Logarithm of the mean slope at inner codes over that half-way to their neighbours."""
    curve: Float[Tensor, "... n"]
    """E[x | z] over −3 … 3."""
    places: Float[Tensor, "... n"]
    """The codes, sorted."""


class ActiveUnits(NamedTuple):
    """How many latents carry information."""

    score: Int[Tensor, "..."]
    """Latents whose mean KL is above 0.01 nats."""
    expected: Int[Tensor, "..."]
    """Eigenvalues of the data's covariance above βσ²."""
    total: Float[Tensor, "..."]
    """KL of all latents."""


class Outputs(NamedTuple):
    """What a model does with a few observations, to see whether two models are the same."""

    score: Float[Tensor, "..."]
    """Mean squared error of reconstructions."""
    numbers: Float[Tensor, "... n"]
    """Codes, logarithms of variances and reconstructions of the first observations."""


def principal(
    x: Float[Tensor, "n x"],
    jacobians: Float[Tensor, "p n x z"],
    variance: Float[Tensor, "p n z"],
    likelihood: Likelihood,
) -> Principal:
    r"""Compares a linear decoder with :math:`U (S - \sigma^2 I)^{1/2}` of the data it was trained on.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, after equation 4.

    Example:
        >>> x = torch.tensor([[3.0, 0.0], [-3.0, 0.0], [0.0, 2.0], [0.0, -2.0]])  # variances 4.5 and 2
        >>> columns = torch.tensor([[0.0, -2.0], [1.5**0.5, 0.0]]).expand(1, 4, 2, 2)  # noise ½ taken off, -2 = -√4
        >>> variance = torch.tensor([0.25, 1 / 9]).expand(1, 4, 2)
        >>> found = principal(x, columns, variance, Gaussian(0.5**0.5))
        >>> bool(found.score < 1e-6), bool(found.variances < 1e-6)
        (True, True)
    """
    found = ppca(sample_covariance(x), jacobians.shape[-1], noise=_noise(likelihood))
    columns = jacobians.double().mean(1)
    order = _paired((found.decoder.mT @ columns).abs())
    matched = _signed(columns.gather(-1, order[:, None, :].expand_as(columns)), found.decoder)
    scale = torch.linalg.vector_norm(found.decoder, dim=-2)
    off = torch.linalg.vector_norm(matched - found.decoder, dim=-2) / scale
    spread = variance.double().log().mean(1).gather(-1, order)
    expected = found.posterior.covariance.diagonal().log()
    lengths = torch.linalg.vector_norm(matched, dim=-2)
    return Principal(off.mean(-1), (spread - expected).abs().mean(-1), lengths)


def recovery(
    x: Float[Tensor, "n x"],
    factors: Num[Tensor, "n k"],
    codes: Float[Tensor, "p n z"],
    jacobians: Float[Tensor, "p n x z"],
) -> Recovery:
    r"""Compares latents with sources z and with Vᵀz, and columns with ± s_i u_i, of a linear mixing W = USVᵀ.

    W is taken from the data, by regression of x on z.

    References:
        Allen 2024, corollary 1.1 and remark 3.
    """
    z = factors.double()
    # The normal equations: the rounding of `torch.linalg.lstsq` depends on the memory address of its workspace, and the
    # same measurement would not give the same bits twice. The sources are far from collinear, so nothing is lost.
    mixing = torch.linalg.solve(z.mT @ z, z.mT @ x.double()).mT
    left, values, right = torch.linalg.svd(mixing, full_matrices=False)
    target = left * values
    columns = jacobians.double().mean(1)
    order = _paired((target.mT @ columns).abs() / values[:, None])
    matched = _signed(columns.gather(-1, order[:, None, :].expand_as(columns)), target)
    off = (torch.linalg.vector_norm(matched - target, dim=-2) / values).mean(-1)
    return Recovery(_correlation(codes, z), _correlation(codes, z @ right.mT), off)


def turned_recovery(factors: Num[Tensor, "n 2"], codes: Float[Tensor, "p n 2"]) -> Recovery:
    """Compares two latents with the sources z and with Rz, R the rotation by `ANGLE`.

    References:
        Allen 2024, corollary 2.1 and section 3.2.3.

    Example:
        >>> z = torch.randn(500, 2, generator=torch.Generator().manual_seed(0)).double()
        >>> found = turned_recovery(z, (z @ rotation().T)[None, :, [1, 0]])
        >>> round(found.turned.item(), 4), bool(found.score < 0.9)
        (1.0, True)
    """
    z = factors.double()
    missing = codes.new_full((len(codes),), math.nan)
    return Recovery(_correlation(codes, z), _correlation(codes, z @ rotation().to(z).mT), missing)


def rotation() -> Float[Tensor, "2 2"]:
    """The rotation R by `ANGLE`."""
    cosine, sine = math.cos(ANGLE), math.sin(ANGLE)
    return torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)


def side_by_side(
    x: Float[Tensor, "n x"],
    codes: Float[Tensor, "p n z"],
    variance: Float[Tensor, "p n z"],
    jacobians: Float[Tensor, "p n x z"],
    decode: Callable[[Tensor], Tensor],
    likelihood: Likelihood,
) -> SideBySide:
    r"""Computes the deterministic ELBO of Gaussian VAEs and of PPCA on the same data, both with their entropies.

    .. math:: -\tfrac{1}{2\sigma^2} \lVert x - d(e(x)) \rVert^2 - \tfrac{1}{2\sigma^2} (D^\top D) \odot \Sigma
        - \tfrac12 \left(\lVert e(x) \rVert^2 + \mathrm{tr}\,\Sigma\right) + \tfrac12 \left(\log|\Sigma| + d\right)

    up to :math:`-\tfrac N2 \log 2\pi\sigma^2`, which both share. The paper leaves the entropy of PPCA out.

    References:
        Allen 2024, section 3.1.
    """
    noise = _noise(likelihood)
    x = x[: codes.shape[1]].double()
    products = jacobians.double().mT @ jacobians.double()
    with torch.no_grad():
        off = x - decode(codes).double()
    vae = _terms(off, codes.double(), torch.diag_embed(variance.double()), products, noise)
    best = ppca(sample_covariance(x), codes.shape[-1], noise=noise)
    centred = x - x.mean(0)
    means = centred @ best.posterior.weights.mT
    size = (len(x), codes.shape[-1], codes.shape[-1])
    linear = _terms(
        centred - means @ best.decoder.mT,
        means,
        best.posterior.covariance.expand(size),
        (best.decoder.mT @ best.decoder).expand(size),
        noise,
    )
    information = products / noise
    constant = information.mean(1, keepdim=True).expand_as(information)
    local, overall = (
        (variance.double() / optimal_variance(precision, 1.0)).log().abs().mean((-2, -1))
        for precision in (information, constant)
    )
    return SideBySide(vae.sum(-1) - linear.sum(-1), vae, linear, local, overall)


def reconstructions(
    x: Float[Tensor, "n 2"],
    factors: Num[Tensor, "n 2"],
    codes: Float[Tensor, "p n z"],
    decode: Callable[[Tensor], Tensor],
) -> Reconstructions:
    """Counts distinct reconstructions of points on circles, and measures how far they are from points and centres.

    References:
        Allen 2024, figure 2.
    """
    with torch.no_grad():
        decoded = decode(codes).double()
    x = x.double()
    own = torch.nn.functional.one_hot(factors[:, 0].long()).double()
    centres = own @ ((own.mT @ x) / own.sum(0)[:, None])
    apart = torch.cdist(x, x) + torch.diag(torch.full_like(x[:, 0], math.inf))
    count = torch.stack([_groups(points, 0.5 * apart.min()) for points in decoded])
    point, centre, centroid = (
        (decoded - target).square().sum(-1).mean(-1).sqrt() for target in (x, centres, x.mean(0, keepdim=True))
    )
    return Reconstructions(count, point, centre, centroid, decoded)


def slopes(codes: Float[Tensor, "p n 1"], decode: Callable[[Tensor], Tensor]) -> Slopes:
    r"""Compares how steep a decoder of one latent and one value is at the codes of its data and half-way between them.

    .. math:: \log \frac{\sum_i |f'(\mu_i)|}{\sum_i \tfrac12 \left( |f'(\tfrac{\mu_{i-1} + \mu_i}{2})|
        + |f'(\tfrac{\mu_i + \mu_{i+1}}{2})| \right)}

    over the codes :math:`\mu_i` in order, without the first and the last: beyond these a decoder levels off anyway, so
    that they would make any sigmoid look like a plateau.

    References:
        Allen 2024, section 4, "Optimal S".

    Example:
        >>> codes = torch.linspace(-2.0, 2.0, 5)[None, :, None]
        >>> round(slopes(codes, lambda z: z - 0.1 * (2 * torch.pi * z).sin()).score.item(), 3)  # 1 − 0.63 at codes
        -1.477
    """
    places = codes.sort(dim=1).values
    between = 0.5 * (places[:, 1:] + places[:, :-1])
    steep, halfway = (jacobian(decode, points).double().abs()[..., 0, 0] for points in (places, between))
    score = (steep[:, 1:-1].mean(1) / (0.5 * (halfway[:, 1:] + halfway[:, :-1])).mean(1)).log()
    line = CURVE.to(codes)[None, :, None].expand(len(codes), -1, 1)
    with torch.no_grad():
        curve = decode(line)[..., 0]
    return Slopes(score, curve, places[..., 0])


def active_units(
    x: Float[Tensor, "n x"], kl: Float[Tensor, "p n z"], likelihood: Likelihood, beta: Float[Tensor, " p"]
) -> ActiveUnits:
    """Counts latents that carry information, and how many a linear VAE should have.

    References:
        Allen 2024, corollary 3.1; Lucas et al., *Don't blame the ELBO!*, NeurIPS 2019.
    """
    values = torch.linalg.eigvalsh(sample_covariance(x)).flip(-1)[: kl.shape[-1]]
    mean = kl.double().mean(1)
    expected = (values > beta.double()[:, None].to(values) * _noise(likelihood)).sum(-1)
    return ActiveUnits((mean > 0.01).sum(-1), expected, mean.sum(-1))


def outputs(
    x: Float[Tensor, "n x"],
    codes: Float[Tensor, "p n z"],
    variance: Float[Tensor, "p n z"],
    decode: Callable[[Tensor], Tensor],
) -> Outputs:
    """Stores what models do with a few observations: two that do the same there took the same path.

    References:
        Allen 2024, theorem 3.
    """
    with torch.no_grad():
        decoded = decode(codes)
    parts = [part[:, :STORED].flatten(1) for part in (codes, variance.log(), decoded)]
    return Outputs((decoded - x).square().mean((1, 2)), torch.cat(parts, -1))


def _terms(
    off: Float[Tensor, "... n x"],
    codes: Float[Tensor, "... n z"],
    covariance: Float[Tensor, "... n z z"],
    products: Float[Tensor, "... n z z"],
    noise: float,
) -> Float[Tensor, "... 4"]:
    """The four terms of the objective, means over the observations."""
    trace = covariance.diagonal(dim1=-2, dim2=-1).sum(-1)
    parts = (
        -off.square().sum(-1) / (2.0 * noise),
        -(products * covariance).sum((-2, -1)) / (2.0 * noise),
        -0.5 * (codes.square().sum(-1) + trace),
        0.5 * (torch.linalg.slogdet(covariance).logabsdet + codes.shape[-1]),
    )
    return torch.stack([part.mean(-1) for part in parts], -1)


def _noise(likelihood: Likelihood) -> float:
    if not isinstance(likelihood, Gaussian):
        raise NotDefined(f"This needs a Gaussian likelihood of fixed scale. Got {type(likelihood).__name__}.")
    return likelihood.scale**2


def _paired(likeness: Float[Tensor, "p k z"]) -> Int[Tensor, "p k"]:
    """Which latent belongs to each target, each to one of its own."""
    return torch.from_numpy(assignment(likeness.cpu().numpy()).columns).to(likeness.device)


def _signed(columns: Float[Tensor, "p x z"], target: Float[Tensor, "x z"]) -> Float[Tensor, "p x z"]:
    """Columns with the signs that are nearer to the target."""
    return columns * torch.where((columns * target).sum(-2, keepdim=True) < 0.0, -1.0, 1.0)


def _correlation(codes: Float[Tensor, "p n z"], sources: Float[Tensor, "n k"]) -> Float[Tensor, " p"]:
    """Mean |correlation| of the best pairing."""

    def unit(values: Tensor) -> Tensor:
        centred = values - values.mean(-2, keepdim=True)
        return centred / torch.linalg.vector_norm(centred, dim=-2, keepdim=True).clamp(min=1e-30)

    found = (unit(sources).mT @ unit(codes.double())).abs()
    return found.gather(-1, _paired(found)[..., None])[..., 0].mean(-1)


def _groups(points: Float[Tensor, "n 2"], reach: Float[Tensor, ""]) -> Int[Tensor, ""]:
    """How many groups there are whose points are linked by steps shorter than `reach`."""
    linked = (torch.cdist(points, points) < reach).double()
    for _ in range(max(1, math.ceil(math.log2(len(points))))):
        linked = ((linked @ linked) > 0.0).double()
    return linked.unique(dim=0).shape[0] * torch.ones((), dtype=torch.int64)
