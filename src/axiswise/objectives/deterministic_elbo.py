"""The ELBO without sampling: its Taylor expansion around the posterior mean."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from torch.nn.modules.batchnorm import _BatchNorm

from axiswise._arguments import check_fields
from axiswise.distributions import Anisotropic, Bernoulli, Gaussian, StandardNormal
from axiswise.errors import AxiswiseError
from axiswise.geometry import curvature_term
from axiswise.geometry.deterministic_elbo import Curvature
from axiswise.models import VAE, Networks
from axiswise.objectives._suitability import needs_density
from axiswise.objectives.elbo_terms import ElboTerms
from axiswise.objectives.objective import Batch, Draw, Terms, Trainable
from axiswise.schedules import Hyperparameter, check_hyperparameter
from axiswise.shapes import Float, Tensor


@dataclass(frozen=True)
class DeterministicELBO:
    r"""The β-VAE's objective with the expectation over z replaced by a second-order expansion at the mean.

    .. math:: L = -\log p(x | \mu) - \tfrac12 \mathrm{tr}(H \Sigma) + \beta\, \mathrm{KL}(q(z|x) \,\|\, p(z)),
        \qquad H = \nabla_z^2 \log p(x|z) \big|_{z = \mu}

    The Gauss–Newton form :math:`H = -D^\top A^2 D`, where D is the Jacobian of the decoder's output and
    :math:`A^2 = -\partial^2 \log p / \partial\theta^2`, omits the decoder's second derivative. Written over the
    columns of :math:`\Sigma = L L^\top`, the trace needs a directional derivative for each latent, and no Jacobian.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, eq 16 (eq 5 and 15
        misprint the bracket), eq 6 and appendix A.4; after Kumar and Poole, *On implicit regularization in β-VAEs*,
        ICML 2020.

    Arguments:
        beta: Weight of the divergence.
        hessian: "gauss-newton", or "full" for the exact second derivative.

    Example:
        >>> DeterministicELBO(beta=2).draws(batch=64, latents=10)
        {}
    """

    beta: Hyperparameter = 1.0
    hessian: Curvature = "gauss-newton"

    def __post_init__(self) -> None:
        check_hyperparameter("DeterministicELBO", "beta", self.beta)
        check_fields(self)

    def networks(self, model: VAE) -> Trainable:
        """The VAE's own; the divergence must have a closed form and the likelihood a known curvature.

        Batch norm is refused in the decoder: while it trains, each image depends on the other codes of the batch, and
        the derivative in one code is none of the objective's H.
        """
        needs_density("DeterministicELBO", model)
        for part, kinds in (("likelihood", (Gaussian, Bernoulli)), ("prior", (StandardNormal, Anisotropic))):
            if not isinstance(getattr(model, part), kinds):
                names = " or ".join(kind.__name__ for kind in kinds)
                raise AxiswiseError(
                    f"DeterministicELBO needs a model whose {part} is {names}. "
                    f"Got {type(getattr(model, part)).__name__}. Build the model with {part}={kinds[0].__name__}()."
                )
        modules = model.modules()
        for name, layer in modules["decoder"].named_modules():
            if isinstance(layer, _BatchNorm):
                raise AxiswiseError(
                    "DeterministicELBO needs a decoder that treats each code by itself. "
                    f"Got {type(layer).__name__} at decoder.{name}, which normalises over the batch. "
                    "Use GroupNorm, InstanceNorm or LayerNorm there, or another objective."
                )
        return Trainable(modules)

    def draws(self, batch: int, latents: int) -> dict[str, Draw]:
        """None."""
        return {}

    def loss(self, networks: Networks, batch: Batch, draws: Mapping[str, Tensor], step: Float[Tensor, ""]) -> Terms:
        """The formula above."""
        posterior, likelihood = networks.encode(batch.x), networks.likelihood
        curved = curvature_term(networks.decode, likelihood, batch.x, posterior, hessian=self.hessian)
        regularisation = -curved.mean()
        autoencoder = -likelihood.log_density(batch.x, networks.decode(posterior.mean)).mean()
        divergence = networks.prior.kl(posterior, posterior.mean)
        terms = ElboTerms(
            autoencoder + regularisation, divergence.total.mean(), posterior, divergence, sample=posterior.mean
        )
        total = terms.reconstruction + cast(Tensor, self.beta) * terms.kl
        return Terms(total, {**terms.parts(), "regularisation": regularisation})
