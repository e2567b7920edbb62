"""The own code that members are made of: their networks, objectives, priors and whatever else is a user's."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from axiswise.data import FactorDataset
from axiswise.errors import AxiswiseError
from axiswise.models import VAE
from axiswise.population.member import Member
from axiswise.records import versions
from axiswise.records._fingerprint import differences, digest, fingerprint, value_text

Code = Mapping[str, str]
"""The parts of own code with a digest each, as `records._fingerprint.fingerprint` has them; empty without own code."""

LAYERS = "layers of the modules"
SETTINGS = "settings of the layers"


def code_of(members: Sequence[Member]) -> dict[str, Code]:
    """The own code of members, by their addresses.

    Raises:
        AxiswiseError: If two members of one address are made by different code.

    Example:
        >>> from axiswise import models, objectives
        >>> members = [Member(models.linear(3, 2), objectives.BetaVAE(), steps=1)]
        >>> list(code_of(members).values())
        [{}]
    """
    found: dict[str, Code] = {}
    models, members_code = {}, {}  # of objects that members share
    for member in members:
        key = (id(member.model), id(member.objective), id(member.optimizer))
        if key not in members_code:
            if key[0] not in models:
                models[key[0]] = _code_of_model(member.model)
            members_code[key] = {**models[key[0]], **fingerprint(member.objective, member.optimizer)}
        before = found.setdefault(member.address, members_code[key])
        if changed := differences(before, members_code[key]):
            raise AxiswiseError(
                f"Two members have the same settings and names but different code: {'; '.join(changed)}. Give what "
                "differs different names."
            )
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
    if stored["versions"].get("torch") != versions()["torch"]:  # how layers describe their settings may be new
        before[SETTINGS] = now[SETTINGS] = ""
    return differences(before, now)
