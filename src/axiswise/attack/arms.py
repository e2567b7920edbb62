"""The members that are attacked and those trained on changed data: the paper's six objectives with its weights."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import nn

from axiswise._arguments import checked
from axiswise.attack._bilevel import Learning
from axiswise.data import FactorDataset
from axiswise.distributions import Bernoulli, Deterministic, Diagonal
from axiswise.errors import AxiswiseError
from axiswise.models import VAE, conv64, mlp
from axiswise.objectives import PCL, Autoencoder, BetaTCVAE, BetaVAE, FactorVAE, Objective, SlowVAE
from axiswise.optimizers import Adam
from axiswise.population import Member, grid

SAMPLED_IMAGES = 256  # that decide whether pixels are black and white
PIXELS = 64 * 64  # of the images that the published weights are for
OBJECTIVES = ("beta-vae", "factor-vae", "beta-tcvae", "slow-vae", "pcl", "autoencoder")


class Weights(NamedTuple):
    """The main weight of each objective that has one."""

    beta: float
    adversary: float
    total_correlation: float
    slow: float


DSPRITES = Weights(8.0, 35.0, 6.0, 1.0)
"""The weights of the paper's objectives on dSprites."""
SHAPES3D = Weights(32.0, 7.0, 32.0, 1.0)
"""The weights of the paper's objectives on Shapes3D."""


@checked
def published_weights(dataset: FactorDataset) -> Weights:
    """The published weights for dSprites and Shapes3D; for others those of dSprites, in proportion to the pixels.

    References:
        Zietlow, Rolinek and Martius, *Demystifying inductive biases for β-VAE based architectures*, ICML 2021, Table 2.

    Example:
        >>> from axiswise.data import small_sprites
        >>> published_weights(small_sprites())
        Weights(beta=0.5, adversary=2.1875, total_correlation=0.375, slow=0.0625)
    """
    if dataset.name == "shapes3d":
        return SHAPES3D
    return Weights(*(weight * min(1.0, dataset.numel / PIXELS) for weight in DSPRITES))


@checked
def objectives_of(weights: Weights) -> dict[str, Objective]:
    """The six objectives of the paper's Table 1, by name.

    Example:
        >>> objectives_of(DSPRITES)["beta-tcvae"].beta
        6.0
    """
    return {
        "beta-vae": BetaVAE(weights.beta),
        "factor-vae": FactorVAE(weights.adversary),
        "beta-tcvae": BetaTCVAE(weights.total_correlation),
        "slow-vae": SlowVAE(weights.slow),
        "pcl": PCL(),
        "autoencoder": Autoencoder(),
    }


def network(dataset: FactorDataset, objective: Objective) -> VAE:
    """A VAE with a latent for each factor: convolutional for images of 64 × 64 pixels, fully connected for others."""
    posterior = Deterministic() if isinstance(objective, Autoencoder | PCL) else Diagonal()
    if dataset.shape[-2:] == (64, 64):
        return conv64(dataset.shape[0], len(dataset.space), posterior=posterior)
    if len(dataset.shape) != 3:
        raise AxiswiseError(f"The attack is on images (c, h, w). Got observations of shape {dataset.shape}.")
    widths = {"encoder": (64, 64), "decoder": (64, 64), "activation": (nn.Tanh, nn.Tanh)}
    return mlp(dataset.shape, len(dataset.space), **widths, posterior=posterior, likelihood=Bernoulli())


def restarts(dataset: FactorDataset, objective: Objective, *, steps: int, seeds: Sequence[int]) -> list[Member]:
    """An objective once for each seed, at a rate of 1e-4, or of 1e-3 where the network is a small one."""
    convolves = dataset.shape[-2:] == (64, 64)
    return grid(
        model=network(dataset, objective),
        objective=objective,
        optimizer=Adam(lr=1e-4 if convolves else 1e-3),
        batch=64,
        steps=steps,
        seed=list(seeds),
    )


@checked
def arms(
    dataset: FactorDataset, *, steps: int, seeds: Sequence[int], objectives: Sequence[str] = OBJECTIVES
) -> dict[str, list[Member]]:
    """Members of several objectives by name, as `judge` takes them.

    Arguments:
        dataset: The dataset to train on.
        steps: Training steps.
        seeds: One member of each objective for each seed.
        objectives: Names of objectives.

    Example:
        >>> from axiswise.data import small_sprites
        >>> {name: len(found) for name, found in arms(small_sprites(), steps=10, seeds=range(3)).items()}
        {'beta-vae': 3, 'factor-vae': 3, 'beta-tcvae': 3, 'slow-vae': 3, 'pcl': 3, 'autoencoder': 3}
        >>> arms(small_sprites(), steps=10, seeds=range(3), objectives=["vae"])
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Expected names of objectives (beta-vae, factor-vae, ...). Got vae.
    """
    unknown = [name for name in objectives if name not in OBJECTIVES]
    if unknown:
        raise AxiswiseError(f"Expected names of objectives ({', '.join(OBJECTIVES)}). Got {', '.join(unknown)}.")
    described = objectives_of(published_weights(dataset))
    return {name: restarts(dataset, described[name], steps=steps, seeds=seeds) for name in objectives}


@checked
def to_choose_from(dataset: FactorDataset, *, steps: int, seeds: Sequence[int]) -> list[Member]:
    """Restarts of the β-VAE that is judged, to choose from. Their seeds must differ from those of the judgement.

    Example:
        >>> from axiswise.data import small_sprites
        >>> [member.seed for member in to_choose_from(small_sprites(), steps=10, seeds=[100, 101])]
        [100, 101]
    """
    return restarts(dataset, BetaVAE(published_weights(dataset).beta), steps=steps, seeds=seeds)


@checked
def learning_for(dataset: FactorDataset, epsilon: float, *, steps: int) -> Learning:
    """Default settings to learn a change of any dataset: the paper's, at ten times its learning rate.

    Images of black and white pixels need the further options of `Learning`: there the change follows the latent of the
    entangled member that mixes two factors most.

    Arguments:
        dataset: The dataset to change.
        epsilon: The most that any value is changed by.
        steps: Steps of the change.

    Example:
        >>> from axiswise.data import small_sprites
        >>> learning_for(small_sprites(), 0.1, steps=100).follow is None
        True
    """
    rate = Adam(lr=1e-3, eps=1e-7)
    x = dataset.x(dataset.sample(min(len(dataset), SAMPLED_IMAGES)))
    if bool(((x == 0) | (x == 1)).all()):
        return Learning(
            epsilon, steps=steps, warm_up=steps // 15, start=0.5, follow="mixed", centred=True, optimizer=rate
        )
    return Learning(epsilon, steps=steps, optimizer=rate)
