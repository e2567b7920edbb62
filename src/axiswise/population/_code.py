"""The own code that members are made of: their networks, objectives, priors and whatever else is a user's."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.models import VAE
from axiswise.population._cohort import structure
from axiswise.population.member import Member
from axiswise.records import address, versions
from axiswise.records._fingerprint import differences, digest, fingerprint, value_text

Code = Mapping[str, str]
"""The parts of own code with a digest each, as `records._fingerprint.fingerprint` has them; empty without own code."""

LAYERS = "layers of the modules"
SETTINGS = "settings of the layers"


def code_of(members: Sequence[Member], memory: dict[Any, Code] | None = None) -> dict[str, Code]:
    """The own code of members, by their addresses.

    Arguments:
        members: The members.
        memory: Remembers the code of models, objectives and optimizers from one call to the next.

    Raises:
        AxiswiseError: If two members of one structure are made by different code of the same name.

    Example:
        >>> from axiswise import models, objectives
        >>> members = [Member(models.linear(3, 2), objectives.BetaVAE(), steps=1)]
        >>> list(code_of(members).values())
        [{}]
    """
    found: dict[str, Code] = {}
    kinds: dict[str, dict[str, str]] = {}
    memory = {} if memory is None else memory
    for member in members:
        code: dict[str, str] = {}
        for part in (member.model, member.objective, member.optimizer):
            if part not in memory:
                memory[part] = _code_of_model(part) if isinstance(part, VAE) else fingerprint(part)
            code |= memory[part]
        alike = kinds.setdefault(address(structure(member)), {})
        if changed := [name for name in code if alike.setdefault(name, code[name]) != code[name]]:
            raise AxiswiseError(
                f"Members of the same settings and names must be made by the same code. Got {', '.join(changed)} in "
                "two versions. Give what differs different names."
            )
        found[member.address] = code
    return found


def _code_of_model(model: VAE) -> Code:
    """The own code of a model, and if its networks are own what they build: a factory may read more than its code."""
    network = fingerprint(model.network)
    built = layers_of(list(model.modules().values())) if network else {}
    return {**fingerprint(model.posterior, model.prior, model.likelihood), **network, **built}


def layers_of(modules: Sequence[nn.Module]) -> Code:
    """What modules are built of: the code of their own layers, and digests of their layers, shapes and settings."""
    layers = [(name, layer) for module in modules for name, layer in module.named_modules()]
    shapes = [(name, tuple(part.shape)) for module in modules for name, part in module.state_dict().items()]
    return {
        **fingerprint(*{type(layer) for _, layer in layers}),
        LAYERS: f"code {digest(repr(([(name, type(layer).__qualname__) for name, layer in layers], shapes)))}",
        SETTINGS: f"code {digest(repr([(name, layer.extra_repr()) for name, layer in layers]))}",
    }


def joined_code(code: Mapping[str, Code]) -> Code:
    """The own code of several members."""
    return {name: part for own in code.values() for name, part in own.items()}


def code_of_dataset(dataset: FactorDataset) -> Code:
    """The own code that renders a dataset's observations, with the tensors that it reads; empty for axiswise's own."""
    code = fingerprint(dataset.render, dataset.transition)
    return code and {**code, **{f"tensor {name!r}": value_text(own) for name, own in dataset.tensors.items()}}


def changes(stored: Mapping[str, Any], code: Code) -> list[str] | None:
    """What changed of the own code since a member was stored, in words; None if it was stored without its code.

    Arguments:
        stored: What the member was stored with: "code" and "versions".
        code: Its code now.
    """
    if "code" not in stored:
        return None
    before, now = dict(stored["code"]), dict(code)
    if stored.get("versions", {}).get("torch") != versions()["torch"]:  # how layers describe their settings may be new
        before[SETTINGS] = now[SETTINGS] = ""
    return differences(before, now)
