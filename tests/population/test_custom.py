"""A user's own modules: trained as in a plain loop, stored by name, loaded with the factory."""

import sys
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from axiswise import data, grid, load, models, objectives, optimizers, train
from axiswise.distributions import Bernoulli, Full
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, SelfInitialised, custom
from axiswise.models._factory import factory_name
from axiswise.numerics import integers, normal
from axiswise.objectives import Terms, Trainable
from axiswise.objectives.elbo_terms import elbo_terms
from axiswise.population import Member, Population, loop
from axiswise.population import _cohort as cohort
from axiswise.population._cohort import cohorts
from axiswise.records import address, read_tensors, write_tensors
from axiswise_benchmarks.catalogue import SeededGenerator

RATE, STEPS, BATCH = 1e-3, 12, 8


def dense():
    """Skip connection, batch norm, a random buffer and an initialisation of its own."""
    return Encoder(), nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3))


def squashed():
    """Probabilities where a Bernoulli likelihood expects logits."""
    encoder, decoder = convolutional()
    return encoder, nn.Sequential(decoder, nn.Sigmoid())


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(3, 6, bias=False), nn.BatchNorm1d(6), nn.Linear(9, 4)
        nn.init.orthogonal_(self.first.weight)
        self.register_buffer("shift", torch.randn(3))

    def forward(self, x):
        hidden = functional.gelu(self.norm(self.first(x + self.shift)))
        return self.last(torch.cat((hidden, x), -1))


def convolutional():
    """A small convolutional pair for images of 8 × 8."""
    encoder = nn.Sequential(nn.Conv2d(1, 3, 4, 2, 1), nn.ELU(), nn.Flatten(), nn.Linear(48, 4))
    decoder = nn.Sequential(
        nn.Linear(2, 48), nn.ELU(), nn.Unflatten(1, (3, 4, 4)), nn.ConvTranspose2d(3, 1, 4, stride=2, padding=1)
    )
    return encoder, decoder


def dropping():
    """Dropout of maps, of numbers and as a function."""
    encoder = nn.Sequential(nn.Conv2d(1, 6, 4, 2, 1), nn.ELU(), nn.Dropout2d(0.3), nn.Flatten(), nn.Linear(96, 4))
    decoder = nn.Sequential(nn.Linear(2, 48), nn.ELU(), nn.Dropout(0.5), Dropping(48, 64), nn.Unflatten(1, (1, 8, 8)))
    return encoder, decoder


class Dropping(nn.Linear):
    def forward(self, x):
        return super().forward(functional.dropout(x, 0.1, self.training))


def images() -> data.FactorDataset:
    return data.arrays(torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(0)))


MODELS = {
    "dense": (lambda: custom(dense, 3, 2), lambda: data.synth_linear(samples=200)),
    "convolutional": (lambda: custom(convolutional, (1, 8, 8), 2, likelihood=Bernoulli()), images),
    "dropout": (lambda: custom(dropping, (1, 8, 8), 2), images),
}


@pytest.fixture(params=MODELS)
def own(request):
    model, dataset = MODELS[request.param]
    return model(), dataset()


def members_of(model, seeds=(3, 11), steps=STEPS, **changes) -> list[Member]:
    optimizer = optimizers.Adam(lr=RATE)
    choices = {"objective": objectives.BetaVAE(0.5), "batch": BATCH, "optimizer": optimizer} | changes
    return grid(model=model, steps=steps, seed=list(seeds), **choices)


def plain_loop(member: Member, dataset) -> dict[str, torch.Tensor]:
    """What a script without this package would do: seed, build, loop."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(member.seed)
        encoder, decoder = (module.double() for module in member.model.network.factory())
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=RATE)
    for step in range(member.steps):
        x = dataset.x(integers(member.seed, "index", step, (BATCH,), len(dataset))).double()
        noise = normal(member.seed, "noise", step, (BATCH, 2), dtype=torch.float64)
        with SeededGenerator(torch.tensor(member.seed), step):  # PyTorch's dropout by the member's random numbers
            mean, log_variance = encoder(x).chunk(2, -1)
            output = decoder(mean + (log_variance / 2).exp() * noise)
        if isinstance(member.model.likelihood, Bernoulli):
            error = functional.binary_cross_entropy_with_logits(output, x, reduction="none")
        else:
            error = -torch.distributions.Normal(output, 1.0).log_prob(x)
        kl = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(1).mean()
        optimizer.zero_grad()
        (error.flatten(1).sum(1).mean() + 0.5 * kl).backward()
        optimizer.step()
    found = {f"encoder.{name}": tensor for name, tensor in encoder.state_dict().items()}
    return found | {f"decoder.{name}": tensor for name, tensor in decoder.state_dict().items()}


def test_a_sigmoid_before_a_bernoulli_likelihood_is_doubted():
    with pytest.warns(UserWarning, match="the decoder of squashed returns lies between 0 and 1, as after a sigmoid"):
        custom(squashed, (1, 8, 8), 2, likelihood=Bernoulli())
    custom(squashed, (1, 8, 8), 2)  # of a Gaussian likelihood these are means


def test_members_equal_a_plain_loop_together_and_alone(own, monkeypatch):
    model, dataset = own
    members = members_of(model)
    monkeypatch.setattr(cohort, "stacking_pays", lambda model, device: True)
    assert len(cohorts(members, torch.device("cpu"))) == 1
    together = train(members, dataset, dtype=torch.float64)
    for position, member in enumerate(members):
        expected = plain_loop(member, dataset)
        for trained in (together.trained[position], train([member], dataset, dtype=torch.float64).trained[0]):
            found = trained.weights | trained.buffers
            assert found.keys() == expected.keys()
            for name, tensor in expected.items():
                assert (found[name] - tensor).abs().max() < 1e-10, name
    assert {trained.status for trained in together.trained} == {"trained"}


def test_first_weights_are_the_factorys_own(own):
    model, dataset = own
    assert isinstance(model.network, SelfInitialised)
    assert not isinstance(models.linear(3, 2).network, SelfInitialised)
    members = members_of(model, (5, 6), steps=0)
    together = train([*members, members[0]], dataset)
    alone = train(members_of(model, (6,), steps=0), dataset)
    for seed, population, position in ((5, together, 0), (6, together, 1), (5, together, 2), (6, alone, 0)):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            modules = dict(zip(("encoder", "decoder"), model.network.factory(), strict=True))
        trained = population.trained[position]
        found = trained.weights | trained.buffers
        for part, module in modules.items():
            for name, tensor in module.state_dict().items():
                assert torch.equal(found[f"{part}.{name}"], tensor), name
    first, second = (trained.weights for trained in together.trained[:2])
    assert any(not torch.equal(first[name], second[name]) for name in first)


@dataclass(frozen=True)
class WithScorer:
    """An objective that adds a module of its own."""

    def networks(self, model):
        return Trainable({**model.modules(), "scorer": nn.Linear(model.latents, 1)})

    def draws(self, batch, latents):
        return objectives.BetaVAE().draws(batch, latents)

    def loss(self, networks, batch, draws, step):
        terms = elbo_terms(networks, batch.x, draws["noise"])
        return Terms(terms.reconstruction + networks["scorer"](terms.sample).square().mean(), {})


def test_modules_that_an_objective_adds_start_as_they_always_do():
    members = grid(model=custom(dense, 3, 2), objective=WithScorer(), steps=0, seed=[1, 2])
    population = train(members, data.synth_linear(samples=10))
    expected = models.initialise(nn.Linear(2, 1), "scorer", torch.tensor([1, 2]))["weight"]
    found = torch.stack([trained.weights["scorer.weight"] for trained in population.trained])
    assert torch.equal(found, expected)


def test_evaluation_uses_running_statistics(own):
    model, dataset = own
    population = train(members_of(model), dataset, dtype=torch.float64)
    x = dataset.x(torch.arange(6)).double()
    codes = population.encode(x).mean
    for position in range(2):
        own = population[position]
        assert not own.encoder.training
        assert (codes[position] - own.encode(x).mean).abs().max() < 1e-12
        assert (population.decode(codes)[position] - own.decode(codes[position])).abs().max() < 1e-12
    assert (population.encode(x[:1]).mean - codes[:, :1]).abs().max() < 1e-12


def test_nothing_is_dropped_but_in_training(tmp_path):
    """Neither in validation, which changes no bit of the training, nor by the exported networks, whose keys are own."""
    dataset, members = images(), members_of(custom(dropping, (1, 8, 8), 2))
    population = train(members, dataset)
    validated = train(members, dataset, validation=dataset, every=4)
    assert_bit_equal(validated, population)
    x = dataset.x(torch.arange(len(dataset)))
    encoder, decoder = dropping()
    for position, trained in enumerate(validated.trained):
        population[position].export(folder := tmp_path / str(position))
        encoder.load_state_dict(load_file(folder / "encoder.safetensors"))  # which wants all keys, and no others
        decoder.load_state_dict(load_file(folder / "decoder.safetensors"))
        mean, log_variance = encoder.eval()(x).chunk(2, -1)
        torch.testing.assert_close(population.encode(x).mean[position], mean)
        torch.testing.assert_close(population.decode(mean)[position], decoder.eval()(mean))
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1).sum(1).mean()
        assert trained.validation["kl"][-1] == pytest.approx(divergence.item(), rel=1e-5)


# Storing, loading, resuming.


def test_a_stored_model_is_loaded_with_its_factory(own, tmp_path):
    model, dataset = own
    trained = train(members_of(model, steps=2), dataset, out=tmp_path / "run")
    factory = model.network.factory
    loaded = load(tmp_path / "run", own=factory)
    by_member = {one.member: one for one in loaded.trained}
    for expected in trained.trained:
        found = by_member[expected.member]
        assert found.member.model == model
        assert all(torch.equal(found.weights[name], weight) for name, weight in expected.weights.items())
        assert all(torch.equal(found.buffers[name], buffer) for name, buffer in expected.buffers.items())
    x = dataset.x(torch.arange(4))
    one = trained.trained[0].member
    position = loaded.members.index(one)
    assert torch.equal(loaded.encode(x).mean[position], trained.encode(x).mean[0])
    calls = []
    train(members_of(model, steps=2), dataset, out=tmp_path / "run", on_history=calls.append)
    assert calls == []
    stored = b"".join(path.read_bytes() for path in (tmp_path / "run" / "members").iterdir())
    assert factory_name(factory).encode() in stored


def test_several_factories_may_be_given(tmp_path):
    square = data.synth_linear(samples=50)
    both = [
        Member(custom(dense, 3, 2), objectives.BetaVAE(), steps=1),
        Member(custom(other, 3, 2), objectives.BetaVAE(), steps=1),
    ]
    train(both, square).save(tmp_path / "run")
    assert {one.model.network.factory for one in load(tmp_path / "run", own=[dense, other]).members} == {dense, other}
    with pytest.raises(AxiswiseError, match=r"stored by name only: [a-z_.]*\.other\. Got dense\. Pass them"):
        load(tmp_path / "run", own=dense)


def other():
    return nn.Linear(3, 4), nn.Linear(2, 3)


def test_loading_names_the_factory_it_needs(tmp_path):
    train(members_of(custom(dense, 3, 2), steps=1), data.synth_linear(samples=50), out=tmp_path / "run")
    name = rf"{__name__.replace('.', '[.]')}\.dense"
    message = rf"run has members made of your own parts, which are stored by name only: {name}\. "
    with pytest.raises(
        AxiswiseError, match=message + r"Got none of yours\. .* axiswise\.load\('.*run', own=\[dense\]\)"
    ):
        load(tmp_path / "run")
    with pytest.raises(AxiswiseError, match=message + r"Got other\. Pass them"):
        load(tmp_path / "run", own=other)


def test_members_stored_under_a_factorys_old_name_are_loaded(tmp_path, monkeypatch):
    """Version 0.1 had the papers' factories in `axiswise.papers`; the address of a member is that of its old form."""
    monkeypatch.setattr(dense, "__module__", "axiswise_papers.something")
    square, out = data.synth_linear(samples=50), tmp_path / "run"
    (trained,) = train(members_of(custom(dense, 3, 2), seeds=[3], steps=2), square, out=out).trained
    (path,) = (out / "members").iterdir()
    arrays, about = read_tensors(path, "axiswise-member-2")
    assert about["member"]["model"]["network"]["factory"] == "axiswise_papers.something.dense"
    about["member"]["model"]["network"]["factory"] = "axiswise.papers.something.dense"
    write_tensors(path.with_stem(address(about["member"])), arrays, about)
    path.unlink()

    (loaded,) = load(out, own=dense).trained
    assert loaded.member == trained.member
    assert loaded.weights.keys() == trained.weights.keys()
    assert all(torch.equal(loaded.weights[name], weight) for name, weight in trained.weights.items())
    with pytest.raises(AxiswiseError, match=r"by name only: axiswise_papers\.something\.dense\. Got other\. Pass them"):
        load(out, own=other)
    monkeypatch.setattr(other, "__module__", "axiswise_papers.something")
    with pytest.raises(AxiswiseError, match=r"by name only: axiswise_papers\.something\.dense\. Got other\. Pass them"):
        load(out, own=other)


def wider():
    return Encoder(), nn.Sequential(nn.Linear(2, 7), nn.Tanh(), nn.Linear(7, 3))


def without_bias():
    return Encoder(), nn.Sequential(nn.Linear(2, 5, bias=False), nn.Tanh(), nn.Linear(5, 3))


@pytest.mark.parametrize(("changed", "found"), [(wider, r"\(7,\)"), (without_bias, "none")])
def test_a_factory_that_changed_under_its_name_is_refused(tmp_path, monkeypatch, changed, found):
    square = data.synth_linear(samples=50)
    train(members_of(custom(dense, 3, 2), steps=1), square, out=tmp_path / "run")
    monkeypatch.setattr(changed, "__qualname__", "dense")
    with pytest.raises(
        AxiswiseError, match=r"made with other code: .*\.dense changed\. Load it with the code as it was"
    ):
        load(tmp_path / "run", own=changed)
    shapes = rf"has 'decoder.0.bias' of shape \(5,\)\. Got networks in which it is {found}\. Build them as they were"
    with pytest.raises(AxiswiseError, match=shapes):
        load(tmp_path / "run", own=changed, changed=True)
    with pytest.raises(AxiswiseError, match=r"made with other code: .*\.dense changed\. Choose another `out`"):
        train(members_of(custom(changed, 3, 2), steps=1), square, out=tmp_path / "run")


class Stop(Exception):
    """Ends a training, as a killed process would."""


def interrupted(members, dataset, out, at_step):
    def check(entry):
        if entry.step >= at_step:
            raise Stop

    with pytest.raises(Stop):
        train(members, dataset, out=out, on_history=check)


@pytest.fixture
def _saving_often(monkeypatch):
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(loop, "SAVING_SHARE", 1e9)
    monkeypatch.setattr(loop, "LONGEST_BLOCK", 3)


@pytest.mark.usefixtures("_saving_often")
@pytest.mark.parametrize("name", ["dense", "dropout"])
def test_resuming_is_invisible(tmp_path, monkeypatch, name):
    monkeypatch.setattr(cohort, "stacking_pays", lambda model, device: True)
    model, dataset = (make() for make in MODELS[name])
    members = members_of(model, history=1)
    whole = train(members, dataset)
    interrupted(members, dataset, tmp_path / "run", 7)
    assert list((tmp_path / "run" / "cohorts").iterdir())
    # One of two members resumes the cohort as it was started: the other is rebuilt with the factory of the first.
    resumed = train(members[:1], dataset, out=tmp_path / "run")
    assert_bit_equal(resumed, Population(whole.trained[:1]))
    assert_bit_equal(train(members, dataset, out=tmp_path / "run"), whole)


def assert_bit_equal(population: Population, reference: Population):
    for found, expected in zip(population.trained, reference.trained, strict=True):
        for name, tensor in (expected.weights | expected.buffers).items():
            assert torch.equal((found.weights | found.buffers)[name], tensor), name


@pytest.mark.usefixtures("_saving_often")
def test_cohorts_of_another_factory_are_left_alone(tmp_path):
    square = data.synth_linear(samples=50)
    interrupted(members_of(custom(dense, 3, 2), history=1), square, tmp_path / "run", 7)
    before = {path: path.read_bytes() for path in (tmp_path / "run" / "cohorts").iterdir()}
    assert before
    train(members_of(custom(other, 3, 2), steps=2), square, out=tmp_path / "run")
    assert {path: path.read_bytes() for path in (tmp_path / "run" / "cohorts").iterdir()} == before


# What is refused, and what is not.


def with_recurrent_dropout():
    return Summary(nn.LSTM(1, 2, 2, dropout=0.5), nn.Linear(2, 4)), nn.Linear(2, 3)


class Summary(nn.Sequential):
    def forward(self, x):
        return self[1](self[0](x.T[..., None])[0][-1])


class Noisy(nn.Linear):
    def forward(self, x):
        return super().forward(x) + torch.randn_like(x[:, :1])


def with_noise():
    return Noisy(3, 4), nn.Linear(2, 3)


def always_dropping():
    return nn.Linear(3, 4), AlwaysDropping(2, 3)


class AlwaysDropping(nn.Linear):
    def forward(self, x):
        return functional.dropout(super().forward(x), 0.1)


def too_narrow():
    return nn.Linear(3, 2), nn.Linear(2, 3)


def too_wide():
    return nn.Linear(3, 4), nn.Linear(2, 6)


def another_shape():
    return nn.Linear(7, 4), nn.Linear(2, 3)


class Two(nn.Linear):
    def forward(self, x):
        return tuple(super().forward(x).chunk(2, -1))


def two_tensors():
    return Two(3, 4), nn.Linear(2, 3)


def alone():
    return nn.Linear(3, 4)


def functions():
    return torch.tanh, torch.tanh


SHARED = nn.Linear(3, 4)


def always_the_same():
    return SHARED, nn.Linear(2, 3)


def unrepeatable():
    unrepeatable.calls = getattr(unrepeatable, "calls", 0) + 1
    encoder = nn.Linear(3, 4)
    nn.init.constant_(encoder.weight, unrepeatable.calls)
    return encoder, nn.Linear(2, 3)


def sharing():
    encoder, decoder = nn.Linear(4, 4), nn.Linear(4, 4)
    decoder.weight = encoder.weight
    return encoder, decoder


def frozen():
    return nn.Linear(3, 4).requires_grad_(False), nn.Linear(2, 3)


def lazy():
    return nn.LazyLinear(4), nn.Linear(2, 3)


def without_parameters():
    return nn.Linear(3, 4), nn.Identity()


def tied():
    encoder = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    encoder[1].weight = encoder[0].weight
    return encoder, nn.Linear(2, 4)


REFUSED = {
    with_recurrent_dropout: r"Recurrent layers of with_recurrent_dropout must be without dropout of their own, which "
    r"PyTorch draws inside of them\. Got LSTM\(.*\) at encoder\.0\. Use layers of one each, with torch\.nn\.Dropout be",
    with_noise: r"must not draw random numbers of their own\. Got encoder, whose forward pass does\. Only dropout and ",
    always_dropping: r"must not drop anything in evaluation mode\. Got decoder, .* functional\.dropout\(x, p, self\.tr",
    too_narrow: r"The encoder of too_narrow must map shape \(2, 3\) to a tensor of shape \(2, 4\), which the "
    r"posterior reads\. Got \(2, 2\)\.",
    too_wide: r"The decoder of too_wide must map shape \(2, 2\) to a tensor of shape \(2, 3\), which the likelihood "
    r"reads\. Got \(2, 6\)\.",
    another_shape: r"The encoder of another_shape must take a tensor of shape \(2, 3\)\. Got RuntimeError: .*mat1 and",
    two_tensors: r"The encoder of two_tensors must map shape .* to a tensor of shape \(2, 4\), .*\. Got tuple\.",
    alone: r"alone must return a pair of torch\.nn\.Modules, encoder and decoder\. Got Linear",
    functions: r"functions must return a pair of torch\.nn\.Modules, encoder and decoder\. Got tuple",
    always_the_same: r"always_the_same must build fresh modules at every call.* Got an encoder that is the same object",
    unrepeatable: r"unrepeatable must build fresh modules at every call, with equal weights after equal torch",
    frozen: r"The encoder of frozen must be trainable as a whole\. Got parameters without gradients weight, bias\. Reg",
    lazy: r"The encoder of lazy must be trainable as a whole\. Got lazy tensors weight, bias\. Write down their sizes",
    without_parameters: r"The decoder of without_parameters must be trainable as a whole\. Got no parameters\. Give it",
}


@pytest.mark.parametrize(("factory", "message"), REFUSED.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_refuses_what_cannot_be_trained_as_a_member(factory, message):
    with pytest.raises(AxiswiseError, match=message):
        custom(factory, 3, 2)


def test_refuses_shared_parameters():
    with pytest.raises(AxiswiseError, match=r"an encoder and a decoder with parameters of their own\. Got 1 that both"):
        custom(sharing, 4, 4)
    with pytest.raises(AxiswiseError, match=r"Got tied parameters or non-persistent buffers 1\.weight\. Register"):
        custom(tied, 4, 2)


def test_refuses_sizes_below_one():
    with pytest.raises(AxiswiseError, match=r"`latents` must be a whole number of at least 1\. Got 0\."):
        custom(dense, 3, 0)
    with pytest.raises(AxiswiseError, match=r"`inputs` must be a whole number of at least 1\. Got 0\."):
        custom(dense, 0, 2)


def test_another_posterior_needs_another_declaration():
    moved = VAE(custom(other, 3, 2).network, posterior=Full())
    message = (
        r"other was declared for a posterior of 4 numbers for each observation\. Got one of 5\. Build the model with"
    )
    with pytest.raises(AxiswiseError, match=message):
        moved.modules()


@pytest.mark.parametrize("name", MODELS)
def test_leaves_pytorchs_generator_alone(name):
    before = torch.get_rng_state()
    model, dataset = (make() for make in MODELS[name])
    model.modules()
    train(members_of(model, steps=1), dataset)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_script_names_its_factory_as_others_import_it(monkeypatch):
    """A member that a script trained can be loaded with the function imported from it; a notebook has no such name."""
    monkeypatch.setattr(other, "__module__", "__main__")
    script, module, notebook = (ModuleType("__main__") for _ in range(3))
    script.__file__ = "/home/somebody/networks.py"
    module.__spec__ = ModuleSpec("project.networks", None)
    for main, name in ((script, "networks"), (module, "project.networks"), (notebook, "__main__")):
        monkeypatch.setitem(sys.modules, "__main__", main)
        assert factory_name(other) == f"{name}.other"
