"""Exact theory on CUDA, against its own value on the CPU."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from axiswise import analytic
from axiswise.distributions import DiagonalParameters, StandardNormal

DEVICE = "cuda"
ELSEWHERE = {  # which functions have such a test in a file of their own
    *("noise_allocation", "solve_noise_allocation"),  # test_noise_allocation
    *(
        "beta_vae_optimum",
        "numerical_optimum",
        "terms",
        "ppca",
        "ppca_em",
        "sample_covariance",
    ),  # test_beta_vae_optimum
    *("principal_directions", "direction_alignment"),
}
WITHOUT_TENSORS = {"signed_permutations"}


def normals(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


class Setting:
    """Matrices and posteriors on one device."""

    def __init__(self, device: str) -> None:
        self.slopes = normals(2, 6, 5, 3, seed=0).to(device)
        self.codes = normals(2, 6, 3, seed=1).to(device)
        self.variance = normals(2, 6, 3, seed=2).sigmoid().to(device)
        self.posterior = DiagonalParameters(self.codes, self.variance.log())
        self.rotation = torch.linalg.qr(normals(2, 3, 3, seed=3))[0].to(device)
        self.values = torch.tensor([[3.0, 2.0, 0.5], [4.0, 1.5, 0.2]], dtype=torch.float64, device=device)
        self.beta = torch.tensor([0.3, 2.0], dtype=torch.float64, device=device)
        self.covariance = torch.diag_embed(self.values)

    def optimum(self) -> analytic.LinearVAE:
        return analytic.beta_vae_optimum(self.covariance, 2, self.beta, 0.4)


FUNCTIONS: dict[str, Callable[[Setting], Any]] = {
    "adapted_noise_objective": lambda s: analytic.adapted_noise_objective(s.rotation, s.values, 5.0),
    "adapted_noise_optimum": lambda s: analytic.adapted_noise_optimum(s.values, 5.0),
    "allocation_bound": lambda s: analytic.allocation_bound(s.slopes, 4.0),
    "allocation_objective": lambda s: analytic.allocation_objective(s.slopes, s.variance),
    "annealed": lambda s: analytic.annealed(StandardNormal(), 2.0).prior.log_density(s.codes),
    "annealed_elbo": lambda s: analytic.annealed_elbo(
        s.codes.sum(-1), s.posterior, s.codes + s.variance, StandardNormal(), 2.0
    ),
    "beta_objective": lambda s: analytic.beta_objective(s.covariance, s.optimum(), s.beta),
    "fixed_decoder_optimum": lambda s: analytic.fixed_decoder_optimum(s.slopes[:, 0], s.beta, 0.4),
    "fixed_noise_objective": lambda s: analytic.fixed_noise_objective(s.rotation, s.values, s.variance[:, 0]),
    "fixed_noise_optimum": lambda s: analytic.fixed_noise_optimum(s.values, s.variance[:, 0]),
    "latent_scale": lambda s: analytic.latent_scale(s.codes, s.variance),
    "linear_posterior": lambda s: analytic.linear_posterior(s.slopes[:, 0], 0.4),
    "log_normaliser": lambda s: analytic.log_normaliser(StandardNormal(), s.beta, 3),
    "mean_log_likelihood": lambda s: analytic.mean_log_likelihood(s.slopes[:, 0, :3], 0.4, s.covariance),
    "optimal_slope": lambda s: analytic.optimal_slope(s.values / 5.0, 1.0, 2.0),
    "reconstruction_and_kl": lambda s: analytic.reconstruction_and_kl(s.covariance, s.optimum()),
    "slope_cost": lambda s: analytic.slope_cost(s.values, 2.0),
    "stochastic_loss": lambda s: analytic.stochastic_loss(s.rotation, s.covariance),
}


def leaves(found: Any) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    parts = found if isinstance(found, tuple) else vars(found).values() if hasattr(found, "__dict__") else ()
    return [leaf for part in parts for leaf in leaves(part)]


def test_every_function_is_listed():
    functions = {name for name in analytic.__all__ if inspect.isfunction(getattr(analytic, name))}
    assert functions - WITHOUT_TENSORS - ELSEWHERE == set(FUNCTIONS)


@pytest.mark.gpu
@pytest.mark.parametrize("name", FUNCTIONS)
def test_devices_agree(name):
    """To 1e-9 of the largest entry; eigenvectors up to their signs."""
    found, expected = (leaves(FUNCTIONS[name](Setting(device))) for device in (DEVICE, "cpu"))
    assert expected
    for there, here in zip(found, expected, strict=True):
        assert there.device.type == DEVICE
        limit = 1e-9 * here.abs().max().item()
        torch.testing.assert_close(there.cpu().abs(), here.abs(), rtol=1e-9, atol=limit)
