"""Plateaus against a direct reading of the rule, and what a rule may not be."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from axiswise.errors import AxiswiseError
from axiswise.stopping import Plateau, StoppingRule

values = st.lists(st.floats(-10.0, 10.0) | st.just(math.nan), min_size=1, max_size=12)


@given(values=values, patience=st.integers(1, 5))
def test_it_stops_when_the_best_is_that_many_evaluations_ago(values, patience):
    history = {"elbo": np.array(values), "loss": -np.array(values)}
    finite = [value for value in values if not math.isnan(value)]
    since = len(values) - values.index(max(finite)) - 1 if finite else len(values)
    assert Plateau("elbo", patience).stops(history) is (since >= patience)
    assert Plateau("loss", patience).stops(history) is (since >= patience)


@pytest.mark.parametrize(("least", "stopped"), [(0.4, False), (0.5, True)])
def test_an_improvement_exceeds_the_least(least, stopped):
    assert Plateau("loss", 1, least=least).stops({"loss": np.array([2.0, 1.5])}) is stopped


def test_small_improvements_add_up():
    """They are compared with the best that counted, not with the one before."""
    assert not Plateau("loss", 2, least=0.5).stops({"loss": np.array([2.0, 1.6, 1.4])})


def test_the_same_rule_has_one_form():
    assert Plateau("elbo", 3) == Plateau("elbo", 3, larger=True)
    assert Plateau("kl", 3, larger=False).stops({"kl": np.arange(5.0)})
    assert not Plateau("kl", 3, larger=True).stops({"kl": np.arange(5.0)})
    assert isinstance(Plateau("loss", 1), StoppingRule)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"patience": 0}, r"`patience` of Plateau must be a whole number of at least 1. Got 0."),
        ({"least": -1.0}, r"`least` of Plateau must be a finite number of at least 0. Got -1.0."),
        ({"least": math.nan}, r"`least` .* Got nan."),
        ({"term": "kl"}, r"Whether more of 'kl' is better is not plain .* Say so: Plateau\('kl', …, larger=True\)"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(AxiswiseError, match=message):
        Plateau(**({"term": "loss", "patience": 1} | arguments))


def test_a_term_that_is_no_number_of_the_validation_is_refused():
    history = {"step": np.arange(2), "loss": np.zeros(2), "kl_per_latent": np.zeros((2, 3))}
    with pytest.raises(AxiswiseError, match=r"one number \(loss\). Got 'elbo', which is not there. Name one of these"):
        Plateau("elbo", 1).stops(history)
    with pytest.raises(AxiswiseError, match=r"Got 'kl_per_latent', which is a vector"):
        Plateau("kl_per_latent", 1, larger=False).stops(history)
