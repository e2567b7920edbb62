"""Exported members: other programs compute what the member computes, and the folder is whole or untouched."""

import json
import re
import sys
from dataclasses import dataclass, replace
from functools import cache, partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import yaml
from safetensors.torch import load_file
from torch import nn

from axiswise import data, distributions, grid, models, objectives, train
from axiswise.distributions import (
    Bernoulli,
    Deterministic,
    Full,
    Gaussian,
    Isotropic,
    LearnedGaussian,
    Likelihood,
    Posterior,
)
from axiswise.errors import AxiswiseError
from axiswise.models import VAE
from axiswise.numerics import normal, uniform
from axiswise.population import Population, _export, from_models
from axiswise.population._export import export
from axiswise.population._model_card import read_mean, read_posterior
from axiswise.population._trained import Trained
from axiswise.records import address, write_bytes

# PyTorch 2.11 says this of its own `torch.export.load`, once.
pytestmark = pytest.mark.filterwarnings("ignore:The given buffer is not writable")

TOLERANCE = 1e-5
CLASSES = [found for name in distributions.__all__ if isinstance(found := getattr(distributions, name), type)]
POSTERIORS = [kind for kind in CLASSES if hasattr(kind, "unpack") and kind is not Posterior]
LIKELIHOODS = [kind for kind in CLASSES if {"outputs", "log_density"} <= {*dir(kind)} and kind is not Likelihood]
BATCHES = (1, 7)


class Branching(nn.Module):
    """Batch norm, a skip connection, and a value that a tracer calls "mean", as one of the outputs is called."""

    def __init__(self):
        super().__init__()
        self.norm, self.last = nn.BatchNorm1d(3), nn.Linear(3, 4)

    def forward(self, x):
        hidden = self.norm(x)
        return self.last(hidden) + hidden.mean(-1, keepdim=True)


def own():
    return Branching(), nn.Sequential(nn.Linear(2, 6), nn.BatchNorm1d(6), nn.GELU(), nn.Linear(6, 3))


class Counting(nn.Module):
    """It turns a tensor into a number of Python, which no traced program can."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 4)

    def forward(self, x):
        return self.layer(x) * int(x.abs().sum() + 1)


def counting():
    return Counting(), nn.Linear(2, 3)


MODELS = {
    "linear": lambda: models.linear(3, 2),
    "mlp": lambda: models.mlp(3, 2, likelihood=Bernoulli()),
    "full": lambda: models.mlp(3, 4, encoder=(5,), decoder=(5,), posterior=Full()),
    "deterministic": lambda: models.linear(3, 2, posterior=Deterministic()),
    "isotropic": lambda: models.linear(3, 2, posterior=Isotropic()),
    "own": lambda: models.custom(own, 3, 2),
    "learned": lambda: models.linear(3, 2, likelihood=LearnedGaussian(0.5)),
    "conv64": lambda: models.conv64(),
}


def dataset(model: VAE) -> data.FactorDataset:
    return data.arrays(uniform(0, "rows", 0, (12, *model.shape), dtype=torch.float32))


@cache
def trained_as(kind: str, dtype: torch.dtype = torch.float32) -> tuple[Trained, dict[str, nn.Module]]:
    """A member of two steps, and its modules."""
    model = MODELS[kind]()
    objective = objectives.Autoencoder() if kind == "deterministic" else objectives.BetaVAE()
    population = train(grid(model=model, objective=objective, steps=2, batch=4), dataset(model), dtype=dtype)
    return population.trained[0], modules_of(population)


def modules_of(population: Population) -> dict[str, nn.Module]:
    return dict(population[0].named_children())


def inputs(model: VAE, rows: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Observations and latents that no example of a tracer had."""
    x = uniform(1, "x", rows, (rows, *model.shape), dtype=dtype)
    return x, normal(1, "z", rows, (rows, model.latents), dtype=dtype)


def expected(kind: str, x: torch.Tensor, z: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """The posterior's fields by name, and E[x | z]: of the population itself, which the export does not use."""
    member, _ = trained_as(kind, x.dtype)
    population = Population([member])
    with torch.no_grad():
        return {name: part[0] for name, part in population.encode(x)._asdict().items()}, population.decode(z)[0]


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of a kind of model in a format, which is written once."""

    @cache
    def written(kind: str, to: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{kind}-{to}")
        export(*trained_as(kind), folder, to)
        return folder

    return written


def assert_close(found, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(torch.as_tensor(found), wanted, atol=TOLERANCE, rtol=TOLERANCE)


def blocks(folder: Path) -> dict[str, str]:
    """The code of a model card by its titles."""
    text = (folder / "README.md").read_text()
    return dict(re.findall(r"^(With [^\n]*):\n\n```python\n(.*?)```$", text, flags=re.M | re.S))


@pytest.mark.parametrize("kind", MODELS)
def test_state_dicts_give_the_same_bits_in_fresh_modules(kind, tmp_path):
    trained, modules = trained_as(kind)
    export(trained, modules, tmp_path)
    model = trained.member.model
    fresh = model.modules()
    with torch.no_grad():
        for name, given in zip(("encoder", "decoder"), inputs(model, 5), strict=True):
            fresh[name].load_state_dict(load_file(tmp_path / f"{name}.safetensors"))
            assert torch.equal(fresh[name].eval()(given), modules[name](given))
    names = {path.name for path in tmp_path.iterdir()}
    assert names - {"likelihood.safetensors"} == {
        "encoder.safetensors",
        "decoder.safetensors",
        "README.md",
        "config.json",
    }
    assert ("likelihood.safetensors" in names) == (kind == "learned")
    if kind == "learned":
        learned = load_file(tmp_path / "likelihood.safetensors")
        assert torch.equal(learned["log_scale"], trained.weights["likelihood.log_scale"])


SLOW = pytest.mark.slow  # each program is traced anew


@pytest.mark.parametrize(
    "kind", ["mlp", "own", *(pytest.param(kind, marks=SLOW) for kind in ("linear", "full", "deterministic", "conv64"))]
)
def test_onnx_runtime_computes_what_the_member_computes(kind, exported):
    folder, model = exported(kind, "onnx"), MODELS[kind]()
    encoder, decoder = (onnxruntime.InferenceSession(folder / f"{name}.onnx") for name in ("encoder", "decoder"))
    for rows in BATCHES:
        x, z = inputs(model, rows)
        posterior, mean = expected(kind, x, z)
        assert [output.name for output in encoder.get_outputs()] == list(posterior)
        for found, wanted in zip(encoder.run(list(posterior), {"x": x.numpy()}), posterior.values(), strict=True):
            assert_close(found, wanted)
        assert_close(*decoder.run(["mean"], {"z": z.numpy()}), mean)
    for name in ("encoder", "decoder"):
        onnx.checker.check_model(onnx.load(folder / f"{name}.onnx"), full_check=True)


@pytest.mark.parametrize("kind", [kind if kind == "own" else pytest.param(kind, marks=SLOW) for kind in MODELS])
def test_torch_export_computes_what_the_member_computes(kind, exported):
    folder, model = exported(kind, "torch-export"), MODELS[kind]()
    encoder, decoder = (torch.export.load(folder / f"{name}.pt2").module() for name in ("encoder", "decoder"))
    for rows in BATCHES:
        x, z = inputs(model, rows)
        posterior, mean = expected(kind, x, z)
        for found, wanted in zip(encoder(x), posterior.values(), strict=True):
            assert_close(found, wanted)
        assert_close(decoder(z), mean)


@pytest.mark.parametrize("to", ["onnx", "torch-export"])
def test_programs_name_no_files_of_this_machine(to, exported):
    places = [Path(__file__).parent, Path(torch.__file__).parent, Path(_export.__file__).parent]
    for path in exported("own", to).iterdir():
        assert not any(str(place).encode() in path.read_bytes() for place in places), path


def test_double_precision_stays_double(tmp_path):
    trained, modules = trained_as("mlp", torch.float64)
    export(trained, modules, tmp_path, "onnx")
    x, z = inputs(trained.member.model, 3, torch.float64)
    found = onnxruntime.InferenceSession(tmp_path / "decoder.onnx").run(["mean"], {"z": z.numpy()})[0]
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected("mlp", x, z)[1].numpy(), rtol=1e-12)
    assert {tensor.dtype for tensor in load_file(tmp_path / "encoder.safetensors").values()} == {torch.float64}


@pytest.mark.parametrize("to", ["state-dict", "onnx", "torch-export"])
def test_a_model_without_a_decoder_is_its_encoder_alone(to, tmp_path):
    levels = torch.cartesian_prod(torch.arange(5), torch.arange(4))
    moving = data.transitions(data.arrays(torch.cat((levels, levels[:, :1]), 1) / 4.0, levels, names=["across", "up"]))
    members = grid(model=models.linear(3, 2, posterior=Deterministic()), objective=objectives.PCL(), steps=2, batch=8)
    population = train(members, moving)
    paths = export(population.trained[0], modules_of(population), tmp_path, to)
    names = {path.name for path in paths}
    programs = {"state-dict": set(), "onnx": {"encoder.onnx"}, "torch-export": {"encoder.pt2"}}[to]
    assert names == {"encoder.safetensors", "README.md", "config.json"} | programs
    assert "decoder" not in json.loads((tmp_path / "config.json").read_text())
    assert not any("decoder." in text or "decoder(" in text for text in blocks(tmp_path).values())
    assert (
        "None)]," in blocks(tmp_path)["With axiswise, which measures and explains the modules that PyTorch has loaded"]
    )


@pytest.mark.parametrize("to", ["state-dict", "onnx", "torch-export"])
@pytest.mark.parametrize(
    "kind", ["mlp", *(pytest.param(kind, marks=SLOW) for kind in ("conv64", "full", "deterministic"))]
)
def test_the_code_of_the_model_card_runs(kind, to, exported, monkeypatch):
    folder = exported(kind, to)
    monkeypatch.chdir(folder)
    x, z = inputs(MODELS[kind](), 3)
    posterior, mean = expected(kind, x, z)
    code = blocks(folder)
    assert len(code) == (2 if to == "state-dict" else 3)
    loaded = {}
    for title, text in code.items():
        if "axiswise" in title:  # it uses the modules that PyTorch has loaded
            exec(text, loaded)
            population = loaded["population"]
            assert_close(population.decode(z)[0].detach(), mean)
            for name, wanted in posterior.items():
                assert_close(getattr(population.encode(x), name)[0], wanted)
            continue
        space = {"x": x.numpy(), "z": z.numpy()} if "ONNX" in title else {"x": x, "z": z}
        with torch.no_grad():
            exec(text, space)
        loaded = loaded or space
        # The name "mean" has been given to E[x | z] in the end.
        for name, wanted in {**posterior, "mean": mean}.items():
            assert_close(space[name], wanted)


@pytest.mark.parametrize("posterior", POSTERIORS)
def test_the_code_that_reads_an_encoder_is_what_its_posterior_does(posterior):
    output = normal(0, "output", 0, (5, posterior().outputs(4)), dtype=torch.float64)
    space = {"torch": torch, "output": output}
    exec(read_posterior(models.linear(3, 4, posterior=posterior())), space)
    for name, wanted in posterior().unpack(output)._asdict().items():
        assert torch.equal(space[name], wanted)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("shape", [(3,), (2, 4, 4)])
def test_the_code_that_reads_a_decoder_is_what_its_likelihood_does(likelihood, shape):
    rows = likelihood().outputs * shape[0]
    output = normal(0, "output", 0, (5, rows, *shape[1:]), dtype=torch.float64)
    space = {"torch": torch, "output": output}
    exec(read_mean(models.mlp(shape, 2, likelihood=likelihood())), space)
    assert torch.equal(space["mean"], likelihood().mean(output))


@dataclass(frozen=True)
class Doubled:
    """A likelihood of somebody's own."""

    factor: float = 2.0

    @property
    def outputs(self):
        return 1

    def log_density(self, x, raw):
        return Gaussian().log_density(x, self.mean(raw))

    def mean(self, raw):
        return self.factor * raw


@pytest.mark.parametrize("build", [models.linear, partial(models.custom, own)])
def test_distributions_of_ones_own_are_named_in_the_card(build, tmp_path):
    model = build(3, 2, likelihood=Doubled(3.0))
    population = train(grid(model=model, objective=objectives.BetaVAE(), steps=1), dataset(model))
    export(population.trained[0], modules_of(population), tmp_path)
    code = blocks(tmp_path)["With PyTorch"]
    assert "mean = Doubled(factor=3.0).mean(output)\n" in code
    assert f"from {__name__} import Doubled\n" in code
    custom = isinstance(model.network, models.Custom)
    assert (f"with {__name__}.own first" in code) == custom
    assert ("modules = VAE(" in code) == (not custom)


def test_the_card_has_metadata_that_the_hub_reads(exported):
    history = trained_as("mlp")[0].history
    text = (exported("mlp", "onnx") / "README.md").read_text()
    empty, metadata, body = text.split("---\n", 2)
    assert empty == ""
    assert yaml.safe_load(metadata) == {
        "library_name": "axiswise",
        "tags": [
            *("variational-autoencoder", "disentanglement", "representation-learning", "pytorch"),
            *("onnx", "safetensors"),
        ],
    }
    assert "Status: **trained**" in body
    assert "| objective | `BetaVAE(beta=1.0)` |" in body
    assert f"## Loss at step {history['step'][-1]}" in body
    assert f"| loss | {history['loss'][-1]:.6g} |" in body


def test_a_name_with_a_bar_or_a_line_does_not_break_the_card(tmp_path):
    trained, modules = trained_as("linear")
    about = {**trained.about, "dataset": {"name": "a|b\n---\nlicense: mit", "arguments": {}}}
    export(replace(trained, about=about), modules, tmp_path)
    lines = (tmp_path / "README.md").read_text().splitlines()
    assert [number for number, line in enumerate(lines) if line == "---"] == [0, 8]
    assert "# BetaVAE with 2 latents, trained on a\\|b --- license: mit" in lines


def test_the_config_says_what_the_files_are(tmp_path):
    trained, modules = trained_as("full")
    paths = export(trained, modules, tmp_path, "torch-export")
    config = json.loads((tmp_path / "config.json").read_text())
    assert paths[-1] == tmp_path / "config.json"
    assert config["format"] == "axiswise-export-1"
    assert address(config["member"]) == config["address"] == trained.member.address
    assert (config["dataset"], config["status"]) == (trained.about["dataset"], "trained")
    assert config["encoder"]["input"] == {"x": ["batch", 3]}
    assert config["encoder"]["outputs"] == {"mean": ["batch", 4], "cholesky": ["batch", 4, 4]}
    assert config["encoder"]["posterior"] == {"type": "Full"}
    assert config["decoder"]["outputs"] == {"mean": ["batch", 3]}
    assert config["files"].keys() == {path.name for path in paths} - {"README.md", "config.json"}
    for name, about in config["files"].items():
        assert sha256((tmp_path / name).read_bytes()).hexdigest() == about["sha256"]


def test_modules_are_exported_in_evaluation_mode_and_stay_as_they_were(tmp_path):
    trained, modules = trained_as("own")
    x, z = inputs(trained.member.model, 3)
    posterior, _ = expected("own", x, z)
    modules["encoder"].train()
    try:
        export(trained, modules, tmp_path, "torch-export")
        assert modules["encoder"].training
    finally:
        modules["encoder"].eval()
    assert_close(torch.export.load(tmp_path / "encoder.pt2").module()(x)[0], posterior["mean"])


def test_shared_and_strided_tensors_are_written(tmp_path):
    trained, modules = trained_as("linear")
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(3, 4))
    encoder[1].weight = nn.Parameter(torch.arange(12.0).reshape(3, 4).T)
    encoder.register_buffer("again", encoder[1].weight.detach())
    export(trained, {"encoder": encoder, "decoder": modules["decoder"]}, tmp_path)
    found = load_file(tmp_path / "encoder.safetensors")
    assert found.keys() == {"1.weight", "1.bias", "again"}
    assert torch.equal(found["1.weight"], encoder[1].weight)
    assert torch.equal(found["again"], encoder[1].weight)


@pytest.mark.parametrize("to", ["onnx", "torch-export"])
def test_what_pytorch_cannot_trace_is_an_error_and_no_file(to, tmp_path):
    model = models.custom(counting, 3, 2)
    population = train(grid(model=model, objective=objectives.BetaVAE(), steps=0), dataset(model))
    with pytest.raises(AxiswiseError, match=rf"cannot export the encoder to {to} for any number of rows .* state dict"):
        export(population.trained[0], modules_of(population), tmp_path / "out", to)
    assert not (tmp_path / "out").exists()
    assert export(population.trained[0], modules_of(population), tmp_path / "out")


def test_a_folder_with_anything_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "encoder.safetensors").write_text("mine")
    with pytest.raises(AxiswiseError, match=r"Expected an empty folder, .* that contains encoder\.safetensors; not"):
        export(*trained_as("linear"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["encoder.safetensors"]
    assert (tmp_path / "encoder.safetensors").read_text() == "mine"
    with pytest.raises(AxiswiseError, match=r"Expected an empty folder, or nothing yet, at .* Got a file"):
        export(*trained_as("linear"), tmp_path / "encoder.safetensors")


def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(path, contents):
        if path.name == "README.md":
            raise OSError("No space left on device")
        write_bytes(path, contents)

    monkeypatch.setattr(_export, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        export(*trained_as("linear"), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_the_way_to_install_it(package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(AxiswiseError, match=rf"ONNX needs {package}\. .* pip install 'axiswise\[onnx\]'"):
        export(*trained_as("linear"), tmp_path, "onnx")
    assert export(*trained_as("linear"), tmp_path / "other")


@pytest.mark.usefixtures("as_installed")
def test_other_formats_and_other_peoples_models_are_refused(tmp_path):
    with pytest.raises(AxiswiseError, match=r"one of state-dict, onnx, torch-export\. Got 'pickle'"):
        export(*trained_as("linear"), tmp_path, "pickle")
    external = from_models([(lambda x: x.chunk(2, -1), None)]).trained[0]
    with pytest.raises(AxiswiseError, match=r"A model of your own cannot be exported"):
        export(external, {}, tmp_path)
    assert list(tmp_path.iterdir()) == []
