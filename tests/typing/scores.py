"""What type checkers know of scores. Nothing here runs: pyright reads it."""

from typing import assert_type

import numpy as np
from torch import Tensor

from axiswise import scores
from axiswise.shapes import Array


def one_code(codes: np.ndarray, tensor: Tensor, either: Array, factors: np.ndarray) -> None:
    """A score of one code is a float, whatever holds the code."""
    assert_type(scores.mig(codes, factors).score, float)
    assert_type(scores.mig(tensor, factors).score, float)
    assert_type(scores.mig(either, factors).score, float)
    assert_type(scores.mig(np.zeros((100, 10)), factors).score, float)
    assert_type(scores.beta_vae(codes, factors).score, float)
    assert_type(scores.beta_vae(codes, factors).train_score, float)
    assert_type(scores.dci(codes, factors).score, float)
    assert_type(scores.dci(codes, factors).completeness, float)
    assert_type(scores.dci(codes, factors).informativeness, float)
    assert_type(scores.dci_completeness(codes), float)
    assert_type(scores.dci_disentanglement(codes), float)
    assert_type(scores.disentanglement(codes, factors).score, float)
    assert_type(scores.explicitness(codes, factors).score, float)
    assert_type(scores.factor_vae(codes, factors).score, float)
    assert_type(scores.gaussian_total_correlation(codes).score, float)
    assert_type(scores.gaussian_wasserstein_correlation(codes).score, float)
    assert_type(scores.gaussian_wasserstein_correlation(codes).normalised, float)
    assert_type(scores.hoyer(codes).score, float)
    assert_type(scores.irs(codes, factors).score, float)
    assert_type(scores.mcc(codes, factors).score, float)
    assert_type(scores.modularity(codes, factors).score, float)
    assert_type(scores.latent_mutual_information(codes).score, float)
    assert_type(scores.sap(codes, factors).score, float)
    assert_type(scores.active_units(codes).score, int)
    assert_type(round(scores.mig(codes, factors).score, 2), float)


def a_stack(stack: np.ndarray, factors: np.ndarray) -> None:
    """A score of a stack is an array where that is written down, since shapes are unknown."""
    found: scores.MIG[np.ndarray] = scores.mig(stack, factors)
    assert_type(found.score, np.ndarray)
    active: scores.ActiveUnits[np.ndarray] = scores.active_units(stack)
    assert_type(active.score, np.ndarray)


def a_population(population: np.ndarray) -> None:
    """Scores that compare members: UDR has a value for each, agreement one for all."""
    assert_type(scores.udr(population).score, np.ndarray)
    assert_type(scores.agreement(population).score, float)
    assert_type(scores.match_latents(population, population).latent, np.ndarray)
