"""Which function of the factors one set of codes tells and another does not: where a change had best begin."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import nn
from torch.func import functional_call

from axiswise.shapes import Float, Int, Tensor

NEIGHBOURS = 40
STEPS, RATE = 300, 1e-2


class Fostered(NamedTuple):
    """A function of the factors, and what codes tell of it.

    Arguments:
        weights: Those of the network that computes it.
        entangled: The share of its variance that the codes to foster explain, mean over members.
        disentangled: The share that the codes to hinder explain.
    """

    weights: dict[str, Tensor]
    entangled: float
    disentangled: float


def fostered(
    network: nn.Sequential,
    initial: Mapping[str, Tensor],
    factors: Float[Tensor, "n k"],
    entangled: Sequence[Float[Tensor, "n _"]],
    disentangled: Sequence[Float[Tensor, "n _"]],
) -> Fostered:
    r"""Fits a network s to what entangled codes explain best beyond what disentangled ones do.

    .. math:: \max_s\ \frac{\operatorname{Var} \mathbb{E}[s(w) \mid z_{\mathrm{ent}}]
        - \operatorname{Var} \mathbb{E}[s(w) \mid z_{\mathrm{dis}}]}{\operatorname{Var} s(w)}, \qquad
        \operatorname{Var} \mathbb{E}[s \mid z] = \operatorname{Cov}(s, \mathbb{E}[s \mid z])

    A decoder that is best for its codes decodes E[x' | z]. Where x' = x + ε s(w) in some pixels, with s small, its loss
    falls with the share of s that z explains: so this is the change, of all that follow one number, that sets the
    losses of both kinds furthest apart. 𝔼[s | z] is the mean over the forty nearest codes, the observation itself left
    out. The maximum is sought by Adam on all observations at once, with kinks of the first layer spread over the
    factors. At the end s has mean 0.

    Arguments:
        network: The layers up to the one number, a linear one first.
        initial: Their weights.
        factors: Factors of some observations, scaled to −1…1.
        entangled: A sample of the posterior at each observation, for each member to foster.
        disentangled: The same for each member to hinder.

    Example:
        >>> a, b = torch.rand(2, 500) * 2 - 1
        >>> network = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
        >>> weights = dict(network.named_parameters())
        >>> found = fostered(network, weights, torch.stack([a, b], 1), [(a + b)[:, None]], [torch.rand(500, 2)])
        >>> found.entangled > 0.9, abs(found.disentangled) < 0.1
        (True, True)
    """
    weights = {name: tensor.detach().clone() for name, tensor in initial.items()}
    first = weights["0.weight"]
    first.mul_(2.0 / first.norm(dim=1, keepdim=True))
    weights["0.bias"].copy_(torch.linspace(-2.0, 2.0, len(first)))
    near = [[_nearest(codes) for codes in side] for side in (entangled, disentangled)]
    parameters = {name: tensor.requires_grad_() for name, tensor in weights.items()}
    optimizer = torch.optim.Adam(parameters.values(), lr=RATE)
    for _ in range(STEPS):
        ours, theirs = _explained(functional_call(network, parameters, (factors,))[:, 0], near)
        optimizer.zero_grad()
        (theirs - ours).backward()
        optimizer.step()
    with torch.no_grad():
        s = functional_call(network, parameters, (factors,))[:, 0]
        parameters[f"{len(network) - 1}.bias"] -= s.mean()
        ours, theirs = _explained(s, near)
    return Fostered({name: tensor.detach() for name, tensor in parameters.items()}, ours.item(), theirs.item())


def _nearest(codes: Float[Tensor, "n z"]) -> Int[Tensor, "n neighbours"]:
    """The nearest other codes of each, in latents of unit variance."""
    from sklearn.neighbors import NearestNeighbors  # here, since it takes a second to import

    points = (codes / codes.std(0)).cpu().numpy()
    found = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(points).kneighbors(points, return_distance=False)
    return torch.from_numpy(found[:, 1:]).to(codes.device)


def _explained(s: Float[Tensor, " n"], near: Sequence[Sequence[Tensor]]) -> tuple[Tensor, Tensor]:
    """The share of the variance of s that either side's codes explain."""
    s = s - s.mean()
    s = s / s.square().mean().sqrt()
    ours, theirs = (torch.stack([(s * s[rows].mean(1)).mean() for rows in side]).mean() for side in near)
    return ours, theirs
