"""What stored members and states must agree with: their run, the own code of today, and the networks it builds."""

from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from axiswise.errors import AxiswiseError, warn
from axiswise.models import Custom
from axiswise.population._code import Code, changes
from axiswise.population.member import Member
from axiswise.records._files import Json


class OtherCode(AxiswiseError):
    """A stored file was made by other code of a user than there is now."""


def check_home(path: Path, about: Mapping[str, Any], home: Json, folder: Path) -> None:
    """Raises if a file says that it is of another dataset, or was validated otherwise, than its run.

    Arguments:
        path: The file.
        about: What it says.
        home: The run's "dataset", and its "validation" if there is any.
        folder: The run's folder.
    """
    if about.get("dataset", home["dataset"]) != home["dataset"]:
        raise AxiswiseError(
            f"{path} is of a member trained on {about['dataset']}. Expected {home['dataset']}, as all of {folder}: it "
            "was copied from another folder."
        )
    if (found := about.get("validation")) != home.get("validation"):
        raise AxiswiseError(
            f"{path} is of a member validated or stopped by {found}. Expected {home.get('validation')}, as all of "
            f"{folder}: it was copied from another folder."
        )


def check_code(path: Path, about: Mapping[str, Any], code: Code) -> None:
    """Raises if a stored file was made by other own code; warns if it does not say by which."""
    changed = changes(about, code)
    if changed is None and code:
        warn(
            f"{path} was stored by version 0.1, without the code it was made with. Whether {', '.join(code)} changed "
            "since is unknown.",
        )
    if changed:
        raise OtherCode(f"{path} was made with other code: {'; '.join(changed)}.")


class Built(NamedTuple):
    """The shapes of the parameters that a member's networks have, by "module.parameter"."""

    model: dict[str, tuple[int, ...]]
    adversary: dict[str, tuple[int, ...]]


def built(member: Member) -> Built:
    """What a member's networks consist of."""
    # What a file describes may be of any size, so it takes no memory; own factories may not know the device.
    with nullcontext() if isinstance(member.model.network, Custom) else torch.device("meta"):
        trainable = member.objective.networks(member.model)
    return Built(_shapes(trainable.model), _shapes(trainable.adversary))


def _shapes(modules: Mapping[str, nn.Module]) -> dict[str, tuple[int, ...]]:
    return {
        f"{module}.{name}": tuple(parameter.shape)
        for module, contents in modules.items()
        for name, parameter in contents.named_parameters()
    }
