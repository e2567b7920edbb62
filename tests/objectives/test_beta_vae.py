"""The β-VAE against PyTorch's distributions, closed forms and finite differences."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from torch.distributions import Bernoulli as PyTorchBernoulli
from torch.distributions import Normal, kl_divergence
from torch.func import functional_call, vmap

from axiswise.distributions import Bernoulli, Gaussian
from axiswise.errors import AxiswiseError
from axiswise.models import Networks, linear, mlp
from axiswise.objectives import Batch, BetaVAE, Draw, Needs, Objective, Terms, Trainable
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.objectives.objective import needs_of
from axiswise.schedules import Cosine, Linear

STEP = torch.zeros((), dtype=torch.float64)
MODELS = {
    "linear": linear(3, 2),
    "sharp": mlp(3, 2, likelihood=Gaussian(0.1)),
    "images": mlp((1, 2, 3), 4, encoder=(5,), decoder=(5,), likelihood=Bernoulli()),
}


def doubles(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def setting(model, count=6, seed=0) -> tuple[Networks, Batch, dict[str, torch.Tensor]]:
    """Networks in double precision with fixed weights, a batch of values between 0 and 1, and noise."""
    modules = {name: module.double() for name, module in model.modules().items()}
    for module in modules.values():
        for number, parameter in enumerate(module.parameters()):
            parameter.data = 0.5 * doubles(*parameter.shape, seed=seed + number)
    x = torch.rand(count, *model.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    batch = Batch(x, torch.arange(count), size=100)
    return Networks(model, modules), batch, {"noise": doubles(count, model.latents, seed=seed + 50)}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_loss_is_what_pytorchs_distributions_say(model):
    networks, batch, draws = setting(model)
    mean, log_variance = networks["encoder"](batch.x).chunk(2, -1)
    q = Normal(mean, (log_variance / 2).exp())
    output = networks["decoder"](q.mean + q.stddev * draws["noise"])
    if isinstance(model.likelihood, Gaussian):
        log_density = Normal(output, model.likelihood.scale).log_prob(batch.x)
    else:
        log_density = PyTorchBernoulli(logits=output, validate_args=False).log_prob(batch.x)
    kl = kl_divergence(q, Normal(0.0, 1.0))
    expected = -log_density.flatten(1).sum(1).mean() + 4.0 * kl.sum(1).mean()

    terms = BetaVAE(4.0).loss(networks, batch, draws, STEP)
    torch.testing.assert_close(terms.total, expected, rtol=1e-12, atol=0.0)
    found = {name: part.detach() for name, part in terms.parts.items()}
    assert list(found) == ["reconstruction", "kl", "kl_per_latent", "mean_square", "variance", "log_variance"]
    torch.testing.assert_close(found["reconstruction"], -log_density.detach().flatten(1).sum(1).mean())
    torch.testing.assert_close(found["kl"], kl.detach().sum(1).mean())
    torch.testing.assert_close(found["kl_per_latent"], kl.detach().mean(0))
    torch.testing.assert_close(found["mean_square"], q.mean.detach().square().mean(0))
    torch.testing.assert_close(found["variance"], q.variance.detach().mean(0))
    torch.testing.assert_close(found["log_variance"], log_variance.detach().mean(0))


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_beta_means_beta(model):
    """The loss is a line in β: its height at 0 is the reconstruction, its slope the divergence in nats."""
    setup = setting(model)
    at_zero = BetaVAE(0.0).loss(*setup, STEP)
    assert at_zero.total == at_zero.parts["reconstruction"]
    for beta in (0.25, 1, 4.0, 1000.0):
        terms = BetaVAE(beta).loss(*setup, STEP)
        slope = (terms.total - at_zero.total) / beta
        torch.testing.assert_close(slope, at_zero.parts["kl"], rtol=1e-11, atol=0.0)
        assert torch.equal(terms.parts["kl"], at_zero.parts["kl"])


def test_beta_means_beta_whatever_the_images_size():
    """Twice the pixels, twice the reconstruction, the same divergence; twice the samples, the same of both."""
    networks, batch, draws = setting(linear(3, 2))
    once = elbo_terms(networks, batch.x, draws["noise"])
    repeated = elbo_terms(networks, batch.x.repeat(2, 1), draws["noise"].repeat(2, 1))
    torch.testing.assert_close(repeated.reconstruction, once.reconstruction, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(repeated.kl, once.kl, rtol=1e-12, atol=0.0)
    wide = Networks(
        linear(6, 2),
        {
            "encoder": lambda x: networks["encoder"](x[:, :3]),
            "decoder": lambda z: networks["decoder"](z).repeat(1, 2),
        },
    )
    doubled = elbo_terms(wide, batch.x.repeat(1, 2), draws["noise"])
    torch.testing.assert_close(doubled.reconstruction, 2.0 * once.reconstruction, rtol=1e-12, atol=0.0)
    assert torch.equal(doubled.kl, once.kl)


def test_reconstruction_is_unbiased():
    """For a linear decoder, E ‖x − W z − b‖² = ‖x − W μ − b‖² + Σ_j σ_j² ‖w_j‖².

    All signs of unit noise have the mean and covariance of a standard normal, so that their average is the expectation.
    """
    networks, batch, _ = setting(linear(3, 2))
    q = networks.encode(batch.x)
    weight, bias = networks["decoder"].parameters()
    squares = (batch.x - q.mean @ weight.T - bias).square().sum(1) + q.variance @ weight.square().sum(0)
    expected = 0.5 * squares.mean() + 1.5 * math.log(2.0 * math.pi)
    signs = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=2)), dtype=torch.float64)
    estimates = [elbo_terms(networks, batch.x, sign.expand(len(batch.x), 2)).reconstruction for sign in signs]
    torch.testing.assert_close(torch.stack(estimates).mean(), expected, rtol=1e-12, atol=0.0)


def test_terms_carry_what_they_were_computed_from():
    networks, batch, draws = setting(MODELS["sharp"])
    terms = elbo_terms(networks, batch.x, draws["noise"])
    q = networks.encode(batch.x)
    assert torch.equal(terms.posterior.mean, q.mean)
    assert torch.equal(terms.sample, q.sample(draws["noise"]))
    assert terms.divergence.per_latent.shape == (6, 2)
    torch.testing.assert_close(terms.divergence.total.mean(), terms.kl)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_gradients_are_those_of_finite_differences(model):
    networks, batch, draws = setting(model, count=3)
    names = [(role, name) for role, module in networks.modules.items() for name, _ in module.named_parameters()]
    weights = tuple(networks[role].get_parameter(name).detach().clone().requires_grad_() for role, name in names)

    def loss(*weights: torch.Tensor) -> torch.Tensor:
        own = {role: {} for role in networks.modules}
        for (role, name), weight in zip(names, weights, strict=True):
            own[role][name] = weight
        bound = {
            role: lambda rows, role=role: functional_call(networks[role], own[role], rows) for role in networks.modules
        }
        return BetaVAE(0.7).loss(Networks(model, bound), batch, draws, STEP).total

    assert torch.autograd.gradcheck(loss, weights, fast_mode=True)


def test_members_of_a_cohort_have_their_own_beta():
    """The loop puts a scalar tensor in the field's place and maps over members."""
    setup = setting(MODELS["sharp"])

    def total(beta: torch.Tensor) -> torch.Tensor:
        objective = BetaVAE()
        object.__setattr__(objective, "beta", beta)
        return objective.loss(*setup, STEP).total

    betas = [0.0, 0.5, 8.0]
    expected = torch.stack([BetaVAE(beta).loss(*setup, STEP).total for beta in betas])
    torch.testing.assert_close(vmap(total)(torch.tensor(betas, dtype=torch.float64)), expected, rtol=1e-13, atol=0.0)


def test_loss_is_pure():
    networks, batch, draws = setting(MODELS["sharp"])
    before, copies = torch.get_rng_state(), (batch.x.clone(), draws["noise"].clone())
    first, second = (BetaVAE().loss(networks, batch, draws, STEP).total for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(batch.x, copies[0])
    assert torch.equal(draws["noise"], copies[1])


def test_keeps_the_protocol():
    objective = BetaVAE()
    assert isinstance(objective, Objective)
    assert objective == BetaVAE(1) == BetaVAE(beta=1.0)
    assert replace(objective, beta=2.0) == BetaVAE(2.0)
    assert objective.draws(batch=64, latents=10) == {"noise": Draw(shape=(64, 10), uniform=False)}
    trainable = objective.networks(linear(3, 2))
    assert sorted(trainable.model) == ["decoder", "encoder"]
    assert trainable.adversary == {}
    assert needs_of(objective) == Needs()
    assert objective.networks(linear(3, 2)).model["encoder"] is not trainable.model["encoder"]
    terms = objective.loss(*setting(linear(3, 2)), STEP)
    assert isinstance(terms, Terms)
    assert terms.total.shape == ()
    assert terms.adversary is None


def test_defaults_of_the_vocabulary():
    batch = Batch(torch.zeros(2, 3), torch.arange(2), 10)
    assert (batch.size, batch.pair) == (10, None)
    assert Draw((3,)).uniform is False
    assert Trainable({}).adversary is not Trainable({}).adversary
    assert Terms(torch.zeros(()), {}).adversary is None


@pytest.mark.parametrize("beta", [Linear(0.0, 4.0, steps=10), Cosine(4.0, 0.0, steps=10)], ids=repr)
def test_beta_may_be_a_schedule(beta):
    assert BetaVAE(beta).beta == beta


@pytest.mark.parametrize("beta", [-1.0, -1, math.nan, math.inf, True, Linear(0.0, -4.0, steps=10)], ids=repr)
def test_refuses_a_beta_that_is_no_weight(beta):
    with pytest.raises(
        AxiswiseError, match=r"`beta` of BetaVAE must be a finite number of at least 0\.0\. Got "
    ) as caught:
        BetaVAE(beta)
    assert str(caught.value).endswith(f"Got {beta!r}.")
