"""What `train` checks before it writes anything, and a run folder that is opened to be trained in."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, get_args

import torch

from axiswise.data import FactorDataset
from axiswise.data.arrays import has_channels_last
from axiswise.data.dataset import value_range
from axiswise.distributions import Likelihood
from axiswise.errors import AxiswiseError, warn
from axiswise.objectives.objective import needs_of
from axiswise.population._catalogue import check_storable
from axiswise.population._code import Code, code_of, code_of_dataset, joined_code
from axiswise.population._cohort import Cohort, cohorts, structure, takes_bfloat16
from axiswise.population._folder import RunFolder
from axiswise.population._trained import Trained
from axiswise.population._validation import Validation, try_rule, validation_of
from axiswise.population.member import Member
from axiswise.population.program import Precision
from axiswise.records import address
from axiswise.records._files import Json
from axiswise.records._fingerprint import without_source
from axiswise.stopping import StoppingRule

SHOWN = 3  # reasons for which stored members are not used


class Prepared(NamedTuple):
    """A training that was checked, before anything is written.

    Arguments:
        members: The members by their addresses.
        code: The own code of each.
        dataset: What they are trained on.
        device: Where; a plan may be made on another machine, so that the dataset need not be there.
        dtype: Floating-point type, in words.
        precision: Type of products on the fast path.
        validation: What they are validated on.
        folder: Where they are stored; None stores nothing.
    """

    members: dict[str, Member]
    code: dict[str, Code]
    dataset: FactorDataset
    device: torch.device
    dtype: str
    precision: Precision | None
    validation: Validation | None
    folder: RunFolder | None

    @contextmanager
    def opened(self, retrain: bool) -> Iterator[Iterator[Trained]]:
        """Opens the folder for this process alone, and gives the members that are stored there and can be used."""
        # Nothing is written into a folder that has all members, so that it may be read-only.
        folder, whole = self.folder, self.whole and not retrain
        with nullcontext() if folder is None or whole else folder.locked():
            if folder:
                own, held_out = code_of_dataset(self.dataset), self.validation and self.validation.form
                _say_what_has_no_source({**own, **joined_code(self.code), **(held_out["code"] if held_out else {})})
                folder.open(self.dataset.identity, self.dtype, own, held_out, device=self.device)
                if not whole:
                    folder.enlist(list(self.members))
            yield _usable(folder, self.members, self.code, retrain) if folder else iter(())

    @property
    def home(self) -> Json:
        """What members say of the run that they are of."""
        held_out = self.validation
        return {"dataset": self.dataset.identity} | ({"validation": held_out.form} if held_out else {})

    @property
    def whole(self) -> bool:
        """Whether the folder has all members, and nothing else to be tidied up."""
        return self.folder is not None and all(map(self.folder.holds, self.members)) and self.folder.tidy

    def plan(self, missing: Sequence[Member]) -> list[Cohort]:
        """The cohorts to train, which an opened folder writes down."""
        if self.whole and not missing:
            return []
        return (self.folder.plan if self.folder else cohorts)(missing, self.device, self.precision)


def prepared(
    members: Sequence[Member],
    dataset: FactorDataset,
    device: torch.device,
    dtype: torch.dtype,
    precision: Precision | None,
    validation: Validation | None,
    folder: RunFolder | None,
) -> Prepared:
    """Checks what is to be trained, and where to store it."""
    _check(members, dataset)
    if validation:
        _check(members, validation.dataset)
        try_rule(members, dataset, dtype, validation)
    precision = fast_precision(precision, dtype, device, members)
    by_address, code = {member.address: member for member in members}, code_of(members)
    if folder:
        check_storable(members)
    return Prepared(by_address, code, dataset, device, type_name(dtype, precision), precision, validation, folder)


@contextmanager
def opened(
    members: Sequence[Member],
    dataset: FactorDataset,
    out: Path,
    *,
    device: torch.device,
    precision: Precision | None,
    retrain: bool,
    validation: FactorDataset | None,
    every: int | None,
    stop: StoppingRule | None,
) -> Iterator[tuple[Prepared, list[Member]]]:
    """Opens a run folder, for whoever trains what is missing there; the arguments are those of `train`.

    Until the end, no other process trains in the folder. Stored members are checked, and not kept in memory.

    Returns:
        The prepared training, and the members that are missing.
    """
    held_out = validation_of(validation, every, stop, dataset.device)
    job = prepared(list(members), dataset, device, torch.float32, precision, held_out, RunFolder(out))
    with job.opened(retrain) as usable:
        done = {trained.member.address for trained in usable}
        yield job, [member for key, member in job.members.items() if key not in done]


def _usable(
    folder: RunFolder, members: Mapping[str, Member], code: Mapping[str, Code], retrain: bool
) -> Iterator[Trained]:
    """The members that a folder has and that can be used; others are refused, or removed to be trained again."""
    unusable: dict[str, AxiswiseError] = {}
    for key, found in folder.read_members([key for key in members if folder.holds(key)], members, code=code):
        if isinstance(found, AxiswiseError):
            unusable[key] = found
        else:
            yield found
    if unusable and not retrain:
        raise AxiswiseError(_refusal(folder, unusable, len(members)))
    folder.discard(list(unusable))


def _refusal(folder: RunFolder, unusable: Mapping[str, AxiswiseError], count: int) -> str:
    """Why stored members are not used, and what can be done."""
    why = list(dict.fromkeys(str(error) for error in unusable.values()))
    more = f" And {len(why) - SHOWN} more like these." if len(why) > SHOWN else ""
    return (
        f"{len(unusable)} of {count} members cannot be taken from {folder.path}, and nothing was changed there. "
        f"{' '.join(why[:SHOWN])}{more} Choose another `out`, give changed code another name, or train these members "
        "again with retrain=True."
    )


def _say_what_has_no_source(code: Code) -> None:
    if names := without_source(code):
        warn(
            f"The source of {', '.join(names)} cannot be read, or has changed since it was imported. What is stored is "
            "compared by bytecode, which another version of Python changes: define it in a file, and start again after "
            "a change.",
        )


def fast_precision(
    precision: Precision | None, dtype: torch.dtype, device: torch.device, members: Sequence[Member] = ()
) -> Precision | None:
    """The precision of the fast path for these members; None without CUDA or Triton, where there is no such path."""
    if precision not in (None, *get_args(Precision)):
        raise AxiswiseError(f"`precision` must be one of {', '.join(get_args(Precision))}. Got {precision!r}.")
    fast = device.type == "cuda" and find_spec("triton") is not None
    if precision == "bf16" and not (fast and dtype == torch.float32):
        raise AxiswiseError(
            f"`precision` 'bf16' needs a CUDA device, Triton and weights of float32. Got {device} and {dtype}. "
            "Leave it out, or train with device='cuda'."
        )
    if not fast or precision:
        return precision if fast else None
    if dtype != torch.float32 or not members:
        return "fp32"
    kinds = {address(structure(member)): member for member in members}.values()
    every = all(takes_bfloat16(member.objective.networks(member.model).model.values()) for member in kinds)
    return "bf16" if every else "fp32"


def type_name(dtype: torch.dtype, precision: Precision | None = None) -> str:
    """The floating-point type of a training, in words."""
    return str(dtype).removeprefix("torch.") + (" with bf16 products" if precision == "bf16" else "")


def _remedy(expected: tuple[int, ...], got: tuple[int, ...]) -> str:
    """How to make a model and observations fit each other."""
    if len(got) == 3 and expected[1:] == got[:2] and (expected[0] == got[2] or has_channels_last((0, *got))):
        model = "" if expected[0] == got[2] else f" Build the model for {got[2]} channels: channels={got[2]} of conv64."
        return f"The channels come first: np.moveaxis(x, -1, 1) puts them there.{model}"
    if expected == (1, *got):
        return "A grey image has a channel, too: x[:, None] adds it."
    return (
        "Build the model for that shape: models.mlp takes any, models.custom what your own networks do; conv64 and "
        "dcgan64 take 64 × 64 alone."
    )


def _check(members: Sequence[Member], dataset: FactorDataset) -> None:
    if not members:
        raise AxiswiseError("Expected at least one member to train. Got none: is the grid empty?")
    for member in members:
        if member.model.shape != dataset.shape:
            raise AxiswiseError(
                f"The model takes observations of shape {member.model.shape}. "
                f"Got dataset {dataset.name!r} of shape {dataset.shape}. {_remedy(member.model.shape, dataset.shape)}"
            )
    for member in {address(structure(member)): member for member in members}.values():
        member.objective.networks(member.model)  # raises if the model does not suit
        if needs_of(member.objective).pairs and dataset.transition is None:
            raise AxiswiseError(
                f"{type(member.objective).__name__} trains on pairs of successive observations. Got dataset "
                f"{dataset.name!r}, which has no transitions. Train on `data.transitions(dataset)`."
            )
        _check_support(member.model.likelihood, dataset)


def _check_support(likelihood: Likelihood, dataset: FactorDataset) -> None:
    """Raises if observations are outside the likelihood's support; of a large dataset, a sample is checked."""
    if (support := getattr(likelihood, "support", None)) is None:
        return
    low, high = value_range(dataset)
    if low < support[0] or high > support[1]:
        raise AxiswiseError(
            f"A {type(likelihood).__name__} likelihood needs observations between {support[0]} and {support[1]}. Got "
            f"dataset {dataset.name!r} with values from {low:.4g} to {high:.4g}. Rescale the data, or build the model "
            "with likelihood=Gaussian()."
        )
