"""Studies of mathieu2019. Each begins with its command, what to expect, and what it costs."""

import torch
from torch import nn

from axiswise.data import pinwheel
from axiswise.distributions import DecodedGaussian, Mixture, corners
from axiswise.distributions.estimators import InclusiveKL
from axiswise.evaluation import Run, Scale, Study, kl, loss, reconstruction
from axiswise.geometry import overlap
from axiswise.models import mlp
from axiswise.numerics.optimizers import Adam
from axiswise.objectives import Decomposed
from axiswise.population import grid
from axiswise.shapes import Float, Tensor

ALPHAS = (0.0, 1.0, 10.0)
BETAS = (0.01, 0.1, 0.3, 1.0, 3.0, 10.0)


def largest_mode(samples: Float[Tensor, "p n z"], prior: Mixture) -> Float[Tensor, " p"]:
    """The share of encodings nearest to the mixture's most popular mean: 1 if all collapsed to it, ¼ if spread evenly.

    Example:
        >>> largest_mode(torch.tensor([[[0.0, 0.1], [1.0, 0.9], [1.1, 1.0], [0.0, 1.0]]]), corners(2)).item()
        0.5
    """
    means = torch.tensor(prior.means, dtype=samples.dtype, device=samples.device)
    nearest = torch.cdist(samples, means.expand(len(samples), *means.shape)).argmin(-1)
    return nn.functional.one_hot(nearest, len(means)).to(samples.dtype).mean(1).amax(-1)


def figure_3(scale: Scale) -> list[Run]:
    """Overlap by β, structure by α: the aggregate posterior on a pinwheel (mathieu2019 Figure 3).

    Four spiralling arms, 400 points, are encoded into two dimensions under a prior of four Gaussians at the corners of
    a square. Published, in words: overlap grows with β; the match of the aggregate posterior to the prior improves with
    α at every β; too large a β worsens it again; a large α does not collapse the encodings to one mode.

    Command: ``axiswise run mathieu2019.figure_3``. Cost: four minutes on two cores.

    Networks, prior, optimizer, 500 whole-set steps and the divergence KL(p ‖ q) over the full aggregate are the paper's
    (Table 1b, eq 9, appendix B; AMSGrad is its released code's). The divergence is a mean over the prior's samples, so
    that α does not depend on their number. The paper does not print its grid of α and β: this one is ours.
    """
    members = grid(
        model=mlp(
            2,
            2,
            encoder=(100,),
            decoder=(100,),
            activation=nn.ReLU,
            prior=corners(2, variance=0.03),
            likelihood=DecodedGaussian(),
        ),
        objective=[Decomposed(alpha, beta, InclusiveKL() if alpha else None) for alpha in ALPHAS for beta in BETAS],
        optimizer=Adam(lr=1e-3, amsgrad=True),
        batch=None,
        steps=20 if scale == "smoke" else 500,
        seed=range({"smoke": 2, "default": 5, "paper": 20}[scale]),
    )
    return [Run("pinwheel/alpha-beta", pinwheel, members, (overlap, largest_mode, loss, reconstruction, kl))]


STUDIES: dict[str, Study] = {"figure_3": figure_3}
