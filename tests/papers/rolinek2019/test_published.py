"""What rolinek2019 prints, against the studies that repeat it."""

import pytest
import torch
from torch import nn

from axiswise.data import synth_linear, synth_nonlinear
from axiswise.distributions import Bernoulli, Deterministic, Diagonal, Full
from axiswise.optimizers import AdaGrad, Adam
from axiswise.studies import find_study
from axiswise_papers.rolinek2019.studies import IMAGES, LENGTHS, RECORDED, STUDIES, gently_bent, tasks
from axiswise_papers.rolinek2019.tables import NAMES, TASKS, document, published


def test_the_printed_cells_are_those_of_the_tables():
    cells = document()["cell"]
    assert len(cells) == 14 + 9 + 4 + 4 + 10 + 6  # Table 2: synthetic, dSprites, two of digits; Table 1; Table S4
    found = published()
    assert (found["non-linear", "beta-vae", "dto"].mean, found["non-linear", "beta-vae", "dto"].deviation) == (
        0.18,
        0.02,
    )
    assert found["gently-bent", "beta-vae", "dto"] == found["non-linear", "beta-vae", "dto"]
    assert found["linear", "ten-latents", "polarization"].mean == 0.967
    assert found["dsprites", "vae", "disentanglement"].mean == 0.21
    assert found["fashion-mnist", "full-covariance", "dto"].mean == 2.02
    assert found["linear", "ratio-1.2", "dto"].deviation == 0.24
    assert ("linear", "vae", "dto") not in found  # a blank cell
    assert {task for task, _, _ in found} == set(TASKS)
    assert {column for _, column, _ in found if not column.startswith("ratio")} == set(NAMES)
    assert all(cell.place.startswith(("Table 1, ", "Table 2, ", "Table S4, ")) for cell in found.values())


def test_the_settings_are_those_of_table_s3():
    settings = {setting["task"]: setting for setting in document()["setting"]}
    for task in tasks("paper"):
        printed = settings["linear" if task.name == "linear" else "non-linear"]
        assert (task.beta, task.rate) == (printed["beta"], printed["rate"])
        assert task.steps == printed["epochs"] * 0.8 * document()["data"]["samples"] / 64
        network = task.model(printed["latents"]).network
        assert (list(network.encoder), list(network.decoder)) == (printed["encoder"], printed["decoder"])
    for task in IMAGES:
        printed = settings[task.name]
        assert (task.beta, task.epochs, task.latents) == (printed["beta"], printed["epochs"], printed["latents"])
        assert (list(task.encoder), list(task.decoder)) == (printed["encoder"], printed["decoder"])
        runs = {run.name: run for run in STUDIES["table_2_images"]("paper")}
        member = runs[f"{task.name}/vae"].members[0]
        assert member.optimizer == AdaGrad(lr=printed["rate"])
        assert member.steps * member.batch == pytest.approx(printed["epochs"] * task.samples, rel=1e-3)
        assert member.model.network.activations == tuple(kind.__name__ for kind in (nn.ReLU, nn.Tanh))
    assert list(LENGTHS) == document()["figure_3"]["epochs"]
    assert IMAGES[0].beta == document()["figure_3"]["beta"]
    assert document()["regime"]["batches"] == RECORDED
    assert len(synth_linear()) == len(synth_nonlinear()) == document()["data"]["samples"]
    assert synth_linear().arguments["ratio"] == document()["data"]["stretch"]
    assert synth_nonlinear().shape == (document()["data"]["inputs"],)


@pytest.mark.parametrize("scale", ["smoke", "default", "paper"])
def test_table_2_has_every_column(scale):
    runs = find_study("rolinek2019.table_2")(scale)
    squares = ["linear", "non-linear", *(["gently-bent"] if scale == "paper" else [])]
    columns = ["beta-vae", "vae", "autoencoder", "full-covariance", "random"]
    assert [run.name for run in runs] == [f"{task}/{column}" for task in squares for column in columns]
    for run in runs:
        task, column = run.name.split("/")
        first = run.members[0]
        posterior = {"full-covariance": Full(), "autoencoder": Deterministic(), "random": Deterministic()}
        assert first.model.posterior == posterior.get(column, Diagonal())
        assert first.model.latents == 2
        assert first.model.likelihood.scale**2 == pytest.approx(0.5)  # ‖x − x̂‖² without a half
        assert (first.steps == 0) == (column == "random")
        assert run.held_out
        if column == "vae":
            assert first.objective.beta == 1.0
        if column in ("beta-vae", "full-covariance") and scale == "paper":
            assert first.objective.beta == (1e-4 if task == "linear" else 1e-3)
        if scale == "default" and column != "random":
            assert first.optimizer.lr.steps == first.steps  # the cosine ends with training
        assert len(run.members) == (2 if scale == "smoke" else 10)


def test_table_1_trains_at_the_papers_rate():
    for run in find_study("rolinek2019.table_1")("default"):
        task, column = run.name.split("/")
        first = run.members[0]
        assert first.optimizer == Adam(lr=1e-3)
        assert first.objective.beta == {"linear": 1e-4, "non-linear": 1e-3}[task]
        assert first.model.latents == {"beta-vae": 2, "ten-latents": 10}[column]
        assert first.history == 500


def test_images_of_every_column():
    names = [run.name for run in find_study("rolinek2019.table_2_images")("default")]
    five = ["vae", "autoencoder", "full-covariance", "random", "ten-latents"]
    assert names == [
        "dsprites/beta-vae",
        *(f"{task}/{column}" for task in ("dsprites", "mnist", "fashion-mnist") for column in five),
    ]
    for run in find_study("rolinek2019.figure_3")("default"):
        member = run.members[0]
        assert member.model.likelihood == Bernoulli()
        assert member.steps == int(run.name.rpartition("-")[2]) * 589_824 // 256
        assert len(run.members) == 20


def test_gently_bent_is_a_glorot_network_that_a_plain_vae_cannot_keep():
    dataset = gently_bent()
    index = torch.arange(len(dataset))
    x, square = dataset.x(index).double(), dataset.factors(index)
    variances = torch.linalg.eigvalsh(torch.cov(x.T))
    assert variances[-1] < 0.5  # β/2 at β = 1: no latent is worth its divergence
    assert variances[-2] > 10 * 0.5e-3  # and at β = 1e-3 two are
    # A network of ten hidden units through W₂: x − b₂ lies in its range, and is as smooth as W₁ allows.
    assert square.min() >= 0.0
    assert square.max() <= 1.0
    steepest = 2 * (6 / 12) ** 0.5 * 10 * (6 / 16) ** 0.5  # ∞-norm of W₂ diag(tanh′) W₁ at most
    near = (square[:200, None] - square[None, :200]).abs().amax(-1)
    apart = (x[:200, None] - x[None, :200]).abs().amax(-1)
    assert (apart <= steepest * near + 1e-5).all()
    assert dataset.identity != gently_bent(seed=1).identity
