"""Exact claims of zietlow2021: a function for each, which yields what was compared and its deviation."""

import math
from collections.abc import Iterator

import numpy as np
import scipy.optimize
import torch

from axiswise.analytic import (
    LinearGaussian,
    beta_vae_optimum,
    direction_alignment,
    latent_scale,
    principal_directions,
    sample_covariance,
    signed_permutations,
    stochastic_loss,
)
from axiswise.geometry import latent_order
from axiswise_papers._claim import Finding, true, within
from axiswise_papers._numbers import largest, normals, orthonormal
from axiswise_papers.zietlow2021.sprites import dsprites_change

ROTATIONS = range(1, 30)  # seeds of decoders that are turned at random


def thm1() -> Iterator[Finding]:
    r"""Of all decoders that give fixed reconstructions, that of the principal directions lets the least noise through.

    .. math:: \min_{\sigma:\, -\sum_j \log \sigma_j^2 = b} \mathbb E \|M \varepsilon\|^2
        \ge d\, e^{-b/d} (\det C)^{1/d},
        \qquad \mathbb E \mu_j^2 + \mathbb E \sigma_j^2 = 1,

    with equality if and only if the columns of M are principal directions, for distinct eigenvalues of C. As printed
    the problem (6–7) leaves the scale of the latents open, and its infimum is 0; the proof fixes it by
    :math:`\mathbb E \mu_j^2 = 1`. Lemma 1, from which that follows, is printed without n and upside down.
    """
    yield from _least_noise()
    yield from _equal_eigenvalues()
    yield from _scale()
    yield from _law()
    yield from _linear_vae()


def order() -> Iterator[Finding]:
    r"""Latents ranked by ascending mean variance come in the order of what they explain.

    .. math:: k^{(j)} = \arg\min_{l \notin \{k^{(0)}, \dots, k^{(j-1)}\}} \langle \sigma_l^2 \rangle

    Tried on optimal linear VAEs, whose latents are the principal components: shuffled, they must come back in the order
    of the singular values, which know nothing of variances of posteriors.
    """
    x = LinearGaussian(2.0 * normals(9, 5), 0.3).sample(400).x
    centred = x - x.mean(0)
    vae = beta_vae_optimum(sample_covariance(x), 5, 0.5, 0.3)
    directions = np.linalg.svd(centred.numpy(), full_matrices=False)[2][:5]
    for seed in range(3):
        shuffle = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
        encoder, variances = vae.encoder[shuffle], vae.variances[shuffle]
        found = latent_order(variances.expand(len(x), 5)).order
        codes = (centred @ encoder.T).take_along_dim(found[None], -1)
        related = np.abs(np.corrcoef(codes.numpy().T, directions @ centred.numpy().T)[:5, 5:])
        yield within(f"shuffle {seed}: 1 − |corr| of ranked codes and principal components", _from_one(related), 1e-10)
        yield true(f"shuffle {seed}: reversed, they are others", _from_one(related[::-1]) > 0.5)


def fig4() -> Iterator[Finding]:
    r"""The change learned for dSprites, before it is multiplied by ε: at most 1, and not one picture.

    .. math:: \|m(w)\|_\infty \le 1
    """
    change, space = dsprites_change(), (3, 6, 40, 32, 32)
    grid = torch.stack(
        [torch.randint(size, (256,), generator=torch.Generator().manual_seed(size)) for size in space], -1
    )
    grid[:, 4] = grid[:, 4].roll(1)  # the two positions have as many levels
    with torch.no_grad():
        drawn = change.pattern(change.tensors, grid)
    yield within("dSprites: largest |m| less 1", largest(drawn) - 1.0, 1e-6)
    share = (drawn - drawn.mean(0)).square().sum() / drawn.square().sum()
    yield true("dSprites: a share above .1 of the change differs between images", bool(share > 0.1))


def _least_noise() -> Iterator[Finding]:
    values, budget, turn = torch.tensor([4.0, 1.0, 0.25]).double(), 6.0, orthonormal(3, 3)
    covariance = turn @ torch.diag(values) @ turn.T
    bound = 3 * math.exp(-budget / 3) * values.prod().item() ** (1 / 3)
    along = [stochastic_loss(turn @ renaming, covariance, budget).item() for renaming in signed_permutations(3)]
    yield within("noise of principal directions, in any order and sign, less the bound", _off(along, bound), 1e-13)
    other = [stochastic_loss(orthonormal(3, 3, seed=seed), covariance, budget).item() for seed in ROTATIONS]
    yield true("every other U with V = I (Fig. 6) costs over 1 % more", min(other) > 1.01 * bound)
    turned = [
        stochastic_loss(turn @ torch.diag(values.sqrt()) @ orthonormal(3, 3, seed=seed), covariance, budget).item()
        for seed in ROTATIONS
    ]
    yield true("the right U with V no signed permutation costs over 0.1 % more", min(turned) > 1.001 * bound)
    cost = torch.func.grad_and_value(lambda flat: stochastic_loss(flat.reshape(3, 3), covariance, budget).log())

    def value_and_slope(flat: np.ndarray) -> tuple[float, np.ndarray]:
        slope, value = cost(torch.from_numpy(flat))
        return value.item(), slope.numpy()

    for seed in range(3):
        start = normals(9, seed=seed).numpy()
        found = scipy.optimize.minimize(value_and_slope, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        yield within(
            f"descent {seed}: excess over the bound, relative", abs(math.exp(found.fun) - bound) / bound, 1e-12
        )
        aligned = direction_alignment(found.x.reshape(3, 3), turn)
        yield within(f"descent {seed}: 1 − |cos| of columns and principal directions", 1 - aligned.score.item(), 1e-8)


def _equal_eigenvalues() -> Iterator[Finding]:
    values, block = torch.tensor([2.0, 2.0, 0.5]).double(), torch.eye(3, dtype=torch.float64)
    block[:2, :2] = orthonormal(2, 2)
    free, bound = (stochastic_loss(matrix, torch.diag(values)) for matrix in (block, torch.eye(3).double()))
    yield within("a rotation among equal eigenvalues costs", abs(free - bound).item(), 1e-14)


def _scale() -> Iterator[Finding]:
    """Lemma 1: c = √(n / Σ x²)."""
    x, y = 3.0 * normals(40, 1), normals(40, 1, seed=1).exp()

    def divergence(c: float) -> float:
        return float((c**2 * x**2 - (c**2 * y).log()).sum())

    best = latent_scale(x).item()
    around = [divergence(best * (1 + step)) for step in (-1e-4, 0.0, 1e-4)]
    yield true("Lemma 1: the divergence is least at c = √(n / Σ x²)", around[1] < min(around[0], around[2]))
    yield within("Lemma 1: c less √(n / Σ x²)", abs(best - math.sqrt(40 / float(x.square().sum()))), 1e-14)


def _law() -> Iterator[Finding]:
    """With the whole divergence: E μ² + E σ² = 1 for every latent, whether it is active or not."""
    model = LinearGaussian(2.0 * normals(7, 3), 0.6)
    for beta in (0.2, 1.0, 4.0, 1e3):
        vae = beta_vae_optimum(model.covariance, 3, beta, 0.6)
        moments = (vae.encoder @ model.covariance @ vae.encoder.T).diagonal() + vae.variances
        yield within(f"E μ² + E σ² − 1 at the optimum of β = {beta:g}", largest(moments - 1), 1e-13)
    sample = model.sample(500).x
    vae = beta_vae_optimum(sample_covariance(sample), 3, 0.5, 0.6)
    codes = (sample - sample.mean(0)) @ vae.encoder.T
    scale = latent_scale(codes, vae.variances.expand_as(codes))
    yield within("scale that the divergence implies at the optimum, less 1", largest(scale - 1), 1e-13)


def _linear_vae() -> Iterator[Finding]:
    x = LinearGaussian(2.0 * normals(7, 3), 0.6).sample(500).x
    vae = beta_vae_optimum(sample_covariance(x), 3, 0.5, 0.6)
    aligned = direction_alignment(vae.decoder, principal_directions(x).directions)
    yield within("linear β-VAE: 1 − |cos| of columns and principal directions", largest(1 - aligned.cosines), 1e-13)
    yield true("linear β-VAE: columns in the order of their variances", aligned.direction.tolist() == [0, 1, 2])


def _from_one(related: np.ndarray) -> float:
    """How far the diagonal is from 1, at most."""
    return float(np.abs(1.0 - np.diag(related)).max())


def _off(found: list[float], bound: float) -> float:
    return max(abs(value - bound) for value in found)
