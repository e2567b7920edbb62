"""Which members are attacked: the ends of the ranking, without those that do not code every factor."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from axiswise import data, scores
from axiswise.attack import choose, table
from axiswise.errors import AxiswiseError
from axiswise.population import Population


def pruned(population: Population, position: int) -> Population:
    """The same, with one member whose last latent is as wide as the prior."""
    trained = list(population.trained)
    weights = {name: weight.clone() for name, weight in trained[position].weights.items()}
    name = max(key for key in weights if key.startswith("encoder.") and key.endswith(".bias"))
    weights[name][-1] = 0.0
    weights[name.replace("bias", "weight")][-1] = 0.0
    trained[position] = replace(trained[position], weights=weights)
    return Population(trained)


def direct(population: Population, dataset: data.FactorDataset) -> np.ndarray:
    rows = torch.arange(len(dataset))
    return np.asarray(scores.mig(population.encode(dataset.x(rows)).mean, dataset.factors(rows)).score)


def test_the_ends_of_the_ranking_are_chosen(population, sprites):
    expected = direct(population, sprites)
    found = choose(population, sprites, apart=0.0)
    assert [ranked.position for ranked in found.ranking] == np.argsort(-expected).tolist()
    np.testing.assert_allclose([ranked.score for ranked in found.ranking], np.sort(expected)[::-1], atol=1e-12)
    assert (found.disentangled, found.entangled) == ((int(expected.argmax()),), (int(expected.argmin()),))
    assert found.set_aside == ()
    two = choose(population, sprites, count=2, apart=0.0)
    order = np.argsort(-expected).tolist()
    assert two.disentangled == tuple(order[:2])
    assert two.entangled == (order[3], order[2])


def test_over_pruned_members_are_set_aside(population, sprites):
    worst = int(direct(population, sprites).argmin())
    found = choose(pruned(population, worst), sprites, apart=0.0)
    assert [ranked.position for ranked in found.set_aside] == [worst]
    assert found.set_aside[0].set_aside == "over-pruned: 2 active latents, 3 factors"
    assert worst not in found.entangled
    assert "over-pruned" in table(found)


def test_diverged_members_are_set_aside(population, sprites):
    trained = list(population.trained)
    trained[1] = replace(trained[1], status="diverged at step 7")
    found = choose(Population(trained), sprites, apart=0.0)
    assert [(ranked.position, ranked.set_aside) for ranked in found.set_aside] == [(1, "diverged at step 7")]


def test_agreement_ranks_without_factors(population, sprites):
    rows = torch.arange(len(sprites))
    bare = data.arrays(sprites.x(rows))
    codes = population.encode(sprites.x(rows))
    found = choose(population, bare, apart=0.0, points=60)
    expected = scores.udr(codes.mean, 0.5 * (codes.mean**2 + codes.variance - codes.log_variance - 1)).score
    assert found.by == "udr"
    assert [ranked.position for ranked in found.ranking] == np.argsort(-expected, kind="stable").tolist()
    with pytest.raises(AxiswiseError, match=r"MIG needs the factors .* Got dataset 'arrays', which has none. Rank by"):
        choose(population, bare, by="mig")


def test_a_refusal_prints_the_ranking(population, sprites):
    with pytest.raises(AxiswiseError, match=r"at least 2 more than the entangled ones.* Got 0\.\d+(.|\n)*mig  active"):
        choose(population, sprites, apart=2.0)
    with pytest.raises(AxiswiseError, match=r"needs 6 that trained .* Got 4. Train more members(.|\n)*mig  active"):
        choose(population, sprites, count=3)
    with pytest.raises(AxiswiseError, match=r"`count` must be at least 1. Got 0"):
        choose(population, sprites, count=0)


@pytest.mark.usefixtures("as_installed")
def test_an_unknown_ranking_is_refused(population, sprites):
    with pytest.raises(AxiswiseError, match=r'`by` must be "mig", "udr" or None. Got \'beauty\''):
        choose(population, sprites, by="beauty")
