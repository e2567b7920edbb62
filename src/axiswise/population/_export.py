"""A trained member as files for others: state dicts, ONNX or torch.export programs, and a model card.

::

    encoder.safetensors   state dict of the encoder, with the keys of the module itself
    decoder.safetensors   that of the decoder, if there is one
    prior.safetensors     what the prior learned, if it learned anything; likelihood.safetensors likewise
    encoder.onnx          x ↦ the fields of the posterior's named tuple; or encoder.pt2
    decoder.onnx          z ↦ E[x | z]; or decoder.pt2
    README.md             the model card, with the metadata that the Hugging Face hub reads
    config.json           the member, its dataset, what the outputs mean, and the SHA-256 of all files but the card

Modules that only the loss uses, such as the scorer of PCL, are not exported.
"""

import copy
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast, get_args

import torch
from safetensors.torch import save
from torch import nn

from axiswise.distributions import Parameters
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks
from axiswise.models._layers import Values
from axiswise.population._model_card import model_card, read_mean, read_posterior
from axiswise.population._trained import Trained
from axiswise.records import describe, versions, write_bytes
from axiswise.records._files import digest_of
from axiswise.shapes import Float, Tensor

Format = Literal["state-dict", "onnx", "torch-export"]
FORMAT = "axiswise-export-1"
ENDINGS = {"onnx": "onnx", "torch-export": "pt2"}
LONGEST = 400  # letters of an error of PyTorch
ROWS = 2  # of the example that programs are traced with; 1 would be taken for a constant


def export(trained: Trained, modules: Mapping[str, nn.Module], folder: Path, to: Format = "state-dict") -> list[Path]:
    """Writes a trained member as files that need no axiswise. Returns their paths.

    Everything is made before the first file is written, and each file is written whole or not at all, ``config.json``
    last. If a file cannot be written, those before it are removed.

    Arguments:
        trained: The member.
        modules: Its modules by name, with their weights: "encoder", and "decoder" unless it has none. Others are
            ignored, and none is changed.
        folder: Where to write: an empty folder, or none yet.
        to: "state-dict", or in addition "onnx" or "torch-export" programs, for any number of rows.

    Raises:
        AxiswiseError: If the folder has anything in it, the model is external, a package is missing, or PyTorch cannot
            turn a module into a program.
    """
    if to not in get_args(Format):
        raise AxiswiseError(f"A model is exported to one of {', '.join(get_args(Format))}. Got {to!r}.")
    if trained.external:
        raise AxiswiseError(
            "A model of your own cannot be exported: it calls your functions, and its weights are not here. Store them "
            "with torch.save or safetensors."
        )
    if to == "onnx" and (missing := [name for name in ("onnx", "onnxscript") if find_spec(name) is None]):
        raise AxiswiseError(f"ONNX needs {' and '.join(missing)}. Install what it needs: pip install 'axiswise[onnx]'.")
    _check_empty(folder)
    own = {name: copy.deepcopy(modules[name]).cpu().eval() for name in ("encoder", "decoder") if name in modules}
    own |= _learned(trained)
    graphs = _graphs(trained.member.model, own)
    contents = {f"{name}.safetensors": _state_dict(module) for name, module in own.items()}
    for name, graph in graphs.items() if to in ENDINGS else ():
        contents[f"{name}.{ENDINGS[to]}"] = _program(name, graph, to)
    outputs = {name: list(graph.outputs) for name, graph in graphs.items()}
    card = model_card(trained, own, outputs, list(contents)).encode()
    return _write(folder, {**contents, "README.md": card, "config.json": _config(trained, graphs, contents)})


class EncoderGraph(nn.Module):
    """What an exported encoder computes: x ↦ the fields of the posterior's named tuple.

    Arguments:
        model: The description.
        modules: The encoder by its name.
    """

    def __init__(self, model: VAE, modules: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.model, self.parts = model, nn.ModuleDict(dict(modules))

    def forward(self, x: Float[Tensor, "n ..."]) -> tuple[Tensor, ...]:
        """The parameters of q(z | x)."""
        return tuple(cast(Any, self.posterior(x)))

    def posterior(self, x: Float[Tensor, "n ..."]) -> Parameters:
        """The same as a named tuple."""
        return Networks(self.model, dict(self.parts.items())).encode(x)


class DecoderGraph(nn.Module):
    """What an exported decoder computes: z ↦ E[x | z].

    Arguments:
        model: The description.
        modules: The decoder by its name, and "likelihood" if that learned values.
    """

    def __init__(self, model: VAE, modules: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.model, self.parts = model, nn.ModuleDict(dict(modules))

    def forward(self, z: Float[Tensor, "n z"]) -> Float[Tensor, "n ..."]:
        """The mean of p(x | z)."""
        networks = Networks(self.model, dict(self.parts.items()))
        return networks.likelihood.mean(networks.decode(z))


class Graph(NamedTuple):
    """A module to export, with an example of its input, the name of that, and the outputs for it by name."""

    module: EncoderGraph | DecoderGraph
    input: str
    example: Tensor
    outputs: dict[str, Tensor]


def _graphs(model: VAE, modules: Mapping[str, nn.Module]) -> dict[str, Graph]:
    """Encoder and decoder, if there is one, with the meaning of their outputs."""
    like = next(modules["encoder"].parameters())
    encoder = EncoderGraph(model, {"encoder": modules["encoder"]})
    x = torch.zeros(ROWS, *model.shape, dtype=like.dtype)
    with torch.no_grad():
        graphs = {"encoder": Graph(encoder, "x", x, cast(Any, encoder.posterior(x))._asdict())}
        if "decoder" in modules:
            decoder = DecoderGraph(
                model, {name: modules[name] for name in ("decoder", "likelihood") if name in modules}
            )
            z = torch.zeros(ROWS, model.latents, dtype=like.dtype)
            graphs["decoder"] = Graph(decoder, "z", z, {"mean": decoder(z)})
    return graphs


def _learned(trained: Trained) -> dict[str, nn.Module]:
    """What prior and likelihood learned, by their names, if they learned anything."""
    found = {}
    for name in ("prior", "likelihood"):
        values = {key: weight.cpu() for key, weight in trained.weights.items() if key.startswith(f"{name}.")}
        if values:
            found[name] = Values({key.removeprefix(f"{name}."): weight for key, weight in values.items()}).eval()
    return found


def _state_dict(module: nn.Module) -> bytes:
    """A module's state dict as safetensors, which takes neither strides nor tensors that share memory."""
    copies = {key: tensor.clone(memory_format=torch.contiguous_format) for key, tensor in module.state_dict().items()}
    return save(copies, metadata={"format": "pt"})


def _program(name: str, graph: Graph, to: Format) -> bytes:
    """A module traced for any number of rows, as an ONNX model or a torch.export archive.

    Raises:
        AxiswiseError: If PyTorch cannot trace it, or ONNX has no operation for something in it.
    """
    try:
        with _quiet():
            batch = ({0: torch.export.Dim("batch")},)
            program = torch.export.export(graph.module, (graph.example,), dynamic_shapes=batch)
            for node in program.graph.nodes:
                node.meta.pop("stack_trace", None)  # it names files of this machine
            if to == "onnx":
                return _onnx(program, list(graph.outputs))
            archive = io.BytesIO()
            torch.export.save(program, archive)
            return archive.getvalue()
    except Exception as error:  # a user's module may be anything, and PyTorch raises errors of many types
        reason = " ".join(str(error).split())[:LONGEST]
        raise AxiswiseError(
            f"PyTorch cannot export the {name} to {to} for any number of rows ({type(error).__name__}: {reason}). "
            "Its state dict can be exported: --to state-dict, or to='state-dict'."
        ) from error


def _onnx(program: torch.export.ExportedProgram, outputs: list[str]) -> bytes:
    """A traced program as an ONNX model whose outputs have those names."""
    converted = cast(Any, torch.onnx.export(program, dynamo=True, verbose=False))
    graph = converted.model.graph
    # `output_names` of the exporter would leave an inner value of the same name: two of them, an invalid model.
    for value in (value for node in graph.all_nodes() for value in node.outputs):
        if value.name in outputs:
            value.name += ".inner"  # names of inner values have no dots
    for value, name in zip(graph.outputs, outputs, strict=True):
        value.name = name
    return converted.model_proto.SerializeToString()


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps back what PyTorch's exporters say of themselves: absent packages, and their own deprecated calls."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated")
            yield
    finally:
        logger.setLevel(level)


def _config(trained: Trained, graphs: Mapping[str, Graph], contents: Mapping[str, bytes]) -> bytes:
    """What a program needs to know of the export, as JSON."""
    model, about = trained.member.model, trained.about
    meanings = {
        "encoder": {"posterior": describe(model.posterior), "read": read_posterior(model)},
        "decoder": {"likelihood": describe(model.likelihood), "read": read_mean(model)},
    }
    value = {
        "format": FORMAT,
        "address": trained.member.address,
        "status": trained.status,
        "member": trained.member.form,
        "dataset": about.get("dataset"),
        "dtype": about.get("dtype"),
        "trained_with": about.get("versions"),
        "exported_with": versions(),
    }
    for name, graph in graphs.items():
        value[name] = {
            "input": {graph.input: _shape(graph.example)},
            "outputs": {output: _shape(tensor) for output, tensor in graph.outputs.items()},
            **meanings[name],
        }
    value["files"] = {name: {"sha256": digest_of(own), "bytes": len(own)} for name, own in contents.items()}
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _shape(tensor: Tensor) -> list[str | int]:
    return ["batch", *tensor.shape[1:]]


def _check_empty(folder: Path) -> None:
    """Raises unless a folder is empty or does not exist: what is in it may be an earlier export, or anybody's."""
    if folder.exists() and not folder.is_dir():
        raise AxiswiseError(f"Expected an empty folder, or nothing yet, at {folder}. Got a file. Choose another name.")
    if found := sorted(path.name for path in folder.iterdir()) if folder.exists() else []:
        raise AxiswiseError(
            f"Expected an empty folder, or nothing yet, at {folder}. Got one that contains {found[0]}; nothing was "
            "changed. Choose another folder, or remove this one."
        )


def _write(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Writes files into an empty folder: all of them or, if that fails, none."""
    paths: list[Path] = []
    try:
        for name, own in contents.items():
            write_bytes(folder / name, own)
            paths.append(folder / name)
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise
    return paths
