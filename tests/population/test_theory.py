"""Law 3: training meets theory. Trained linear β-VAEs reach the exact optimum of their data's covariance."""

import pytest
import torch

from axiswise import data, grid, models, objectives, optimizers, schedules, train
from axiswise.analytic import (
    LinearGaussian,
    LinearVAE,
    beta_objective,
    beta_vae_optimum,
    direction_alignment,
    latent_scale,
    principal_directions,
    sample_covariance,
)
from axiswise.distributions import Gaussian
from axiswise.population import Population

NOISE, LATENTS, SEEDS = 0.5, 3, 10


def samples(count: int) -> data.FactorDataset:
    """Six values mixed from three sources, centred: the covariance that counts is that of this sample."""
    basis = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))[0]
    mixing = basis[:, :LATENTS] * torch.tensor([3.0, 2.0, 1.2], dtype=torch.float64)
    x = LinearGaussian(mixing, NOISE).sample(count, seed=1).x
    return data.arrays((x - x.mean(0)).float())


def weights_between(eigenvalues: torch.Tensor) -> list[float]:
    """A β below, between and above the eigenvalues that three latents use: 3, 2, 1 and 0 of them are worth it."""
    first, second, third, fourth = (eigenvalues[:4] / NOISE).tolist()
    return [(third * fourth) ** 0.5, (second * third) ** 0.5, (first * second) ** 0.5, 1.5 * first]


def as_linear_vae(population: Population) -> LinearVAE:
    """The weights of linear members, stacked, in the letters of eq 20."""

    def stacked(name: str) -> torch.Tensor:
        return torch.stack([trained.weights[name] for trained in population.trained]).double()

    means, log_variances = stacked("encoder.1.weight").split(LATENTS, -2)
    shift, level = stacked("encoder.1.bias").split(LATENTS, -1)
    return LinearVAE(
        stacked("decoder.0.weight"), means, level.exp(), NOISE, stacked("decoder.0.bias"), shift, log_variances
    )


@pytest.mark.parametrize(
    ("count", "batch", "steps"), [(128, None, 2000), pytest.param(1000, 250, 8000, marks=pytest.mark.slow)]
)
def test_trained_linear_vaes_reach_the_optimum(count, batch, steps):
    dataset = samples(count)
    x = dataset.x(torch.arange(count)).double()
    covariance = sample_covariance(x)
    betas = weights_between(torch.linalg.eigvalsh(covariance).flip(-1))
    members = grid(
        model=models.linear(6, LATENTS, likelihood=Gaussian(NOISE**0.5)),
        objective=[objectives.BetaVAE(beta) for beta in betas],
        optimizer=optimizers.Adam(lr=schedules.Cosine(0.07, 0.0, steps)),
        batch=batch,
        steps=steps,
        seed=range(SEEDS),
    )
    vae = as_linear_vae(train(members, dataset, dtype=torch.float64))
    weights = torch.tensor(betas, dtype=torch.float64).repeat_interleave(SEEDS)
    theory = beta_vae_optimum(covariance, LATENTS, weights, NOISE)
    assert theory.active.reshape(len(betas), SEEDS)[:, 0].tolist() == [3, 2, 1, 0]

    reached, best = (beta_objective(covariance, each, weights) for each in (vae, theory))
    assert (reached <= best).all()
    assert ((best - reached) / best.abs()).max() < 1e-3

    # Each column of theory's decoder against the trained column that points along it, with its sign.
    overlap = theory.decoder.mT @ vae.decoder
    chosen = overlap.abs().argmax(-1)
    columns = vae.decoder.gather(-1, chosen[:, None, :].expand_as(vae.decoder))
    columns = columns * overlap.gather(-1, chosen[..., None])[..., 0].sign()[:, None, :]
    alive = theory.spectrum.active
    errors = ((columns - theory.decoder).norm(dim=-2) / theory.decoder.norm(dim=-2))[alive]
    assert len(errors) == 6 * SEEDS
    assert errors.median() < 0.02

    # As many latents are alive as theory says, each along a principal direction, and each with unit second moment.
    codes = x @ vae.encoder.mT + vae.encoder_bias[:, None, :]
    variances = (x @ vae.variance_weights.mT + vae.variances.log()[:, None, :]).exp()
    assert (variances.mean(-2) < 0.8).sum(-1).equal(theory.active)
    assert (latent_scale(codes, variances) - 1).abs().median() < 0.02
    aligned = direction_alignment(vae.decoder[:SEEDS], principal_directions(x, LATENTS).directions)
    assert aligned.score.median() > 0.999
