"""What an objective is: a frozen dataclass of hyperparameters and three pure methods, and what it needs as data.

An objective is written for one member. `population` vectorises it over a cohort: fields of type `Hyperparameter`
are replaced by each member's value at the current step, a scalar tensor, before `loss` is called; all other fields are
part of the program and equal within a cohort. An objective owns no optimizer state, counter or logger.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from torch import nn

from axiswise.errors import AxiswiseError
from axiswise.models import VAE, Networks
from axiswise.optimizers import Optimizer
from axiswise.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Batch:
    """The data of one training step.

    Arguments:
        x: Observations.
        index: Their indices in the dataset.
        size: Length of the dataset, which estimators over the whole set need.
        pair: The second observations of transitions (x, pair), for objectives that train on pairs.
        second: Further observations, drawn independently of x, for objectives that need them.

    Example:
        >>> import torch
        >>> Batch(torch.zeros(4, 3), torch.arange(4), size=100).pair is None
        True
    """

    x: Float[Tensor, "n ..."]
    index: Int[Tensor, " n"]
    size: int
    pair: Float[Tensor, "n ..."] | None = None
    second: Float[Tensor, "m ..."] | None = None


class Draw(NamedTuple):
    """A random tensor that a step uses: its shape, and whether it is normal or uniform on (0, 1).

    Example:
        >>> Draw((64, 10))
        Draw(shape=(64, 10), uniform=False)
    """

    shape: tuple[int, ...]
    uniform: bool = False


class Terms(NamedTuple):
    """What a loss returns.

    Arguments:
        total: Minimised by the model's parameters.
        parts: Named pieces for the history: scalars, or vectors over latents.
        adversary: Minimised by the adversary's parameters alone, if there is an adversary.

    Example:
        >>> import torch
        >>> Terms(torch.tensor(1.0), {"kl": torch.tensor(0.5)}).adversary is None
        True
    """

    total: Float[Tensor, ""]
    parts: dict[str, Tensor]
    adversary: Float[Tensor, ""] | None = None


@dataclass(frozen=True)
class Trainable:
    """The modules that an objective trains.

    Arguments:
        model: Modules trained by `Terms.total`, by name: usually those of the VAE, without the decoder if there is
            none.
        adversary: Modules trained by `Terms.adversary`.

    Example:
        >>> sorted(Trainable({"encoder": nn.Linear(3, 4), "decoder": nn.Linear(2, 3)}).model)
        ['decoder', 'encoder']
    """

    model: dict[str, nn.Module]
    adversary: dict[str, nn.Module] = field(default_factory=dict)


class Needs(NamedTuple):
    """What an objective needs beside batches and the member's optimizer, as its attribute `needs`.

    It is a property or a ``ClassVar``: a field would be part of the member's identity.

    Arguments:
        pairs: Whether it trains on transitions, which the dataset must have; `Batch.pair` is then filled.
        second: How many further observations a step needs in `Batch.second`, drawn independently of the batch.
        adversary: Optimizer of the adversary's modules; None is the member's own.

    Example:
        >>> from axiswise.objectives import PCL
        >>> PCL.needs
        Needs(pairs=True, second=0, adversary=None)
    """

    pairs: bool = False
    second: int = 0
    adversary: Optimizer | None = None


@runtime_checkable
class Objective(Protocol):
    """A training objective. One that needs more than batches has an attribute `needs`, of type :class:`Needs`.

    Example:
        >>> from axiswise.objectives import BetaVAE
        >>> isinstance(BetaVAE(), Objective)
        True
    """

    def networks(self, model: VAE) -> Trainable:
        """Builds the modules to train: those of the model, with what the objective adds or omits.

        Raises:
            AxiswiseError: If the model does not suit the objective.
        """
        ...

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """The random tensors that one step of one member uses, by name."""
        ...

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The loss of one member at one step, from its networks, a batch, and the random tensors of `draws`."""
        ...


def needs_of(objective: Objective) -> Needs:
    """What an objective needs: its attribute `needs`, or nothing more than batches.

    Example:
        >>> from axiswise.objectives import BetaVAE
        >>> needs_of(BetaVAE())
        Needs(pairs=False, second=0, adversary=None)
    """
    needs = getattr(objective, "needs", Needs())
    if not isinstance(needs, Needs):
        raise AxiswiseError(
            f"`needs` of an objective must be an axiswise.objectives.Needs. Got {type(needs).__name__} from "
            f"{type(objective).__name__}."
        )
    return needs
