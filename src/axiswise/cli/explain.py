"""`axiswise explain`: the latents of any model, from a function that returns it and a file of observations."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from axiswise._arguments.words import either
from axiswise.cli._outputs import LAST_SEED, SMALLEST, Force, check_drawing, check_output
from axiswise.cli._tables import check_file, read_table
from axiswise.errors import AxiswiseError

if TYPE_CHECKING:  # this would import PyTorch
    from axiswise.distributions import Likelihood

ARRAYS = (".npy", ".npz", ".safetensors")


def explain(
    factory: Annotated[
        str,
        typer.Argument(
            help="package.module:function or file.py:function that returns a model with encode and decode, or "
            "(encode, decode)."
        ),
    ],
    data: Annotated[
        str, typer.Option(help="Observations (n, …): .npy, .npz or .safetensors; file.npz:KEY names one of several.")
    ],
    factors: Annotated[
        str | None,
        typer.Option(
            help="What generated them, (n, k): in any of these, or .csv or .parquet, whose headers name them."
        ),
    ] = None,
    likelihood: Annotated[
        str | None, typer.Option(help="bernoulli, or gaussian:SCALE (gaussian:0.1); guessed if not given.")
    ] = None,
    beta: Annotated[str, typer.Option(help="Weight of the divergence in training, or unknown.")] = "1",
    points: Annotated[int, typer.Option(min=2, help="How many observations to use at most.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, max=LAST_SEED, help="Decides which, and all other random draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    force: Force = False,
) -> None:
    """Explain the latents of your own model: which are active, how orthogonal the decoder is and whether that is more
    than chance, whether the encoder obeys its law, and what each latent does. The function named is imported, from the
    current folder too, and called: only name code that you trust. Files are read as numbers, never executed. Bytes
    become grey values in 0 … 1.
    """
    check_output(out, force=force, inputs=[data, factors])
    if out:
        check_drawing("--out")
    observations = _observations(data)
    known = _contents(factors, "--factors", (*ARRAYS, ".csv", ".tsv", ".parquet")) if factors else None
    weight = _weight(beta)
    spread = _likelihood(likelihood)
    encode, decode = _load_model(factory)

    from axiswise.explanation import explain as run

    explanation = run(
        encode,
        decode,
        observations,
        factors=known,
        likelihood=spread,
        beta=weight,
        points=points,
        seed=seed,
        title=f"What the latents of {factory} do",
    )
    typer.echo(str(explanation))
    if out:
        from axiswise.report import page

        typer.echo(f"\npage: {page(explanation, out)}")


def _load_model(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Imports and calls the function, and takes encoder and decoder from what it returns."""
    from axiswise.studies import describe_error, load_object

    found = load_object(name)
    if not callable(found):
        raise AxiswiseError(f"Expected {name} to be a function without arguments. Got {type(found).__name__}.")
    try:
        model = found()
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        raise AxiswiseError(
            f"Expected {name}() to return a model. Got {describe_error(error)}. It is called without arguments."
        ) from error
    if isinstance(model, tuple | list) and len(model) == 2 and all(map(callable, model)):
        return model[0], model[1]
    for names in (("encode", "decode"), ("encoder", "decoder")):
        encode, decode = (getattr(model, part, None) for part in names)
        if callable(encode) and callable(decode):
            return encode, decode
    raise AxiswiseError(
        f"Expected {name}() to return a pair (encode, decode), or an object with methods or modules encode and decode, "
        f"or encoder and decoder. Got {type(model).__name__}."
    )


def _observations(text: str) -> np.ndarray:
    from axiswise._columns import as_array

    return as_array(_contents(text, "--data", ARRAYS), text)


def _contents(text: str, option: str, endings: Sequence[str]) -> Any:
    """The array of a file, or its table."""
    name = re.sub(r"(\.npz|\.safetensors):.*", r"\1", text)
    if Path(name).suffix.lower() not in endings:
        raise AxiswiseError(f"Expected {option} to be a file that ends in {either(endings)}. Got {text}.")
    return _safetensors(text) if ".safetensors" in text else read_table(text).contents


def _safetensors(text: str) -> np.ndarray:
    from safetensors.numpy import load_file

    from axiswise.records._files import expanded

    before, _, key = text.rpartition(".safetensors")
    path, key = expanded(f"{before}.safetensors"), key.removeprefix(":")
    check_file(path)
    try:
        tensors = load_file(path)
    except Exception as error:  # numpy lacks some of the types that a file may claim
        raise AxiswiseError(f"{path} cannot be read as safetensors of numbers ({error}).") from error
    if key not in tensors and (key or len(tensors) != 1):
        known = ", ".join(sorted(tensors))
        raise AxiswiseError(f"Name one of the tensors of {path}, {path}:KEY, out of {known}. Got {key!r}.")
    return tensors[key] if key in tensors else next(iter(tensors.values()))


def _likelihood(text: str | None) -> "Likelihood | None":
    from axiswise.distributions import Bernoulli, Gaussian

    if text is None:
        return None
    kind, _, scale = text.casefold().partition(":")
    if kind == "bernoulli" and not scale:
        return Bernoulli()
    if kind == "gaussian" and (width := _number(scale)) is not None:
        return Gaussian(width)
    raise AxiswiseError(f"--likelihood must be bernoulli or gaussian:SCALE, such as gaussian:0.1. Got {text!r}.")


def _weight(text: str) -> float | None:
    if text == "unknown":
        return None
    if (weight := _number(text)) is None:
        raise AxiswiseError(
            f"--beta must be a positive number, or unknown, and at most {1 / SMALLEST:g}. Got {text!r}."
        )
    return weight


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if SMALLEST <= found <= 1 / SMALLEST else None
