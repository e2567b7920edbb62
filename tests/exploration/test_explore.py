"""What a page is made of: who runs in it, what is known of their latents, and why others do not run."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import axiswise as aw
from axiswise.data import small_sprites
from axiswise.distributions import Deterministic
from axiswise.errors import AxiswiseError
from axiswise.exploration._choice import choose
from axiswise.exploration._decoder import read_decoder
from axiswise.exploration._layers import rounded
from axiswise.exploration.explore import MEMBER_BYTES, PAGE_BYTES, page_bytes
from axiswise.geometry import haar_chance
from axiswise.population import Population
from axiswise.report._explorer import _png
from axiswise.scores import match_latents

SPRITES = small_sprites((4, 4, 2), side=8, travel=(4.0, 3.0))


def trained(objective=None, seeds=2, **distributions):
    model = aw.models.mlp((1, 8, 8), 3, encoder=(16,), decoder=(16,), **distributions)
    members = aw.grid(model=model, objective=objective or aw.objectives.BetaVAE(0.1), steps=20, seed=range(seeds))
    return aw.train(members, SPRITES)


@pytest.fixture(scope="module")
def population():
    return trained(seeds=7)


def test_members_that_stand_for_the_others_run(population):
    ranks = [3.0, 0.0, 6.0, 1.0, 5.0, 2.0, 4.0]
    scores = {member.address: {"mig": rank} for rank, member in zip(ranks, population.members, strict=True)}
    found = aw.explore(population, SPRITES, scores=scores)
    assert [(member.settings["seed"], member.role) for member in found.running] == [
        (2, "best mig"),
        (0, "median mig"),
        (1, "worst mig"),
        (3, "another seed"),
        (4, "another seed"),
    ]
    assert [member.reason for member in found.members[5:]] == ["it was not chosen to run"] * 2
    assert found.members[5].arrays["strip"].shape == (3, 7, 1, 8, 8)
    assert found.members[0].scores == {"mig": 6.0}


@pytest.mark.parametrize(
    ("measures", "roles"),
    [
        (("latent_mutual_information", "loss", "mig"), {6: "best mig", 3: "median mig", 0: "worst mig"}),
        (("latent_mutual_information", "loss"), {0: "best loss", 3: "median loss", 6: "worst loss"}),
        (("kl", "udr"), {6: "highest kl", 3: "median kl", 0: "lowest kl"}),
    ],
)
def test_members_are_ranked_by_a_measure_whose_better_values_are_known(population, measures, roles):
    scores = {member.address: dict.fromkeys(measures, float(member.seed)) for member in population.members}
    chosen = choose(population.members, scores, None)
    assert {choice.position: choice.role for choice in chosen if choice.runs and "seed" not in choice.role} == roles


@pytest.fixture(scope="module")
def objectives():
    """Two objectives, three seeds each."""
    return Population([*trained(seeds=3).trained, *trained(aw.objectives.BetaTCVAE(0.1), seeds=3).trained])


def test_where_objectives_are_compared_the_median_seed_of_each_runs(objectives):
    ranks = [5.0, 1.0, 2.0, 4.0, 3.0, 6.0]
    scores = {member.address: {"mig": rank} for rank, member in zip(ranks, objectives.members, strict=True)}
    found = aw.explore(objectives, SPRITES, scores=scores)
    assert [(own.settings["objective"], own.settings["seed"], own.role) for own in found.running] == [
        ("BetaTCVAE", 0, "median seed by mig"),
        ("BetaVAE", 2, "median seed by mig"),
    ]
    unknown = [choice.position for choice in choose(objectives.members, {}, None) if choice.runs]
    assert unknown == [0, 3]
    partly = {objectives.members[4].address: {"mig": 1.0}}
    assert [choice.position for choice in choose(objectives.members, partly, None) if choice.runs] == [4, 0]


def test_several_seeds_of_each_setting_stand_beside_each_other(objectives):
    ranks = [5.0, 1.0, 2.0, 4.0, 3.0, 6.0]
    scores = {member.address: {"mig": rank} for rank, member in zip(ranks, objectives.members, strict=True)}
    chosen = [choice for choice in choose(objectives.members, scores, None, each=2) if choice.runs]
    assert [(choice.position, choice.role) for choice in chosen] == [  # one of each first: a full page is fair
        (5, "best seed by mig"),
        (0, "best seed by mig"),
        (4, "worst seed by mig"),
        (1, "worst seed by mig"),
    ]
    found = aw.explore(objectives, SPRITES, scores=scores, each=2)
    assert [own.settings["objective"] for own in found.running] == ["BetaTCVAE"] * 2 + ["BetaVAE"] * 2
    roles = [choice.role for choice in choose(objectives.members, scores, None, each=3) if choice.runs]
    assert roles == [f"{word} seed by mig" for word in ("best", "median", "worst") for _ in range(2)]
    assert sum(choice.runs for choice in choose(objectives.members, scores, None, each=2**31)) == 6
    with pytest.raises(AxiswiseError, match="not both"):
        aw.explore(objectives, SPRITES, members=[0], each=2)


def test_without_scores_the_first_members_run(population):
    assert [choice.position for choice in choose(population.members, {}, None) if choice.runs] == [0, 1, 2]
    found = aw.explore(population, SPRITES, members=[4, 1])
    assert [member.settings["seed"] for member in found.running] == [4, 1]


def test_what_is_known_of_latents_is_what_the_model_says(population):
    found = aw.explore(population, SPRITES, members=[0, 1], points=30)
    first, second = found.running
    model, x = population[0], torch.from_numpy(found.arrays["x"])
    posterior = model.encode(x)
    np.testing.assert_allclose(first.arrays["codes"][: len(x)], posterior.mean.numpy(), atol=1e-6)
    assert first.arrays["codes"].shape == (30, 3)
    np.testing.assert_allclose(first.arrays["decoded"], model.reconstruct(x)[2].flatten().numpy(), atol=1e-6)
    everything = aw.explore(population, SPRITES, members=[0], points=len(SPRITES))
    whole = model.encode(SPRITES.x(torch.arange(len(SPRITES))))
    kl = 0.5 * (whole.mean**2 + whole.variance - whole.log_variance - 1).mean(0)
    np.testing.assert_allclose(everything.running[0].arrays["kl"], kl.numpy(), rtol=1e-4)
    assert (everything.running[0].arrays["active"] == (whole.variance.mean(0) < 0.8).numpy()).all()
    assert first.arrays["centre"].tolist() == [0.0] * 3
    assert first.arrays["prior"].sum(1) == pytest.approx(1.0, abs=0.01)
    matches = match_latents(first.arrays["codes"], second.arrays["codes"])
    assert first.counterparts[1].tolist() == matches.latent.tolist()
    assert first.correlations[1].tolist() == matches.correlation.tolist()
    assert (first.counterparts[0] == np.arange(3)).all()


def test_who_does_not_fit_is_still(population):
    found = aw.explore(population, SPRITES, megabytes=(PAGE_BYTES + 12 * 64 * 4 / 3 + 25_000) / 1e6)
    assert len(found.running) == 2
    assert re.fullmatch(r"it takes 0.0\d+ MB, and 0.0\d+ MB are left: allow more megabytes", found.members[2].reason)


@pytest.mark.parametrize("latents", [3, 12])
def test_members_take_at_most_what_is_reckoned(tmp_path, latents):
    """In the page that is written; and at least half of it, so that the budget is used."""
    model = aw.models.mlp((1, 8, 8), latents, encoder=(16,), decoder=(16,))
    found = aw.explore(
        aw.train(aw.grid(model=model, objective=aw.objectives.BetaVAE(0.1), steps=20, seed=range(5)), SPRITES), SPRITES
    )
    page = aw.report.explorer(replace(found, members=found.running), tmp_path / "page.html").read_text("utf-8")
    data = json.loads(re.search(r'<script type="application/json" id="exploration">(.*?)</script>', page).group(1))
    named = {"name": "", "role": "", "scores": ""}
    taken = len(json.dumps([member | named for member in data["members"]], separators=(",", ":")))
    running = found.running
    reckoned = sum(page_bytes(each.arrays, each.layers, [latents] * number) for number, each in enumerate(running))
    assert len(running) == 3
    assert taken <= reckoned - MEMBER_BYTES * len(running) <= 2 * taken


@pytest.mark.parametrize("channels", [1, 3])
def test_stills_take_at_most_what_is_reckoned(channels):
    """Noise is what no PNG compresses."""
    noise = np.random.default_rng(0).integers(0, 256, (5, 7, channels, 32, 32), dtype=np.uint8)
    assert 0.8 * page_bytes({"strip": noise}) < len(_png(noise)) * 4 / 3 < page_bytes({"strip": noise}) - MEMBER_BYTES


def test_no_page_is_larger_than_was_asked_for(population, tmp_path):
    found = aw.explore(population, SPRITES)
    size = aw.report.explorer(found, tmp_path / "page.html").stat().st_size
    assert size < PAGE_BYTES + sum(page_bytes(each.arrays) for each in found.members)
    less = replace(found, about={**found.about, "megabytes": (size - 1) / 1e6})
    with pytest.raises(AxiswiseError, match=r"at most 0.\d+ MB. Got 0.\d\d MB: allow more, or explore fewer members"):
        aw.report.explorer(less, tmp_path / "page.html")


class Gated(nn.Module):
    """A decoder with a layer that a page does not know."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 128)

    def forward(self, z):
        return nn.functional.glu(self.layer(z)).view(-1, 1, 8, 8)


def nets():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 6)), Gated()


def test_decoders_that_cannot_run_are_still_with_the_reason():
    members = aw.grid(model=aw.models.custom(nets, (1, 8, 8), 3), objective=aw.objectives.BetaVAE(0.1), steps=2)
    (only,) = aw.explore(aw.train(members, SPRITES), SPRITES).members
    assert (only.layers, only.reason) == ((), "a page cannot run glu()")
    assert only.arrays["strip"].dtype == np.uint8


def test_members_without_a_decoder_have_nothing_to_show():
    pairs = aw.data.transitions(SPRITES, "uniform")
    model = aw.models.mlp((1, 8, 8), 3, posterior=Deterministic())
    found = aw.explore(aw.train(aw.grid(model=model, objective=aw.objectives.PCL(), steps=2), pairs), pairs)
    assert [member.reason for member in found.members] == ["it has no decoder"]
    with pytest.raises(AxiswiseError, match=r"at least one member that can be shown. Got none: it has no decoder"):
        aw.report.explorer(found, "nowhere.html")


def test_codes_without_noise_have_no_prior_and_are_ordered_by_their_spread():
    found = aw.explore(trained(aw.objectives.Autoencoder(), posterior=Deterministic()), SPRITES).running[0].arrays
    assert "prior" not in found
    assert "kl" not in found
    np.testing.assert_allclose(found["spread"], found["codes"].std(0, ddof=1), rtol=1e-4)
    assert found["active"].all()
    np.testing.assert_allclose(found["chance"], [haar_chance(3).score, haar_chance(3).deviation], rtol=1e-6)


class Whole(nn.Module):
    """A model of somebody else's: its decoder is a method."""

    def __init__(self):
        super().__init__()
        self.mean, self.rows, self.drop = nn.Linear(64, 3), nn.Linear(3, 64), nn.Dropout(0.5)

    def encode(self, x):
        mean = self.mean(x.flatten(1))
        return mean, torch.zeros_like(mean)

    def decode(self, z):
        return torch.sigmoid(self.drop(self.rows(z))).reshape(-1, 1, 8, 8)


def test_external_models_run_too():
    model = Whole()
    found = aw.explore(
        aw.from_models([(model.encode, model.decode), (model.encode, lambda z: model.decode(z))]), SPRITES
    )
    running, still = found.members
    assert [layer["kind"] for layer in running.layers] == ["convolution", "activation"]
    assert still.reason == "its decoder is a function, not a module"
    assert model.training


def test_members_that_take_other_observations_are_still_with_the_reason(population):
    large = small_sprites((4, 4, 2), side=16)
    model = aw.models.mlp((1, 16, 16), 3, encoder=(16,), decoder=(16,))
    other = aw.train(aw.grid(model=model, objective=aw.objectives.BetaVAE(), steps=2), large)
    found = aw.explore(Population([*population.trained[:1], *other.trained]), SPRITES)
    assert [member.reason for member in found.members] == [
        "",
        "it takes observations of shape (1, 16, 16), not (1, 8, 8)",
    ]


class Infinite(nn.Module):
    """What overflows."""

    def forward(self, x):
        return torch.exp(x * 1e30).reshape(-1, 1, 8, 8)


class Idle(Whole):
    """A model one of whose codes never changes."""

    def encode(self, x):
        mean, log_variance = super().encode(x)
        return mean * torch.tensor([1.0, 0.0, 1.0]), log_variance


def test_codes_that_never_change_have_sliders_and_no_counterpart():
    models = [Idle(), Idle()]
    found = aw.explore(aw.from_models([(model.encode, model.decode) for model in models]), SPRITES)
    first = found.running[0]
    assert (first.arrays["high"] > first.arrays["low"]).all()
    assert first.counterparts[1][1] == -1
    assert np.isfinite(np.concatenate(first.correlations)).all()


def test_members_whose_numbers_are_not_finite_have_nothing_to_show():
    model = Whole()
    model.rows.weight.data *= 1e30  # finite, as are all weights
    wide = aw.from_models([(model.encode, nn.Sequential(model.rows, Infinite()))])
    (only,) = aw.explore(wide, SPRITES).members
    assert (only.reason, only.layers, only.arrays) == ("what it encodes or decodes is not finite", (), {})


def test_decoders_may_return_flat_images_but_not_others():
    model = Whole()
    flat = [
        (model.encode, nn.Sequential(model.rows)),
        (model.encode, lambda z: model.rows(z)),
        (model.encode, nn.ReLU()),
    ]
    running, still, other = aw.explore(aw.from_models(flat), SPRITES).members
    assert running.layers
    assert still.arrays["strip"].shape == (3, 7, 1, 8, 8)
    assert other.reason == "it decodes shape (3,), not (1, 8, 8)"


def test_scores_that_are_no_numbers_rank_nobody(population):
    scores = {member.address: {"mig": float("nan")} for member in population.members}
    found = aw.explore(population, SPRITES, scores=scores)
    assert {member.role for member in found.running} <= {"", "another seed"}


def test_vectors_have_a_plane():
    square = aw.data.synth_linear(samples=100)
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=2)
    arrays = aw.explore(aw.train(members, square), square, points=50).arrays
    assert arrays["cloud"].shape == (50, 2)
    np.testing.assert_allclose(arrays["axes"] @ arrays["axes"].T, np.eye(2), atol=1e-6)
    assert arrays["cloud"].std(0)[0] >= arrays["cloud"].std(0)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"points": 2}, r"`points` must be at least 3. Got 2"),
        ({"megabytes": 0}, r"`megabytes` must be positive. Got 0"),
        ({"members": [0, 9]}, r"`members` must be positions from 0 to 6. Got 9"),
    ],
)
def test_wrong_arguments_are_refused(population, options, message):
    with pytest.raises(AxiswiseError, match=message):
        aw.explore(population, SPRITES, **options)


def test_two_observations_are_too_few(population):
    with pytest.raises(AxiswiseError, match=r"A dataset of at least 3 observations is needed.* Got 2"):
        aw.explore(population, aw.data.arrays(torch.rand(2, 1, 8, 8)))


@pytest.mark.parametrize("name", ["conv64", "dcgan64"])
def test_architectures_run_on_convolutions_alone(name):
    decoder = getattr(aw.models, name)().modules()["decoder"].eval()
    latents = getattr(aw.models, name)().latents
    program = read_decoder(decoder, torch.zeros(1, latents), None)
    weights = sum(parameter.numel() for parameter in decoder.parameters())
    buffers = sum(buffer.numel() for buffer in decoder.buffers() if buffer.is_floating_point())
    assert len(program.weights) == weights + buffers
    assert {layer["kind"] for layer in program.layers} <= {"convolution", "batch_norm", "activation"}


def test_kernels_are_five_times_nearer_than_floating_point_numbers_of_16_bits_are():
    kernel = torch.randn(32, 32, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    errors = [(each - kernel).square().mean().sqrt() for each in (rounded(kernel), kernel.half().double())]
    assert errors[0] < errors[1] / 5
    wide = torch.cat([torch.ones(1, 2), torch.full((1000, 2), 1.2345e-3)])  # whole numbers would leave two digits of
    torch.testing.assert_close(rounded(wide), wide, rtol=1e-3, atol=0.0)
    for few in (torch.zeros(2, 2), torch.zeros(0, 3), torch.tensor([[float(2**20), -1.0]])):
        torch.testing.assert_close(rounded(few), few, rtol=1e-3, atol=0.0)
