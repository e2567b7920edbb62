"""Variational autoencoders as descriptions, and the modules they build.

The networks of the papers' tables, and the calls that build them; each experiment chooses its likelihood:

===================================== ==================================================================================
table                                 call
===================================== ==================================================================================
rolinek2019 Table S3, dSprites        ``mlp((1, 64, 64), 5, encoder=(1200, 1200), decoder=(1200, 1200, 1200),
                                      activation=(nn.ReLU, nn.Tanh))``
rolinek2019 Table S3, synth. linear   ``linear(3, 2)``
rolinek2019 Table S3, synth. nonlin.  ``mlp(6, 2)``
rolinek2019 Table S3, MNIST, fMNIST   ``mlp((1, 28, 28), 6, encoder=(400,), decoder=(500, 500),
                                      activation=(nn.ReLU, nn.Tanh))``
sikka2019 appendix C                  ``mlp((1, 28, 28), 2, encoder=(256, 200, 200), decoder=(200, 200, 256))``
mathieu2019 Table 1a, 2D shapes       ``conv64(dense=128, dense_activation=False, decoder=(64, 64, 32))``
mathieu2019 Table 1b, pinwheel        ``mlp(2, 2, encoder=(100,), decoder=(100,), activation=nn.ReLU)``, with a
                                      likelihood of two outputs for each input
mathieu2019 Table 1c, CelebA          ``dcgan64()``
disentanglement_lib, dense            ``mlp((1, 64, 64), 10, encoder=(1200, 1200), decoder=(1200, 1200, 1200),
                                      activation=(nn.ReLU, nn.Tanh))``
disentanglement_lib, convolutional    ``conv64(late_kernel=2)``
disentanglement_lib, discriminator    ``discriminator(10)``
===================================== ==================================================================================

References:
    rolinek2019: Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR
    2019.
    sikka2019: Sikka, Zhong, Yin and Pehlevan, *A closer look at disentangling in β-VAE*, 2019.
    mathieu2019: Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*,
    ICML 2019.
    disentanglement_lib: the code of Locatello et al., *Challenging common assumptions in the unsupervised learning of
    disentangled representations*, ICML 2019.
"""

from axiswise.models.conv64 import Conv64, conv64
from axiswise.models.custom import Custom, Factory, custom
from axiswise.models.dcgan64 import DCGAN64, dcgan64
from axiswise.models.discriminator import discriminator
from axiswise.models.initialisation import initialise
from axiswise.models.mlp import MLP, linear, mlp
from axiswise.models.transforms import Transformed, rotate_latents, scale_latents
from axiswise.models.vae import VAE, Architecture, Networks, SelfInitialised

__all__ = [
    "DCGAN64",
    "MLP",
    "VAE",
    "Architecture",
    "Conv64",
    "Custom",
    "Factory",
    "Networks",
    "SelfInitialised",
    "Transformed",
    "conv64",
    "custom",
    "dcgan64",
    "discriminator",
    "initialise",
    "linear",
    "mlp",
    "rotate_latents",
    "scale_latents",
]
