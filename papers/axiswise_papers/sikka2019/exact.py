"""Exact claims of sikka2019: a function for each, which yields what was compared and its deviation.

All are about linear-Gaussian data and linear VAEs, where everything the paper names has a closed form, except
Proposition 4, which is about any objective of two terms.
"""

import math
from collections.abc import Iterator

import numpy as np
import scipy.optimize
import torch
from torch.distributions import MultivariateNormal, Normal, kl_divergence

from axiswise.analytic import (
    LinearGaussian,
    LinearTerms,
    LinearVAE,
    beta_objective,
    beta_vae_optimum,
    fixed_decoder_optimum,
    linear_posterior,
    signed_permutations,
)
from axiswise.analytic import terms as terms_of
from axiswise.distributions import DiagonalParameters, Gaussian, StandardNormal
from axiswise.shapes import Float, Tensor
from axiswise_papers._claim import Finding, true, within
from axiswise_papers._numbers import largest, normals
from axiswise_papers.sikka2019.measures import deep_terms, mixture_posterior, searched_tie

BETAS = torch.logspace(-1, 2, 301, dtype=torch.float64)
DRAWN = 100_000  # observations that closed forms are compared with
DRAWS = 1000  # samples of each posterior (appendix C)


def figure_1_problem() -> LinearGaussian:
    """The data of Figure 1: N = 128, k = 2, A_ij = ½ (1 + δ_ij).

    Example:
        >>> [round(value, 6) for value in torch.linalg.eigvalsh(figure_1_problem().covariance).tolist()[-3:]]
        [1.0, 1.25, 66.25]
    """
    return LinearGaussian(0.5 + 0.5 * torch.eye(128, 2, dtype=torch.float64))


def problems() -> dict[str, LinearGaussian]:
    """The data that the propositions are checked on.

    Example:
        >>> {name: tuple(problem.mixing.shape) for name, problem in problems().items()}
        {'figure 1': (128, 2), 'random': (9, 4), 'noisy': (6, 3)}
    """
    return {
        "figure 1": figure_1_problem(),
        "random": LinearGaussian(normals(9, 4)),
        "noisy": LinearGaussian(2.0 * normals(6, 3, seed=1), 0.4),
    }


def optima(problem: LinearGaussian, betas: Float[Tensor, "..."] = BETAS) -> LinearTerms:
    """Every term at the optimum of each β.

    Example:
        >>> optima(figure_1_problem(), torch.tensor([1.0, 100.0])).kl.tolist()[1]
        0.0
    """
    latents = problem.mixing.shape[-1]
    return terms_of(problem, beta_vae_optimum(problem.covariance, latents, betas, problem.noise), betas)


def some_vae(observed: int, latents: int) -> LinearVAE:
    """A linear VAE that is not at an optimum, with all its parameters, at σ² = 1.

    Example:
        >>> some_vae(4, 2).decoder.shape
        torch.Size([4, 2])
    """
    return LinearVAE(
        normals(observed, latents, seed=11),
        0.3 * normals(latents, observed, seed=12),
        (0.4 * normals(latents, seed=13)).exp(),
        decoder_bias=normals(observed, seed=14),
        encoder_bias=normals(latents, seed=15),
        variance_weights=0.1 * normals(latents, observed, seed=16),
    )


def terms() -> Iterator[Finding]:
    r"""All seven terms in closed form against sampling, at a linear VAE that is not at an optimum, and the reverse.

    .. math:: \mathcal L = \mathbb E_q \log p(x|z) - \beta\, \mathrm{KL}(q \| p), \quad
        \mathrm{MIE} = \mathbb E\, \mathrm{KL}(q \| p_\theta(z|x)), \quad
        \mathrm{TIE} = \mathbb E\, \mathrm{KL}(q \| p_{\text{g-t}}(z|x))

    A hundred thousand observations, at five standard errors (equations 2, 3, 5 and 6, Table I). What deep models are
    measured by, a thousand samples of each posterior (appendix C), is then compared with these closed forms.
    """
    model, vae, beta = LinearGaussian(normals(4, 2)), some_vae(4, 2), 3.0
    found = terms_of(model, vae, beta)
    x = model.sample(DRAWN, seed=1).x
    assert vae.decoder_bias is not None  # `some_vae` gives every parameter
    assert vae.variance_weights is not None
    assert vae.encoder_bias is not None
    mean, variance = x @ vae.encoder.T + vae.encoder_bias, (x @ vae.variance_weights.T).exp() * vae.variances
    q = MultivariateNormal(mean, torch.diag_embed(variance))
    prior = MultivariateNormal(torch.zeros(2, dtype=torch.float64), _eye(2))
    law = linear_posterior(vae.decoder, 1.0)
    model_posterior = MultivariateNormal((x - vae.decoder_bias) @ law.weights.T, law.covariance)
    true_posterior = MultivariateNormal(x @ model.posterior.weights.T, model.posterior.covariance)
    output = (mean + variance.sqrt() * normals(DRAWN, 2, seed=2)) @ vae.decoder.T + vae.decoder_bias
    drawn = {
        "reconstruction": Normal(output, 1.0).log_prob(x).sum(-1),
        "kl": kl_divergence(q, prior),
        "log_likelihood": MultivariateNormal(vae.decoder_bias, vae.decoder @ vae.decoder.T + _eye(4)).log_prob(x),
        "mie": kl_divergence(q, model_posterior),
        "tie_branches": kl_divergence(q, true_posterior),
    }
    drawn["elbo"] = drawn["reconstruction"] - drawn["kl"]
    drawn["objective"] = drawn["reconstruction"] - beta * drawn["kl"]
    for name, values in drawn.items():
        exact = getattr(found, name)
        exact = exact[0] if name == "tie_branches" else exact  # the latents as they are
        yield within(f"{name}, in standard errors", abs(values.mean() - exact) / (values.std() / math.sqrt(DRAWN)), 5.0)
    yield from _deep_measures()


def _deep_measures() -> Iterator[Finding]:
    """The measures of deep models, on a linear one and data of exactly the law's moments, against the closed forms."""
    model, some, beta = LinearGaussian(normals(4, 2)), some_vae(4, 2), 3.0
    vae = LinearVAE(some.decoder, some.encoder, some.variances, decoder_bias=some.decoder_bias)
    found, x = terms_of(model, vae, beta), sample_of_moments(model, 200)
    assert vae.decoder_bias is not None
    mean = (x @ vae.encoder.T)[None]
    q = DiagonalParameters(mean, vae.variances.log().expand_as(mean))
    bias, truth = vae.decoder_bias, mixture_posterior(model.mixing)
    measure, weight = deep_terms(truth, DRAWS), torch.tensor([beta], dtype=torch.float64)
    ours = measure(x, q, lambda z: z @ vae.decoder.T + bias, Gaussian(), StandardNormal(), weight)
    # The variance of −½‖r − Mε‖² over ε is ‖Mᵀr‖² + ½ tr (MᵀM)², with the residual r and M = D S^½.
    matrix = vae.decoder * vae.variances.sqrt()
    residual = x - mean[0] @ vae.decoder.T - bias
    variance = (residual @ matrix).square().sum(-1).mean() + 0.5 * (matrix.T @ matrix).square().sum()
    error = (variance / (DRAWS * len(x))).sqrt()
    for name, value, exact in (
        ("reconstruction", ours.reconstruction, found.reconstruction),
        ("ELBO", ours.elbo, found.elbo),
        ("objective", ours.score, found.objective),
    ):
        yield within(f"deep measure: {name}, in standard errors of {DRAWS:,} draws", abs(value - exact) / error, 5.0)
    yield within("deep measure: KL less the closed form", abs(ours.kl.item() - found.kl), 1e-12)
    yield within("deep measure: least TIE less eq 25's over all branches", abs(ours.tie.item() - found.tie), 1e-10)
    searched = searched_tie(x, q, truth).score.item()
    yield within("deep measure: TIE by search less that by enumeration", abs(searched - found.tie), 1e-10)


def sample_of_moments(problem: LinearGaussian, count: int) -> Float[Tensor, "n x"]:
    """Observations with mean 0 and exactly the covariance of the law, on which all that a linear VAE does depends.

    Example:
        >>> x = sample_of_moments(figure_1_problem(), 160)
        >>> bool((x.T @ x / 160 - figure_1_problem().covariance).abs().max() < 1e-12)
        True
    """
    drawn = problem.sample(count, seed=0).x
    basis = torch.linalg.qr(drawn - drawn.mean(0)).Q
    return count**0.5 * basis @ torch.linalg.cholesky(problem.covariance).T


def prop1() -> Iterator[Finding]:
    r"""Proposition 1: the best objective never rises with β, and its slope is minus the divergence there.

    .. math:: \frac{d \mathcal L^*}{d\beta} = -\mathrm{KL}(q_{\phi^*}(z|x) \| p(z)) \le 0

    The objective is eq 6. Eq 21 leaves out constants, as appendix B-A says; one of them, βk/2, belongs to this slope.
    """
    for name, problem in problems().items():
        betas = BETAS.clone().requires_grad_()
        found = optima(problem, betas)
        (slope,) = torch.autograd.grad(found.objective.sum(), betas)
        kl, objective = found.kl.detach(), found.objective.detach()
        yield within(f"{name}: dL*/dβ + KL, as a share of the largest KL", (slope + kl).abs().max() / kl.max(), 1e-12)
        yield within(f"{name}: largest rise of L* over β", objective.diff().max(), 1e-12)
        yield true(f"{name}: L* falls from the smallest β to the largest", bool(objective[0] > objective[-1]))


def prop2() -> Iterator[Finding]:
    """Proposition 2: neither the divergence nor the reconstruction objective at the optimum ever rises with β."""
    for name, problem in problems().items():
        found = optima(problem)
        yield within(f"{name}: largest rise of KL over β", found.kl.diff().max(), 1e-12)
        yield within(f"{name}: largest rise of the reconstruction over β", found.reconstruction.diff().max(), 1e-11)


def prop3() -> Iterator[Finding]:
    """Proposition 3: the ELBO at the optimum is largest at β = 1, and falls to both sides."""
    betas = torch.cat([BETAS, torch.linspace(0.9, 1.1, 401, dtype=torch.float64)]).sort().values
    for name, problem in problems().items():
        found = optima(problem, betas)
        change = found.elbo.diff()
        yield within(f"{name}: distance of the best β from 1", abs(betas[found.elbo.argmax()] - 1.0), 1e-12)
        yield within(f"{name}: largest fall below β = 1", -change[betas[1:] <= 1].min(), 1e-11)
        yield within(f"{name}: largest rise above β = 1", change[betas[1:] > 1].max(), 1e-11)


def prop4() -> Iterator[Finding]:
    """Proposition 4: for any A(κ) − β B(κ), B at the optimum never rises with β.

    Twenty objectives of a thousand arbitrary κ each: none is smooth, concave or of one sign.
    """
    rises, distinct = [], []
    for seed in range(20):
        draw = np.random.default_rng(seed)
        first, second = draw.standard_t(3, size=1000), draw.normal(size=1000)
        best = (first[:, None] - np.linspace(-3, 10, 500) * second[:, None]).argmax(0)
        rises.append(float(np.diff(second[best]).max()))
        distinct.append(len(set(best.tolist())))
    yield true("the optimum moves with β, in each of 20 objectives", min(distinct) >= 2)
    yield within("largest rise of B over β, of 20 objectives", max(rises), 0.0)


def loglik() -> Iterator[Finding]:
    r"""Equations 4 and 16: the log-likelihood exceeds the ELBO by the model inference error.

    .. math:: \mathbb E \log p_\theta(x) - \mathrm{MIE} = \mathrm{ELBO}

    In the paper the log-likelihood at the optimum falls monotonically with β. It rises up to β = 1, where the decoder
    is the truth and the log-likelihood minus the entropy of the data, and falls from there on.
    """
    problem = figure_1_problem()
    found = optima(problem)
    likelihood, below = found.log_likelihood, BETAS[1:] <= 1
    yield within("E log p − MIE − ELBO", (likelihood - found.mie - found.elbo).abs().max(), 1e-11)
    off = terms_of(problem, some_vae(128, 2))
    gap = abs(off.log_likelihood - off.mie - off.elbo) / abs(off.elbo)
    yield within("the same off the optimum, as a share of the ELBO", gap, 1e-9)
    yield within("distance of the likeliest β from 1", abs(BETAS[likelihood.argmax()] - 1.0), 1e-12)
    yield within("largest fall of the log-likelihood below β = 1", -likelihood.diff()[below].min(), 1e-11)
    yield within("largest rise of the log-likelihood above β = 1", likelihood.diff()[~below].max(), 1e-11)
    yield true(
        f"the log-likelihood is less at β = 0.1 ({likelihood[0]:.3f}) than at 1 ({likelihood.max():.3f})",
        bool(likelihood[0] < likelihood.max() - 0.05),
        published="falls monotonically (section IV-B)",
    )
    truth = -0.5 * (128 * math.log(2 * math.pi) + torch.logdet(problem.covariance) + 128)
    yield within("its peak plus the entropy of the data", abs(likelihood.max() - truth), 1e-11)


def fixed_decoder() -> Iterator[Finding]:
    """Section IV-A: with a fixed decoder, the model inference error is least at β = 1.

    "Best at learning the true latents" needs the true decoder: with D = A the true inference error is least at 1, too,
    with D = ½ A at β = 10.13 and with D = 2 A at 3.03.
    """
    problem, betas = figure_1_problem(), torch.logspace(-0.5, 0.5, 201, dtype=torch.float64)
    slanted = problem.mixing @ torch.tensor([[1.0, 0.7], [0.0, 1.0]], dtype=torch.float64)
    for name, decoder in (("D = A", problem.mixing), ("D random", normals(128, 2)), ("D slanted", slanted)):
        found = terms_of(problem, fixed_decoder_optimum(decoder, betas), betas)
        spread = found.log_likelihood.max() - found.log_likelihood.min()
        yield true(f"{name}: columns are not orthogonal, so that MIE > 0", bool(found.mie.min() > 0.001))
        yield within(f"{name}: distance of the β of least MIE from 1", abs(betas[found.mie.argmin()] - 1.0), 1e-12)
        yield within(f"{name}: range of the log-likelihood over β", spread, 1e-10)
    least = betas[terms_of(problem, fixed_decoder_optimum(problem.mixing, betas)).tie.argmin()]
    yield within("D = A: distance of the β of least TIE from 1", abs(least - 1.0), 1e-12)
    yield within("D = A: the same by minimisation", abs(least_true_error(problem, 1.0) - 1.0), 1e-5)
    for scale, expected in ((0.5, 10.133), (2.0, 3.031)):
        off = abs(least_true_error(problem, scale) - expected)
        yield within(f"D = {scale:g} A: β of least TIE less {expected}", off, 5e-4, published="1 (section IV-A)")


def least_true_error(problem: LinearGaussian, scale: float) -> float:
    """The β of least true inference error where the decoder is the true mixing times a number.

    Example:
        >>> round(least_true_error(figure_1_problem(), 2.0), 2)
        3.03
    """

    def error(beta: float) -> float:
        return terms_of(problem, fixed_decoder_optimum(scale * problem.mixing, beta)).tie.item()

    found = scipy.optimize.minimize_scalar(error, bounds=(0.05, 50), method="bounded", options={"xatol": 1e-9})
    return float(found.x)  # pyright: ignore[reportAttributeAccessIssue] (a dictionary with attributes)


def linear() -> Iterator[Finding]:
    r"""Section IV-B and appendix B: the linear model, its objective, its optimum and its posteriors.

    .. math:: D = U_k (\Lambda_k - \beta I)_+^{1/2}, \quad W^\mu = (D^\top D + \beta I)^{-1} D^\top, \quad
        e^{b^\sigma} = \frac{\beta}{\mathrm{diag}\, D^\top D + \beta}

    Eq 21 drops :math:`\beta k / 2 - \tfrac N2 \log 2\pi`. Eq 23 holds at any subset of eigenvectors, of which only the
    leading ones are the maximum. As printed, eq 38 lacks a half, eq 47 has C for Σ, and eqs 59 and 61 have p(x|z) and
    :math:`D D^\top + I_N` for p(z|x) and :math:`D^\top D + I_k`.
    """
    yield from _equation_21()
    yield from _conditions()
    yield from _gradients()
    yield from _posteriors()
    yield from _renamed()


def _equation_21() -> Iterator[Finding]:
    """The objective as printed, entry by entry, plus its constants."""
    model, vae, beta = LinearGaussian(normals(5, 2)), some_vae(5, 2), 1.7
    expected = equation_21(model.covariance, vae, beta) + beta * 2 / 2 - 5 / 2 * math.log(2 * math.pi)
    yield within("objective less eq 21 and its constants", abs(terms_of(model, vae, beta).objective - expected), 1e-12)


def equation_21(covariance: Float[Tensor, "x x"], vae: LinearVAE, beta: float | Float[Tensor, ""]) -> Float[Tensor, ""]:
    """The β-objective of a linear VAE as eq 21 prints it, differentiable in everything.

    Example:
        >>> vae = LinearVAE(torch.zeros(2, 1), torch.zeros(1, 2), torch.ones(1))
        >>> equation_21(torch.eye(2), vae, 3.0).item()
        -2.5
    """
    D, W, size = vae.decoder, vae.encoder, len(covariance)
    V = torch.zeros_like(W) if vae.variance_weights is None else vae.variance_weights
    shift = torch.zeros_like(W[:, 0]) if vae.encoder_bias is None else vae.encoder_bias
    bias = torch.zeros_like(D[:, 0]) if vae.decoder_bias is None else vae.decoder_bias
    off = D @ W - torch.eye(size, dtype=D.dtype)
    level = vae.variances.log()
    variances = (0.5 * (V @ covariance @ V.T).diagonal() + level).exp()
    printed = torch.trace(off @ covariance @ off.T) + beta * torch.trace(W @ covariance @ W.T)
    printed = printed + (((D.T @ D).diagonal() + beta) * variances).sum()
    printed = printed + (D @ shift + bias).square().sum() + beta * shift.square().sum()
    return -0.5 * (printed - beta * level.sum())


def _conditions() -> Iterator[Finding]:
    """Equations 22 and 23 hold at the closed form, and at any other choice of eigenvectors."""
    model, beta = LinearGaussian(normals(6, 3)), 0.8
    values, vectors = torch.linalg.eigh(model.covariance)
    worst, objectives = 0.0, []
    for indices in ([5, 4, 3], [5, 4, 0], [5, 3, 1], [0, 1, 2]):
        vae = fixed_decoder_optimum(vectors[:, indices] * (values[indices] - beta).clamp(min=0).sqrt(), beta)
        D, W = vae.decoder, vae.encoder
        off = D @ W - _eye(6)
        first = (D.T @ off + beta * W) @ model.covariance
        second = off @ model.covariance @ W.T + D * vae.variances
        fourth = ((D.T @ D).diagonal() + beta) * vae.variances - beta
        worst = max(worst, *(float(part.abs().max()) for part in (first, second, fourth)))
        objectives.append(beta_objective(model.covariance, vae, beta).item())
    best = beta_objective(model.covariance, beta_vae_optimum(model.covariance, 3, beta), beta)
    yield within("left sides of eq 23 at four choices of eigenvectors", worst, 1e-13)
    yield true(
        f"the leading eigenvectors are best, by {objectives[0] - max(objectives[1:]):.3g} nats: maximise, do not "
        "root-find",
        max(objectives[1:]) < objectives[0] - 1e-3,
    )
    yield within("closed form less the best of them", abs(best - objectives[0]), 1e-12)


def _gradients() -> Iterator[Finding]:
    """Line 3 of eq 23 (46), indices summed as appendix B-B declares, and eq 47 with Σ are derivatives of eq 21."""
    model, vae, beta = LinearGaussian(normals(5, 2)), some_vae(5, 2), 1.7
    assert vae.variance_weights is not None  # `some_vae` gives every parameter
    weights, level = vae.variance_weights.clone().requires_grad_(), vae.variances.log().requires_grad_()
    moved = LinearVAE(vae.decoder, vae.encoder, level.exp(), variance_weights=weights)
    slopes = torch.autograd.grad(-2.0 * equation_21(model.covariance, moved, beta), (weights, level))
    with torch.no_grad():
        spread = weights @ model.covariance
        scale = (vae.decoder.T @ vae.decoder).diagonal() + beta
        diagonal = scale * (0.5 * (spread @ weights.T).diagonal() + level).exp()
        printed = (scale * (0.5 * torch.einsum("ab,ab->a", spread, weights) + level).exp())[:, None] * spread
    yield within("line 3 of eq 23, ½[WσΣ]_ab Wσ_ab summed, less the derivative", largest(printed - slopes[0]), 1e-12)
    yield within("eq 47 with Σ for C less the derivative", (diagonal - beta - slopes[1]).abs().max(), 1e-12)


def _posteriors() -> Iterator[Finding]:
    """Equations 19 and 24 are the conditionals of the joint Gaussian; eq 59 as printed does not even fit together."""
    optimum = beta_vae_optimum(LinearGaussian(normals(5, 2)).covariance, 2, 0.7).decoder
    for name, weights in (("eq 19", normals(5, 2)), ("eq 24", optimum)):
        law = linear_posterior(weights, 1.0)
        inverse = torch.linalg.inv(weights @ weights.T + _eye(5))
        yield within(
            f"means of {name} less those of the joint law", (law.weights - weights.T @ inverse).abs().max(), 1e-13
        )
        expected = _eye(2) - weights.T @ inverse @ weights
        yield within(
            f"covariances of {name} less those of the joint law", (law.covariance - expected).abs().max(), 1e-13
        )


def _renamed() -> Iterator[Finding]:
    """The closed form is one of k! 2^k: renaming and flipping latents leaves the objective unchanged, but not TIE."""
    model, beta = LinearGaussian(normals(6, 3)), 0.8
    vae = beta_vae_optimum(model.covariance, 3, beta)
    found, renamed = terms_of(model, vae, beta), signed_permutations(3)
    other = LinearVAE(vae.decoder @ renamed.mT, renamed @ vae.encoder, renamed.square() @ vae.variances)
    every = terms_of(model, other, beta)
    branches = every.tie_branches[:, 0]
    yield within("objective of all signed permutations", (every.objective - found.objective).abs().max(), 1e-13)
    yield within("TIE as it is less its branch", (branches - found.tie_branches).abs().max(), 1e-12)
    yield within("least TIE of all signed permutations", (every.tie - found.tie).abs().max(), 1e-12)
    yield true("TIE differs between them", bool(found.tie_branches.max() > found.tie + 0.1))


def fig1() -> Iterator[Finding]:
    """Figure 1: eigenvalues, where latents are switched off, every curve, and the branches of TIE.

    "Is the behavior monotonic?", section III asks of MIE. It is exactly 0 at β = 1 and again once nothing is encoded.
    Which TIE is drawn depends on names and signs of the latents that the objective does not see: there are four curves.
    """
    problem = figure_1_problem()
    values = torch.linalg.eigvalsh(problem.covariance).flip(-1)
    expected = torch.cat([torch.tensor([66.25, 1.25], dtype=torch.float64), torch.ones(126, dtype=torch.float64)])
    yield within("eigenvalues less 66.25, 1.25, 1, …", (values - expected).abs().max(), 1e-12)
    switched = {0.5: 2, 1.249: 2, 1.25: 1, 66.249: 1, 66.25: 0, 100.0: 0}
    counts = {beta: int(beta_vae_optimum(problem.covariance, 2, beta).active) for beta in switched}
    yield true("active latents fall from 2 to 1 at β = 1.25 and to 0 at 66.25", counts == switched)
    found, before = optima(problem), BETAS[1:] < 66.25
    yield within("distance of the ELBO's peak from β = 1", abs(BETAS[found.elbo.argmax()] - 1.0), 1e-12)
    yield true(
        "the reconstruction falls throughout, up to β = 66.25", bool((found.reconstruction.diff()[before] < 0).all())
    )
    yield true("KL falls throughout, up to β = 66.25", bool((found.kl.diff()[before] < 0).all()))
    ends = optima(problem, torch.tensor([1.0, 66.25, 80.0, 1e6], dtype=torch.float64))
    yield within("MIE at β = 1 and from 66.25 on", ends.mie.abs().max(), 1e-12)
    yield true(f"in between it reaches {found.mie.max():.1f} nats", bool(found.mie.max() > 20))
    yield within("KL from β = 66.25 on", ends.kl[1:].abs().max(), 1e-12)
    yield from _branches(problem)


def _branches(problem: LinearGaussian) -> Iterator[Finding]:
    """Four curves of TIE, two of them with a minimum near β = 1."""
    fine = torch.linspace(1.0, 2.0, 1001, dtype=torch.float64)
    near, wide = optima(problem, fine), optima(problem)
    branches = near.tie_branches
    # The two sources are alike, so that the eight signed permutations give four curves.
    yield within("branches in pairs", (branches[:, [0, 1, 2, 3]] - branches[:, [5, 4, 7, 6]]).abs().max(), 1e-10)
    leading, both = branches[:, 0], branches[:, 1]
    yield within("least TIE less 19.163", abs(both.min() - 19.163), 1e-3)
    yield within("its β less 1.136", abs(fine[both.argmin()] - 1.136), 1.5e-3)
    yield within("least TIE of the other branch less 19.223", abs(leading.min() - 19.223), 1e-3)
    yield within("its β less 1.41", abs(fine[leading.argmin()] - 1.41), 0.02)
    yield within("least TIE less the lower branch", (near.tie - both).abs()[fine < 1.2].max(), 1e-10)
    # Of the branches with the leading sign flipped one falls throughout. The other rises a little first, just before
    # the second latent, whose sign is then right, is switched off.
    rises = wide.tie_branches[:, 2:4].diff(dim=0)
    corner = (BETAS[1:] > 1.21) & (BETAS[:-1] < 1.25)
    yield within("largest rise of the branch with the leading sign flipped", rises[:, 0].max(), 1e-10)
    yield within(
        "largest rise of that with both signs flipped, but for β of 1.21 to 1.25", rises[~corner, 1].max(), 1e-10
    )
    there = optima(problem, torch.linspace(1.21, 1.25, 401, dtype=torch.float64)).tie_branches[:, 3]
    yield within("its rise there less 0.0269", abs(there[-1] - there.min() - 0.0269), 1e-4)
    begin = wide.tie_branches[0, 2:4]
    yield true("flipped branches begin between 111.4 and 117", bool(((begin > 111.4) & (begin < 117)).all()))
    at_one = optima(problem, torch.tensor(1.0, dtype=torch.float64)).tie_branches
    yield within("flipped branches at β = 1 less 112", abs(at_one[2:4].mean() - 112), 2.0)
    yield within("all branches once nothing is encoded, less 63.29", (wide.tie_branches[-1] - 63.29).abs().max(), 5e-3)


def _eye(size: int) -> Float[Tensor, "d d"]:
    return torch.eye(size, dtype=torch.float64)
