"""The examples of own parts: correct by others' numbers, and usable from a notebook to an export."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import scipy.stats
import torch

from axiswise import grid, load, models, objectives, optimizers, train
from axiswise.data import arrays
from axiswise.distributions import Diagonal, Likelihood, Posterior, Prior
from axiswise.numerics import normal, uniform
from axiswise.schedules import Schedule

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def parts():
    """The module, found as a user's script would find it."""
    sys.path.insert(0, str(EXAMPLES))
    import own_parts  # pyright: ignore[reportMissingImports] (it lies beside the notebook)

    yield own_parts
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def dataset():
    return arrays(np.random.default_rng(0).random((200, 1, 8, 8), dtype=np.float32), name="noise")


def test_they_are_what_their_kinds_ask_for(parts):
    assert isinstance(parts.Logistic(), Prior)
    assert isinstance(parts.Cauchy(), Likelihood)
    assert isinstance(parts.Bounded(), Posterior)
    assert isinstance(parts.Cyclical(1.0, 10), Schedule)


def test_the_logistic_prior_is_scipys(parts):
    prior, z = parts.Logistic(0.7), normal(0, "z", 0, (50, 3), dtype=torch.float64)
    expected = scipy.stats.logistic(scale=0.7).logpdf(z.numpy())
    assert prior.log_density(z).numpy() == pytest.approx(expected.sum(-1), abs=1e-12)
    u = uniform(0, "u", 0, (50, 3), dtype=torch.float64)
    assert prior.sample(z, u).numpy() == pytest.approx(scipy.stats.logistic(scale=0.7).ppf(u.numpy()), rel=1e-12)
    q = Diagonal().unpack(normal(0, "q", 0, (50, 6), dtype=torch.float64))
    divergence = prior.kl(q, z)
    deviation = q.variance.sqrt().numpy()
    own = scipy.stats.norm(q.mean.numpy(), deviation).logpdf(z.numpy())
    assert divergence.per_latent.numpy() == pytest.approx(own - expected, abs=1e-10)
    assert divergence.total.numpy() == pytest.approx((own - expected).sum(-1), abs=1e-10)
    assert scipy.stats.logistic(scale=parts.Logistic().scale).var() == pytest.approx(1.0)


def test_the_cauchy_likelihood_is_scipys(parts):
    x, raw = (normal(0, name, 0, (5, 2, 3), dtype=torch.float64) for name in ("x", "raw"))
    expected = scipy.stats.cauchy(raw.numpy(), 0.3).logpdf(x.numpy()).sum((1, 2))
    assert parts.Cauchy(0.3).log_density(x, raw).numpy() == pytest.approx(expected, abs=1e-12)


def test_the_discrepancy_is_the_sum_over_pairs(parts):
    first, second = (normal(0, name, 0, (6, 2), dtype=torch.float64) for name in ("first", "second"))

    def kernel(a, b):
        return 2.5 / (2.5 + float((a - b).square().sum()))

    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    within = sum(kernel(points[i], points[j]) for points in (first, second) for i, j in pairs) / 30
    between = sum(kernel(a, b) for a in first for b in second) / 36
    found = parts.WassersteinAE(width=2.5)._discrepancy(first, second)
    assert found.item() == pytest.approx(within - 2 * between, abs=1e-12)


def test_the_bounds_and_the_cycle_are_kept(parts):
    q = parts.Bounded().unpack(torch.tensor([[0.0, 0.0, -1e6, 1e6]]))
    assert q.log_variance.tolist() == [[-10.0, 2.0]]
    schedule = parts.Cyclical(end=4.0, cycle=100)
    assert [schedule.at(step) for step in (0, 25, 50, 99, 100, 125)] == [0.0, 2.0, 4.0, 4.0, 0.0, 2.0]


def test_all_of_them_train_together(parts, dataset):
    model = models.custom(
        parts.nets,
        (1, 8, 8),
        3,
        arguments={"hidden": 8},
        posterior=parts.Bounded(),
        prior=parts.Logistic(),
        likelihood=parts.Cauchy(),
    )
    chosen = [parts.WassersteinAE(), parts.SparseVAE(parts.Cyclical(1.0, 4)), objectives.BetaVAE()]
    population = train(grid(model=model, objective=chosen, steps=5, batch=16, history=1), dataset)
    assert [model.status for model in population] == ["trained"] * 3
    assert list(population[1].history["l1"].shape) == [5]
    assert all(np.isfinite(model.history["loss"]).all() for model in population)


PROGRAM = """
import sys, numpy as np
import own_parts as parts
from axiswise import grid, models, train
from axiswise.data import arrays
from axiswise.population import loop
loop.SAVE_SECONDS, loop.SAVING_SHARE = 0.1, 1.0
dataset = arrays(np.random.default_rng(0).random((200, 1, 8, 8), dtype=np.float32), name="noise")
model = models.custom(parts.nets, (1, 8, 8), 3, arguments={"hidden": 8}, prior=parts.Logistic())
objective = [parts.WassersteinAE(width=width) for width in (0.5, 2.0)]
train(grid(model=model, objective=objective, steps=int(sys.argv[2]), batch=16, seed=range(2)), dataset, out=sys.argv[1])
"""
LOADING = """
import sys, torch, own_parts as parts
from axiswise import load
population = load(sys.argv[1], own=[parts.nets, parts.WassersteinAE, parts.Logistic])
x = torch.linspace(0, 1, 128).reshape(2, 1, 8, 8)
torch.set_num_threads(1)
for model in population:
    print(model.encode(x).mean.double().sum().item().hex(), model.member.address)
"""


@pytest.mark.slow
def test_killed_resumed_loaded_elsewhere_and_exported_they_are_the_same(parts, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path])}
    whole, broken = tmp_path / "whole", tmp_path / "broken"

    def call(program, *arguments):
        return [sys.executable, "-c", program, *map(str, arguments)]

    steps = 3000
    subprocess.run(call(PROGRAM, whole, steps), check=True, env=environment, capture_output=True)
    process = subprocess.Popen(call(PROGRAM, broken, steps), env=environment, stderr=subprocess.PIPE)
    while not list(broken.glob("cohorts/*.safetensors")):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not list(broken.glob("members/*.safetensors"))
    subprocess.run(call(PROGRAM, broken, steps), check=True, env=environment, capture_output=True)
    own = [parts.nets, parts.WassersteinAE, parts.Logistic]
    first, second = load(whole, own=own), load(broken, own=own)
    assert [model.member for model in first] == [model.member for model in second]
    for one, two in zip(first, second, strict=True):
        assert all(torch.equal(weight, two.state_dict()[name]) for name, weight in one.state_dict().items())

    x = torch.linspace(0, 1, 128).reshape(2, 1, 8, 8)
    found = subprocess.run(call(LOADING, broken), check=True, env=environment, capture_output=True, text=True).stdout
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = [f"{model.encode(x).mean.double().sum().item().hex()} {model.member.address}" for model in first]
    torch.set_num_threads(before)
    assert found.splitlines() == expected

    first[0].export(tmp_path / "export", to="onnx")
    encoder = onnxruntime.InferenceSession(tmp_path / "export/encoder.onnx")
    mean, log_variance = encoder.run(["mean", "log_variance"], {"x": x.numpy()})
    q = first[0].encode(x)
    assert mean == pytest.approx(q.mean.numpy(), abs=1e-5)
    assert log_variance == pytest.approx(q.log_variance.numpy(), abs=1e-5)
    decoder = onnxruntime.InferenceSession(tmp_path / "export/decoder.onnx")
    (decoded,) = decoder.run(None, {"z": mean})
    assert decoded == pytest.approx(first[0].decode(q.mean).numpy(), abs=1e-5)


@pytest.mark.gpu
def test_on_cuda_a_cohort_of_32_trains_as_on_the_cpu(parts):
    dataset = arrays(np.random.default_rng(0).random((200, 1, 8, 8), dtype=np.float32), name="noise")
    model = models.custom(parts.nets, (1, 8, 8), 3, arguments={"hidden": 8}, prior=parts.Logistic())
    objective = [parts.WassersteinAE(width=1.0 + place) for place in range(4)]
    fast = optimizers.Adam(lr=1e-3)
    members = grid(model=model, objective=objective, steps=100, batch=16, seed=range(8), optimizer=fast)
    here, there = (
        train(members, dataset, dtype=torch.float64),
        train(members, dataset, device="cuda", dtype=torch.float64),
    )
    for one, two in zip(here.trained, there.trained, strict=True):
        for name, weight in one.weights.items():
            assert (weight - two.weights[name].cpu()).abs().max() < 1e-8


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    """From import to export, in a fresh kernel."""
    import nbclient  # neither is on every machine with a GPU, where the rest of this file is run, too
    import nbformat

    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in all tests, which run beside it
    notebook = nbformat.read(EXAMPLES / "own_parts.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # what is committed has no outputs that could age
    began = time.monotonic()
    nbclient.NotebookClient(notebook, timeout=180, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    print(f"the notebook took {time.monotonic() - began:.0f} s")
    difference = notebook.cells[-1]["outputs"][-1]["data"]["text/plain"]
    assert float(difference) < 1e-5
    missing = next(cell for cell in notebook.cells if "aw.load" in cell.source)["outputs"][0]["text"]
    assert "stored by name only: own_parts.nets, Logistic, WassersteinAE." in missing
    nbformat.write(notebook, tmp_path / "executed.ipynb")
