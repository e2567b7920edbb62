"""The model card of an exported member: metadata for the Hugging Face hub, what it is, and how to use it.

The hub reads the YAML between two lines ``---``. It needs `library_name`, since it would take a folder with a
``config.json`` for a model of transformers. A licence is the publisher's to choose, so that none is stated.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from torch import nn

from axiswise import distributions, models
from axiswise.distributions import (
    Bernoulli,
    DecodedGaussian,
    Deterministic,
    Diagonal,
    Full,
    Gaussian,
    Isotropic,
    Laplace,
    LearnedGaussian,
    OptimalGaussian,
)
from axiswise.models import VAE, Custom
from axiswise.population._trained import Trained
from axiswise.records import describe

TAGS = ("variational-autoencoder", "disentanglement", "representation-learning", "pytorch")
CONTENTS = {
    "encoder.safetensors": "state dict of the encoder",
    "decoder.safetensors": "state dict of the decoder",
    "prior.safetensors": "what the prior learned",
    "likelihood.safetensors": "what the likelihood learned",
    "encoder.onnx": "ONNX model from x to the parameters of the posterior of z given x",
    "decoder.onnx": "ONNX model from z to the mean of x given z",
    "encoder.pt2": "torch.export program from x to the parameters of the posterior of z given x",
    "decoder.pt2": "torch.export program from z to the mean of x given z",
    "config.json": "all of this for programs, with the digests of the files",
}

# Plain PyTorch, for those who have no axiswise: what `unpack` of a posterior and `mean` of a likelihood compute.
POSTERIORS = {
    Diagonal: "mean, log_variance = output.chunk(2, -1)",
    Isotropic: "mean, log_variance = output[:, :-1], output[:, -1:].expand_as(output[:, :-1])",
    Deterministic: "mean = output",
    Full: (
        "mean, diagonal, lower = output.split(({z}, {z}, {below}), -1)\n"
        "cholesky = torch.diag_embed((diagonal / 2).exp())\n"
        "cholesky[:, *torch.tril_indices({z}, {z}, -1)] = lower"
    ),
}
MEANS = {
    Bernoulli: "mean = torch.sigmoid(output)",
    DecodedGaussian: "mean, log_variance = output.chunk(2, 1)",
    **dict.fromkeys((Gaussian, Laplace, LearnedGaussian, OptimalGaussian), "mean = output"),
}


def read_posterior(model: VAE) -> str:
    """Python that reads the encoder's `output` as the parameters of q(z | x).

    Example:
        >>> read_posterior(models.linear(3, 2))
        'mean, log_variance = output.chunk(2, -1)'
    """
    z = model.latents
    own = f"posterior = {written(describe(model.posterior))}.unpack(output)"
    return POSTERIORS.get(type(model.posterior), own).format(z=z, below=z * (z - 1) // 2)


def read_mean(model: VAE) -> str:
    """Python that reads the decoder's `output` as E[x | z].

    Example:
        >>> read_mean(models.conv64())
        'mean = torch.sigmoid(output)'
    """
    return MEANS.get(type(model.likelihood), f"mean = {written(describe(model.likelihood))}.mean(output)")


def written(form: Any) -> str:
    """The JSON form of a description as Python.

    Example:
        >>> written(describe(models.linear(3, 2).network))
        "MLP(inputs=(3,), latents=2, encoder=(), decoder=(), activations=('Tanh', 'Tanh'))"
    """
    if isinstance(form, dict) and "type" in form:
        return f"{form['type']}({', '.join(f'{key}={written(own)}' for key, own in form.items() if key != 'type')})"
    if isinstance(form, list):
        return f"({', '.join(map(written, form))}{',' if len(form) == 1 else ''})"
    return repr(form)


def model_card(
    trained: Trained, modules: Mapping[str, nn.Module], outputs: Mapping[str, Sequence[str]], files: Sequence[str]
) -> str:
    """The text of ``README.md``.

    Arguments:
        trained: The member.
        modules: Its modules by name.
        outputs: The names of what the exported encoder, and the decoder if there is one, compute.
        files: Names of the other files, without ``config.json``.
    """
    member, model = trained.member, trained.member.model
    kind = str(next(modules["encoder"].parameters()).dtype).removeprefix("torch.")
    endings = {name.rpartition(".")[2] for name in files}
    blocks = {"With PyTorch:": _with_pytorch(model, kind, outputs)}
    if "pt2" in endings:
        blocks["With PyTorch, without the code of the modules:"] = _with_torch_export(outputs)
    if "onnx" in endings:
        blocks["With ONNX Runtime, where `x` and `z` are NumPy arrays:"] = _with_onnx_runtime(outputs)
    title = "With axiswise, which measures and explains the modules that PyTorch has loaded:"
    blocks[title] = _with_axiswise(model, outputs, [name for name in ("prior", "likelihood") if name in modules])
    return "\n".join(
        [
            "---",
            "library_name: axiswise",
            "tags:",
            *(f"- {tag}" for tag in (*TAGS, *sorted(endings & {"safetensors", "onnx"}))),
            "---",
            "",
            f"# {type(member.objective).__name__} with {model.latents} latents, trained on {_dataset(trained)}",
            "",
            f"A model that axiswise trained. Status: **{trained.status}**. Its address, which is the hash of its "
            f"description, is `{member.address}`.",
            "",
            "No licence is stated: whoever publishes this folder chooses one and adds `license` to the metadata above.",
            "",
            "## Files",
            "",
            *_table("file", "contents", {f"`{name}`": CONTENTS[name] for name in (*files, "config.json")}),
            "",
            "## Hyperparameters",
            "",
            *_table("name", "value", {name: f"`{_line(value)}`" for name, value in _hyperparameters(trained).items()}),
            "",
            *_final_terms(trained),
            "## Use",
            "",
            f"`x` has shape (n, {', '.join(map(str, model.shape))}), and `z` has shape (n, {model.latents}). Both are "
            f"{kind}.",
            "",
            *(line for title, code in blocks.items() for line in (title, "", "```python", *code, "```", "")),
            "## Modules",
            "",
            "```",
            *(f"{name}: {module}" for name, module in modules.items()),
            "```",
            "",
        ]
    )


def _dataset(trained: Trained) -> str:
    return _line((trained.about.get("dataset") or {}).get("name", "an unknown dataset"))


def _hyperparameters(trained: Trained) -> dict[str, str]:
    form, about = trained.member.form, trained.about
    rows = {name: written(form["model"][name]) for name in ("network", "posterior", "prior", "likelihood")}
    rows |= {name: written(form[name]) for name in ("objective", "optimizer", "steps", "batch", "seed")}
    rows |= {name: str(about.get(name)) for name in ("dataset", "dtype", "versions")}
    return rows | ({"batch": "the whole dataset"} if form["batch"] is None else {})


def _final_terms(trained: Trained) -> list[str]:
    """The last entry of the history; nothing if there is none."""
    if not len(steps := trained.history["step"]):
        return []
    last = {name: values[-1].reshape(-1).tolist() for name, values in trained.history.items() if name != "step"}
    rows = {name: ", ".join(f"{number:.6g}" for number in numbers) for name, numbers in last.items()}
    return [f"## Loss at step {int(steps[-1]):,}", "", *_table("term", "value", rows), ""]


def _with_pytorch(model: VAE, kind: str, outputs: Mapping[str, Sequence[str]]) -> list[str]:
    code = ["import torch", "from safetensors.torch import load_file"]
    if isinstance(model.network, Custom):
        own = describe(model.network)["factory"]
        without = (kind for kind in (model.posterior, model.likelihood) if type(kind) not in {**POSTERIORS, **MEANS})
        code += _imports(*without)
        code += ["", f"# Make {' and '.join(outputs)} with {own} first: its author's code, not part of this folder."]
    else:
        code += [*_imports(model, model.network, model.posterior, model.prior, model.likelihood), ""]
        code += [f"modules = {written(describe(model))}.modules()"]
        code += [f'{name} = modules["{name}"]' for name in outputs]
    for name in outputs:
        code += [f'{name}.to(torch.{kind}).load_state_dict(load_file("{name}.safetensors"))', f"{name}.eval()"]
    code += ["", "output = encoder(x)", *read_posterior(model).splitlines()]
    return code + (["", "output = decoder(z)", read_mean(model)] if "decoder" in outputs else [])


def _with_torch_export(outputs: Mapping[str, Sequence[str]]) -> list[str]:
    code = ["import torch", "", 'encoder = torch.export.load("encoder.pt2").module()']
    code += [f"{_targets(outputs['encoder'])} = encoder(x)"]
    if "decoder" in outputs:
        code += ['decoder = torch.export.load("decoder.pt2").module()', "mean = decoder(z)"]
    return code


def _with_onnx_runtime(outputs: Mapping[str, Sequence[str]]) -> list[str]:
    code = ["import onnxruntime", ""]
    for name, found in outputs.items():
        given = {"encoder": "x", "decoder": "z"}[name]
        code += [f'{name} = onnxruntime.InferenceSession("{name}.onnx")']
        code += [f'{_targets(found)} = {name}.run({json.dumps(list(found))}, {{"{given}": {given}}})']
    return code


def _with_axiswise(model: VAE, outputs: Mapping[str, Sequence[str]], learned: Sequence[str]) -> list[str]:
    decode = "lambda z: likelihood.mean(decoder(z))" if "decoder" in outputs else "None"
    parts = ("posterior", "prior", "likelihood")
    return [
        "import axiswise as aw",
        *_imports(*(getattr(model, name) for name in parts)),
        "",
        *(f"{name} = {written(describe(getattr(model, name)))}" for name in parts),
        *(f"# That {name} is as it was before training; {name}.safetensors has what it learned." for name in learned),
        "population = aw.from_models(",
        f"    [(lambda x: posterior.unpack(encoder(x)), {decode})],",
        f"    {', '.join(f'{name}={name}' for name in parts)},",
        ")",
    ]


def _imports(*descriptions: Any) -> list[str]:
    """Lines that import the classes of descriptions, and of those within them, from where they are public."""
    homes: dict[str, set[str]] = {}
    for kind in _types(descriptions):
        public = [home for home in (distributions, models) if getattr(home, kind.__name__, None) is kind]
        homes.setdefault(public[0].__name__ if public else kind.__module__, set()).add(kind.__name__)
    return [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(homes.items())]


def _types(values: Iterable[Any]) -> Iterator[type]:
    for value in values:
        if is_dataclass(value):
            yield type(value)
            yield from _types(getattr(value, field.name) for field in fields(value))
        elif isinstance(value, tuple | list):
            yield from _types(value)


def _targets(names: Sequence[str]) -> str:
    """The left side of an assignment of a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def _table(left: str, right: str, rows: Mapping[str, str]) -> list[str]:
    return [f"| {left} | {right} |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]


def _line(text: str) -> str:
    """A text of one line that does not end a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
