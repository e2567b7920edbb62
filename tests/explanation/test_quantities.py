"""The numbers behind an explanation can be had without its sentences, and the sentences without the model."""

import math

import numpy as np
import pytest
import torch

from axiswise import explain
from axiswise.distributions import DeterministicParameters, Gaussian, Laplace, StandardNormal, StudentT
from axiswise.explanation._observation import observe
from axiswise.explanation._quantities import Quantities, Undefined, arrays, compute
from axiswise.explanation._quantities._baselines import Rank, jackknife
from axiswise.explanation._sentences import write_findings
from axiswise.population._external import Reader

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
        assert quantity.rank == Rank(int((quantity.rotated <= quantity.interval.estimate).sum()), 200)


def test_a_rank_beats_chance_when_at_most_one_in_twenty_is_as_low():
    assert Rank(9, 199).beats_chance
    assert not Rank(10, 199).beats_chance


def test_the_jackknife_of_a_mean_is_students():
    """Blocks of one row each: the jackknife's error of a mean is that of Student's interval."""
    from scipy import stats

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
    assert first.endswith("of 200 random rotations of this model none is as low.")
    assert "directions are not shown to be nearer to the latent axes than chance" in second
    assert second.endswith("150 are as low.")


def test_explain_is_the_numbers_and_their_sentences():
    encode, decode, _ = model()
    x = observations(decode)
    found = explain(encode, decode, x, likelihood=Gaussian(), points=POINTS)
    # `explain` permutes the points first, which changes the samples of each but no mean over all of them.
    observed = observe_model(encode, decode)
    quantities = compute(observed, None, 1.0, seed=0)
    assert found["columns"].value.estimate == pytest.approx(quantities.columns.interval.estimate, rel=1e-12)
    assert found.arrays.keys() == arrays(observed, quantities, ()).keys()
