"""Arguments are checked against annotations: what fits passes, and what does not is named with what was expected."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
import pytest
import torch
from torch.func import vmap

from axiswise._arguments import Between, check_fields, checked, misfit
from axiswise.data import FactorDataset
from axiswise.distributions import Likelihood, Posterior
from axiswise.errors import AxiswiseError
from axiswise.shapes import Array, Count, Finite, Float, Int, Number, Positive, Seed, Tensor

NAN = float("nan")


class Box(NamedTuple):
    values: Float[Tensor, "n z"]


@runtime_checkable
class Walks(Protocol):
    def walk(self) -> None: ...


class Dog:
    def walk(self) -> None: ...


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (3, int),
        (np.int64(3), int),
        (3, float),
        (np.float32(0.5), float),
        (NAN, float),
        (None, int | None),
        ("a", Literal["a", "b"]),
        ([1, 2], tuple[int, ...]),
        (np.arange(3), Sequence[int]),
        (range(3), Sequence[int]),
        (iter("ab"), Iterable[int]),  # looking at it would use it up
        ({"a": 1}, Mapping[str, int]),
        (len, Callable[..., Any]),
        ("a", str | Path),
        (torch.ones(2, 3), Float[Array, "... n z"]),
        (np.ones((5, 2, 3)), Float[Array, "... n z"]),
        (torch.ones(2, 0), Finite[Tensor, "n z"]),
        (torch.tensor([[[NAN]]]), Finite[Tensor, "... n z"]),  # a member of a stack that diverged
        (Dog(), Walks),
        (0.5, Annotated[float, Between(0, 1)]),
    ],
)
def test_takes_what_fits(value, kind):
    assert misfit(value, kind, "it") is None


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (True, int, "`it` must be a whole number. Got True"),
        (2**63, int, f"`it` must be a whole number. Got {2**63}"),
        (10**400, float, "`it` must be a number. Got 1000"),
        (NAN, Number, "`it` must be a finite number. Got nan"),
        (-1.0, Positive, "`it` must be a positive number. Got -1.0"),
        (0, Count, "`it` must be a whole number of at least 1. Got 0"),
        (0.5, Seed, "`it` must be a whole number of at least 0. Got 0.5"),
        (2.0, Annotated[float, Between(0, 1)], "`it` must be a number from 0 to 1. Got 2.0"),
        ("ab", Sequence[str], "`it` must be a sequence of texts. Got 'ab'"),
        ([], Annotated[Sequence[str], Between(1)], "`it` must be a sequence of texts, at least 1. Got []"),
        ((1,), tuple[int, int], "`it` must have 2 parts. Got 1: (1,)"),
        ({1: "a"}, Mapping[str, int], "`keys of it` must be text. Got 1"),
        ({"a": "b"}, Mapping[str, int], "`a` must be a whole number. Got 'b'"),
        ("c", Literal["a", "b"] | None, '`it` must be "a", "b" or None. Got \'c\''),
        (torch.ones(3), Float[Tensor, "... n z"], "`it` must have axes (…, n, z). Got shape (3,)"),
        (torch.ones(2, 3), Float[Tensor, "n n"], "`it` must have axes (n, n) and n = 2. Got shape (2, 3)"),
        (
            torch.ones(2, dtype=torch.int64),
            Float[Tensor, " n"],
            "`it` must be a tensor of floats with axes (n,). Got a",
        ),
        (np.ones(2), Float[Tensor, " n"], "`it` must be a tensor of floats with axes (n,). Got an array of float64"),
        ([0.5], Int[np.ndarray, " n"], "`it` must be an array of whole numbers with axes (n,). Got [0.5]"),
        (torch.tensor([NAN, 1.0]), Finite[Tensor, " n"], "`it` must be finite. Got NaN or infinity in 1 of 2 places"),
        (torch.ones(2, device="meta"), Finite[Tensor, " n"], "`it` must have values. Got a tensor of the device meta"),
        (Box(torch.ones(3)), Box, "`it.values` must have axes (n, z). Got shape (3,)"),
        ("mig", Callable[..., int], "`it` must be a function. Got 'mig'; pass the function itself, not its name"),
        (np.ones(2), FactorDataset, "`it` must be a FactorDataset. Got an array of float64, (2,); axiswise.data"),
        ("gauss", Likelihood, "`it` must be a Likelihood. Got 'gauss'; write axiswise.distributions.Gaussian()"),
        ("t", Posterior, "`it` must be a Posterior. Got 't'; write an object of axiswise.distributions: Det"),
        ("dog", Walks, "`it` must be a Walks. Got 'dog'"),
        (np.float64(0.5), int, "`it` must be a whole number. Got np.float64(0.5)"),
        (Dog, Walks, "`it` must be a Walks. Got the class Dog"),
        (len, str | int, "`it` must be text or a whole number. Got the function len"),
        (len, Sequence[Callable], "`it` must be a sequence of values. Got the function len; put it into a list"),
        (len, Sequence[int], "`it` must be a sequence of whole numbers. Got the function len"),
    ],
)
def test_names_what_does_not_fit(value, kind, message):
    assert (misfit(value, kind, "it") or "").startswith(message)


@checked
def scaled(
    codes: Float[Tensor, "... n z"],
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    by: Annotated[Sequence[float], "z"] = (),
) -> Finite[Tensor, ""]:
    """The sum of squares."""
    return codes.square().sum()


@pytest.mark.usefixtures("as_installed")
def test_letters_mean_the_same_in_all_arguments():
    scaled(torch.ones(2, 3), torch.ones(4, 2, 3), by=[1.0, 2.0, 3.0])
    with pytest.raises(
        AxiswiseError, match=r"^`variance` must have axes .* and n = 2 as `codes` has\. Got shape \(5, 3\)"
    ):
        scaled(torch.ones(2, 3), torch.ones(5, 3))
    with pytest.raises(AxiswiseError, match=r"^`by` must be a sequence of numbers and z = 3 as `codes` has\. Got 2 of"):
        scaled(torch.ones(2, 3), by=[1.0, 2.0])


@pytest.mark.usefixtures("as_installed")
def test_a_result_that_overflows_names_the_arguments():
    with pytest.raises(
        AxiswiseError, match=r"^scaled is NaN or infinite for these arguments \(`codes` up to 1e\+200\)"
    ):
        scaled(torch.full((2, 3), 1e200, dtype=torch.float64))


@pytest.mark.usefixtures("as_installed")
def test_errors_of_arithmetic_and_memory_name_the_arguments():
    @checked
    def inverse(matrix: Float[Tensor, "n n"], copies: int = 1) -> Tensor:
        return torch.linalg.inv(matrix).expand(copies, -1, -1).clone()

    with pytest.raises(AxiswiseError, match=r"^inverse is NaN or infinite for these arguments \(`matrix` up to 0\)"):
        inverse(torch.zeros(2, 2))
    with pytest.raises(AxiswiseError, match=r"^inverse needs more memory than there is.*`copies` = 1000000000000000\."):
        inverse(torch.eye(2), 10**15)

    @checked
    def outer(times: int) -> Tensor:
        return inverse(torch.eye(2), times)

    with pytest.raises(AxiswiseError, match=r"^outer needs more memory .* Got `times` = 1000000000000000\."):
        outer(10**15)


def test_errors_of_others_pass_through_whatever_they_are():
    @dataclass
    class Own(Exception):  # which has no hash
        text: str

    @checked
    def failing(number: int) -> None:
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        failing(1)


@pytest.mark.usefixtures("as_installed")
def test_an_error_of_types_or_devices_names_arguments_only_where_they_differ():
    @checked
    def product(one: Tensor, other: Tensor, own: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
        return torch.mm(own(one), other)

    wide, narrow = torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2)
    with pytest.raises(
        AxiswiseError, match=r"of one type and on one device\. Got `one` float64 on cpu, `other` float32"
    ):
        product(wide, narrow)
    with pytest.raises(RuntimeError, match="same dtype") as found:
        product(narrow, narrow, torch.Tensor.double)
    assert not isinstance(found.value, AxiswiseError)


@pytest.mark.usefixtures("as_installed")
def test_values_that_pytorch_maps_over_are_checked_for_their_axes_alone():
    @checked
    def first(values: Finite[Tensor, " z"]) -> Tensor:
        return values[0]

    assert vmap(first)(torch.tensor([[NAN], [2.0]]))[1] == 2.0
    with pytest.raises(AxiswiseError, match=r"`values` must have axes \(z,\)\. Got shape \(1, 1\)"):
        vmap(first)(torch.ones(2, 1, 1))


def test_a_checked_function_shows_its_own_signature():
    assert list(inspect.signature(scaled).parameters) == ["codes", "variance", "by"]
    assert scaled.__doc__ == "The sum of squares."


@pytest.mark.usefixtures("as_installed")
def test_fields_are_named_with_their_class():
    @dataclass(frozen=True)
    class Member:
        steps: Count

        def __post_init__(self) -> None:
            check_fields(self)

    assert Member(3).steps == 3
    with pytest.raises(AxiswiseError, match=r"^`steps` of Member must be a whole number of at least 1\. Got 0\.$"):
        Member(0)
