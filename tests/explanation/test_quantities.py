"""The numbers behind an explanation can be had without its sentences, and the sentences without the model."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from axiswise import explain
from axiswise.distributions import DeterministicParameters, Gaussian, Laplace, StandardNormal, StudentT
from axiswise.explanation._observation import observe
from axiswise.explanation._quantities import LocalDirections, Quantities, Undefined, arrays, compute
from axiswise.explanation._quantities._baselines import Rank, baseline, jackknife, rank
from axiswise.explanation._sentences import write_findings
from axiswise.population._external import Reader
from axiswise.statistics import Interval

LENGTHS, ANGLE, POINTS = (3.0, 1.0), 0.3, 60


def model(lengths=LENGTHS, angle=ANGLE):
    """A linear model with the exact posterior, whose two columns are rotated against the latent axes."""
    cosine, sine = math.cos(angle), math.sin(angle)
    rotation = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.double)
    matrix = torch.eye(4, 2).double() * torch.tensor(lengths, dtype=torch.double) @ rotation.T
    precision = torch.eye(2).double() + matrix.T @ matrix

    def encode(x):
        return x @ matrix @ precision.inverse(), -precision.diagonal().log().expand(len(x), 2)

    return encode, lambda z: z @ matrix.T, matrix


def observations(decode):
    z = torch.randn(POINTS, 2, generator=torch.Generator().manual_seed(0)).double()
    return decode(z) + torch.randn(POINTS, 4, generator=torch.Generator().manual_seed(1)).double()


def observe_model(encode, decode, *, likelihood=Gaussian(), prior=StandardNormal()):
    return observe(Reader(encode, decode), observations(decode), likelihood, prior, seed=0)


def numbers(encode, decode, *, factors=None, beta=1.0, **settings) -> Quantities:
    return compute(observe_model(encode, decode, **settings), factors, beta, seed=0)


def test_the_numbers_of_a_linear_model_are_those_in_closed_form():
    encode, decode, matrix = model()
    found = numbers(encode, decode)
    assert found.activity.interval.estimate == 2
    assert found.activity.criterion == "variance"
    assert found.orthogonality.interval.estimate == pytest.approx(math.sqrt(4 - 4 * math.cos(ANGLE)), abs=1e-12)
    assert np.ptp(found.orthogonality.per_point) == pytest.approx(0.0, abs=1e-12)
    assert found.orthogonality.singular_values[0] == pytest.approx(LENGTHS, abs=1e-12)
    assert found.orthogonality.gap == pytest.approx((LENGTHS[0] - LENGTHS[1]) / LENGTHS[0], abs=1e-12)
    first, second = (matrix / matrix.norm(dim=0)).T
    cosine = abs(float(first @ second))
    assert found.columns.cosines[0, 1] == pytest.approx(cosine, abs=1e-12)
    assert found.columns.closest == pytest.approx(math.degrees(math.acos(cosine)), abs=1e-9)
    assert found.law.interval.estimate == pytest.approx(0.0, abs=1e-12)
    assert (found.law.beta, found.law.best_beta) == (1.0, pytest.approx(1.0, abs=1e-12))
    assert found.law.measured == pytest.approx(found.law.expected, abs=1e-12)
    assert found.overlap.largest == math.log(POINTS)
    assert found.overlap.interval.estimate < found.overlap.largest
    assert found.effects.per_latent[found.effects.order[0]] == found.effects.per_latent.max()
    assert found.local_directions == Undefined("too few points", "50")
    assert found.scores is None


def test_baselines_are_the_quantiles_of_their_draws():
    encode, decode, _ = model()
    found = numbers(encode, decode)
    for quantity in (found.orthogonality, found.columns):
        rotated = quantity.baselines[0]
        assert rotated.value == quantity.rotated.mean()
        assert (rotated.low, rotated.high) == tuple(np.quantile(quantity.rotated, (0.025, 0.975)))


@pytest.mark.parametrize("latents", [2, 3])
def test_draws_of_the_prior_are_as_far_from_it_as_independent_ones(latents):
    """Against NumPy's normal draws; for these 60 points the mean over 200 sets varies by about 0.003."""
    drawn = np.sort(np.random.default_rng(0).normal(size=(2000, POINTS)), axis=1)
    quantiles = stats.norm.ppf((np.arange(POINTS) + 0.5) / POINTS)
    expected = np.abs(drawn - quantiles).mean()

    def encode(x):
        return x[:, :latents], torch.full((len(x), latents), -3.0).double()

    found = numbers(encode, lambda z: torch.cat([z, z], 1)[:, :4])
    assert found.aggregate.baselines[0].value == pytest.approx(expected, abs=0.01)


def test_rotations_within_the_interval_count_as_good():
    """Effects that bend, so that intervals have a width which holds rotations above the estimate."""
    encode, decode, _ = model(angle=0.1)
    found = numbers(encode, lambda z: decode(z + 0.7 * (2.0 * z).sin().flip(-1)))
    for quantity in (found.orthogonality, found.columns):
        as_good = int((quantity.rotated <= quantity.interval.high).sum())
        assert quantity.rank == Rank(as_good, 200)
        assert as_good > int((quantity.rotated <= quantity.interval.estimate).sum())


@pytest.mark.parametrize(
    ("interval", "sentence"),
    [
        ((20.0, 19.0, 21.0), "Active latents follow the local principal directions of the data better than"),
        ((60.0, 59.8, 60.2), "Active latents follow the local principal directions of the data slightly better than"),
        (
            (60.0, 58.8, 61.2),
            "Active latents are not shown to follow the local principal directions of the data b",
        ),
        ((60.0, math.nan, math.nan), "Active latents are not shown to follow"),
    ],
)
def test_better_than_rotated_needs_an_interval_that_excludes_the_rotated(interval, sentence):
    rotated, one = np.linspace(60.5, 61.5, 20), np.ones(2)
    value = Interval(*interval, 0.95, 8, "Student t")
    angles = LocalDirections(
        value, (baseline("rotated", rotated),), rank(rotated, value.high), 62.0, 50, one, one, rotated
    )
    encode, decode, _ = model()
    observed = observe_model(encode, decode)
    findings, _ = write_findings(observed, numbers(encode, decode)._replace(local_directions=angles), 1.0, ())
    assert {finding.name: finding for finding in findings}["local directions"].sentence.startswith(sentence)


def test_the_other_headlines_need_an_interval_too():
    encode, decode, _ = model()
    observed = observe_model(encode, decode)
    found = numbers(encode, decode, factors=np.arange(POINTS)[:, None] % 3)

    def sentence(name, **changes):
        changed = found._replace(**{name: getattr(found, name)._replace(**changes)})
        findings, _ = write_findings(observed, changed, 1.0, ["third"])
        return {one.name: one for one in findings}["active" if name == "activity" else name].sentence

    def between(low, high):
        return Interval((low + high) / 2, low, high, 0.95, POINTS, "Student t")

    draws = found.aggregate.baselines[0]
    near, far = 0.5 * draws.high, 2.0 * draws.high
    assert "is not shown to differ from the prior" in sentence("aggregate", interval=between(near, far))
    assert "does not fit the prior" in sentence("aggregate", interval=between(far, 2.0 * far))
    largest = found.overlap.largest
    assert "hardly overlap" in sentence("overlap", interval=between(0.96 * largest, largest))
    assert "observations overlap" in sentence("overlap", interval=between(0.94 * largest, largest))
    assert "is shown to change" in sentence("effects", lead=between(-0.1, 0.5))
    assert "changes observations most" in sentence("effects", lead=between(0.1, 0.5))
    assert "(mean posterior variance below 0.8 of the prior's; 95 %: 1 to 2)" in sentence(
        "activity", interval=between(1, 2)
    )
    assert "variances are those" in sentence("law", interval=between(0.01, 0.02))
    assert "variances are roughly those" in sentence("law", interval=between(0.01, 0.2))
    assert "variances are not shown to be those" in sentence("law", interval=between(0.3, 0.6))
    assert "variances are not those" in sentence("law", interval=between(0.5, 0.6))
    assert "are not shown to stand for factors better" in sentence("scores", rank=Rank(1, 20))
    assert "Single latents stand for factors" in sentence("scores", rank=Rank(0, 20))


def test_a_lead_of_equal_latents_is_not_shown():
    """Two latents with the same effect: whichever has the wider samples is not said to change most."""
    equal = numbers(*model((2.0, 2.0), angle=0.0)[:2]).effects
    assert equal.lead.low < 0.0 < equal.lead.estimate
    assert numbers(*model(angle=0.0)[:2]).effects.lead.low > 0.0


def test_a_rank_beats_chance_when_at_most_one_in_twenty_is_as_good():
    assert Rank(9, 199).beats_chance
    assert not Rank(10, 199).beats_chance


def test_the_jackknife_of_a_mean_is_students():
    """Blocks of one row each: the jackknife's error of a mean is that of Student's interval."""
    values = np.random.default_rng(0).normal(size=20)
    found = jackknife((values,), lambda rows: float(rows.mean()))
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected), rel=1e-12)


@pytest.mark.parametrize(
    ("change", "undefined"),
    [
        ({"likelihood": Laplace()}, {"law": Undefined("likelihood has no variance", "Laplace")}),
        ({"prior": StudentT(5.0)}, {"law": Undefined("prior is not Gaussian", "StudentT")}),
        ({"lengths": (3.0, 0.01)}, dict.fromkeys(("orthogonality", "columns"), Undefined("no second direction"))),
        ({"lengths": (0.01, 0.01)}, {"law": Undefined("no active latent")}),
        ({"noise": False}, dict.fromkeys(("law", "overlap"), Undefined("no noise"))),
        ({"factors": np.zeros((POINTS, 1), int)}, {"scores": "factors cannot be scored"}),
        ({"beta": None, "flat": True}, {"law": Undefined("no slope")}),
    ],
    ids=lambda value: next(iter(value)),
)
def test_undefined_quantities_name_their_reason(change, undefined):
    lengths, noise, flat = (
        change.pop(name, default) for name, default in (("lengths", LENGTHS), ("noise", True), ("flat", False))
    )
    encode, decode, _ = model(lengths, angle=0.0)
    encoder = encode if noise else lambda x: DeterministicParameters(encode(x)[0])
    found = numbers(encoder, (lambda z: decode(0.0 * z)) if flat else decode, **change)
    for name, expected in undefined.items():
        quantity = getattr(found, name)
        assert (quantity.reason if isinstance(expected, str) else quantity) == expected


def test_sentences_need_the_numbers_alone():
    """The same numbers give the findings of `explain`; other numbers give other sentences."""
    encode, decode, _ = model()
    observed = observe_model(encode, decode)
    found = compute(observed, None, 1.0, seed=0)
    findings, _ = write_findings(observed, found, 1.0, ())
    by_name = {finding.name: finding for finding in findings}
    assert by_name["orthogonality"].value is found.orthogonality.interval
    assert by_name["columns"].baselines is found.columns.baselines
    lucky = found._replace(orthogonality=found.orthogonality._replace(rank=Rank(0, 200)))
    unlucky = found._replace(orthogonality=found.orthogonality._replace(rank=Rank(150, 200)))
    (first, second) = (write_findings(observed, one, 1.0, ())[0][1].sentence for one in (lucky, unlucky))
    assert "directions are nearer to the latent axes than chance" in first
    assert first.endswith("Of 200 random rotations of this model none lies within that interval or below.")
    assert "directions are not shown to be nearer to the latent axes than chance" in second
    assert second.endswith("150 lie within that interval or below.")


def test_explain_is_the_numbers_and_their_sentences():
    encode, decode, _ = model()
    x = observations(decode)
    found = explain(encode, decode, x, likelihood=Gaussian(), points=POINTS)
    # `explain` permutes the points first, which changes the samples of each but no mean over all of them.
    observed = observe_model(encode, decode)
    quantities = compute(observed, None, 1.0, seed=0)
    assert found["columns"].value.estimate == pytest.approx(quantities.columns.interval.estimate, rel=1e-12)
    assert found.arrays.keys() == arrays(observed, quantities, ()).keys()
