"""The quantities that measures need, each computed once for all members of a group."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from axiswise.data import FactorDataset
from axiswise.distributions import Deterministic, Likelihood, Parameters, Prior
from axiswise.errors import NotDefined
from axiswise.geometry import Metrics, gram, jacobian, metrics
from axiswise.numerics import normal
from axiswise.population import Group
from axiswise.schedules import hyperparameters, value_at
from axiswise.shapes import Float, Int, Kind, Num, Tensor

# For one member: 102 points of a decoder of 4,096 pixels and 10 latents, all 10,000 of small ones.
JACOBIAN_NUMBERS = 1 << 22
# Products of Jacobians take no memory, only time: 1,024 points of that decoder, some ten seconds on a CPU.
PRODUCT_NUMBERS = 10 * JACOBIAN_NUMBERS


class Missing(NotDefined):
    """A quantity that these members or this dataset cannot give; the message is the reason."""


class History(dict[str, np.ndarray]):
    """What training recorded; a term that these members' objective does not have is `Missing`."""

    def __missing__(self, name: str) -> np.ndarray:
        raise Missing(f"the objective records no {name!r}")


@dataclass(frozen=True)
class Quantities:
    """What measures need, by the names of their parameters. Member axis first, unless all members share it.

    Arguments:
        group: The members.
        dataset: Where the points come from.
        index: Which points.
    """

    group: Group
    dataset: FactorDataset
    index: Int[Tensor, " n"]

    @cached_property
    def x(self) -> Float[Tensor, "n ..."]:
        """The observations, shared."""
        return self.dataset.x(self.index).to(self.group.dtype)

    @cached_property
    def factors(self) -> Num[Tensor, "n k"]:
        """Their factors, shared."""
        if not self.dataset.space.names:
            raise Missing(f"dataset {self.dataset.name!r} has no factors")
        return self.dataset.factors(self.index)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """How the values of each factor relate, shared."""
        return self.dataset.space.kinds

    @cached_property
    def posterior(self) -> Parameters:
        """Parameters of q(z | x), as the posterior's named tuple."""
        return self.group.encode(self.x)

    @cached_property
    def codes(self) -> Float[Tensor, "p n z"]:
        """Posterior means."""
        return self.posterior.mean

    @cached_property
    def variance(self) -> Float[Tensor, "p n z"]:
        """Posterior variances."""
        return self.posterior.variance

    @cached_property
    def samples(self) -> Float[Tensor, "p n z"]:
        """One sample of every posterior; a member's noise depends on its seed alone."""
        seeds = torch.tensor([trained.member.seed for trained in self.group.trained], device=self.codes.device)
        noise = normal(seeds, "evaluation", 0, tuple(self.codes.shape[1:]), dtype=self.codes.dtype)
        return self.posterior.sample(noise)

    @cached_property
    def kl(self) -> Float[Tensor, "p n z"]:
        """KL(q(z_j | x) ‖ p(z_j)) of every latent."""
        if isinstance(self.group.model.posterior, Deterministic):
            raise Missing("codes without noise have no density")
        return self.prior.kl(self.posterior, self.samples).per_latent

    def decode(self, z: Float[Tensor, "p n z"]) -> Float[Tensor, "p n ..."]:
        """E[x | z] of every member at its own latents."""
        return self.group.decode(z)

    def decode_raw(self, z: Float[Tensor, "p n z"]) -> Float[Tensor, "p n ..."]:
        """The decoder's output, which the likelihood interprets, such as logits."""
        return self.group.decode(z, raw=True)

    @cached_property
    def jacobians(self) -> Float[Tensor, "p m x z"]:
        """Jacobians of `decode` at the codes of the first m points, as many as memory allows."""
        size = self.dataset.numel * self.codes.shape[-1]
        count = max(1, JACOBIAN_NUMBERS // size)
        return jacobian(self.decode, self.codes[:, :count])

    @cached_property
    def gram(self) -> Float[Tensor, "p m z z"]:
        """Products JᵀJ of those Jacobians, at ten times as many points."""
        try:
            return self._metrics.gram
        except NotDefined:  # of the information, which the products themselves do not need
            return gram(self.decode, self._product_points)

    @cached_property
    def information(self) -> Float[Tensor, "p m z z"]:
        """Fisher information of the latents, at the points of `gram`."""
        return self._metrics.information

    @cached_property
    def _metrics(self) -> Metrics:
        return metrics(self.decode, self._product_points, self.likelihood)

    @property
    def _product_points(self) -> Float[Tensor, "p m z"]:
        size = self.dataset.numel * self.codes.shape[-1]
        return self.codes[:, : max(1, PRODUCT_NUMBERS // size)]

    @property
    def prior(self) -> Prior:
        """The members' prior."""
        return self.group.prior

    @property
    def likelihood(self) -> Likelihood:
        """The members' likelihood."""
        return self.group.likelihood

    @cached_property
    def beta(self) -> Float[Tensor, " p"]:
        """Each member's β at the end of training."""
        members = [trained.member for trained in self.group.trained]
        weights = [hyperparameters(member.objective).get("beta") for member in members]
        if any(weight is None for weight in weights):
            raise Missing(f"{type(members[0].objective).__name__} has no β")
        return torch.tensor(
            [
                value_at(weight, member.steps)
                for weight, member in zip(weights, members, strict=True)
                if weight is not None
            ]
        )

    @cached_property
    def history(self) -> Mapping[str, np.ndarray]:
        """The recorded steps and the terms of the loss over training, ``(p, t)`` or ``(p, t, z)``."""
        if "loss" not in self.group.trained[0].history:
            raise Missing("nothing was recorded in training")
        histories = [trained.history for trained in self.group.trained]
        return History({name: np.stack([history[name] for history in histories]) for name in histories[0]})

    def get(self, name: str) -> Any:
        """The quantity of that name.

        Raises:
            NotDefined: If these members or this dataset do not have it.
        """
        if name in ("decode", "decode_raw", "jacobians", "gram", "information") and not self.group.decodes:
            raise Missing("the model has no decoder")
        return getattr(self, name)


AVAILABLE = (
    *("x", "factors", "kinds", "codes", "samples", "variance", "kl", "posterior", "decode", "decode_raw"),
    *("jacobians", "gram", "information", "prior", "likelihood", "beta", "history"),
)
"""The names that a measure's parameters may have."""
