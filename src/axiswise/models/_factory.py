"""What builds a user's own networks: a function, a partial, a method or an object, with the plain values it is given.

All of them become a function or a bound method and a dictionary of arguments, which is what a stored model names. A
partial's arguments are the function's. The values of an object are stored under "self", and the object is made again
from its class and these, here as when it is loaded, so that both compute the same.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from torch import nn

from axiswise.errors import AxiswiseError
from axiswise.records._fingerprint import digest, fingerprint, module_name

SELF = "self"
NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def normal_form(factory: Any, arguments: Mapping[str, Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """A factory as a function or a bound method, and all its arguments by name.

    Arguments:
        factory: The factory.
        arguments: What it is called with besides.

    Raises:
        AxiswiseError: If it cannot be called, or a value is not plain.

    Example:
        >>> def nets(hidden, depth=1):
        ...     return nn.Linear(3, hidden), nn.Linear(hidden, 3)
        >>> normal_form(partial(nets, 64), {"depth": 2})[1]
        {'hidden': 64, 'depth': 2}
    """
    if isinstance(factory, nn.Module) or not callable(factory):
        raise AxiswiseError(
            "`factory` must be a function that returns a fresh encoder and a fresh decoder. Got "
            f"{type(factory).__name__}. Build the modules inside of a function, and pass that."
        )
    if isinstance(factory, partial):
        names = [name for name, parameter in _parameters(factory.func).items() if parameter.kind <= 1]  # by position
        if len(names) < len(factory.args):
            raise AxiswiseError(
                f"Arguments of a partial must have names, by which they are stored. Got {factory!r}. Pass them by name."
            )
        given = {**dict(zip(names, factory.args, strict=False)), **factory.keywords}
        return normal_form(factory.func, {**given, **arguments})
    named = {name: plain(value, f"argument {name!r} of {display_name(factory)}") for name, value in arguments.items()}
    if inspect.isfunction(factory) or isinstance(factory, type):
        return factory, named
    owner = factory.__self__ if inspect.ismethod(factory) else factory
    if isinstance(owner, type):
        return factory, named
    own = getattr(owner, "__dict__", None)
    if own is None:
        raise AxiswiseError(
            f"The values of {type(owner).__name__} must be in its __dict__, to be stored. Got an object without one, "
            "as with __slots__. Use a function and `arguments`."
        )
    values = {name: plain(value, f"`{name}` of {type(owner).__name__}") for name, value in own.items()}
    method = factory.__name__ if inspect.ismethod(factory) else "__call__"
    return bound_method(type(owner), method, values), {SELF: values, **named}


def bound_method(owner: type, name: str, values: Mapping[str, Any]) -> Callable[..., Any]:
    """The method of that name of an object of a class with these values."""
    made = object.__new__(owner)
    vars(made).update(values)
    return getattr(made, name)


def plain(value: Any, where: str) -> Any:
    """A value as it can be stored: a number, a string, a truth value or None, or tuples or dictionaries of these.

    Lists become tuples, as they do when they are loaded.

    Arguments:
        value: The value.
        where: What it is, for the message.

    Example:
        >>> plain([64, {"bias": True}], "argument")
        (64, {'bias': True})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return tuple(plain(entry, where) for entry in value)
    if isinstance(value, Mapping) and all(isinstance(key, str) and key != "type" for key in value):
        return {key: plain(entry, where) for key, entry in value.items()}
    raise AxiswiseError(
        f"Expected a plain value, which can be stored: a finite number, a string, True, False, None, or a list or "
        f"dictionary of these (with strings as keys, but not 'type'). Got {value!r:.80} as {where}. Pass a name or a "
        "number that stands for it."
    )


def factory_name(factory: Callable[..., Any]) -> str:
    """The name that a factory is stored by: its module's and its own.

    A lambda or a function within a function has no name by which it could be found again. Its name here has a digest of
    its code and of the values that it reads, so that two of them are told apart in memory.

    Example:
        >>> from axiswise.models import linear
        >>> factory_name(linear)
        'axiswise.models.mlp.linear'
    """
    home = factory.__self__ if inspect.ismethod(factory) else factory
    home = home if isinstance(home, type) or inspect.isfunction(home) else type(home)
    name = f"{module_name(home.__module__)}.{home.__qualname__}" + (f".{factory.__name__}" if home != factory else "")
    return name if is_findable(name) else f"{name} {digest(repr(fingerprint(factory)))}"


def is_findable(name: str) -> bool:
    """Whether a name is that of something at the top of a module, or of a class there."""
    return "<" not in name


def display_name(factory: Callable[..., Any]) -> str:
    """What tables call a factory.

    Example:
        >>> display_name(plain), display_name(partial(plain, where="x"))
        ('plain', 'plain')
    """
    if isinstance(factory, partial):
        return display_name(factory.func)
    owner = getattr(factory, "__self__", factory)
    if inspect.isfunction(factory) or isinstance(owner, type):
        return factory.__qualname__
    kind, method = type(owner).__qualname__, getattr(factory, "__name__", "__call__")
    return kind if method == "__call__" else f"{kind}.{method}"


def call(factory: Callable[..., Any], arguments: Mapping[str, Any], latents: int) -> Any:
    """What a factory builds; it is told the number of latents if it has a parameter of that name.

    Raises:
        AxiswiseError: If it does not take these arguments.
    """
    given = {name: value for name, value in arguments.items() if name != SELF}
    parameters = _parameters(factory)
    if takes_latents(factory):
        given = {**given, "latents": latents}
    try:
        if parameters:
            inspect.signature(factory).bind(**given)
    except TypeError as error:
        required = [name for name, each in parameters.items() if each.default is each.empty and each.kind in NAMED]
        wrong = [f"no {name!r}" for name in required if name not in given]
        if not any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
            wrong += [f"an unknown {name!r}" for name in given if name not in parameters]
        raise AxiswiseError(
            f"{display_name(factory)}({', '.join(parameters)}) must be callable with the arguments "
            f"{', '.join(given) or '(none)'}. Got {' and '.join(wrong) or error}: change `arguments`, or give defaults."
        ) from None
    return factory(**given)


def takes_latents(factory: Callable[..., Any]) -> bool:
    """Whether a factory is told the number of latents: it has a parameter of that name."""
    return "latents" in _parameters(factory)


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except ValueError:  # written in C
        return {}
