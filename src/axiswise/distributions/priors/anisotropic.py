"""Gaussian priors whose latents differ in variance."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import torch

from axiswise._arguments import check_fields, checked
from axiswise.distributions.posteriors import Parameters
from axiswise.distributions.priors.prior import Divergence
from axiswise.errors import AxiswiseError
from axiswise.numerics.gaussian import kl_from_standard_normal, normal_log_density
from axiswise.shapes import Finite, Float, Tensor


@dataclass(frozen=True)
class Anisotropic:
    r"""A Gaussian prior of diagonal covariance, :math:`p(z) = N(0, \mathrm{diag}\, s^2)`, fixed or learned.

    .. math:: s_j^2 = T \cdot \mathrm{softmax}(l)_j, \qquad T = d \text{ by default}

    The variances always sum to T, so β is not scaled implicitly; equal logits give the standard normal. The
    divergence of a Gaussian posterior is that of its marginals and its total correlation,

    .. math:: \mathrm{KL} = \sum_j \tfrac12 \left( \frac{\mu_j^2 + \Sigma_{jj}}{s_j^2} - \log\frac{\Sigma_{jj}}{s_j^2}
        - 1 \right) + \tfrac12 \left( \sum_j \log \Sigma_{jj} - \log\det\Sigma \right)

    Dividing each latent by its s turns this prior into the standard normal and a diagonal posterior into a diagonal
    one, so the objective has the same symmetry and the same values as with the isotropic prior.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        section 6.1 and appendix B. There the first singular values of the data, as standard deviations, pass through
        a softmax; the paper does not say on which scale, or whether the result is multiplied by d. In the authors'
        released code, as here, variances sum to d, for learned priors too.

    Arguments:
        logits: Logarithms of the variances up to a constant, one for each latent; `singular_value_logits` gives those
            of a dataset.
        learned: Whether the logits are trained with the model, starting from these.
        total: Sum T of the variances; the number of latents if None.

    Example:
        >>> Anisotropic((math.log(3.0), 0.0)).variances
        tensor([1.5000, 0.5000])
    """

    logits: tuple[float, ...] | Float[Tensor, "... z"]
    learned: bool = False
    total: float | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        # Values from training are tensors and are not checked.
        if not isinstance(self.logits, Tensor) and not (self.logits and all(map(math.isfinite, self.logits))):
            raise AxiswiseError(
                "`logits` of an Anisotropic prior must be finite numbers, one for each latent. Got "
                f"{self.logits!r}. Equal ones, such as (0.0, 0.0), give an isotropic prior."
            )
        if self.total is not None and not 0.0 < self.total < math.inf:
            raise AxiswiseError(f"`total` of an Anisotropic prior must be a positive number. Got {self.total!r}.")

    @property
    def latents(self) -> int:
        """Number of latents."""
        return self.logits.shape[-1] if isinstance(self.logits, Tensor) else len(self.logits)

    @property
    def variances(self) -> Float[Tensor, "... z"]:
        """The variances s², after any leading axes of learned logits."""
        return self._log_variances(torch.zeros(())).exp()

    def initial(self) -> dict[str, Tensor]:
        """The logits, if they are learned."""
        return {"logits": torch.as_tensor(self.logits, dtype=torch.get_default_dtype())} if self.learned else {}

    def with_values(self, values: Mapping[str, Tensor]) -> "Anisotropic":
        """The same prior with those logits."""
        return replace(self, logits=values["logits"])

    def log_density(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "..."]:
        """Σ_j log N(z_j; 0, s_j²)."""
        return normal_log_density(z, torch.zeros_like(z), self._log_variances(z)).sum(-1)

    def sample(self, noise: Float[Tensor, "... z"], uniform: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The noise times s."""
        return noise * (0.5 * self._log_variances(noise)).exp()

    def kl(self, posterior: Parameters, sample: Float[Tensor, "... z"]) -> Divergence:
        """The closed form above; `sample` is not used."""
        log_variances = self._log_variances(posterior.mean)
        per_latent = kl_from_standard_normal(
            posterior.mean * (-0.5 * log_variances).exp(),
            posterior.variance * (-log_variances).exp(),
            posterior.log_variance - log_variances,
        )
        return Divergence(per_latent.sum(-1) + posterior.total_correlation, per_latent)

    def _log_variances(self, like: Float[Tensor, "..."]) -> Float[Tensor, "... z"]:
        """Log s², on the device of another tensor and, unless learned, of its type."""
        logits = self.logits
        if not isinstance(logits, Tensor):
            logits = torch.tensor(logits, dtype=like.dtype, device=like.device)
        return logits.log_softmax(-1) + math.log(self.latents if self.total is None else self.total)


@checked
def singular_value_logits(
    x: Finite[Tensor, "n ..."], latents: int, temperature: float = 1.0, *, centred: bool = True
) -> tuple[float, ...]:
    r"""Logits of an `Anisotropic` prior from the singular values of a dataset, largest first.

    .. math:: l_j = \frac{\log \varsigma_j^2}{\tau}, \qquad \varsigma_1 \geq \varsigma_2 \geq \dots

    At τ = 1 the prior's variances are in proportion to those of the principal components, at τ = 2 to their standard
    deviations, and for large τ they are equal. The singular values themselves are not suitable as logits: they grow
    with the square root of the number of samples, and the softmax would give all variance to the first latent. Their
    logarithms grow by a constant, which the softmax cancels, so a sample of a large dataset is enough.

    References:
        Mathieu, Rainforth, Siddharth and Teh, *Disentangling disentanglement in variational autoencoders*, ICML 2019,
        appendix B. The temperature is ours. The authors' released code is the case τ = 1 without centring; it takes ten
        of twenty singular values in the ascending order that its solver returns, so not the largest.

    Arguments:
        x: Observations.
        latents: Number of logits.
        temperature: Divisor τ, positive.
        centred: Whether the mean observation is subtracted first: principal components are those of centred data.

    Example:
        >>> x = torch.tensor([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> Anisotropic(singular_value_logits(x, 2)).variances
        tensor([1.6000, 0.4000])
    """
    if not 0.0 < temperature < math.inf:
        raise AxiswiseError(f"`temperature` must be a positive number. Got {temperature!r}.")
    if x.ndim < 2 or 0 in x.shape:
        raise AxiswiseError(f"`x` must be observations (n, …), none of its axes empty. Got shape {tuple(x.shape)}.")
    rows = x.flatten(1).double()
    values = torch.linalg.svdvals(rows - rows.mean(0) if centred else rows)
    # Smaller values are rounding errors, as in numpy.linalg.matrix_rank.
    rank = int((values > values[0] * max(rows.shape) * torch.finfo(torch.float64).eps).sum())
    if not 1 <= latents <= rank:
        raise AxiswiseError(
            f"`latents` must lie between 1 and the rank of the data, {rank}. Got {latents}. Give more observations, or "
            "fewer latents."
        )
    return tuple((values[:latents].square().log() / temperature).tolist())
