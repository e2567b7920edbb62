"""The claims of sikka2019: all of the ledger's rows, exact ones hold, and judges decide rightly on invented rows."""

import math

import numpy as np
import pytest
import torch

from axiswise.analytic import beta_vae_optimum, terms
from axiswise_papers.sikka2019 import exact
from axiswise_papers.sikka2019.claims import CLAIMS, curve, published
from axiswise_papers.sikka2019.studies import (
    BETAS,
    CURVE_BETAS,
    FACTORIES,
    FIXED_BETAS,
    MIXTURE_BETAS,
    MOTION_BETAS,
    PROBLEMS,
    STUDIES,
)

LEDGER = ["terms", "prop1", "prop2", "prop3", "prop4", "loglik", "fixed-decoder", "linear", "fig1", "fig2", "fig3"]
BY_ID = {claim.id.partition(".")[2]: claim for claim in CLAIMS}


def test_every_row_of_the_ledger_is_a_claim():
    assert [claim.id for claim in CLAIMS] == [f"sikka.{name}" for name in LEDGER]
    for name in ("terms", "prop4", "loglik", "linear"):
        assert BY_ID[name].kind == "exact"
    for name in ("prop1", "prop2", "prop3", "fixed-decoder", "fig1"):
        assert BY_ID[name].kind == "exact + train"
    for name in ("fig2", "fig3"):
        assert BY_ID[name].kind == "gpu"
    for claim in CLAIMS:
        for part in claim.trained:
            runs = STUDIES[part.study.removeprefix("sikka2019.")]("smoke")
            assert {run.name.partition("/")[0] for run in runs} == set(part.runs)


@pytest.mark.parametrize("name", [name for name in LEDGER if BY_ID[name].exact])
def test_exact_claims_hold(name):
    findings = list(BY_ID[name].exact())
    assert len(findings) >= 2
    assert [finding for finding in findings if finding.decision != "holds"] == []
    assert all(
        math.isnan(finding.estimate) or finding.estimate <= float(finding.rule.split()[-1]) for finding in findings
    )


def test_an_exact_claim_can_fail(monkeypatch):
    """A closed form that keeps a saddle instead of the maximum, and an objective without its constants."""
    monkeypatch.setattr(
        exact, "beta_vae_optimum", lambda covariance, *rest: beta_vae_optimum(covariance.flip(-1, -2) * 1.1, *rest)
    )
    assert "contradicted" in {finding.decision for finding in exact.linear()}
    assert "contradicted" in {finding.decision for finding in exact.fig1()}
    monkeypatch.undo()

    def without_constants(model, vae, beta=1.0):
        found = terms(model, vae, beta)
        return found._replace(objective=found.objective - torch.as_tensor(beta))

    monkeypatch.setattr(exact, "terms_of", without_constants)
    assert "contradicted" in {finding.decision for finding in exact.prop1()}


def test_equation_21_leaves_out_constants_that_the_slope_needs():
    """Its maximum has the slope −KL − k/2: appendix B-A neglects constants, of which βk/2 depends on β."""
    problem = exact.figure_1_problem()
    betas = torch.tensor([0.5, 1.1, 5.0], dtype=torch.float64, requires_grad=True)
    for place, beta in enumerate(betas):
        vae = beta_vae_optimum(problem.covariance, 2, beta)
        (slope,) = torch.autograd.grad(exact.equation_21(problem.covariance, vae, beta), betas)
        assert slope[place] + terms(problem, vae, beta).kl.detach() == pytest.approx(-2 / 2, abs=1e-10)


@pytest.mark.parametrize(
    ("name", "fault", "caught"),
    [
        # A sampler whose noise is twice as wide; a divergence off by a thousandth; names searched among other sources.
        ("deep_terms", lambda right: lambda truth, draws: _wider(right(truth, draws)), "reconstruction"),
        ("deep_terms", lambda right: lambda truth, draws: _dearer(right(truth, draws)), "KL"),
        ("mixture_posterior", lambda right: lambda mixing: right(1.1 * mixing), "TIE"),
        ("searched_tie", lambda right: lambda x, q, truth: right(x, _shifted(q), truth), "search"),
    ],
)
def test_a_wrong_measure_of_deep_models_is_noticed(monkeypatch, name, fault, caught):
    monkeypatch.setattr(exact, "DRAWS", 100)
    monkeypatch.setattr(exact, name, fault(getattr(exact, name)))
    wrong = [finding.what for finding in exact.terms() if finding.decision == "contradicted"]
    assert any(caught in what for what in wrong)
    assert all("deep measure" in what for what in wrong)


def _wider(measure):
    def changed(x, q, decode, *rest):
        def wider(z):  # of so many draws of every posterior
            mean = q.mean.repeat(*[1] * (q.mean.ndim - 2), z.shape[-2] // q.mean.shape[-2], 1)
            return decode(mean + 2.0 * (z - mean))

        return measure(x, q, wider, *rest)

    return changed


def _dearer(measure):
    def changed(*setting):
        found = measure(*setting)
        return found._replace(kl=1.001 * found.kl)

    return changed


def _shifted(q):
    return type(q)(q.mean + 0.1, q.log_variance)


def row(measure, beta, seed, value, **detail):
    return {"measure": measure, "seed": seed, "value": value, "detail": detail, "hyperparameters": {"beta": beta}}


def made_up(betas, measure, *, seeds=10, noise=1e-3, latents=3, **changes):
    """Rows of a linear optimum of unit eigenvalue gaps: KL = ½ k log(20 / β) and everything that follows from it.

    `changes` adds to a field a function of β.
    """
    shake = np.random.default_rng(0).normal(0.0, noise, (len(betas), seeds, 8))
    shake -= shake.mean(1, keepdims=True)
    rows = []
    for i, beta in enumerate(betas):
        kl = 0.5 * latents * math.log(200 / beta)
        reconstruction = -20.0 - 0.5 * latents * beta
        exact_values = {
            "reconstruction": reconstruction,
            "kl": kl,
            "elbo": reconstruction - kl,
            "mie": beta - 1 - math.log(beta),
            "tie": (math.log(beta) - 0.1) ** 2 + 19.0,
            "tie_as_they_are": (math.log(beta)) ** 2 + 19.0,
        }
        best = {f"best_{name}": value for name, value in exact_values.items()}
        best["best_objective"] = reconstruction - beta * kl
        for seed in range(seeds):
            found = {name: value + shake[i, seed, j] for j, (name, value) in enumerate(exact_values.items())}
            objective = best["best_objective"] - 1e-3 + shake[i, seed, 7]
            for name, change in changes.items():
                if name == "objective":
                    objective += change(beta)
                else:
                    found[name] += change(beta)
            rows.append(row(measure, beta, seed, objective, **found, **best))
    return rows


def decisions(name, rows):
    (part,) = BY_ID[name].trained
    return [finding.decision for finding in part.judge(rows)]


def linear_rows(**changes):
    return {f"linear/{name}": made_up(BETAS, "linear_terms", **changes) for name in PROBLEMS}


def wave(beta):
    return 5.0 if beta == 2.0 else 0.0


@pytest.mark.parametrize("name", ["prop1", "prop2", "prop3"])
def test_the_propositions_hold_for_what_they_say(name):
    assert set(decisions(name, linear_rows())) == {"holds"}


@pytest.mark.parametrize(
    ("name", "place", "changes"),
    [
        ("prop1", 0, {"objective": wave}),
        ("prop1", 1, {"kl": lambda beta: -3.0}),
        ("prop1", 2, {"kl": lambda beta: 3.0}),
        ("prop1", 3, {"objective": lambda beta: -0.1}),
        ("prop2", 0, {"kl": wave}),
        ("prop2", 1, {"kl": lambda beta: 0.5}),
        ("prop2", 2, {"reconstruction": wave}),
        ("prop2", 3, {"reconstruction": lambda beta: 0.5}),
        ("prop3", 0, {"elbo": wave}),
        ("prop3", 1, {"elbo": lambda beta: 0.5}),
    ],
)
def test_the_propositions_can_be_contradicted(name, place, changes):
    found = decisions(name, linear_rows(**changes))
    assert found[place :: len(found) // 3] == ["contradicted"] * 3


@pytest.mark.parametrize("name", ["prop1", "prop2", "prop3"])
def test_noise_two_seeds_or_missing_values_are_undecided(name):
    assert "undecided" in decisions(name, linear_rows(noise=1.0))
    missing = linear_rows()
    for part in missing.values():
        for entry in part[:1]:
            entry["value"] = None
            entry["detail"] = dict.fromkeys(entry["detail"])
    assert set(decisions(name, missing)) == {"undecided"}
    assert set(decisions(name, {"linear/8-from-2": []})) == {"undecided"}
    alone = [entry for entry in linear_rows()["linear/8-from-2"] if entry["seed"] == 0]
    assert set(decisions(name, {"linear/8-from-2": alone})) == {"undecided"}


def decoder_rows(**changes):
    """As theory has it: with ½ A and 2 A the true inference error is least at β = 2.6."""
    moved = {"tie_as_they_are": lambda beta: math.log(beta / 2.6) ** 2 - math.log(beta) ** 2}
    scaled = {name: moved if name in ("halved", "doubled") else {} for name in FACTORIES}
    return {
        f"decoder/{name}": made_up(FIXED_BETAS, "linear_terms", **{**scaled[name], **changes}) for name in FACTORIES
    }


def test_frozen_decoders():
    assert decisions("fixed-decoder", decoder_rows()) == ["holds"] * 11  # 3 + 2 + 3 + 3
    worse = decisions("fixed-decoder", decoder_rows(mie=lambda beta: -0.5 * beta))
    assert worse.count("contradicted") == 8  # least beyond 1, and off the closed form, of four decoders
    assert decisions("fixed-decoder", decoder_rows(tie_as_they_are=lambda beta: beta)).count("contradicted") == 3
    assert decisions("fixed-decoder", decoder_rows(tie_as_they_are=lambda beta: -beta)).count("contradicted") == 1
    assert set(decisions("fixed-decoder", {f"decoder/{name}": [] for name in FACTORIES})) == {"undecided"}


def test_figure_1_trained():
    assert decisions("fig1", {"curves/small-beta": made_up(CURVE_BETAS, "linear_terms")}) == ["holds"] * 4
    near = {"curves/small-beta": made_up(CURVE_BETAS, "linear_terms", elbo=lambda beta: 0.2 * (beta == 0.7))}
    assert decisions("fig1", near) == ["contradicted", "holds", "holds", "holds"]  # between 0.3 and 3
    fewer = made_up([beta for beta in CURVE_BETAS if beta != 1.5], "linear_terms")
    assert decisions("fig1", {"curves/small-beta": fewer}) == ["undecided", "holds", "holds", "holds"]
    rising = {"curves/small-beta": made_up(CURVE_BETAS, "linear_terms", tie=lambda beta: 50 * beta)}
    assert decisions("fig1", rising) == ["holds"] * 3 + ["contradicted"]


def deep_rows(name, betas, seeds=40, **changes):
    rows = made_up(betas, "deep_terms", seeds=seeds, noise=0.05, **changes)
    if name == "motion":
        rows += [
            row(
                "motions",
                beta,
                seed,
                30 / (1 + 5 * beta) + 0.1 * (seed % 5),
                to_singular=5.0,
                to_sources=20.0,
                active=2,
            )
            for beta in betas
            for seed in range(seeds)
        ]
    return {
        f"{name}/beta-{beta:g}": [entry for entry in rows if entry["hyperparameters"]["beta"] == beta] for beta in betas
    }


@pytest.mark.parametrize(
    ("claim", "name", "betas", "count"), [("fig2", "mixture", MIXTURE_BETAS, 5), ("fig3", "motion", MOTION_BETAS, 7)]
)
def test_deep_figures(claim, name, betas, count):
    assert decisions(claim, deep_rows(name, betas)) == ["holds"] * count
    rising = decisions(claim, deep_rows(name, betas, tie=lambda beta: 500 * beta))
    assert rising[3:5] == ["contradicted", "holds"]  # least at the smallest β: not within
    falling = decisions(claim, deep_rows(name, betas, tie=lambda beta: -500 * beta))
    assert falling[3:5] == ["holds", "contradicted"]
    elsewhere = decisions(claim, deep_rows(name, betas, elbo=lambda beta: 50 * math.log(beta)))
    assert elsewhere[0] == "contradicted"
    assert "contradicted" not in decisions(claim, deep_rows(name, betas, seeds=2))
    assert set(decisions(claim, {run: [] for run in deep_rows(name, betas)})) == {"undecided"}
    assert set(decisions(claim, {})) == {"undecided"}


def test_motions_of_large_beta_must_be_orthogonal():
    rows = deep_rows("motion", MOTION_BETAS)
    for part in rows.values():
        for entry in part:
            if entry["measure"] == "motions":
                entry["value"] = 40.0 - entry["value"]
    assert decisions("fig3", rows)[5:] == ["contradicted", "contradicted"]
    for entry in rows["motion/beta-10"]:  # a latent is off: the largest β that keeps both counts
        if entry["measure"] == "motions":
            entry["value"] = None
    (part,) = BY_ID["fig3"].trained
    assert "at β = 7" in list(part.judge(rows))[5].what


def test_a_curve_of_nothing_is_empty():
    assert curve([], "linear_terms") == {}


def test_what_is_published_is_what_is_run():
    """Every number that the paper prints about its networks and data, against the declared studies."""
    for name, count, betas in (("figure_2", "figure_2", MIXTURE_BETAS), ("figure_3", "figure_3", MOTION_BETAS)):
        for scale in ("default", "paper"):
            runs = STUDIES[name](scale)
            assert len(runs) == len(betas)
            for run in runs:
                first = run.members[0]
                # Of Figure 3's initialisations the default has as many as of Figure 2's, which is a departure.
                assert len(run.members) == published(f"{count if scale == 'paper' else 'figure_2'}_initialisations")
                assert list(first.model.network.encoder) == published("encoder")
                assert list(first.model.network.decoder) == published("decoder")
                assert first.optimizer.lr == published("rate")
                assert first.steps * first.batch == published("epochs") * published("examples")
                assert first.model.likelihood.scale**2 == published("noise")
                data = run.dataset()
                assert len(data) == published("examples")
                assert len(data.space.names) == first.model.latents
    assert STUDIES["figure_2"]("default")[0].members[0].model.latents == published("figure_2_digits")
    moving = STUDIES["figure_3"]("default")[0]
    assert moving.members[0].model.latents == published("figure_3_latents")
    mixing = np.array(moving.dataset().arguments["mixing"])
    assert np.allclose(mixing, published("figure_3_diagonal") * np.eye(2) + published("figure_3_everywhere"))
    problem = exact.figure_1_problem()
    assert tuple(problem.mixing.shape) == (published("figure_1_dimension"), published("figure_1_sources"))
    assert torch.equal(problem.mixing, published("figure_1_mixing") * (1 + torch.eye(128, 2, dtype=torch.float64)))
    assert published("elbo_peak") == published("elbo_peak_deep") == published("fixed_decoder_best") == 1.0
    assert published("draws") == 1000
