"""Every exact claim of mathieu2019 holds, and is found not to hold when what it rests on is broken."""

import math

import pytest
import torch

from axiswise_papers._numbers import quadrature
from axiswise_papers.mathieu2019 import exact
from axiswise_papers.mathieu2019.claims import CLAIMS

EXACT = {claim.id: claim for claim in CLAIMS if claim.exact}


@pytest.mark.parametrize("name", EXACT)
def test_exact_claims_hold(name):
    findings = list(EXACT[name].exact())
    assert findings
    assert [finding for finding in findings if finding.decision != "holds"] == []


def test_the_ledger_has_these_exact_claims():
    names = {"thm1", "cor1", "cor2", "thm2", "aniso", "priors", "hoyer", "appC", "overlap", "tables", "overlap-fails"}
    assert set(EXACT) == {f"mathieu.{name}" for name in names}


def test_a_wrong_objective_is_noticed(monkeypatch):
    """Theorem 2 and the anisotropic prior rest on exact expectations: a wrong reconstruction shows."""
    right = exact._objective
    monkeypatch.setattr(exact, "_objective", lambda model, x, *rest: right(model, x, *rest) + model[0](x).mean[:, 0])
    assert any(finding.decision == "contradicted" for finding in exact.thm2())
    assert any(finding.decision == "contradicted" for finding in exact.aniso())


def test_a_wrong_scaling_is_noticed(monkeypatch):
    right = exact._rescaled
    monkeypatch.setattr(exact, "_rescaled", lambda weights, beta, latents: right(weights, beta * 1.001, latents))
    assert [finding.decision for finding in exact.cor2()][:2] == ["contradicted", "contradicted"]


def test_a_wrong_estimator_is_noticed(monkeypatch):
    right = exact.aggregate_log_density
    monkeypatch.setattr(exact, "aggregate_log_density", lambda q, z, n: right(q, z, n) + 1e-6)
    assert any(finding.decision == "contradicted" for finding in exact.appC())


def test_quadrature_is_that_of_a_normal():
    noise, weights = quadrature(2, 60)
    assert abs(weights.sum().item() - 1.0) < 1e-14
    assert abs((weights @ noise[:, 0].square()).item() - 1.0) < 1e-12
    assert abs((weights @ torch.exp(noise.sum(-1))).item() - math.e) < 1e-12
