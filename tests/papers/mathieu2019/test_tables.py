"""Table 1 of mathieu2019 and overlap over α: that a false network, and a false direction, is caught."""

import math

import numpy as np
import pytest
from torch import nn

from axiswise.distributions import StandardNormal
from axiswise.models import conv64, mlp
from axiswise_papers.mathieu2019 import tables
from axiswise_papers.mathieu2019.claims import judge_overlap_alpha
from axiswise_papers.mathieu2019.studies import ALPHAS, BETAS, sprites_model

OWN = tables.models()


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("shapes", conv64(latents=10)),  # fully connected layers of 256 with activations
        ("shapes", conv64(latents=10, dense=128, dense_activation=False, decoder=(64, 64, 32), late_kernel=2)),
        ("pinwheel", mlp(2, 2, encoder=(100,), decoder=(100,), activation=nn.Tanh)),
        ("pinwheel", mlp(2, 2, encoder=(100, 100), decoder=(100,), activation=nn.ReLU)),
        ("faces", sprites_model(StandardNormal())),
    ],
)
def test_another_network_is_caught(name, model, monkeypatch):
    monkeypatch.setattr(tables, "models", lambda: OWN | {name: model})
    wrong = [finding for finding in tables.table_1() if finding.decision == "contradicted"]
    places = {"shapes": "1a", "pinwheel": "1b", "faces": "1c"}
    assert wrong
    assert all(finding.what.startswith(f"Table {places[name]}") for finding in wrong)


def of_figure_3(information, noise=0.05, seeds=5):
    drawn = np.random.default_rng(0).normal(0.0, noise, (len(ALPHAS), len(BETAS), seeds))
    return {
        f"pinwheel/alpha-{alpha:g}": [
            {
                "measure": "overlap",
                "hyperparameters": {"alpha": alpha, "beta": beta},
                "seed": seed,
                "value": information(alpha, beta) + drawn[a, b, seed],
                "detail": {},
            }
            for b, beta in enumerate(BETAS)
            for seed in range(seeds)
        ]
        for a, alpha in enumerate(ALPHAS)
    }


def falling(alpha, beta):
    return 2.0 + 4.0 / (1.0 + alpha)


def decisions(rows):
    return [finding.decision for finding in judge_overlap_alpha(rows)]


def test_overlap_must_grow_at_every_step_of_alpha():
    few = sum(beta < 1.0 for beta in BETAS)
    assert decisions(of_figure_3(falling)) == ["holds"] * 3 * few
    swapped = of_figure_3(lambda alpha, beta: falling({0.0: 1.0, 1.0: 0.0}.get(alpha, alpha), beta))
    assert decisions(swapped) == ["contradicted", "holds", "holds"] * few  # the ends alone would hold
    assert "undecided" in decisions(of_figure_3(falling, noise=5.0))


def test_overlap_must_stop_at_a_level():
    rows = of_figure_3(lambda alpha, beta: falling(alpha, beta) - 2.0)
    assert decisions(rows)[2] == "contradicted"
    assert list(judge_overlap_alpha(rows))[2].estimate == pytest.approx(4.0 / 11.0 - math.log(4), abs=0.1)
