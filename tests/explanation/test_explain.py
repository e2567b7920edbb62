"""`explain` distinguishes trained models from rotated, broken and random ones, and names what it cannot conclude."""

import math
import re
from importlib import import_module

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from axiswise import data, explain, grid, models, objectives, optimizers, train
from axiswise.distributions import (
    Anisotropic,
    Bernoulli,
    DeterministicParameters,
    FullParameters,
    Gaussian,
    Laplace,
    StudentT,
)
from axiswise.errors import AxiswiseError
from axiswise.explanation._quantities import random_rotations
from axiswise.models import rotate_latents
from axiswise.numerics import normal, permutation
from axiswise.report import page

SCALE, BETA = 0.2, 1.0
SQUARE = data.synth_linear(ratio=3.0, samples=600, seed=1)
X, FACTORS = SQUARE.x(torch.arange(600)), SQUARE.factors(torch.arange(600))
FEW = 95  # points that are too few for neighbourhoods, which are slow
SETTINGS = {"likelihood": Gaussian(SCALE), "beta": BETA, "points": FEW}


@pytest.fixture(scope="module")
def trained():
    """A β-VAE on a rectangle in three dimensions, with a third latent that it does not need."""
    vae = models.linear(3, 3, likelihood=Gaussian(SCALE))
    fast = optimizers.Adam(lr=0.02)
    members = grid(model=vae, objective=objectives.BetaVAE(BETA), steps=2000, optimizer=fast)
    model = train(members, SQUARE)[0].double()
    return model.encode, model.decode


@pytest.fixture(scope="module")
def found(trained):
    return explain(*trained, X.double(), factors=FACTORS, **SETTINGS)


def linear(lengths, *, turn=0.0, noise=None):
    """A linear model whose decoder has columns of these lengths, turned; the posterior is exact for Gaussian(1)."""
    size = len(lengths)
    basis = torch.linalg.qr(torch.randn(size + 2, size, generator=torch.Generator().manual_seed(3), dtype=torch.double))
    rotation = torch.eye(size, dtype=torch.double)
    rotation[:2, :2] = torch.tensor(
        [[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]], dtype=torch.double
    )
    matrix = basis.Q * torch.tensor(lengths, dtype=torch.double) @ rotation.T
    precision = torch.eye(size, dtype=torch.double) + matrix.T @ matrix
    variance = precision.diagonal().reciprocal() if noise is None else torch.tensor(noise, dtype=torch.double)

    def encode(x):
        return x @ matrix @ precision.inverse(), variance.log().expand(len(x), size)

    def decode(z):
        return z @ matrix.T

    z = torch.randn(FEW, size, generator=torch.Generator().manual_seed(4), dtype=torch.double)
    error = torch.randn(FEW, size + 2, generator=torch.Generator().manual_seed(5), dtype=torch.double)
    return encode, decode, z @ matrix.T + error


def test_an_array_is_read_and_bytes_are_grey_values():
    pixels = np.random.default_rng(0).integers(0, 256, size=(20, 2), dtype=np.uint8)
    grey = torch.from_numpy(pixels.astype(np.float32) / 255)
    identity = (lambda x: (x, torch.zeros_like(x) - 3), lambda z: z)
    wanted = explain(*identity, grey)
    for array in (pixels, grey.numpy(), grey.double().numpy()):
        assert explain(*identity, array).findings == wanted.findings


def test_a_trained_model_differs_from_chance(found):
    assert found["active"].value.estimate == 2
    assert found.arrays["order"].shape == (2,)
    assert found["orthogonality"].value.high < 0.05
    assert found.baselines["orthogonality"]["chance"].value == pytest.approx(0.548, abs=0.01)  # in closed form
    assert "are nearer to the latent axes than chance" in found["orthogonality"].sentence
    assert "closer to orthogonal than after a random rotation" in found["columns"].sentence
    assert found["law"].value.estimate < 0.05
    assert found["scores"].value.low > found.baselines["scores"]["this model, rotated"].value
    assert [finding.name for finding in found.findings] == [
        *("active", "orthogonality", "columns", "law", "local directions", "aggregate", "overlap", "effects", "scores")
    ]
    assert all(finding.reference and finding.sentence.endswith(".") for finding in found.findings)


def test_every_number_lies_in_its_interval(found):
    for finding in (finding for finding in found.findings if finding.name != "local directions"):
        assert finding.value.low <= finding.value.estimate <= finding.value.high
        for baseline in finding.baselines:
            assert baseline.low <= baseline.value <= baseline.high


def test_the_rotated_baseline_is_the_model_rotated(trained, found):
    """What the baseline computes from JRᵀ, measured on `rotate_latents` itself."""
    order = found.arrays["order"]
    turn = torch.eye(3, dtype=torch.double)
    turn[np.ix_(order, order)] = random_rotations(0, 200, 2)[7]
    turned = rotate_latents(trained, turn, "diagonal")
    again = explain(*turned, X.double(), factors=FACTORS, **SETTINGS)
    assert again["orthogonality"].value.estimate == pytest.approx(found.arrays["dto/rotated"][7], abs=1e-9)
    assert again["columns"].value.estimate == pytest.approx(found.arrays["coherence/rotated"][7], abs=1e-9)


def test_a_random_rotation_changes_the_findings(trained, found):
    turn = torch.eye(3, dtype=torch.double)
    half = math.sqrt(0.5)
    order = found.arrays["order"]
    turn[np.ix_(order, order)] = torch.tensor([[half, -half], [half, half]], dtype=torch.double)
    turned = explain(*rotate_latents(trained, turn, "diagonal"), X.double(), factors=FACTORS, **SETTINGS)
    assert turned["active"].value.estimate == 2
    assert turned["orthogonality"].value.estimate > 0.7
    assert "are not shown to be nearer to the latent axes than chance" in turned["orthogonality"].sentence
    assert "are not shown to be closer to orthogonal" in turned["columns"].sentence
    assert turned["law"].value.low > 2 * found["law"].value.high
    assert turned["scores"].value.estimate < 0.5 * found["scores"].value.estimate
    # What does not depend on axes stays as it is.
    assert turned["overlap"].value.estimate < found["overlap"].value.estimate + 0.05


def test_the_conclusion_follows_the_findings(trained, found):
    assert found.conclusion.startswith(
        "2 of 3 latents are active. The decoder prefers their axes to rotated ones; single"
    )
    assert found.conclusion.endswith(
        "Look at latents one by one, and do not name them after factors."
    )  # of so few points
    assert f"In short: {found.conclusion}" in str(found)
    encode, decode, x = linear([6.0, 4.0, 3.0])
    sources = explain(encode, decode, x, factors=encode(x)[0].numpy(), likelihood=Gaussian()).conclusion
    assert "; single latents stand for factors better than rotated (MIG " in sources
    assert sources.endswith("). Read latents one by one.")
    turn = torch.eye(3, dtype=torch.double)
    half = math.sqrt(0.5)
    order = found.arrays["order"]
    turn[np.ix_(order, order)] = torch.tensor([[half, -half], [half, half]], dtype=torch.double)
    encode, decode = rotate_latents(trained, turn, "diagonal")
    turned = explain(encode, decode, X.double(), factors=FACTORS, **SETTINGS)
    assert "is not shown to prefer their axes to rotated ones; single latents are not shown to" in turned.conclusion
    assert turned.conclusion.endswith("Read latents together, not one by one.")
    meaningless = explain(encode, decode, X.double(), **SETTINGS)
    assert meaningless.conclusion.endswith("to rotated ones. Read latents together, not one by one.")
    noise = np.random.default_rng(0).normal(size=FACTORS.shape)
    unrelated = explain(*trained, X.double(), factors=noise, **SETTINGS)
    assert unrelated.conclusion.endswith("Look at latents one by one, and do not name them after factors.")
    one = explain(*linear([3.0, 0.01]), likelihood=Gaussian())
    assert one.conclusion.startswith("1 of 2 latents is active. With no second one")
    nothing = explain(lambda x: (x * 0.0, x * 0.0), lambda z: z * 0.0, X[:FEW], likelihood=Gaussian())
    assert nothing.conclusion.startswith("No latent is active")


def test_a_random_decoder_changes_the_findings(trained, found):
    torch.manual_seed(1)
    decoder = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 3)).double()
    broken = explain(trained[0], decoder, X.double(), factors=FACTORS, **SETTINGS)
    assert broken["active"] == found["active"]  # the encoder's own
    assert broken["scores"].value == found["scores"].value
    assert broken["orthogonality"].value.estimate > 3 * found["orthogonality"].value.estimate
    assert broken["law"].value.estimate > 10 * found["law"].value.estimate
    assert "are not those" in broken["law"].sentence
    assert any("The variances fit the law best at β" in limit for limit in broken.limits)


def test_intervals_have_a_width_or_a_reason():
    found = explain(*linear([3.0, 1.0], turn=0.3), likelihood=Gaussian())
    assert "is 0.42 (exactly: it does not vary over points), where 0 is aligned" in found["orthogonality"].sentence
    encode, decode, x = linear([3.0, 1.0], turn=0.3)
    bent = explain(encode, lambda z: decode(z) + 1e-4 * decode(z).square(), x, likelihood=Gaussian())
    low, high = re.search(r"\(95 %: (\S+) to (\S+)\)", bent["orthogonality"].sentence).groups()
    assert float(low) < float(high)


def test_numbers_that_cannot_be_negative_have_no_negative_interval():
    """Variances of a few points alone are off, so that the interval of the mean |log| would reach below 0."""
    encode, decode, x = linear([3.0, 1.0])

    def outlier(x):
        mean, log_variance = encode(x)
        return mean, log_variance + 4.0 * (torch.arange(len(x))[:, None] == 0)

    found = explain(outlier, decode, x, likelihood=Gaussian())
    assert found["law"].value.low == 0.0
    assert found["law"].value.estimate == pytest.approx(4.0 / FEW, abs=1e-12)


def test_exact_numbers_of_a_linear_model():
    """Angles, lengths and the law in closed form."""
    angle = 0.3
    encode, decode, x = linear([3.0, 1.0], turn=angle)
    found = explain(encode, decode, x, likelihood=Gaussian())
    # V is the rotation itself; its nearest signed permutation is the identity.
    assert found["orthogonality"].value.estimate == pytest.approx(math.sqrt(4 - 4 * math.cos(angle)), abs=1e-12)
    columns = decode(torch.eye(2, dtype=torch.double)).T
    gram = (columns.T @ columns).numpy()
    share = math.sqrt(2) * abs(gram[0, 1]) / np.linalg.norm(gram)
    assert found["columns"].value.estimate == pytest.approx(share, abs=1e-12)
    assert found["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
    assert "implies at β = 1, to within 0.0 %" in found["law"].sentence
    assert found["law"].sentence.endswith(" They fit best at β = 1.")
    values = np.linalg.svd(columns.numpy(), compute_uv=False)
    assert found.arrays["singular values"] == pytest.approx(np.tile(values, (FEW, 1)), abs=1e-12)
    # One posterior variance for all points: the effect is the length of the column times the spread of samples.
    mean, log_variance = encode(x)
    first = found["effects"].sentence.split()[0]
    column = int(first.removeprefix("z"))
    spread = math.sqrt(mean[:, column].var(correction=0) + log_variance[0, column].exp())
    expected = columns[:, column].norm() / math.sqrt(4) * spread
    assert found["effects"].value.estimate == pytest.approx(expected.item(), rel=0.15)  # samples of 95 points
    moved = found.arrays["traversal"][0]
    assert "moves a value by " in found["effects"].sentence  # a vector has no pixels
    assert np.ptp(np.diff(moved, axis=0), axis=0) == pytest.approx(np.zeros(4), abs=1e-6)


@pytest.mark.parametrize("beta", [0.25, 8.0])
def test_the_beta_that_fits_best_is_found(beta):
    """Variances of the law at another β: the deviation is known, and so is where they would fit."""
    lengths = [3.0, 2.0]
    noise = [1.0 / (1.0 + length**2 / beta) for length in lengths]
    encode, decode, x = linear(lengths, noise=noise)
    found = explain(encode, decode, x, likelihood=Gaussian())
    expected = np.mean([abs(math.log(v * (1 + length**2))) for v, length in zip(noise, lengths, strict=True)])
    assert found["law"].value.estimate == pytest.approx(expected, abs=1e-12)
    assert f"fit best at β = {beta:.3g}" in found["law"].sentence
    assert any(f"best at β = {beta:.3g}, not at β = 1." in limit for limit in found.limits)
    right = explain(encode, decode, x, likelihood=Gaussian(), beta=beta)
    assert right["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
    unknown = explain(encode, decode, x, likelihood=Gaussian(), beta=None)
    assert unknown["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
    assert any(limit.startswith("β is unknown: the law was compared at β") for limit in unknown.limits)


def test_the_distance_from_the_prior_is_wassersteins():
    encode, decode, x = linear([3.0, 1.0])
    found = explain(lambda x: (encode(x)[0] + 0.5, encode(x)[1]), decode, x, likelihood=Gaussian())
    noise = normal(0, "explain", 0, (FEW, 2), dtype=torch.double)
    chosen = permutation(0, "explain", FEW)
    mean, log_variance = encode(x[chosen])
    samples = (mean + 0.5 + (0.5 * log_variance).exp() * noise).numpy()
    quantiles = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    expected = np.mean([stats.wasserstein_distance(column, quantiles) for column in samples.T])
    assert found["aggregate"].value.estimate == pytest.approx(expected, abs=0.01)  # 65,536 draws stand for the prior
    assert "does not fit the prior" in found["aggregate"].sentence
    exact = explain(encode, decode, x, likelihood=Gaussian())
    assert "is not shown to differ from the prior" in exact["aggregate"].sentence


def test_latents_that_follow_principal_directions_are_distinguished_from_those_that_do_not(monkeypatch):
    module = import_module("axiswise.explanation._quantities.local_directions")
    monkeypatch.setattr(module, "LOCAL_BATCHES", 3)  # a third of the time
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 3, generator=generator) * torch.tensor([30.0, 0.6, 0.02])

    def encode(x):
        return x, torch.full_like(x, -3.0)

    aligned = explain(encode, lambda z: 1.0 * z, x)["local directions"]
    assert aligned.value.estimate < 10.0 < aligned.baselines[0].value
    assert "Active latents follow the local principal directions" in aligned.sentence
    half = math.sqrt(0.5)
    turn = torch.tensor([[half, -half, 0.0], [half, half, 0.0], [0.0, 0.0, 1.0]])
    turned = explain(lambda x: encode(x @ turn), lambda z: z @ turn.T, x)["local directions"]
    assert turned.value.estimate == pytest.approx(2 / 3 * 45.0, abs=5.0)  # two of three latents
    assert "are not shown to follow" in turned.sentence
    assert "90°" not in turned.sentence  # two directions in a plane are not unrelated there


def test_information_is_the_logarithm_of_the_points_without_overlap():
    def encode(x):
        return 1000.0 * x, torch.full_like(x, -4.0)

    found = explain(encode, lambda z: z / 1000.0, X[:FEW], likelihood=Gaussian(SCALE))
    assert found["overlap"].value.estimate == pytest.approx(math.log(FEW), abs=1e-6)
    assert "hardly overlap" in found["overlap"].sentence
    assert any("points hardly overlap" in limit for limit in found.limits)


def test_the_same_call_explains_the_same(trained, found):
    again = explain(*trained, X.double(), factors=FACTORS, **SETTINGS)
    assert again.findings == found.findings
    assert again.limits == found.limits
    assert all(np.array_equal(again.arrays[name], array) for name, array in found.arrays.items())
    other = explain(*trained, X.double(), factors=FACTORS, **SETTINGS, seed=1)
    assert other["law"].value != found["law"].value


def test_the_text_has_every_finding(found):
    text = str(found)
    for finding in found.findings:
        assert finding.question in text
        assert finding.sentence in text
    assert "What it cannot conclude:" in text
    with pytest.raises(AxiswiseError, match=r"has the findings active, orthogonality, .*Got 'charm'"):
        found["charm"]


class Modes(nn.Module):
    """Batch norm and dropout, feature maps for latents, and a sigmoid at the end."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 4, 2, 2), nn.BatchNorm2d(4), nn.Dropout(0.3))
        self.up = nn.Sequential(nn.BatchNorm2d(2), nn.ConvTranspose2d(2, 1, 2, 2), nn.Sigmoid())

    def encode(self, x):
        mean, log_variance = self.down(x).chunk(2, 1)
        return 2.0 * mean, log_variance - 3.0


def test_feature_maps_and_modes():
    torch.manual_seed(0)
    model, images = Modes(), torch.rand(40, 1, 4, 4)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    random = torch.get_rng_state()
    found = explain(model.encode, model.up, images, likelihood=Bernoulli())
    assert found.about["latents"] == 8
    assert found.about["shape of latents"] == (2, 2, 2)
    assert found.about["layers put into evaluation mode and back"] == 9
    assert found.arrays["names"][5] == "z1,0,1"
    assert "moves a pixel by " in found["effects"].sentence
    assert found.arrays["traversal"].shape[2:] == (1, 4, 4)
    assert all(layer.training for layer in model.modules())
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    quiet = explain(model.eval().encode, model.up, images, likelihood=Bernoulli())
    assert quiet.findings == found.findings
    assert quiet.about["layers put into evaluation mode and back"] == 0


def test_a_decoder_that_hides_its_derivatives_is_differenced():
    encode, decode, x = linear([3.0, 1.0], turn=0.3)
    open_ = explain(encode, decode, x, likelihood=Gaussian())

    def numpy_decode(z):
        return torch.from_numpy(decode(z).detach().numpy())

    for hidden in (numpy_decode, lambda z: decode(z.detach())):
        found = explain(encode, hidden, x, likelihood=Gaussian())
        assert found["orthogonality"].value.estimate == pytest.approx(open_["orthogonality"].value.estimate, abs=1e-6)
        assert any("central differences of step 0.01" in limit for limit in found.limits)
    # Steps have no slope that differentiation could see, but differences do.
    stepped = explain(encode, lambda z: decode((1e4 * z).round() / 1e4), x, likelihood=Gaussian())
    assert stepped["orthogonality"].value.estimate == pytest.approx(open_["orthogonality"].value.estimate, abs=0.01)
    assert any("the decoder hides its derivatives" in limit for limit in stepped.limits)
    allowed = explain(encode, torch.no_grad()(decode), x, likelihood=Gaussian())
    assert allowed["orthogonality"] == open_["orthogonality"]
    assert not any("central differences" in limit for limit in open_.limits)


SLOPES = ("orthogonality", "columns", "law", "effects")  # the findings that rest on the decoder's slope


@pytest.mark.parametrize(
    ("unsteady", "why", "remedy"),
    [
        (lambda y: nn.functional.dropout(y, 0.2), "returns something else each time it is called", "model.eval()"),
        (
            nn.BatchNorm1d(4, track_running_stats=False, affine=False, dtype=torch.double),
            "depends on the others in its batch",
            "keep running statistics",
        ),
        (lambda y: y + 1e-3 * torch.from_numpy(np.random.default_rng().normal(size=(1, 4))), "each time it is", "E[x"),
    ],
    ids=["dropout", "batch norm", "noise of NumPy"],
)
def test_a_decoder_that_is_no_function_of_z_alone_has_no_slope(unsteady, why, remedy, tmp_path):
    """Differences would divide its noise by their step, and derivatives of a batch add up to nothing."""
    encode, decode, x = linear([3.0, 1.0])
    found = explain(encode, lambda z: unsteady(decode(z)), x, likelihood=Gaussian())
    for name in SLOPES:
        assert found[name].value is None
        assert found[name].sentence.startswith("Undefined: ")
        assert why in found[name].sentence
    assert why in found.conclusion
    assert "one by one" not in found.conclusion
    assert any(why in limit and remedy in limit for limit in found.limits)
    assert not any("central differences" in limit for limit in found.limits)
    assert found["active"] == explain(encode, decode, x, likelihood=Gaussian())["active"]  # the encoder's own
    assert found.about["points with Jacobians"] == 0
    assert why in page(found, tmp_path / "page.html").read_text()


@pytest.mark.parametrize("points", [2, 3, FEW])
def test_an_encoder_that_needs_a_batch_is_not_given_one_row_alone(points):
    """Batch norm without running statistics refuses one row; a batch that is squeezed loses its axis there."""
    encode, decode, x = linear([3.0, 1.0])
    norm = nn.BatchNorm1d(4, track_running_stats=False, dtype=torch.double)
    found = explain(lambda x: encode(norm(x)), decode, x[:points], likelihood=Gaussian())
    assert any("depends on the others in its batch" in limit for limit in found.limits)
    squeezed = explain(lambda x: tuple(part.squeeze() for part in encode(x)), decode, x[:points], likelihood=Gaussian())
    assert squeezed.findings == explain(encode, decode, x[:points], likelihood=Gaussian()).findings
    assert not any("depends on the others" in limit for limit in squeezed.limits)


@pytest.mark.parametrize("turned", [False, True])
def test_rounding_is_no_preference_for_axes(turned):
    """A decoder of equal singular values is the same after every rotation, up to the last digit of float32."""
    generator = torch.Generator().manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(4, 4, generator=generator)).Q if turned else torch.eye(4)
    matrix, x = 2.0 * torch.eye(8, 4) @ rotation, torch.randn(FEW, 8, generator=generator)

    def encode(x):
        return x @ matrix / 5.0, torch.full((len(x), 4), math.log(0.2))

    found = explain(encode, lambda z: z @ matrix.T, x, likelihood=Gaussian())
    assert "The decoder is not shown to prefer their axes to rotated ones." in found.conclusion
    assert found["orthogonality"].value is None
    assert "equal singular values, which determine no directions" in found["orthogonality"].sentence
    assert "are not shown to be closer to orthogonal" in found["columns"].sentence
    assert "200 lie within that interval" in found["columns"].sentence
    # Where only some are equal, the others are as they were.
    partly = matrix @ rotation.T @ torch.diag(torch.tensor([1.0, 1.0, 0.5, 0.25]))
    found = explain(encode, lambda z: z @ partly.T, x, likelihood=Gaussian())
    assert "prefers their axes to rotated ones as far as equal singular values determine them" in found.conclusion


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_of_half_precision_are_explained(dtype):
    """The numbers are those of the same model in single precision, to the precision that there is."""
    encode, decode, x = linear([3.0, 1.0], turn=0.3)
    rough = explain(
        lambda x: tuple(part.to(dtype) for part in encode(x.double())),
        lambda z: decode(z.double()).to(dtype),
        x.to(dtype),
        likelihood=Gaussian(),
    )
    exact = explain(encode, decode, x, likelihood=Gaussian())
    for name in SLOPES:
        assert rough[name].value.estimate == pytest.approx(exact[name].value.estimate, abs=0.02)


def test_observations_that_carry_a_gradient_are_explained(monkeypatch):
    monkeypatch.setattr(import_module("axiswise.explanation._quantities.local_directions"), "LOCAL_BATCHES", 1)
    encode, decode, _ = linear([3.0, 1.0])
    x = torch.randn(100, 4, generator=torch.Generator().manual_seed(0)).double()  # enough for neighbourhoods
    graph = explain(encode, decode, x.clone().requires_grad_(), likelihood=Gaussian())
    assert graph["local directions"].value.estimate > 0.0
    assert graph.findings[:4] == explain(encode, decode, x, likelihood=Gaussian()).findings[:4]


class Whole(nn.Module):
    """A model as people write them: forward samples, and gives everything."""

    def __init__(self):
        super().__init__()
        self.down, self.decode = nn.Linear(9, 4), nn.Sequential(nn.Linear(2, 9), nn.Sigmoid())

    def encode(self, x):
        mean, log_variance = self.down(x).chunk(2, 1)
        return 3.0 * mean, log_variance - 3.0

    def forward(self, x):
        mean, log_variance = self.encode(x)
        return self.decode(mean + (0.5 * log_variance).exp() * torch.randn_like(mean)), mean, log_variance


def test_a_whole_model_is_taken_as_it_is():
    torch.manual_seed(0)
    model, x = Whole(), torch.rand(60, 9)
    apart = explain(model.encode, model.decode, x, likelihood=Bernoulli())
    whole = explain(model, lambda z: {"reconstruction": model.decode(z)}, x, likelihood=Bernoulli())
    assert whole.findings == apart.findings
    assert whole.limits == apart.limits  # what it draws for reconstructions does not matter


def test_codes_without_noise():
    encode, decode, x = linear([3.0, 1.0])
    found = explain(lambda x: DeterministicParameters(encode(x)[0]), decode, x)
    assert found["law"].value is None
    assert found["orthogonality"].value.estimate == pytest.approx(0.0, abs=1e-7)
    assert "overlap" not in found.baselines
    assert any(limit.startswith("The encoder gives codes without noise") for limit in found.limits)
    assert any(limit.startswith("The likelihood is a guess: Gaussian pixels.") for limit in found.limits)


def test_one_active_latent_and_none():
    encode, decode, x = linear([3.0, 0.01])
    one = explain(encode, decode, x, likelihood=Gaussian())
    assert one["active"].value.estimate == 1
    assert one["active"].sentence.startswith("1 of 2 latents is active (")
    assert "): z0. The other one carries almost no information." in one["active"].sentence
    assert one["orthogonality"].value is None
    reason = "The distance to orthogonality is undefined. With one latent active there is no second direction"
    assert any(limit.startswith(reason) for limit in one.limits)
    assert one["law"].value.estimate == pytest.approx(0.0, abs=1e-12)
    encode, decode, x = linear([0.01, 0.01])
    none = explain(encode, decode, x, likelihood=Gaussian())
    assert "the model has collapsed" in none["active"].sentence
    assert none["law"].value is None
    assert any(limit.startswith("No latent is active") for limit in none.limits)


def clusters(count, always=0):
    """Each of `count` latents is used by one cluster alone, and further ones by all."""
    generator = torch.Generator().manual_seed(0)
    place = torch.arange(FEW) % count
    values = torch.randn(FEW, 1 + always, generator=generator).double()
    x = torch.cat([nn.functional.one_hot(place, count).double(), values], 1)

    def encode(x):
        own = x[:, :count]
        variance = torch.where(own > 0.5, 0.01, 1.0)
        also = torch.full((len(x), always), 0.01).double()
        return torch.cat([own * x[:, count : count + 1], x[:, count + 1 :]], 1), torch.cat([variance, also], 1).log()

    matrix = torch.randn(count + always, x.shape[1], generator=generator).double()
    return encode, lambda z: z @ matrix, x


def test_latents_that_few_points_use_are_not_collapsed():
    encode, decode, x = clusters(10)
    found = explain(encode, decode, x, likelihood=Gaussian())
    total = found.arrays["kl"].sum()
    assert total > 1.5
    assert found["active"].sentence.startswith("None of 10 latents is active (")
    for text in (found["active"].sentence, found.conclusion, *found.limits):
        assert "has collapsed" not in text
        assert "almost no information" not in text
    assert f"posteriors differ from the prior by {total:.2g} nats" in found.conclusion
    assert f"z0 ({found.arrays['kl'][0]:.2f} nats)" in found["active"].sentence
    assert "not polarized" in found["active"].sentence


def test_a_few_wide_posteriors_are_no_collapse():
    encode, decode, x = linear([5.0, 5.0, 4.0])

    def outlier(x):
        mean, log_variance = encode(x)
        return mean, torch.where(torch.arange(len(x))[:, None] == 0, math.log(100.0), log_variance)

    found = explain(outlier, decode, x, likelihood=Gaussian())
    assert found["active"].value.estimate == 0
    assert found["active"].value.high > 0
    assert "is not shown to have collapsed" in found.conclusion
    assert not any("collapsed to the prior" in limit for limit in found.limits)


def test_latents_between_active_and_passive_carry_information():
    encode, decode, x = clusters(10, always=1)
    found = explain(encode, decode, x, likelihood=Gaussian())
    assert "1 of 11 latents is active (" in found["active"].sentence
    assert "): z10. Between active and passive, by mean KL: z0 (" in found["active"].sentence
    assert "almost no information" not in found["active"].sentence
    assert "most precise" not in found["active"].sentence
    silent = explain(*linear([3.0, 2.0, 0.01]), likelihood=Gaussian())["active"].sentence
    assert silent.endswith("): z0, z1, the most precise first. The other one carries almost no information.")


def test_other_priors_likelihoods_and_posteriors():
    encode, decode, x = linear([3.0, 1.0])
    wide = explain(encode, decode, x, likelihood=Gaussian(), prior=Anisotropic((4.0, 1.0)))
    assert wide["law"].value.estimate > 0.01
    assert wide["law"].baselines == ()
    heavy = explain(encode, decode, x, likelihood=Gaussian(), prior=StudentT(5.0))
    assert heavy["law"].value is None
    assert any("The encoder's law is one of Gaussian priors. Got StudentT" in limit for limit in heavy.limits)
    sharp = explain(encode, decode, x, likelihood=Laplace())
    assert sharp["law"].value is None

    def full(x):
        mean, log_variance = encode(x)
        return FullParameters(mean, torch.diag_embed((0.5 * log_variance).exp()))

    same = explain(full, decode, x, likelihood=Gaussian())
    assert same["law"].value.estimate == pytest.approx(0.0, abs=1e-12)


def test_doubts_are_reported():
    encode, decode, x = linear([3.0, 1.0])
    few = explain(encode, decode, x[:20], likelihood=Gaussian())
    assert any(limit.startswith("20 points are few") for limit in few.limits)
    assert any("too few for neighbourhoods of 50" in limit for limit in few.limits)
    wide = explain(lambda x: (encode(x)[0], encode(x)[1].exp()), decode, x, likelihood=Gaussian())
    assert any(limit.startswith("Every posterior is at least as wide") for limit in wide.limits)
    condition = "If what `encode` returns second is the logarithm of variances, then "
    assert wide.conclusion.startswith(condition)
    assert wide["active"].sentence.startswith(condition)
    assert "has collapsed" not in str(wide)
    named = explain(lambda x: {"mu": encode(x)[0], "log_var": 0.0 * x[:, :2] + 0.5}, decode, x, likelihood=Gaussian())
    assert condition not in str(named)
    assert not any(limit.startswith("Every posterior is at least as wide") for limit in named.limits)
    batch = explain(lambda x: (encode(x)[0] - encode(x)[0].mean(0), encode(x)[1]), decode, x + 1, likelihood=Gaussian())
    assert any("depends on the others in its batch" in limit for limit in batch.limits)
    drawn = explain(lambda x: (encode(x)[0] + torch.randn(1), encode(x)[1]), decode, x, likelihood=Gaussian())
    assert any("draws random numbers of its own" in limit for limit in drawn.limits)
    equal = explain(*linear([2.0, 2.0])[:2], x, likelihood=Gaussian())
    assert any("Neighbouring singular values" in limit for limit in equal.limits)


def test_levels_that_are_stored_as_floats_are_doubted():
    encode, decode, x = linear([3.0, 1.0])
    levels = np.arange(FEW) % 3
    stored = explain(encode, decode, x[:FEW], factors=levels.astype(float), factor_names=["digit"], points=FEW)
    assert any(limit.startswith("digit: whole numbers stored as floats, read as cont") for limit in stored.limits)
    assert not any("stored as floats" in limit for limit in explain(encode, decode, x[:FEW], factors=levels).limits)


def test_constant_factors_are_a_reason():
    encode, decode, x = linear([3.0, 1.0])
    found = explain(encode, decode, x, factors=np.zeros((FEW, 1), int), likelihood=Gaussian())
    assert found["scores"].value is None
    assert any("The factors cannot be scored. At least one factor must vary" in limit for limit in found.limits)


def test_a_constant_factor_is_left_out_aloud():
    encode, decode, x = linear([3.0, 1.0])
    factors = {"side": np.arange(FEW) % 3, "colour": np.zeros(FEW, int)}
    found = explain(encode, decode, x, factors=factors, likelihood=Gaussian())
    alone = explain(encode, decode, x, factors={"side": factors["side"]}, likelihood=Gaussian())
    assert found["scores"].value == alone["scores"].value
    left_out = "Constant among these points, and left out of MIG and SAP: colour."
    assert left_out in found["scores"].sentence
    assert left_out in found.limits
    assert "Constant" not in str(alone)


def test_what_counting_makes_of_noise_stands_beside_what_latents_carry():
    encode, decode, x = linear([3.0, 1.0])
    noise = np.random.default_rng(0).integers(0, 10, size=FEW)
    found = explain(encode, decode, x, factors={"noise": noise}, likelihood=Gaussian())
    carried, shuffled = re.search(r"\((\d+) % of its entropy, (\d+) % for codes shuffled\)", str(found)).groups()
    # Counts of 20 bins and 10 levels give about 19 · 9 / (2 · 95) nats of an entropy of 2.3, where bins are full.
    assert int(shuffled) > 15
    assert int(carried) == pytest.approx(int(shuffled), abs=10)
    collapsed = explain(lambda x: (1e-3 * encode(x)[0], 0.0 * encode(x)[1]), decode, x, factors={"noise": noise})
    assert "carries most" not in collapsed["scores"].sentence


ENCODE, DECODE, POINTS = linear([3.0, 1.0])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"x": [[0.0] * 4] * 4}, r"`x` must be a floating-point tensor of observations \(n, …\). Got list"),
        ({"x": torch.zeros(1, 4)}, r"`x` must hold at least 2 observations. Got 1"),
        ({"encode": lambda x: x}, r"`encode` must return a pair \(mean, log-variance\) of tensors. Got one tensor"),
        ({"encode": lambda x: (x, x[:, :2])}, r"Mean and log-variance must have the same shape"),
        ({"encode": lambda x: (x * torch.nan, x)}, r"The mean that `encode` returned must be finite"),
        ({"decode": lambda z: z}, r"as an observation has, 4 of shape \(4,\). Got 2 of shape \(2,\)"),
        ({"decode": lambda z: DECODE(z) * torch.nan}, r"What `decode` returned must be finite. Got 380 values"),
        ({"likelihood": Bernoulli()}, r"What `decode` returns must lie in 0 … 1 .*torch.sigmoid"),
        ({"likelihood": Bernoulli(), "decode": lambda z: DECODE(z).sigmoid()}, r"`x` must lie in 0 … 1 with a Bern"),
        ({"beta": 0}, r"`beta` must be positive and finite, or None where it is unknown. Got 0"),
        ({"points": 1}, r"`points` must be at least 2. Got 1"),
        ({"prior": Anisotropic((1.0, 1.0, 1.0))}, r"`prior` must have as many latents as the encoder, 2. Got 3"),
        ({"factors": np.zeros((3, 1))}, r"`factors` must have one row for each of the 95 samples"),
        ({"factors": np.zeros((FEW, 1)), "factor_names": ["a", "b"]}, r"as many as the factors, 1. Got 2"),
    ],
)
def test_what_cannot_be_explained_is_named(changes, reason, as_installed):
    arguments = {"encode": ENCODE, "decode": DECODE, "x": POINTS, "likelihood": Gaussian(), **changes}
    with pytest.raises(AxiswiseError, match=reason):
        explain(**arguments)


def test_rotations_are_uniform():
    """Entries of a uniformly random rotation of three axes are uniform on −1 … 1 (Archimedes)."""
    turns = random_rotations(0, 4000, 3)
    assert torch.allclose(turns @ turns.mT, torch.eye(3, dtype=torch.double).expand(4000, 3, 3), atol=1e-12)
    for row, column in ((0, 0), (1, 2), (2, 1)):
        assert stats.kstest(turns[:, row, column].numpy(), "uniform", (-1.0, 2.0)).pvalue > 1e-3
