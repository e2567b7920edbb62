"""The discriminator of FactorVAE."""

from itertools import pairwise

import torch
from torch import nn

from axiswise._arguments import checked
from axiswise.shapes import Count


@checked
def discriminator(latents: Count, *, widths: tuple[Count, ...] = (1000,) * 6) -> nn.Module:
    """A classifier of samples of q(z) against samples of the product of its marginals: two logits for each z.

    The defaults are the six hidden layers of the paper; the slope of the leaky ReLUs, 0.2, is the reference
    implementation's (PyTorch's own default is 0.01).

    References:
        Kim and Mnih, *Disentangling by factorising*, ICML 2018, appendix A; disentanglement_lib, `fc_discriminator`.

    Arguments:
        latents: Number of latents.
        widths: Widths of the hidden layers.

    Example:
        >>> network = discriminator(10)
        >>> sum(parameter.numel() for parameter in network.parameters()), network(torch.zeros(5, 10)).shape
        (5018002, torch.Size([5, 2]))
    """
    layers: list[nn.Module] = []
    with torch.random.fork_rng(devices=[]):  # restores the global generator, from which PyTorch draws initial weights
        for before, after in pairwise((latents, *widths)):
            layers += [nn.Linear(before, after), nn.LeakyReLU(0.2)]
        layers.append(nn.Linear((latents, *widths)[-1], 2))
    return nn.Sequential(*layers)
