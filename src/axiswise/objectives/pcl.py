"""Permutation-contrastive learning: an encoder that distinguishes true successors from random ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import nn
from torch.nn import functional

from axiswise.distributions import Deterministic
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_posterior
from axiswise.objectives.objective import Batch, Draw, Needs, Terms, Trainable
from axiswise.shapes import Float, Tensor


class Scorer(nn.Module):
    r"""The log-odds that a code follows another, under Laplace autoregressions of the latents.

    .. math:: r(h, h') = -\sum_j |a_j h'_j + b_j h_j + c_j| + d^2 \sum_j h_j'^2 + e

    The square prevents a negative coefficient (the released code clamps it after each step).

    Example:
        >>> Scorer(2)(torch.zeros(5, 2), torch.zeros(5, 2)).shape
        torch.Size([5])
    """

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.after, self.before = nn.Parameter(torch.ones(latents)), nn.Parameter(-torch.ones(latents))
        self.bias = nn.Parameter(torch.zeros(latents))
        self.root, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, before: Float[Tensor, "n z"], after: Float[Tensor, "n z"]) -> Float[Tensor, " n"]:
        """The formula above."""
        change = (self.after * after + self.before * before + self.bias).abs().sum(-1)
        return -change + self.root.square() * after.square().sum(-1) + self.offset


@dataclass(frozen=True)
class PCL:
    r"""Logistic regression of true transitions (x, x') against pairs whose first observation is another's.

    .. math:: L = \tfrac12 \mathbb{E} \log\left(1 + e^{-r(h(x), h(x'))}\right)
        + \tfrac12 \mathbb{E} \log\left(1 + e^{r(h(x^*), h(x'))}\right)

    h is the encoder, its outputs normalised over the batch; there is no decoder and no posterior. Rows of a batch are
    drawn independently, so the first observation of the row before serves as x*.

    References:
        Hyvärinen and Morioka, *Nonlinear ICA of temporally dependent stationary sources*, AISTATS 2017; the
        form of r and its start: the authors' released code.

    Example:
        >>> from axiswise.models import linear
        >>> sorted(PCL().networks(linear(3, 2, posterior=Deterministic())).model)
        ['encoder', 'normalisation', 'scorer']
    """

    needs: ClassVar[Needs] = Needs(pairs=True)

    def networks(self, model: VAE) -> Trainable:
        """The encoder, a batch normalisation of its outputs and the scorer."""
        needs_posterior("PCL", model, Deterministic)
        modules = {
            "encoder": model.modules()["encoder"],
            "normalisation": nn.BatchNorm1d(model.latents, affine=False),
            "scorer": Scorer(model.latents),
        }
        return Trainable(modules)

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """None."""
        return {}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        codes = networks.encode(torch.cat((batch.x, cast(Tensor, batch.pair)))).mean
        before, after = networks["normalisation"](codes).chunk(2)
        near, far = networks["scorer"](before, after), networks["scorer"](before.roll(1, 0), after)
        total = 0.5 * (functional.softplus(-near) + functional.softplus(far)).mean()
        accuracy = 0.5 * ((near > 0).to(codes.dtype) + (far < 0).to(codes.dtype)).mean()
        return Terms(total, {"accuracy": accuracy, "mean_square": codes.square().mean(0)})
