"""Checks that a model suits an objective, before training."""

from axiswise.distributions import Deterministic
from axiswise.errors import AxiswiseError
from axiswise.models import VAE


def needs_posterior(objective: str, model: VAE, kind: type) -> None:
    """Raises unless the model's posterior is of that kind.

    Example:
        >>> from axiswise.models import linear
        >>> needs_posterior("Autoencoder", linear(3, 2), Deterministic)
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: Autoencoder needs a model whose posterior is Deterministic. Got Diagonal...
    """
    if not isinstance(model.posterior, kind):
        raise AxiswiseError(
            f"{objective} needs a model whose posterior is {kind.__name__}. Got {type(model.posterior).__name__}. "
            f"Build the model with posterior={kind.__name__}()."
        )


def needs_density(objective: str, model: VAE) -> None:
    """Raises if the model's codes have no noise, so that q(z | x) has no density.

    Example:
        >>> from axiswise.models import linear
        >>> needs_density("BetaVAE", linear(3, 2, posterior=Deterministic()))
        Traceback (most recent call last):
        axiswise.errors.AxiswiseError: BetaVAE needs a posterior with a density. Got Deterministic. Build the model...
    """
    if isinstance(model.posterior, Deterministic):
        raise AxiswiseError(
            f"{objective} needs a posterior with a density. Got Deterministic. Build the model with "
            "posterior=Diagonal(), or train it as Autoencoder()."
        )
