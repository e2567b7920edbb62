"""Studies of mathieu2019: settings as published, smoke runs, and pictures from their records."""

import pytest
import torch

from axiswise.data import dsprites
from axiswise.distributions import Anisotropic, Sparse, corners, singular_value_logits
from axiswise.engines import run_study
from axiswise.errors import DataUnavailable
from axiswise_papers._tables import rows_of
from axiswise_papers.mathieu2019.claims import CLAIMS, published
from axiswise_papers.mathieu2019.figures import FIGURES
from axiswise_papers.mathieu2019.studies import (
    ALPHAS,
    BETAS,
    DEGREES,
    SINGULAR_VALUE_LOGITS,
    SPARSE_PRIORS,
    STUDIES,
    appendix_c,
    discussion,
    divergences,
    figure_2_bottom,
    figure_2_top,
    figure_3,
    figure_4,
)


def test_figure_3_is_as_published():
    printed, mixture = published("pinwheel"), published("mixture")
    runs = figure_3("default")
    members = [member for run in runs for member in run.members]
    assert {(member.objective.alpha, member.objective.beta) for member in members} == {
        (alpha, beta) for alpha in ALPHAS for beta in BETAS
    }
    assert len(members) == len(ALPHAS) * len(BETAS) * 12
    for member in members:
        assert (member.batch, member.steps) == (None, printed["epochs"])
        assert member.optimizer.lr == printed["learning_rate"]
        assert [member.optimizer.beta1, member.optimizer.beta2] == printed["adam"]
        assert member.optimizer.amsgrad
        assert member.model.network.encoder == member.model.network.decoder == (printed["hidden"],)
        assert len(member.model.prior.means) == mixture["components"]
        assert member.model.prior == corners(mixture["latents"], mixture["variance"])
    dataset = runs[0].dataset()
    assert dataset.arguments == {
        "samples": printed["points"],
        **{name: printed[name] for name in ("arms", "radial", "tangential", "rate")},
        "seed": 0,
    }


def test_sprites_are_as_published():
    printed = published("shapes_2d")
    for study, about in ((figure_2_top, printed["gaussian"]), (figure_2_bottom, printed["student_t"])):
        for run in study("paper"):
            seeds = {member.seed for member in run.members}
            assert len(seeds) == printed["networks"]
            for member in run.members:
                assert member.batch == about["batch"]
                assert member.steps == about["epochs"] * printed["images"] // about["batch"]
                assert member.optimizer.lr == printed["learning_rate"]
                assert member.model.latents == printed["latents"]
                assert member.objective.beta == about.get("beta", member.objective.beta)
    network = figure_2_bottom("paper")[0].members[0].model.network
    assert (network.dense, list(network.decoder)) == (printed["dense"], printed["decoder_channels"])
    assert not network.dense_activation
    assert set(published("figure_5")["degrees"]) <= set(DEGREES)


def test_the_priors_of_figure_2():
    priors = {run.name: run.members[0].model.prior for run in figure_2_top("default")}
    assert not priors["sprites/anisotropic"].learned
    assert priors["sprites/learned"].learned
    assert priors["sprites/anisotropic"].logits == priors["sprites/learned"].logits == SINGULAR_VALUE_LOGITS
    assert type(priors["sprites/whitened"]) is type(priors["sprites/isotropic"])
    assert Anisotropic(SINGULAR_VALUE_LOGITS).variances.sum().item() == pytest.approx(10.0, rel=1e-5)


@pytest.mark.slow
def test_the_logits_are_those_of_dsprites():
    try:
        dataset = dsprites()
    except DataUnavailable as reason:
        pytest.skip(str(reason))
    found = singular_value_logits(dataset.x(dataset.sample(2000)), 10)
    differences = torch.tensor(found) - torch.tensor(SINGULAR_VALUE_LOGITS)
    assert (differences - differences.mean()).abs().max() < 0.1  # fewer images; constants do not matter


def test_sparsity_is_as_published():
    printed = published("sparsity")
    runs = figure_4("paper")
    assert {run.name.partition("/")[0] for run in runs} == {"clothes", "faces"}
    for run in runs:
        assert {member.seed for member in run.members} == set(range(printed["networks"]))
        member = run.members[0]
        assert member.batch == printed["batch"]
        assert (member.optimizer.lr, member.optimizer.beta1) == (printed["learning_rate"], printed["adam"][0])
        assert member.model.latents == printed["latents"]
    assert {prior.gamma for prior in SPARSE_PRIORS.values()} == set(printed["gamma"])
    assert SPARSE_PRIORS["sparse-variance"] == Sparse(0.9, printed["variance"] ** 0.5)
    assert SPARSE_PRIORS["sparse-deviation"] == Sparse(0.9, printed["deviation"])
    faces = next(run for run in runs if run.name == "faces/gaussian").members[0]
    assert faces.steps == int(printed["epochs"] * (0.8 * printed["images"] // 1) // printed["batch"])


def drawn_and_judged(study, folder):
    """A smoke run of a study, judged without an error, and its pictures."""
    name = study.__name__
    run_study(study, "smoke", folder, name=f"mathieu2019.{name}")
    pictures = FIGURES[name](folder)
    assert pictures
    assert all(picture.startswith(b"\x89PNG") for picture in pictures.values())
    judged = 0
    for claim in CLAIMS:
        for part in claim.trained:
            if part.study == f"mathieu2019.{name}":
                judged += len(list(part.judge(rows_of(folder, part.runs))))
    assert judged > 0


@pytest.mark.parametrize("study", [appendix_c, discussion], ids=lambda study: study.__name__)
def test_small_studies_run_and_are_drawn(study, tmp_path):
    drawn_and_judged(study, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "study", [figure_3, divergences, figure_2_top, figure_2_bottom, figure_4], ids=lambda study: study.__name__
)
def test_large_studies_run_and_are_drawn(study, tmp_path):
    drawn_and_judged(study, tmp_path)


def test_every_study_has_its_figures_and_a_claim():
    assert set(FIGURES) == set(STUDIES)
    assert {part.study for claim in CLAIMS for part in claim.trained} == {f"mathieu2019.{name}" for name in STUDIES}
    for study in STUDIES.values():
        assert "Command:" in study.__doc__
        assert "Cost:" in study.__doc__
