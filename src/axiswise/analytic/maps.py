r"""Smooth maps from latents to observations whose Jacobians are known: ground truth for geometry.

Each is a frozen description that is called like a decoder, (…, z) to (…, x). It has its `jacobian` in closed form, and
`orthogonal` states whether the columns of the Jacobian are orthogonal everywhere.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from axiswise._arguments import check_fields
from axiswise.analytic._checks import check_orthogonal
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Tensor


@runtime_checkable
class SmoothMap(Protocol):
    """A map with a known Jacobian.

    Example:
        >>> isinstance(Polar(), SmoothMap), Polar().orthogonal
        (True, True)
    """

    @property
    def orthogonal(self) -> bool:
        """Whether the columns of the Jacobian are orthogonal at every point."""
        ...

    def __call__(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x"]:
        """The observations at points z."""
        ...

    def jacobian(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x z"]:
        """The Jacobians at points z."""
        ...


@dataclass(frozen=True)
class Separable:
    r"""Each latent bent separately, then rotated into the space of observations.

    .. math:: f(z) = Q \left(g_1(z_1), \dots, g_d(z_d)\right)^\top, \qquad g_i(z) = a_i (z + b_i z^3), \qquad
        Q^\top Q = I

    Columns :math:`a_i (1 + 3 b_i z_i^2)\, q_i` are orthogonal, and the length of each depends on its own latent alone:
    independent latents become independent components of the observation.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 2: a case
        in which all its statements hold.

    Arguments:
        basis: Q, x × z, with orthonormal columns.
        scales: Slopes a at 0, one for each latent, not 0.
        bends: Weights b ≥ 0 of the cubes; 0 is linear.

    Example:
        >>> bent = Separable(torch.eye(3, 2), torch.tensor([2.0, 1.0]), torch.tensor([0.0, 1.0]))
        >>> bent(torch.tensor([1.0, 2.0]))
        tensor([ 2., 10.,  0.])
    """

    basis: Float[Tensor, "x z"]
    scales: Float[Tensor, " z"]
    bends: Float[Tensor, " z"]

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.scales.shape == self.bends.shape == self.basis.shape[1:]:
            raise AxiswiseError(
                f"`scales` and `bends` must have one entry for each column of `basis`, {tuple(self.basis.shape[1:])}. "
                f"Got {tuple(self.scales.shape)} and {tuple(self.bends.shape)}."
            )
        check_orthogonal("basis", self.basis, square=False)
        if not (self.scales != 0.0).all() or not (self.bends >= 0.0).all():
            raise AxiswiseError(
                "`scales` must not be 0 and `bends` not negative, or the map is not injective. "
                f"Got {self.scales.tolist()} and {self.bends.tolist()}."
            )

    @property
    def orthogonal(self) -> bool:
        """Always."""
        return True

    def __call__(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x"]:
        """The formula above."""
        return (self.scales * (z + self.bends * z**3)) @ self.basis.mT

    def jacobian(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x z"]:
        """Columns of the basis, each times the slope of its latent."""
        return self.basis * (self.scales * (1.0 + 3.0 * self.bends * z.square()))[..., None, :]


@dataclass(frozen=True)
class Polar:
    r"""Two latents as the logarithm of a radius and as an angle.

    .. math:: f(z) = e^{r z_1} \left(\cos a(z_2), \sin a(z_2)\right), \qquad a(z) = t \tanh z

    Columns :math:`r e^{r z_1} (\cos a, \sin a)` and :math:`e^{r z_1} a'(z_2) (-\sin a, \cos a)` are orthogonal, but the
    length of the second grows with the first latent, :math:`\partial \log s_2 / \partial z_1 = r`: orthogonal columns
    alone do not make components independent.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, theorem 2: the
        counterexample to "all other probability factors remain constant".

    Arguments:
        turn: Half of the covered angle t, 0 < t ≤ π, so that the map is injective.
        rate: Growth r of the radius, positive.

    Example:
        >>> Polar(turn=1.0)(torch.zeros(2))
        tensor([1., 0.])
    """

    turn: float = 3.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.turn <= math.pi:
            raise AxiswiseError(f"`turn` must lie above 0 and not above π. Got {self.turn!r}.")
        if not 0.0 < self.rate < math.inf:
            raise AxiswiseError(f"`rate` must be a positive number. Got {self.rate!r}.")

    @property
    def orthogonal(self) -> bool:
        """Always."""
        return True

    def __call__(self, z: Float[Tensor, "... 2"]) -> Float[Tensor, "... 2"]:
        """The formula above."""
        angle = self.turn * z[..., 1].tanh()
        return (self.rate * z[..., :1]).exp() * torch.stack([angle.cos(), angle.sin()], -1)

    def jacobian(self, z: Float[Tensor, "... 2"]) -> Float[Tensor, "... 2 2"]:
        """The two columns above."""
        outward = self(z)
        around = torch.stack([-outward[..., 1], outward[..., 0]], -1)
        slope = self.turn * (1.0 - z[..., 1].tanh().square())
        return torch.stack([self.rate * outward, slope[..., None] * around], -1)


@dataclass(frozen=True)
class Stereographic:
    r"""The plane of latents mapped onto the unit sphere: conformal, so no direction is preferred anywhere.

    .. math:: f(z) = \frac{(2 z,\; \lVert z \rVert^2 - 1)}{1 + \lVert z \rVert^2}, \qquad
        J^\top J = \left( \frac{2}{1 + \lVert z \rVert^2} \right)^2 I

    Columns are orthogonal and of equal length at every point, also after any rotation of the latents: the local
    geometry does not distinguish the axes.

    References:
        Needham, *Visual complex analysis*, 1997, chapter 3 (the Riemann sphere).

    Example:
        >>> Stereographic()(torch.tensor([1.0, 0.0]))
        tensor([1., 0., 0.])
    """

    @property
    def orthogonal(self) -> bool:
        """Always."""
        return True

    def __call__(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x"]:
        """The formula above."""
        square = z.square().sum(-1, keepdim=True)
        return torch.cat([2.0 * z, square - 1.0], -1) / (1.0 + square)

    def jacobian(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x z"]:
        """2 (I − 2 z zᵀ / (1 + ‖z‖²)) / (1 + ‖z‖²), and below it 4 zᵀ / (1 + ‖z‖²)²."""
        whole = (1.0 + z.square().sum(-1))[..., None, None]
        identity = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        upper = 2.0 / whole * (identity - 2.0 * z[..., :, None] * z[..., None, :] / whole)
        return torch.cat([upper, 4.0 * z[..., None, :] / whole.square()], -2)


@dataclass(frozen=True)
class Inversion:
    r"""The inversion at a sphere, which with rotations, shifts and scales generates all Möbius transformations.

    .. math:: f(z) = a + r^2 \frac{z - a}{\lVert z - a \rVert^2}, \qquad
        J = \frac{r^2}{\lVert z - a \rVert^2} \left( I - 2 u u^\top \right),\; u = \frac{z - a}{\lVert z - a \rVert}

    Conformal like `Stereographic`, within the space of latents itself. By Liouville's theorem there are no others in
    three dimensions and more.

    References:
        Needham, *Visual complex analysis*, 1997, chapter 3 (inversion in a circle and in a sphere).

    Arguments:
        pole: The centre a, which has no image: choose it away from all latents.
        radius: Radius r of the sphere, whose points are fixed.

    Example:
        >>> Inversion(torch.tensor([0.0, 0.0]))(torch.tensor([2.0, 0.0]))
        tensor([0.5000, 0.0000])
    """

    pole: Float[Tensor, " z"]
    radius: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0.0 < self.radius < math.inf:
            raise AxiswiseError(f"`radius` must be a positive number. Got {self.radius!r}.")

    @property
    def orthogonal(self) -> bool:
        """Always."""
        return True

    def __call__(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z"]:
        """The formula above; infinite at the pole."""
        away = z - self.pole
        return self.pole + self.radius**2 * away / away.square().sum(-1, keepdim=True)

    def jacobian(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... z z"]:
        """A reflection, scaled."""
        away = z - self.pole
        square = away.square().sum(-1)[..., None, None]
        identity = torch.eye(z.shape[-1], dtype=z.dtype, device=z.device)
        return self.radius**2 / square * (identity - 2.0 * away[..., :, None] * away[..., None, :] / square)


@dataclass(frozen=True)
class Shear:
    r"""The plane bent into a banana: it preserves volumes but not right angles.

    .. math:: f(z) = (z_1,\; z_2 + b z_1^2), \qquad J = \begin{pmatrix} 1 & 0 \\ 2 b z_1 & 1 \end{pmatrix}

    The determinant is 1, so the density of an observation is that of its latents. Columns are orthogonal only on the
    line :math:`z_1 = 0`.

    References:
        Haario, Saksman and Tamminen, *Adaptive proposal distribution for random walk Metropolis algorithm*,
        Computational Statistics 14, 1999 (the twisted normal); here as a map whose columns are not orthogonal.

    Arguments:
        bend: Curvature b.

    Example:
        >>> Shear(bend=0.5)(torch.tensor([2.0, 1.0]))
        tensor([2., 3.])
    """

    bend: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        if not math.isfinite(self.bend):
            raise AxiswiseError(f"`bend` must be finite. Got {self.bend!r}.")

    @property
    def orthogonal(self) -> bool:
        """Only if it is the identity."""
        return self.bend == 0.0

    def __call__(self, z: Float[Tensor, "... 2"]) -> Float[Tensor, "... 2"]:
        """The formula above."""
        return torch.stack([z[..., 0], z[..., 1] + self.bend * z[..., 0].square()], -1)

    def jacobian(self, z: Float[Tensor, "... 2"]) -> Float[Tensor, "... 2 2"]:
        """The matrix above."""
        one, zero = torch.ones_like(z[..., 0]), torch.zeros_like(z[..., 0])
        return torch.stack([torch.stack([one, zero], -1), torch.stack([2.0 * self.bend * z[..., 0], one], -1)], -2)


@dataclass(frozen=True)
class Rotated:
    r"""Another map after a rotation of the latents: :math:`f = g \circ R`, with the Jacobian :math:`J_g(R z)\, R`.

    Under a rotation-invariant prior f and g have the same push-forward, so no model can identify R: it finds the
    coordinates :math:`R z` in which columns are orthogonal.

    References:
        Allen, *Unpicking data at the seams: VAEs, disentanglement and independent components*, 2024, section 3.2.3.

    Arguments:
        map: The map g.
        rotation: Orthogonal R.

    Example:
        >>> swapped = Rotated(Shear(bend=0.5), torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> swapped(torch.tensor([1.0, 2.0]))
        tensor([2., 3.])
    """

    map: SmoothMap
    rotation: Float[Tensor, "z z"]

    def __post_init__(self) -> None:
        check_fields(self)
        check_orthogonal("rotation", self.rotation)

    @property
    def orthogonal(self) -> bool:
        """True if the map is conformal, or its columns are orthogonal and R is a signed permutation."""
        permutes = bool(((self.rotation == 0.0) | (self.rotation.abs() == 1.0)).all())
        return isinstance(self.map, Stereographic | Inversion) or (self.map.orthogonal and permutes)

    def __call__(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x"]:
        """The map at R z."""
        return self.map(z @ self.rotation.mT)

    def jacobian(self, z: Float[Tensor, "... z"]) -> Float[Tensor, "... x z"]:
        """By the chain rule."""
        return self.map.jacobian(z @ self.rotation.mT) @ self.rotation
