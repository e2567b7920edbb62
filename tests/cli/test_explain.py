"""`axiswise explain`: a model named on the command line, observations from a file, words and a page."""

import sys
import textwrap

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from axiswise.cli import app
from axiswise.errors import AxiswiseError

MODEL = """
import torch

W = torch.tensor([[3.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
SPREAD = torch.tensor([0.1, 0.5])

def encode(x):
    return x.flatten(1) @ W * SPREAD, SPREAD.log().expand(len(x), 2)

def decode(z):
    return z @ W.T

def pair():
    return encode, decode

class Model:
    def encode(self, x):
        return encode(x)
    def decode(self, z):
        return decode(z)

class Modules:
    encoder, decoder = staticmethod(encode), staticmethod(decode)

class Holder:
    make = staticmethod(pair)

number = 3

def wrong():
    return 3

def broken():
    raise KeyError("weights")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, python_object):
    (tmp_path / "my_model.py").write_text(textwrap.dedent(MODEL))
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 3)))
    np.save(tmp_path / "bytes.npy", rng.integers(0, 256, size=(60, 3), dtype=np.uint8))
    np.savez(tmp_path / "two.npz", x=rng.normal(size=(60, 3)), y=np.zeros(3))
    save_file({"x": rng.normal(size=(60, 3)).astype(np.float32), "y": np.zeros(3)}, tmp_path / "x.safetensors")
    np.save(tmp_path / "factors.npy", rng.integers(0, 3, size=(60, 2)))
    (tmp_path / "objects.npy").write_bytes(python_object)
    (tmp_path / "factors.csv").write_text("shape,size\n" + "round,0.5\nflat,0.25\n" * 30)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_model", raising=False)
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(app, ["explain", *arguments])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize("factory", ["my_model:pair", "my_model:Model", "my_model:Modules", "my_model:Holder.make"])
def test_it_prints_what_it_found(folder, factory):
    output = run(factory, "--data", "x.npy", "--likelihood", "gaussian:1")
    assert f"What the latents of {factory} do" in output
    assert "2 of 2 latents are active" in output
    assert "to within 0.0 % on average" in output
    assert "What it cannot conclude:" in output
    assert "Without factors nothing can be concluded about meaning" in output


def test_it_writes_a_page(folder):
    output = run(
        *("my_model:pair", "--data", "x.safetensors:x", "--factors", "factors.csv", "--beta", "unknown"),
        *("--points", "50", "--seed", "1", "--out", "deep/page.html"),
    )
    assert "page: deep/page.html" in output
    assert "β is unknown" in output
    assert "The likelihood is a guess" in output
    assert " carries most about shape (" in output
    page = (folder / "deep" / "page.html").read_text()
    assert "Does one latent stand for each factor?" in page
    assert "my_model:pair" in page


def test_likelihoods_are_named_in_any_case(folder):
    small, large = (
        run("my_model:pair", "--data", "x.npy", "--likelihood", name) for name in ("gaussian:1", "Gaussian:1")
    )
    assert small == large


@pytest.mark.parametrize("data", ["two.npz:x", "bytes.npy"])
def test_files_it_reads(folder, data):
    assert "of 2 latents" in run("my_model:pair", "--data", data, "--factors", "factors.npy")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["my_model", "--data", "x.npy"], r"Expected package.module:name or file.py:name. Got 'my_model'"),
        (["no_model:pair", "--data", "x.npy"], r"Expected a module no_model in .* or on the path. .*PYTHONPATH"),
        (["my_model:pear", "--data", "x.npy"], r"Expected 'pear' in my_model. There is none"),
        (["my_model:number", "--data", "x.npy"], r"to be a function without arguments. Got int"),
        (["my_model:wrong", "--data", "x.npy"], r"to return a pair \(encode, decode\), or an object .* Got int"),
        (["my_model:broken", "--data", "x.npy"], r"Expected my_model:broken\(\) to return a model. Got KeyError"),
        (["my_model:pair", "--data", "y.npy"], r"Expected a file at y.npy. There is none"),
        (["my_model:pair", "--data", "y.safetensors"], r"Expected a file at y.safetensors. There is none"),
        (["my_model:pair", "--data", "x.safetensors"], r"Name one of the tensors of .*, out of x, y. Got ''"),
        (
            ["my_model:pair", "--data", "x.npy", "--factors", "x.pt"],
            r"--factors to be a file that ends in .npy, .npz, .safetensors, .csv, .tsv or .parquet. Got x.pt",
        ),
        (["my_model:pair", "--data", "x.pt"], r"--data to be .* in .npy, .npz or .safetensors. Got x.pt"),
        (["my_model:pair", "--data", "factors.csv"], r"--data to be .* in .npy, .npz or .safetensors. Got factors.csv"),
        (["my_model:pair", "--data", "small_sprites"], r"--data to be .* in .npy, .npz or .safetensors. Got small_sp"),
        (["my_model:pair", "--data", "objects.npy"], r"holds Python objects, which would"),
        (["my_model:pair", "--data", "x.npy", "--likelihood", "cauchy"], r"--likelihood must be bernoulli or gaussian"),
        (["my_model:pair", "--data", "x.npy", "--likelihood", "gaussian"], r"gaussian:SCALE, .* Got 'gaussian'"),
        (
            ["my_model:pair", "--data", "x.npy", "--beta", "-1"],
            r"--beta must be a positive number, or unknown, and at most 1e\+100. Got '-1'",
        ),
        (["my_model:pair", "--data", "two.npz:y"], r"`x` must be a floating-point tensor"),
    ],
)
def test_mistakes_are_named(folder, arguments, reason, as_installed):
    with pytest.raises(AxiswiseError, match=reason):
        run(*arguments)


def test_a_broken_safetensors_file_is_named(folder):
    (folder / "torn.safetensors").write_bytes(b"not one")
    with pytest.raises(AxiswiseError, match=r"torn.safetensors cannot be read as safetensors of numbers"):
        run("my_model:pair", "--data", "torn.safetensors")
