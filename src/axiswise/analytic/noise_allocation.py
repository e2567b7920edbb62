r"""The best allocation of a fixed budget of precision to latents and samples, and the best rotation of the latents."""

import math
from typing import NamedTuple

import torch
from numpy import ndarray
from scipy.optimize import minimize

from axiswise._arguments import checked
from axiswise.analytic._checks import check_orthogonal
from axiswise.errors import AxiswiseError
from axiswise.shapes import Finite, Float, Tensor


class NoiseAllocation(NamedTuple):
    """An allocation of the budget, and its cost.

    Example:
        >>> noise_allocation(torch.tensor([[[2.0, 0.0], [0.0, 1.0]]]), budget=0).variance
        tensor([[0.5000, 2.0000]], dtype=torch.float64)
    """

    objective: Float[Tensor, "..."]
    """The logarithms of the noise's effect, summed over samples; with `per_sample` the effect itself, (…, n)."""
    rotation: Float[Tensor, "... n z z"]
    """Orthogonal V of each sample: its Jacobian becomes J V."""
    variance: Float[Tensor, "... n z"]
    """Posterior variances σ² of each sample."""


@checked
def allocation_objective(
    jacobians: Finite[Tensor, "... n x z"],
    variance: Finite[Tensor, "... n z"],
    rotation: Finite[Tensor, "... n z z"] | None = None,
    *,
    per_sample: bool = False,
) -> Float[Tensor, "..."]:
    r"""Computes the effect of the latents' noise on decoded observations, to first order of the decoder.

    .. math:: \sum_i \log \mathbb E \lVert J_i V_i \varepsilon_i \rVert^2
        = \sum_i \log \sum_j \lVert (J_i V_i)_j \rVert^2 \sigma_{ij}^2, \qquad
        \varepsilon_i \sim N(0, \mathrm{diag}\, \sigma_i^2)

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equations 18 and 20, S48.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes before samples, pixels and latents.
        variance: Posterior variances.
        rotation: Orthogonal matrices; the identity if None.
        per_sample: Returns :math:`\mathbb E \lVert J_i V_i \varepsilon_i \rVert^2` of each sample instead, (…, n).

    Example:
        >>> jacobians = torch.tensor([[[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]]])
        >>> allocation_objective(jacobians, torch.tensor([[1.0, 2.0]]), per_sample=True)
        tensor([56.], dtype=torch.float64)
    """
    _check(jacobians)
    *samples, _, size = jacobians.shape
    if variance.shape != (*samples, size):
        raise AxiswiseError(
            f"`variance` must have the shape {(*samples, size)} of the samples and latents of `jacobians`. "
            f"Got {tuple(variance.shape)}."
        )
    turned = jacobians.double() @ _start(rotation, jacobians)
    effect = (turned.square().sum(-2) * variance.double()).sum(-1)
    return effect if per_sample else effect.log().sum(-1)


@checked
def allocation_bound(
    jacobians: Finite[Tensor, "... n x z"], budget: float | int | Finite[Tensor, "..."], *, per_sample: bool = False
) -> Finite[Tensor, "..."]:
    r"""Computes the smallest effect of the noise without a rotation of the latents.

    .. math:: \mathbb E \lVert J \varepsilon \rVert^2 \geq d \left( \prod_j \lVert J_j \rVert^2 \sigma_j^2 \right)^{1/d}
        = d \left( \prod_j \lVert J_j \rVert \right)^{2/d} e^{-C/d}, \qquad C = -\sum_j \log \sigma_j^2

    attained if all :math:`\lVert J_j \rVert^2 \sigma_j^2` are equal. Rotating the latents lowers it to the value of
    :func:`noise_allocation`.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equations 22 to 26 (which print :math:`e^{-C}` for :math:`e^{-C/2}`) and proposition S5.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes before samples, pixels and latents; no column may be 0.
        budget: Precision C, :math:`-\sum \log \sigma^2` over samples and latents; with `per_sample` that of each
            sample, a number or (…, n).
        per_sample: Returns the bound of each sample, without the logarithm, (…, n).

    Example:
        >>> jacobians = torch.tensor([[[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]]])
        >>> allocation_bound(jacobians, budget=0, per_sample=True)  # 2 √(50 · 3)
        tensor([24.4949], dtype=torch.float64)
    """
    _check(jacobians)
    lengths = torch.linalg.vector_norm(jacobians.double(), dim=-2)
    if not (lengths > 0.0).all():
        raise AxiswiseError(
            "`jacobians` must have no column of length 0: noise of such a latent costs nothing. Got one at latent "
            f"{int((lengths > 0.0).logical_not().nonzero()[0, -1])}; omit passive latents."
        )
    return _bound(lengths, _budget(budget, jacobians, per_sample), per_sample)


@checked
def noise_allocation(
    jacobians: Finite[Tensor, "... n x z"], budget: float | int | Finite[Tensor, "..."], *, per_sample: bool = False
) -> NoiseAllocation:
    r"""Finds the rotations and variances that minimise the effect of the latents' noise, in closed form.

    .. math:: \min_{V_i, \sigma_i} \sum_i \log \mathbb E \lVert J_i V_i \varepsilon_i \rVert^2
        \quad\text{subject to}\quad -\sum_{ij} \log \sigma_{ij}^2 = C

    has the minimum, with the singular values :math:`s_{ij}` of :math:`J_i`,

    .. math:: N \log d - \frac{C}{d} + \frac{2}{d} \sum_{ij} \log s_{ij},

    attained if and only if the columns of each :math:`J_i V_i` are orthogonal, so :math:`V_i` contains right singular
    vectors, and :math:`\sigma_{ij}^2 \propto 1 / s_{ij}^2` within each sample. The distribution of the precision
    over samples does not matter; here each gets C / N. With `per_sample` each has its own budget, without sum and
    logarithm, which changes only the value.

    The paper expresses the constraint by the divergence of active latents, :math:`\tfrac12 (\lVert\mu\rVert^2 + C -
    Nd)`, in which rotations do not change :math:`\lVert\mu\rVert`.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        equations 18 to 21, theorem 2 and corollary 1, S35 and S40.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes before samples, pixels and latents, of full rank.
        budget: Precision C over all samples and latents; with `per_sample` that of each sample, a number or (…, n).
        per_sample: Solves each sample's problem by itself, without the logarithm.

    Example:
        >>> jacobians = torch.tensor([[[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]]])
        >>> noise_allocation(jacobians, budget=0, per_sample=True).objective  # 2 √134
        tensor([23.1517], dtype=torch.float64)
    """
    _check(jacobians)
    total = _budget(budget, jacobians, per_sample)
    values, right = torch.linalg.svd(jacobians.double(), full_matrices=False)[1:]
    smallest, size = values[..., -1], jacobians.shape[-1]
    if values.shape[-1] < size or not (smallest > size * torch.finfo(values.dtype).eps * values[..., 0]).all():
        raise AxiswiseError(
            "`jacobians` must have full rank: noise in their null space costs nothing, and there is no minimum. Got "
            f"a smallest singular value of {smallest.min().item():.3g} with {jacobians.shape[-2]} pixels and {size} "
            "latents; omit passive latents."
        )
    share = total if per_sample else total[..., None] / values.shape[-2]
    level = (2.0 * values.log().sum(-1) - share) / size
    variance = level[..., None].exp() / values.square()
    return NoiseAllocation(_bound(values, total, per_sample), right.mT, variance)


@checked
def solve_noise_allocation(
    jacobians: Finite[Tensor, "... n x z"],
    budget: float | int | Finite[Tensor, "..."],
    rotation: Finite[Tensor, "... n z z"] | None = None,
    variance: Finite[Tensor, "... n z"] | None = None,
    *,
    per_sample: bool = False,
    iterations: int = 5000,
) -> NoiseAllocation:
    r"""Finds the optimum of :func:`noise_allocation` by gradient descent, from a given start.

    Rotations are :math:`V = V_0 \exp(A - A^\top)`, and the logarithms of the variances are shifted to the budget, so
    L-BFGS needs no constraints. All leading axes are solved together, and angles are exact to the root of rounding.
    Every local minimum is global, but there are saddles, such as the rotation by 45 degrees from the best one: start
    from random rotations.

    References:
        Rolinek, Zietlow and Martius, *Variational autoencoders pursue PCA directions (by accident)*, CVPR 2019,
        theorem 2 (a). Liu and Nocedal, *On the limited memory BFGS method for large scale optimization*, Mathematical
        Programming 45, 1989.

    Arguments:
        jacobians: Decoder Jacobians, any leading axes before samples, pixels and latents, of full rank.
        budget: Precision C over all samples and latents; with `per_sample` that of each sample, a number or (…, n).
        rotation: Start; the identity if None.
        variance: Start, up to the factor that meets the budget; equal variances if None.
        per_sample: Solves each sample's problem by itself, without the logarithm.
        iterations: Largest number of steps; it stops when the value no longer decreases.

    Example:
        >>> jacobians = torch.tensor([[[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]]])
        >>> solve_noise_allocation(jacobians, budget=0, per_sample=True).objective
        tensor([23.1517], dtype=torch.float64)
    """
    _check(jacobians)
    total, begin = _budget(budget, jacobians, per_sample), _start(rotation, jacobians)
    *samples, _, size = jacobians.shape
    if variance is not None and (variance.shape != (*samples, size) or not (variance > 0.0).all()):
        raise AxiswiseError(
            f"`variance` must be positive, of the shape {(*samples, size)} of the samples and latents of `jacobians`. "
            f"Got shape {tuple(variance.shape)}, smallest {variance.min().item():.3g}."
        )
    matrix = jacobians.detach().double()
    product = begin.mT @ (matrix.mT @ matrix) @ begin  # all that is needed of the Jacobians
    first = torch.zeros_like(product[..., 0]) if variance is None else variance.double().log()

    def at(turn: Tensor, raw: Tensor) -> NoiseAllocation:
        step = torch.linalg.matrix_exp(turn - turn.mT)
        centred = raw - raw.mean(-1 if per_sample else (-2, -1), keepdim=True)
        spent = total[..., None] / size if per_sample else total[..., None, None] / (size * raw.shape[-2])
        noise = (centred - spent).exp()
        effect = ((step.mT @ product @ step).diagonal(dim1=-2, dim2=-1) * noise).sum(-1)
        return NoiseAllocation(effect if per_sample else effect.log().sum(-1), begin @ step, noise)

    def unpack(flat: ndarray) -> tuple[Tensor, Tensor]:
        turn, raw = torch.from_numpy(flat).to(product).split((product.numel(), first.numel()))
        return turn.reshape(product.shape), raw.reshape(first.shape)

    def value_and_gradient(flat: ndarray) -> tuple[float, ndarray]:
        with torch.enable_grad():
            parts = tuple(part.requires_grad_() for part in unpack(flat))
            loss = at(*parts).objective.sum()
            gradient = torch.autograd.grad(loss, parts)
        return loss.item(), torch.cat([part.flatten() for part in gradient]).cpu().numpy()

    start = torch.cat([torch.zeros_like(product).flatten(), first.detach().flatten()]).cpu().numpy()
    # It stops when the value no longer decreases. The value is then exact, the angles to the root of rounding.
    options = {"maxiter": iterations, "maxfun": 10 * iterations, "maxcor": 30, "gtol": 1e-12, "ftol": 0.0}
    found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", options=options)
    with torch.no_grad():
        return at(*unpack(found.x))


def _bound(lengths: Float[Tensor, "... n z"], total: Float[Tensor, "..."], per_sample: bool) -> Float[Tensor, "..."]:
    """From lengths of columns or singular values: d (Π l²)^{1/d} e^{−C/d} of each sample, or its logarithm, summed."""
    size = lengths.shape[-1]
    logarithms = math.log(size) + 2.0 / size * lengths.log().sum(-1)
    return (logarithms - total / size).exp() if per_sample else logarithms.sum(-1) - total / size


def _budget(
    budget: float | int | Float[Tensor, "..."], jacobians: Float[Tensor, "... n x z"], per_sample: bool
) -> Float[Tensor, "..."]:
    """The budget in double precision, of the leading axes or, with `per_sample`, of the samples."""
    total = torch.as_tensor(budget, dtype=torch.float64, device=jacobians.device)
    if not total.isfinite().all():
        raise AxiswiseError(f"`budget` must be finite. Got {budget!r}.")
    shape = jacobians.shape[:-2] if per_sample else jacobians.shape[:-3]
    if total.ndim and total.shape != shape:
        raise AxiswiseError(
            f"`budget` must be a number, or have the shape {tuple(shape)}. Got shape {tuple(total.shape)}."
        )
    return total.expand(shape)


def _start(
    rotation: Float[Tensor, "... n z z"] | None, jacobians: Float[Tensor, "... n x z"]
) -> Float[Tensor, "... n z z"]:
    *samples, _, size = jacobians.shape
    if rotation is None:
        return torch.eye(size, dtype=torch.float64, device=jacobians.device).expand(*samples, size, size)
    if rotation.shape != (*samples, size, size):
        raise AxiswiseError(
            f"`rotation` must have the shape {(*samples, size, size)}, a matrix for each sample. "
            f"Got {tuple(rotation.shape)}."
        )
    check_orthogonal("rotation", rotation)
    return rotation.double()


def _check(jacobians: Float[Tensor, "... n x z"]) -> None:
    if jacobians.ndim < 3 or 0 in jacobians.shape:
        raise AxiswiseError(
            f"`jacobians` must have axes (…, n, x, z), none of them empty. Got shape {tuple(jacobians.shape)}."
        )
    if not jacobians.isfinite().all():
        raise AxiswiseError("`jacobians` must be finite. Got NaN or infinity; omit what has diverged.")
