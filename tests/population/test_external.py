"""A population of models that were trained elsewhere: it encodes, decodes, is measured and reported like any other."""

import functools
from collections import OrderedDict, namedtuple
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Independent, Normal
from torch.nn import functional

import axiswise as aw
from axiswise import data, distributions, evaluate, geometry, grid, models, objectives, optimizers, scores, train
from axiswise.distributions import Bernoulli, DeterministicParameters, DiagonalParameters, FullParameters, Gaussian
from axiswise.errors import AxiswiseError, NotDefined
from axiswise.population._external import Reader, as_posterior, as_reconstruction, evaluating

SQUARE = data.synth_linear(samples=300)


class Plain(nn.Module):
    """A model as people write them: one module, two methods."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.encoder, self.decoder = nn.Linear(3, 4), nn.Linear(2, 3)
        for parameter in self.parameters():
            parameter.data = torch.randn(parameter.shape, generator=generator)

    def encode(self, x):
        return self.encoder(x).chunk(2, -1)

    def decode(self, z):
        return self.decoder(z)


@pytest.fixture
def plain():
    return [Plain(seed) for seed in range(3)]


@pytest.fixture
def population(plain):
    return aw.from_models([(model.encode, model.decode) for model in plain], beta=2)


def test_it_encodes_and_decodes_with_members_first(plain, population):
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    q = population.encode(x)
    assert isinstance(q, DiagonalParameters)
    assert len(population) == 3
    for row, model in enumerate(plain):
        mean, log_variance = model.encode(x)
        assert torch.equal(q.mean[row], mean)
        assert torch.equal(q.log_variance[row], log_variance)
        assert torch.equal(population.decode(q.mean)[row], model.decode(mean))
        one = population[row]
        assert torch.equal(one.encode(x).mean, mean)
        assert torch.equal(one.decode(mean), model.decode(mean))
        assert (one.encoder, one.decoder) == (model.encode, model.decode)
    shared = torch.zeros(4, 2)
    assert population.decode(shared).shape == (3, 4, 3)


def test_measures_agree_with_those_of_a_population_trained_here():
    """Taken out of the library as plain callables and put back, models measure as they did."""
    fast = optimizers.Adam(lr=0.02)
    members = grid(
        model=models.linear(3, 2), objective=objectives.BetaVAE(0.01), steps=150, seed=range(3), optimizer=fast
    )
    trained = train(members, SQUARE)
    external = aw.from_models([(model.encode, model.decode) for model in trained], beta=0.01)
    measures = [scores.mig, geometry.dto, geometry.encoder_law, scores.udr, scores.active_units]
    before, after = (evaluate(which, SQUARE, measures, points=200) for which in (trained, external))
    assert [row["measure"] for row in before] == [row["measure"] for row in after]
    assert [row["value"] for row in after] == pytest.approx([row["value"] for row in before], rel=1e-4, abs=1e-6)


def test_rows_say_what_is_known_and_what_is_not(population):
    rows = evaluate(population, SQUARE, [functools.partial(geometry.dto, latents="all"), scores.udr], points=50)
    assert {row["architecture"] for row in rows} == {"external"}
    assert {row["latents"] for row in rows} == {2}
    assert {row["optimizer"] for row in rows} == {row["steps"] for row in rows} == {None}
    assert [row["hyperparameters"] for row in rows[:3]] == [{"beta": 2}] * 3
    assert len({row["member"] for row in rows}) == 3
    assert all(row["value"] is not None for row in rows)


def test_an_unknown_beta_is_a_reason(plain):
    rows = evaluate(aw.from_models([(plain[0].encode, plain[0].decode)]), SQUARE, [geometry.encoder_law], points=20)
    assert [(row["value"], row["reason"]) for row in rows] == [(None, "Unknown has no β")]


def test_a_model_without_decoder_is_measured_as_far_as_it_goes(plain):
    alone = aw.from_models([(plain[0].encode, None)])
    with pytest.raises(NotDefined, match=r"Expected a model with a decoder. Got one of Unknown, which has none"):
        _ = alone[0].decoder
    mig, dto = evaluate(alone, SQUARE, [scores.mig, geometry.dto], points=100)
    assert mig["value"] is not None
    assert (dto["value"], dto["reason"]) == (None, "the model has no decoder")
    with pytest.raises(AxiswiseError, match=r"These members have no decoder"):
        alone.decode(torch.zeros(1, 2))
    with pytest.raises(AxiswiseError, match=r"These members have no decoder"):  # since one has none
        aw.from_models([(plain[0].encode, plain[0].decode), (plain[1].encode, None)]).decode(torch.zeros(1, 2))


def test_a_report_can_be_made_of_its_rows(population, tmp_path):
    evaluate(population, SQUARE, [scores.mig, geometry.dto], points=50, out=tmp_path)
    evaluate(population, SQUARE, [geometry.hadamard_defect], points=50, out=tmp_path)
    page = aw.report.write_report(tmp_path).read_text()
    assert "3 members" in page
    assert "Unknown" not in page


@pytest.mark.parametrize("call", [lambda p: p.save("somewhere"), lambda p: p.to("cpu")])
def test_weights_of_others_are_neither_saved_nor_moved(population, call):
    with pytest.raises(AxiswiseError, match=r"cannot be saved: it calls your functions|cannot be moved from here"):
        call(population)


def test_feature_maps_are_flattened_and_put_back():
    shapes = []

    def encode(x):
        return x[:, :, ::2, ::2], torch.zeros_like(x[:, :, ::2, ::2])

    def decode(z):
        shapes.append(tuple(z.shape))
        return functional.interpolate(z, scale_factor=2.0)

    pair = aw.from_models([(encode, decode)])
    x = torch.rand(5, 2, 4, 4)
    q = pair.encode(x)
    assert q.mean.shape == (1, 5, 8)
    assert torch.equal(q.mean[0], x[:, :, ::2, ::2].flatten(1))
    assert pair.decode(q.mean).shape == (1, 5, 2, 4, 4)
    assert shapes == [(5, 2, 2, 2)]


@pytest.mark.parametrize(
    ("likelihood", "raw"), [(Gaussian(), lambda mean: mean), (Bernoulli(), torch.logit)], ids=["gaussian", "bernoulli"]
)
def test_raw_outputs_are_those_that_have_the_mean(likelihood, raw):
    def encode(x):
        return x, x

    pair = aw.from_models([(encode, torch.sigmoid)], likelihood=likelihood)
    z = torch.linspace(-3.0, 3.0, 8).reshape(4, 2)
    assert torch.allclose(pair.decode(z, raw=True)[0], raw(torch.sigmoid(z)), atol=1e-6)
    own = aw.from_models([(encode, lambda z, raw=False: z if raw else torch.sigmoid(z))], likelihood=likelihood)
    assert torch.equal(own.decode(z, raw=True)[0], z)


def test_a_raw_output_that_no_mean_has_is_refused():
    pair = aw.from_models([(lambda x: (x, x), lambda z: z)], likelihood=distributions.Laplace())
    with pytest.raises(AxiswiseError, match=r"The raw output does not follow from a mean with Laplace"):
        pair.decode(torch.zeros(1, 2), raw=True)


class Noisy(nn.Module):
    """Dropout and batch norm, which only evaluation mode makes a function of one row."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5), nn.Linear(3, 4))

    def encode(self, x):
        return self.network(x).chunk(2, -1)


def referred(model):
    """Ways in which a function may refer to a module."""

    class Holder:
        def __init__(self):
            self.parts = {"model": model}

        def encode(self, x):
            return self.parts["model"].encode(x)

    def encode(x, other=None):
        return model.encode(x)

    return {
        "bound method": model.encode,
        "closure": lambda x: model.encode(x),
        "partial": functools.partial(encode, other=1),
        "object": Holder().encode,
    }


@pytest.mark.parametrize("way", list(referred(Noisy())))
def test_modules_are_evaluated_in_evaluation_mode_and_put_back(way):
    torch.manual_seed(0)
    model = Noisy()
    model.network[0].eval()  # not all in the same mode
    before = {name: layer.training for name, layer in model.named_modules()}
    statistics = model.network[0].running_mean.clone()
    x = torch.randn(6, 3)
    reader = Reader(referred(model)[way], None)
    assert torch.equal(reader.encode(x).mean, reader.encode(x).mean)
    assert torch.allclose(reader.encode(x).mean[:1], reader.encode(x[:1]).mean, atol=1e-6)
    assert {name: layer.training for name, layer in model.named_modules()} == before
    assert torch.equal(model.network[0].running_mean, statistics)


def test_modes_are_put_back_when_something_goes_wrong():
    model = Noisy()

    def fail():
        with evaluating(model):
            assert not model.training
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert model.training
    assert model.network[1].training


MEAN, LOG_VARIANCE = torch.ones(4, 2), torch.zeros(4, 2)
IMAGES = torch.zeros(4, 1, 3, 3)


class Named(NamedTuple):
    """What a forward method may return."""

    z: torch.Tensor
    logvar: torch.Tensor
    mu: torch.Tensor


class Output(OrderedDict):
    """A mapping whose items are attributes, too, as pythae's and those of transformers are."""

    def __init__(self, **parts):
        super().__init__(parts)
        vars(self).update(parts)


@pytest.mark.parametrize(
    "output",
    [
        (MEAN, LOG_VARIANCE),
        [MEAN, LOG_VARIANCE],
        DiagonalParameters(MEAN, LOG_VARIANCE),
        Normal(MEAN, (0.5 * LOG_VARIANCE).exp()),
        Independent(Normal(MEAN, torch.ones(4, 2)), 1),
        (IMAGES, MEAN, LOG_VARIANCE),
        [IMAGES.flatten(1), IMAGES, MEAN, LOG_VARIANCE, torch.zeros(()), None],
        {"log_var": LOG_VARIANCE, "mean": MEAN, "loss": torch.zeros(())},
        Named(z=MEAN + 1.0, logvar=LOG_VARIANCE, mu=MEAN),
        Output(embedding=MEAN, log_covariance=LOG_VARIANCE),
        SimpleNamespace(mean=MEAN, logvar=LOG_VARIANCE, sample=lambda: None),
        SimpleNamespace(latent_dist=SimpleNamespace(mean=MEAN, logvar=LOG_VARIANCE)),
    ],
    ids=[
        *("tuple", "list", "named tuple", "normal", "independent", "forward", "forward with more", "mapping"),
        *("names before places", "output object", "object", "object within"),
    ],
)
def test_many_ways_to_return_a_posterior(output):
    read = as_posterior(output, 4, pixels=9)
    assert isinstance(read, DiagonalParameters)
    assert torch.equal(read.mean, MEAN)
    assert torch.equal(read.variance, torch.ones(4, 2))


HALF = torch.full((4, 2), 0.5)


@pytest.mark.parametrize(
    "output",
    [
        namedtuple("P", "mean std")(MEAN, HALF),
        namedtuple("P", "scale loc")(HALF, MEAN),
        namedtuple("P", "recon mu sigma")(IMAGES, MEAN, HALF),
        namedtuple("P", "mean variance")(MEAN, HALF.square()),
        {"mean": MEAN, "std": HALF},
        {"z_mean": MEAN, "log_sigma": HALF.log()},
        SimpleNamespace(mu=MEAN, var=HALF.square(), logvar=2.0 * HALF.log()),
        (IMAGES, Normal(MEAN, HALF)),
        (Normal(MEAN, HALF), MEAN),
        {"q": Normal(MEAN, HALF), "recon": IMAGES},
        [Independent(Normal(IMAGES, 0.1), 3), Normal(MEAN, HALF)],
        torch.distributions.MultivariateNormal(MEAN, torch.diag_embed(HALF.square())),
        (MEAN, torch.distributions.LowRankMultivariateNormal(MEAN, torch.zeros(4, 2, 1), HALF.square())),
    ],
    ids=[
        *(
            "mean std",
            "scale loc",
            "recon mu sigma",
            "mean variance",
            "mapping",
            "log sigma",
            "object",
            "beside images",
        ),
        *("beside a code", "in a mapping", "two", "multivariate", "low rank"),
    ],
)
def test_names_and_distributions_decide_what_a_width_is(output):
    """A standard deviation of ½, however it is returned, is never taken for a log-variance of ½."""
    read = as_posterior(output, 4, pixels=9)
    assert torch.equal(read.mean, MEAN)
    torch.testing.assert_close(read.variance, HALF.square())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened_and_the_decoder_gets_what_the_encoder_gave(dtype):
    weight = torch.eye(2, dtype=dtype)
    reader = Reader(lambda x: (x @ weight, x), lambda z: z @ weight)
    x = torch.ones(4, 2, dtype=dtype)
    mean = reader.encode(x).mean
    assert mean.dtype == reader.decode(mean).dtype == torch.float32
    assert torch.equal(reader.decode(mean), torch.ones(4, 2))


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (torch.zeros(4, 4), r"Got one tensor of shape \(4, 4\). If that is both side by side"),
        ((MEAN, MEAN, MEAN), r"Got 3 parts: a tensor of shape \(4, 2\), a tensor of .* so that it returns these two"),
        ((MEAN, 0.0), r"Got 2 parts: a tensor of shape \(4, 2\), float"),
        (
            {"mean": MEAN},
            r"Got dict with the names mean. Wrap it so that it does. Names that are understood: mean, mu, ",
        ),
        (
            namedtuple("Output", "recon z_code z_width")(IMAGES, MEAN, MEAN),
            r"Got Output with the names recon, z_code, z",
        ),
        (torch.distributions.Laplace(MEAN, torch.ones(4, 2)), r"Got Laplace. Wrap it so that it does.$"),
        ((Normal(MEAN, 1.0), Normal(MEAN, 2.0)), r"2 parts: Normal, Normal"),
        ((MEAN, torch.zeros(4, 1)), r"the same shape. Got \(4, 2\) and \(4, 1\); .*expand_as"),
        ((torch.zeros(3, 2), torch.zeros(3, 2)), r"a row of latents for each of 4 observations. Got shape \(3, 2\)"),
        ((torch.zeros(4), torch.zeros(4)), r"a row of latents for each of 4 observations. Got shape \(4,\)"),
        (FullParameters(MEAN, torch.zeros(4, 2, 3)), r"must have shape \(4, 2, 2\). Got \(4, 2, 3\)"),
    ],
)
def test_what_is_no_posterior_is_named(output, reason, as_installed):
    with pytest.raises(AxiswiseError, match=reason):
        as_posterior(output, 4)


@pytest.mark.parametrize(
    "output",
    [
        IMAGES,
        (IMAGES, torch.zeros(())),
        (MEAN, IMAGES, LOG_VARIANCE),
        {"reconstruction": IMAGES},
        Output(loss=torch.zeros(()), recon_x=IMAGES),
        SimpleNamespace(sample=IMAGES),
        torch.distributions.Bernoulli(logits=IMAGES - torch.inf),
    ],
    ids=["tensor", "with a loss", "with the code", "mapping", "output object", "object", "distribution"],
)
def test_many_ways_to_return_a_reconstruction(output):
    assert torch.equal(as_reconstruction(output, 4, pixels=9), IMAGES)


def test_a_mean_and_a_variance_of_pixels_are_not_guessed_apart(as_installed):
    reason = r"Got tuple of a tensor of shape \(4, 1, 3, 3\), a tensor of .* lambda z: decode\(z\)\[0\]"
    with pytest.raises(AxiswiseError, match=reason):
        as_reconstruction((IMAGES, IMAGES), 4, pixels=9)


def test_output_objects_are_measured_like_tensors(plain):
    model = plain[0]

    def encode(x):
        mean, log_variance = model.encode(x)
        return Output(embedding=mean, log_covariance=log_variance)

    def decode(z):
        return Output(reconstruction=model.decode(z))

    both = aw.from_models([(model.encode, model.decode), (encode, decode)])
    every = functools.partial(geometry.dto, latents="all")
    first, second = (row["value"] for row in evaluate(both, SQUARE, [every], points=50))
    assert first == second


@pytest.mark.parametrize(
    ("encode", "decode", "reason"),
    [
        (lambda x: (x @ torch.zeros(5, 2), x), None, r"`encode` must take a tensor of shape \(4, 3\).*RuntimeError"),
        (lambda x: (x / 0.0, x), None, r"The mean that `encode` returned must be finite. Got 12 values .* row 0"),
        (lambda x: (x, x), lambda z: {"x": z}, r"`decode` must return a tensor E\[x | z\], .* Got dict"),
        (lambda x: (x, x), lambda z: z.sum(), r"must return a row for each row of z, .* Got shape \(\)"),
        (lambda x: DeterministicParameters(x), None, r"must return DiagonalParameters.*Got DeterministicParameters"),
    ],
)
def test_a_model_that_cannot_be_read_says_why(encode, decode, reason):
    pair = aw.from_models([(encode, decode)])
    with pytest.raises(AxiswiseError, match=reason):
        pair.decode(pair.encode(torch.ones(4, 3)).mean)


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (
            np.zeros((2, 3)),
            r"`x` must be a floating-point tensor of observations \(n, …\). Got ndarray; torch.as_tensor",
        ),
        (torch.zeros(2, 3, dtype=torch.uint8), r"Got shape \(2, 3\), torch.uint8. Bytes become grey values"),
        (torch.zeros(0, 3), r"none of its axes empty. Got shape \(0, 3\)"),
        (torch.full((2, 3), torch.nan), r"`x` must be finite. Got 6 values that are NaN or infinite, in 2 of 2 rows"),
        (torch.zeros(2, 3, device="meta"), r"`x` must hold numbers. Got a tensor on the device meta"),
    ],
)
def test_observations_that_are_none_are_named(x, reason, as_installed):
    with pytest.raises(AxiswiseError, match=reason):
        Reader(lambda x: (x, x), None).encode(x)


def test_arrays_are_no_tensors(as_installed):
    square = aw.data.synth_linear(samples=20)
    members = aw.grid(model=aw.models.linear(3, 2), objective=aw.objectives.BetaVAE(), steps=0)
    population = aw.train(members, square, progress=False)
    for encode in (population.encode, population[0].encode):
        with pytest.raises(AxiswiseError, match=r"`x` must be a floating-point tensor .* Got ndarray; torch.as_tensor"):
            encode(np.zeros((2, 3)))
    with pytest.raises(AxiswiseError, match=r"Got FactorDataset; dataset.x\(torch.arange\(len\(dataset\)\)\) gives"):
        population.encode(square)
    with pytest.raises(AxiswiseError, match=r"Expected an integer tensor of row numbers. Got ndarray; torch.as_tensor"):
        square.x(np.arange(3))


def test_no_models_and_no_pairs_are_refused(as_installed):
    with pytest.raises(AxiswiseError, match=r"A population needs at least one model. Got none"):
        aw.from_models([])
    with pytest.raises(AxiswiseError, match=r"Every model must be a pair \(encode, decode\).*Got Plain as model 0"):
        aw.from_models([Plain(0)])
