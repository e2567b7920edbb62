"""Variational autoencoders as descriptions, and the modules they build."""

from axiswise.models.conv64 import Conv64, conv64
from axiswise.models.initialisation import initialise
from axiswise.models.mlp import MLP, linear, mlp
from axiswise.models.vae import VAE, Network, Networks, with_learned

__all__ = ["MLP", "VAE", "Conv64", "Network", "Networks", "conv64", "initialise", "linear", "mlp", "with_learned"]
