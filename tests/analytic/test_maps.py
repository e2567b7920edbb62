"""Every map against automatic differentiation, and what it promises of its columns."""

import math

import pytest
import torch

from axiswise.analytic.maps import Inversion, Polar, Rotated, Separable, Shear, SmoothMap, Stereographic
from axiswise.errors import AxiswiseError
from axiswise.geometry import jacobian


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


TURN = torch.linalg.qr(normals(2, 2, seed=3))[0]
SWAP = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
BASIS = torch.linalg.qr(normals(5, 2, seed=4))[0]
SEPARABLE = Separable(BASIS, torch.tensor([2.0, -0.5]).double(), torch.tensor([0.3, 0.0]).double())
MAPS = {
    "separable": SEPARABLE,
    "polar": Polar(turn=2.0, rate=0.5),
    "stereographic": Stereographic(),
    "inversion": Inversion(torch.tensor([4.0, 5.0]).double(), radius=3.0),
    "shear": Shear(0.7),
    "identity": Shear(0.0),
    "rotated polar": Rotated(Polar(), TURN),
    "swapped polar": Rotated(Polar(), SWAP),
    "rotated sphere": Rotated(Stereographic(), TURN),
}
POINTS = normals(3, 8, 2)


@pytest.mark.parametrize("name", MAPS)
def test_the_jacobian_is_that_of_automatic_differentiation(name):
    found = MAPS[name].jacobian(POINTS)
    assert found.shape == (*POINTS.shape[:-1], MAPS[name](POINTS).shape[-1], 2)
    torch.testing.assert_close(found, jacobian(MAPS[name], POINTS), rtol=1e-12, atol=1e-13)
    assert isinstance(MAPS[name], SmoothMap)


@pytest.mark.parametrize("name", MAPS)
def test_columns_are_orthogonal_where_the_map_says_so_and_nowhere_else(name):
    first, second = MAPS[name].jacobian(POINTS).unbind(-1)
    inner = (first * second).sum(-1).abs() / (first.norm(dim=-1) * second.norm(dim=-1))
    assert inner.max() < 1e-14 if MAPS[name].orthogonal else inner.max() > 0.1


@pytest.mark.parametrize("name", ["stereographic", "inversion", "rotated sphere"])
def test_conformal_maps_scale_all_directions_alike(name):
    columns = MAPS[name].jacobian(POINTS)
    product = columns.mT @ columns
    torch.testing.assert_close(product[..., 0, 0], product[..., 1, 1], rtol=1e-13, atol=0)


def test_the_sphere_has_radius_one_and_inversion_undoes_itself():
    torch.testing.assert_close(Stereographic()(normals(9, 4)).norm(dim=-1), torch.ones(9, dtype=torch.float64))
    inverted = MAPS["inversion"]
    torch.testing.assert_close(inverted(inverted(POINTS)), POINTS, rtol=1e-12, atol=1e-12)


def test_shear_keeps_volumes_and_polar_covers_no_point_twice():
    torch.testing.assert_close(torch.linalg.det(Shear(0.7).jacobian(POINTS)), torch.ones(3, 8, dtype=torch.float64))
    z = torch.tensor([[0.0, -30.0], [0.0, 30.0]], dtype=torch.float64)
    assert (Polar(turn=3.0)(z)[0] - Polar(turn=3.0)(z)[1]).norm() > 0.1


@pytest.mark.parametrize("rotation", [2.0 * SWAP, SWAP + 0.01, SWAP * math.nan])
def test_refuses_a_rotation_that_is_none(rotation):
    with pytest.raises(AxiswiseError, match=r"`rotation` must be orthogonal, RᵀR = I\. Got entries of RᵀR − I up to"):
        Rotated(Polar(), rotation)


def test_refuses_a_basis_that_is_not_orthonormal_or_folds():
    two = torch.ones(2).double()
    with pytest.raises(AxiswiseError, match=r"`basis` must be orthogonal, RᵀR = I\. Got entries of RᵀR − I up to 3;"):
        Separable(2.0 * BASIS, two, two)
    with pytest.raises(AxiswiseError, match=r"`scales` must not be 0 and `bends` not negative, .* Got \[1.0, 0.0\]"):
        Separable(BASIS, torch.tensor([1.0, 0.0]).double(), two)
    with pytest.raises(AxiswiseError, match=r"`bends` not negative, .* and \[-1.0, -1.0\]\."):
        Separable(BASIS, two, -two)


@pytest.mark.usefixtures("as_installed")
def test_refuses_shapes_that_do_not_fit():
    two, three = torch.ones(2).double(), torch.ones(3).double()
    with pytest.raises(
        AxiswiseError, match=r"`scales` of Separable must have axes .* z = 2 as `basis` has. Got shape \(3,\)"
    ):
        Separable(BASIS, three, two)
    with pytest.raises(AxiswiseError, match=r"`rotation` of Rotated must have axes .* and z = 5\. Got shape \(5, 2\)"):
        Rotated(Polar(), BASIS)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Polar(turn=4.0), r"`turn` must lie above 0 and not above π\. Got 4\.0\."),
        (lambda: Polar(rate=-1.0), r"`rate` must be a positive number\. Got -1\.0\."),
        (lambda: Inversion(torch.zeros(2), radius=0.0), r"`radius` must be a positive number\. Got 0\.0\."),
        (lambda: Shear(math.nan), r"`bend` must be finite\. Got nan\."),
    ],
)
def test_refuses_bad_parameters(make, message):
    with pytest.raises(AxiswiseError, match=message):
        make()
