"""One latent of a member as a function of the factors, which a change can follow."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from axiswise.data import Kind
from axiswise.scores import UndefinedScore, mig
from axiswise.shapes import Float, Num, Tensor

STEPS, RATE = 1_000, 1e-2


def following(
    network: nn.Sequential,
    initial: Mapping[str, Tensor],
    factors: Float[Tensor, "n k"],
    latent: Float[Tensor, " n"],
) -> dict[str, Tensor]:
    r"""Weights with which a network is the conditional mean of a latent given the factors, less its mean.

    .. math:: s(w) = \mathbb{E}[z_j \mid w] - \bar z_j = \arg\min_s \mathbb{E}\, (s(w) + \bar z_j - z_j)^2, \qquad
        \bar z_j = \mathbb{E}\, z_j

    An image that changes with s shows one coordinate of the member. A model that must encode that coordinate precisely,
    and pays for every latent it uses, does best with a latent along it. Adam finds the minimum on all observations at
    once, with the kinks of the first layer spread over the factors.

    Arguments:
        network: The layers up to the one number, a linear one first.
        initial: Their weights.
        factors: Factors of some observations, scaled to −1…1.
        latent: The latent at each of them: its mean, or a sample, which has the same mean.

    Example:
        >>> a, b = torch.rand(2, 500) * 2 - 1
        >>> network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
        >>> factors = torch.stack([a, b], 1)
        >>> weights = following(network, dict(network.named_parameters()), factors, 3.0 + a + b)
        >>> s = functional_call(network, weights, (factors,))[:, 0]
        >>> bool((s - (a + b)).std() < 0.1)
        True
    """
    weights = {name: tensor.detach().clone() for name, tensor in initial.items()}
    first = weights["0.weight"]
    first.mul_(2.0 / first.norm(dim=1, keepdim=True))
    weights["0.bias"].copy_(torch.linspace(-2.0, 2.0, len(first)))
    parameters = {name: tensor.requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    target = latent - latent.mean()
    for _ in range(STEPS):
        loss = (functional_call(network, parameters, (factors,))[:, 0] - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return {name: tensor.detach() for name, tensor in parameters.items()}


def most_mixed(codes: Float[Tensor, "n z"], factors: Num[Tensor, "n k"], kinds: Sequence[Kind]) -> int:
    r"""The latent with the most information on a second factor: an axis between two of them.

    .. math:: \arg\max_j\ \operatorname{second}_k \frac{I(f_k; z_j)}{H(f_k)}

    Information is estimated as in :func:`~axiswise.scores.mig`, from bins; factors that do not vary count for nothing.

    Arguments:
        codes: Posterior means of one member.
        factors: The factors of the same observations, at least two.
        kinds: The kind of each factor.

    Example:
        >>> w = torch.cartesian_prod(torch.arange(8), torch.arange(8))
        >>> most_mixed(torch.stack([w[:, 0], w[:, 0] + w[:, 1]], 1).double(), w, ["discrete", "discrete"])
        1
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedScore)
        found = mig(codes.cpu(), factors.cpu(), kinds=list(kinds))
    information, entropies = np.asarray(found.information), np.asarray(found.entropies)[:, None]
    shares = np.divide(information, entropies, out=np.zeros_like(information), where=entropies > 0)
    return int(np.sort(shares, axis=0)[-2].argmax())
