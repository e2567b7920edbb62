"""Distributions within training: learned parameters move, members stay independent, posteriors of every kind train."""

import pytest
import torch
from torch.distributions import MultivariateNormal

from axiswise import data, grid, models, objectives, optimizers, train
from axiswise.distributions import (
    Anisotropic,
    DecodedGaussian,
    Diagonal,
    Full,
    Laplace,
    LearnedGaussian,
    OptimalGaussian,
    Sparse,
    StandardNormal,
    StudentT,
    corners,
)
from axiswise.numerics import integers, normal

SQUARE = data.synth_linear(samples=200)
CASES = {
    "full": {"posterior": Full()},
    "full, learned prior and scale": {
        "posterior": Full(),
        "prior": Anisotropic((0.5, -0.5), learned=True),
        "likelihood": LearnedGaussian(0.5),
    },
    "student-t, optimal scale": {"prior": StudentT(5.0), "likelihood": OptimalGaussian()},
    "corners, decoded scale": {"prior": corners(), "likelihood": DecodedGaussian()},
    "sparse, laplace": {"prior": Sparse(0.8, 0.05**0.5), "likelihood": Laplace(0.1)},
}


def members(seeds, **distributions):
    return grid(
        model=models.linear(3, 2, **distributions),
        objective=objectives.BetaVAE(beta=2.0),
        steps=12,
        batch=8,
        seed=seeds,
        optimizer=optimizers.Adam(lr=1e-2),
    )


@pytest.mark.parametrize("case", CASES)
def test_a_member_is_the_same_alone_as_among_others(case):
    together = train(members([1, 2, 3], **CASES[case]), SQUARE, dtype=torch.float64)
    alone = train(members([2], **CASES[case]), SQUARE, dtype=torch.float64).trained[0]
    for name, weights in together.trained[1].weights.items():
        torch.testing.assert_close(weights, alone.weights[name], rtol=1e-10, atol=1e-12)
    decoded = together.decode(together.encode(SQUARE.x(torch.arange(5))).mean)
    assert decoded.shape == (3, 5, 3)
    assert decoded.isfinite().all()


def test_learned_parameters_follow_a_plain_loop():
    """Full covariance, learned prior and learned scale by PyTorch's own distributions and optimizer."""
    chosen = CASES["full, learned prior and scale"]
    trained = train(members([4], **chosen), SQUARE, dtype=torch.float64).trained[0]
    start = train(
        grid(model=trained.member.model, objective=trained.member.objective, steps=0, seed=[4]),
        SQUARE,
        dtype=torch.float64,
    ).trained[0]
    weights = {name: tensor.clone().requires_grad_() for name, tensor in start.weights.items()}
    optimizer = torch.optim.Adam(weights.values(), lr=1e-2)
    for step in range(12):
        x = SQUARE.x(integers(4, "index", step, (8,), 200)).double()
        noise = normal(4, "noise", step, (8, 2), dtype=torch.float64)
        heads = x @ weights["encoder.1.weight"].T + weights["encoder.1.bias"]
        below = torch.nn.functional.pad(heads[:, 4, None, None], (0, 1, 1, 0))  # the one entry of two latents
        lower = below + torch.diag_embed((heads[:, 2:4] / 2).exp())
        q = MultivariateNormal(heads[:, :2], scale_tril=lower)
        variances = 2.0 * weights["prior.logits"].softmax(0)
        p = MultivariateNormal(torch.zeros(2).double(), scale_tril=variances.sqrt().diag())
        z = heads[:, :2] + (lower @ noise[..., None])[..., 0]
        output = z @ weights["decoder.0.weight"].T + weights["decoder.0.bias"]
        scale = weights["likelihood.log_scale"].exp()
        log_density = torch.distributions.Normal(output, scale).log_prob(x).sum(1)
        loss = (2.0 * torch.distributions.kl_divergence(q, p) - log_density).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert set(trained.weights) == set(weights)
    for name, tensor in trained.weights.items():
        torch.testing.assert_close(tensor, weights[name].detach(), rtol=1e-9, atol=1e-10)
    assert trained.weights["prior.logits"].tolist() != start.weights["prior.logits"].tolist()
    assert trained.weights["likelihood.log_scale"].item() != start.weights["likelihood.log_scale"].item()


def test_a_group_hands_out_what_its_members_learned():
    distributions = CASES["full, learned prior and scale"]
    population = train(members([1, 2], **distributions), SQUARE, dtype=torch.float64)
    (group,) = population.groups
    q = group.encode(SQUARE.x(torch.arange(6)))
    assert group.prior.kl(q, q.mean).total.shape == (2, 6)
    log_density = group.likelihood.log_density(SQUARE.x(torch.arange(6)).double(), group.decode(q.mean, raw=True))
    assert log_density.shape == (2, 6)
    for row, trained in enumerate(population.trained):
        own = Anisotropic(tuple(trained.weights["prior.logits"].tolist()))
        alone = type(q)(*(field[row] for field in q))
        torch.testing.assert_close(
            group.prior.kl(q, q.mean).total[row], own.kl(alone, alone.mean).total, rtol=1e-12, atol=0.0
        )


def test_what_is_fixed_is_not_trained():
    fixed = train(members([1], prior=Anisotropic((0.5, -0.5))), SQUARE).trained[0]
    assert not any(name.startswith(("prior", "likelihood")) for name in fixed.weights)
    assert isinstance(fixed.member.model.posterior, Diagonal)
    assert fixed.member.model.prior != StandardNormal()
