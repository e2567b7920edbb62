"""What allen2024 claims, judged on invented rows; its studies and figures at smoke scale."""

import math

import numpy as np
import pytest

from axiswise.engines import run_study
from axiswise.errors import AxiswiseError
from axiswise.studies import find_study
from axiswise_papers._tables import read_study
from axiswise_papers.allen2024.claims import CLAIMS, SAMPLED, published
from axiswise_papers.allen2024.figures import FIGURES
from axiswise_papers.allen2024.studies import (
    ALONE_BETAS,
    BENT_NOISES,
    COLLAPSE_BETAS,
    FIGURE_2_BETAS,
    RADII,
    STUDIES,
)

IDS = """ppca lvae detelbo taylor hessian sigma localpca thm1 thm2 necessity ident thm3 temperature fig2 cor31 thm45
plateau"""
STRAIGHT = [f"bent/straight-{noise}" for noise in BENT_NOISES]
# Value and details of a measure in each run, as the paper would have them.
EXPECTED = {
    "linear/distinct": {
        "principal": (0.01, {"variances": 0.01}),
        "recovery": (0.7, {"turned": 0.925, "columns": 0.03}),
        "side_by_side": (-0.001, {"vae": [-3.0, -1.0, -1.5, -2.0], "ppca": [-3.0, -1.01, -1.5, -2.0]}),
        "encoder_law": (0.01, {"off_diagonal": 0.02}),
    },
    "linear/untwisted": {"recovery": (0.925, {"turned": 0.925, "columns": 0.03})},
    "linear/equal": {"recovery": (0.8, {"turned": 0.8, "columns": 0.5})},
    "linear/full": {"principal": (0.6, {}), "encoder_law": (0.3, {"off_diagonal": 0.4})},
    **{
        run: {
            "turned_recovery": (0.93 + 0.02 * place, {"turned": 0.75}),
            "side_by_side": (0.2, {"local_law": 0.1, "constant_law": 0.3}),
            "encoder_law": (0.1, {"off_diagonal": 0.02}),
            SAMPLED: (-5.0, {"gap": 0.04 - 0.015 * place, "kl": 2.5, "sampled": -5.04}),
        }
        for place, run in enumerate(STRAIGHT)
    },
    "bent/turned": {"turned_recovery": (0.75, {"turned": 0.93})},
    "bent/full": {"encoder_law": (0.3, {"off_diagonal": 0.4})},
    "bent/deterministic": {SAMPLED: (-5.0, {"gap": 0.04, "kl": 2.5, "sampled": -5.05})},
    "plateau/few": {"slopes": (-1.5, {})},
    "plateau/many": {"slopes": (-0.2, {})},
    "plateau/smooth": {"slopes": (-0.4, {})},
}
CIRCLES = {  # count, to_point, to_centre, to_centroid
    0.55: (96, 0.2, 2.9, 10.4),
    2.2: (40, 0.7, 2.4, 10.3),
    3.8: (30, 1.1, 2.0, 10.2),
    12.0: (6, 2.0, 1.4, 9.7),
    60.0: (1, 10.4, 10.0, 0.02),
}
BREAKS = {  # a change of (run, measure, field) that contradicts the claim
    "lvae": ("linear/distinct", "principal", None, 0.9),
    "detelbo": (STRAIGHT[0], SAMPLED, "gap", 1.0),
    "sigma": (STRAIGHT[0], "encoder_law", "off_diagonal", 0.9),
    "localpca": (STRAIGHT[1], "side_by_side", "constant_law", 0.01),
    "necessity": ("bent/turned", "turned_recovery", "turned", 0.5),
    "ident": ("linear/distinct", "recovery", "turned", 0.5),
    "thm3": ("adam/vae", "outputs", "numbers", None),
    "fig2": ("circles", "reconstructions", 60.0, 5),
    "cor31": ("collapse/alone", "active_units", 1.0, 2),
    "plateau": ("plateau/few", "slopes", None, 0.3),
}


def row(measure, seed, value, detail, **settings):
    return {"measure": measure, "seed": seed, "value": value, "detail": detail, "hyperparameters": settings, "steps": 9}


def invented(seeds=10, breaks=None, noise=1e-4):
    """Rows of every study as the paper would have them, with a little noise over seeds, or with one thing changed."""
    generator = np.random.default_rng(0)

    def shaken(value, whole=False):
        if isinstance(value, list):
            return [shaken(part) for part in value]
        return value if whole else value + generator.normal(0.0, noise)

    where = BREAKS[breaks] if breaks else (None,) * 4
    found = {}
    for run, measures in EXPECTED.items():
        found[run] = []
        for measure, (value, detail) in measures.items():
            if where[:2] == (run, measure):
                value, detail = (where[3], detail) if where[2] is None else (value, {**detail, where[2]: where[3]})
            for seed in range(seeds):
                noisy = {name: shaken(part) for name, part in detail.items()}
                found[run].append(row(measure, seed, shaken(value), noisy))
    for run in RADII:
        found[run] = [
            row(
                "reconstructions",
                seed,
                where[3] if (breaks, run, where[2]) == ("fig2", where[0], beta) else count,
                {"to_point": shaken(point), "to_centre": shaken(centre), "to_centroid": shaken(centroid)},
                beta=beta,
            )
            for beta, (count, point, centre, centroid) in CIRCLES.items()
            for seed in range(seeds)
        ]
    for name, betas in (("linear", COLLAPSE_BETAS), ("alone", ALONE_BETAS)):
        found[f"collapse/{name}"] = [
            row(
                "active_units",
                seed,
                where[3] if (breaks, name, where[2]) == ("cor31", "alone", beta) else latents,
                {"expected": latents, "total": shaken(0.1 * (len(betas) - place))},
                beta=beta,
            )
            for place, beta in enumerate(betas)
            for latents in [3 - place if name == "linear" else 3 * (beta < 1.0)]
            for seed in range(seeds)
        ]
    for run, distance in {
        "sgd/beta-vae": 0.0,
        "sgd/vae": 1e-6,
        "sgd/vae-same-rate": 0.3,
        "adam/beta-vae": 0.0,
        "adam/vae": 0.5 if breaks == "thm3" else 1e-6,
    }.items():
        numbers = [1.0 + distance, 0.5, -0.2]
        found[run] = [row("outputs", seed, 0.1, {"numbers": numbers}) for seed in range(seeds)]
    return found


def decisions(claim, rows):
    found = []
    for part in claim.trained:
        own = {run: kept for run, kept in rows.items() if not part.runs or run.partition("/")[0] in part.runs}
        found += [finding.decision for finding in part.judge(own)]
    return found


def trained_claims():
    return [claim for claim in CLAIMS if claim.trained]


def test_every_row_of_the_ledger_is_a_claim():
    assert [claim.id for claim in CLAIMS] == [f"allen.{name}" for name in IDS.split()]
    assert {part.study.partition(".")[2] for claim in CLAIMS for part in claim.trained} == set(STUDIES)
    assert {claim.id.removeprefix("allen.") for claim in trained_claims()} == set(BREAKS)


@pytest.mark.parametrize("claim", trained_claims(), ids=lambda claim: claim.id)
def test_judges_decide(claim):
    name = claim.id.removeprefix("allen.")
    assert set(decisions(claim, invented())) == {"holds"}
    assert "contradicted" in decisions(claim, invented(breaks=name))
    assert set(decisions(claim, {})) == {"undecided"}
    alone = decisions(claim, invented(seeds=1))
    assert set(alone) == {"undecided"}


def test_a_missing_value_leaves_a_claim_undecided():
    rows = invented()
    rows["plateau/few"][3]["value"] = None
    claim = next(claim for claim in CLAIMS if claim.id == "allen.plateau")
    assert decisions(claim, rows) == ["undecided", "undecided", "holds"]


@pytest.mark.parametrize(
    ("name", "run", "measure", "key", "value"),
    [
        # Neighbours that draw together without merging, circles that map to their centres too early or never.
        ("fig2", "circles", "reconstructions", 2.2, 90),
        ("fig2", "circles", "reconstructions", 2.2, 6),
        ("fig2", "small-circles", "reconstructions", 3.8, 60),
        ("fig2", "circles", "reconstructions", 12.0, 25),
        # A latent that a β < 1 leaves dead, and one that is alive where nothing needs it.
        ("cor31", "collapse/alone", "active_units", 0.75, 2),
        ("cor31", "collapse/alone", "active_units", 1.5, 1),
        # A smooth decoder that is steeper at its data.
        ("plateau", "plateau/smooth", "slopes", None, 0.087),
    ],
)
def test_a_false_statement_is_contradicted(monkeypatch, name, run, measure, key, value):
    monkeypatch.setitem(BREAKS, name, (run, measure, key, value))
    claim = next(claim for claim in CLAIMS if claim.id == f"allen.{name}")
    assert decisions(claim, invented(breaks=name)).count("contradicted") == 1


def test_published_values_are_trained():
    assert {cell.beta for cell in published()} < set(FIGURE_2_BETAS)
    assert all(cell.place.startswith("Figure 2") for cell in published())


def test_figures_need_records(tmp_path):
    with pytest.raises(AxiswiseError, match="has no records"):
        read_study(tmp_path)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ("linear", "bent"))) for name in STUDIES]
)
def test_smoke_scale_is_judged_and_drawn(name, tmp_path):
    assert find_study(f"allen2024.{name}") is STUDIES[name]
    run_study(STUDIES[name], "smoke", tmp_path / "study")
    rows = read_study(tmp_path / "study")
    assert all(row["value"] is not None and math.isfinite(row["value"]) for own in rows.values() for row in own)
    judged = [
        finding
        for claim in CLAIMS
        for part in claim.trained
        if part.study == f"allen2024.{name}"
        for finding in part.judge(rows)
    ]
    assert judged
    assert all(math.isfinite(finding.estimate) for finding in judged)
    drawn = FIGURES[name](tmp_path / "study")
    assert drawn
    assert all(picture.startswith(b"\x89PNG") for picture in drawn.values())
