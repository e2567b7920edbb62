"""Law 5 for every architecture: Jacobians of trained decoders equal W where linear, finite differences elsewhere."""

import torch

from axiswise import grid, objectives, optimizers, train
from axiswise.geometry import jacobian


def test_jacobians_of_trained_decoders(architecture):
    model, dataset = architecture
    members = grid(
        model=model, objective=objectives.BetaVAE(), steps=5, batch=4, seed=range(2), optimizer=optimizers.Adam(lr=1e-2)
    )
    population = train(members, dataset, dtype=torch.float64)
    codes = population.encode(dataset.x(torch.arange(3))).mean
    found = jacobian(population.decode, codes)
    assert found.shape == (2, 3, dataset.numel, model.latents)
    if model.network.name == "linear":
        W = torch.stack([trained.weights["decoder.0.weight"] for trained in population.trained])
        assert torch.equal(found, W[:, None].expand_as(found))
    step = 1e-6  # central differences: truncation 1e-12, rounding 1e-16 / 1e-6
    for latent in range(model.latents):
        shift = torch.zeros(model.latents, dtype=torch.float64, device=codes.device)
        shift[latent] = step
        difference = (population.decode(codes + shift) - population.decode(codes - shift)) / (2 * step)
        assert torch.allclose(found[..., latent], difference.flatten(2), rtol=1e-6, atol=1e-8)
