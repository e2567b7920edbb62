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
    names = "thm1 cor1 cor2 thm2 aniso priors objective hoyer appC overlap tables overlap-fails"
    assert set(EXACT) == {f"mathieu.{name}" for name in names.split()}


def test_a_wrong_normaliser_is_noticed(monkeypatch):
    """It is part of the annealed ELBO and added to it: unless another computes it, any number would do."""
    right = exact.annealed_elbo

    def wrong(*arguments):
        parts = right(*arguments)
        return parts._replace(elbo=parts.elbo - 0.01, log_normaliser=parts.log_normaliser + 0.01)

    monkeypatch.setattr(exact, "annealed_elbo", wrong)
    found = {finding.what: finding.decision for finding in exact.thm1() if finding.what.startswith("L_β")}
    assert len(found) == len(exact.EVERY_PRIOR)
    assert set(found.values()) == {"contradicted"}


@pytest.mark.parametrize(
    ("name", "wrong", "caught"),
    [
        (
            "InclusiveKL",
            lambda right: lambda summed=False: _changed(right(), lambda value: value - math.log(4)),
            [0, 1],
        ),
        ("InclusiveKL", lambda right: lambda summed=False: right(summed=not summed), [0, 1]),
        ("ExclusiveKL", lambda right: lambda: _changed(right(), lambda value: value + math.log(4)), [2]),
        ("MMD", lambda right: lambda c, power: _changed(right(c, power=power), lambda value: value + 2 / 100), [3, 4]),
        ("EntropyRegularised", lambda right: lambda beta: right(1.01 * beta), [5]),
    ],
    ids=["sum over encodings", "sum for mean", "sum over batch", "pairs of a point with itself", "reward"],
)
def test_a_wrong_divergence_is_noticed(monkeypatch, name, wrong, caught):
    monkeypatch.setattr(exact, name, wrong(getattr(exact, name)))
    found = [finding.decision for finding in exact.objective()]
    assert [place for place, decision in enumerate(found) if decision == "contradicted"] == caught


def _changed(divergence, change):
    class Changed:
        def estimate(self, *arguments):
            found = divergence.estimate(*arguments)
            return found._replace(value=change(found.value))

    return Changed()


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
