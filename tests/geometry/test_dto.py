"""Distance to orthogonality against brute force, the paper's integer program, random rotations and closed forms."""

import itertools
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch

from axiswise.errors import AxiswiseError
from axiswise.geometry import dto


def normals(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def orthonormal(rows: int, columns: int) -> torch.Tensor:
    return torch.linalg.qr(normals(rows, columns))[0]


def signed_permutations(size: int) -> np.ndarray:
    matrices = []
    for order in itertools.permutations(range(size)):
        for signs in itertools.product([-1.0, 1.0], repeat=size):
            matrix = np.zeros((size, size))
            matrix[np.arange(size), order] = signs
            matrices.append(matrix)
    return np.array(matrices)


def by_brute_force(matrix: np.ndarray) -> float:
    candidates = signed_permutations(len(matrix))
    nearest = candidates[np.abs(matrix - candidates).sum((1, 2)).argmin()]
    return float(np.linalg.norm(matrix - nearest))


def by_integer_program(matrix: np.ndarray) -> float:
    """Problem (S75): binary P⁺ and P⁻ and a bound D on |V − P⁺ + P⁻|, in one vector of 3 d² variables."""
    size = len(matrix)
    cells = size * size
    identity, zero = np.eye(cells), np.zeros((size, cells))
    sums = np.concatenate([np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))])
    constraints = [
        scipy.optimize.LinearConstraint(np.hstack([identity, -identity, -identity]), ub=matrix.ravel()),
        scipy.optimize.LinearConstraint(np.hstack([-identity, identity, -identity]), ub=-matrix.ravel()),
        scipy.optimize.LinearConstraint(np.hstack([sums, sums, np.concatenate([zero, zero])]), lb=1, ub=1),
    ]
    solved = scipy.optimize.milp(
        c=np.repeat([0.0, 0.0, 1.0], cells),
        constraints=constraints,
        integrality=np.repeat([1, 1, 0], cells),
        bounds=scipy.optimize.Bounds(0, np.repeat([1.0, 1.0, np.inf], cells)),
    )
    plus, minus, _ = solved.x.reshape(3, size, size)
    return float(np.linalg.norm(matrix - np.round(plus - minus)))


@pytest.mark.parametrize("latents", [1, 2, 5, 7])
def test_orthogonal_columns_are_at_no_distance(latents):
    columns = orthonormal(30, latents)[:, torch.randperm(latents, generator=torch.Generator().manual_seed(0))]
    lengths = torch.arange(1, latents + 1) * torch.tensor([1.0, -1.0]).repeat(latents)[:latents]
    found = dto((columns * lengths).expand(4, 30, latents))
    assert found.score == pytest.approx(0.0, abs=1e-7)  # the root of rounding
    assert found.active == latents


@pytest.mark.parametrize("angle", [0.0, 0.1, math.pi / 4, 1.0, 2.0])
def test_a_rotation_of_two_latents_in_closed_form(angle):
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]], dtype=torch.float64)
    jacobian = orthonormal(9, 2) @ torch.diag(torch.tensor([3.0, 1.0], dtype=torch.float64)) @ turn
    nearest = abs((angle + math.pi / 4) % (math.pi / 2) - math.pi / 4)  # angle to the nearest axis
    assert dto(jacobian[None]).score == pytest.approx(2 * math.sqrt(2) * math.sin(nearest / 2), abs=1e-7)


@pytest.mark.parametrize("latents", [2, 3, 4])
def test_agrees_with_all_signed_permutations(latents):
    jacobians = normals(20, 12, latents)
    expected = [by_brute_force(np.linalg.svd(jacobian)[2].T) for jacobian in jacobians.numpy()]
    assert dto(jacobians).score == pytest.approx(np.mean(expected), abs=1e-10)


@pytest.mark.parametrize("latents", [3, 5, 6])
def test_agrees_with_the_integer_program(latents):
    jacobians = normals(4, 12, latents)
    for jacobian in jacobians:
        expected = by_integer_program(np.linalg.svd(jacobian.numpy())[2].T)
        assert dto(jacobian[None]).score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_eigenvectors_of_the_product_are_the_singular_vectors(dtype):
    scales = torch.logspace(0, -4, 5)  # a condition number of 1e4, its square of 1e8
    jacobians = (orthonormal(40, 5) @ torch.diag(scales.double()) @ orthonormal(5, 5)).to(dtype)[None]
    values, right = torch.linalg.svd(jacobians[0].double(), full_matrices=False)[1:]
    found = dto(jacobians)
    assert found.score == pytest.approx(by_brute_force(right.T.numpy()), abs=1e-8)
    assert found.gap == pytest.approx((-values.diff().max() / values[0]).item(), abs=1e-8)


@pytest.mark.parametrize(("latents", "mean", "deviation"), [(2, 0.55, 0.31), (5, 1.63, 0.19), (6, 1.91, 0.17)])
def test_random_rotations_give_the_published_chance(latents, mean, deviation):
    samples = 4000
    rotations = scipy.stats.ortho_group(latents, seed=0).rvs(samples)
    jacobians = torch.from_numpy(np.arange(1.0, latents + 1)[:, None] * rotations)  # J = Σ Vᵀ
    distances = torch.stack([dto(jacobian[None]).score for jacobian in jacobians[:400]])
    assert dto(jacobians).score == pytest.approx(mean, abs=0.005 + 4 * deviation / math.sqrt(samples))
    assert distances.std() == pytest.approx(deviation, abs=0.005 + 4 * deviation / math.sqrt(2 * 400))


def with_two_dead_latents(angle: float) -> torch.Tensor:
    """Three orthogonal columns, and two of no length whose singular vectors happen to be turned."""
    columns = orthonormal(20, 5) * torch.tensor([3.0, 2.0, 1.0, 2e-6, 1e-6])
    turn = torch.eye(5, dtype=torch.float64)
    turn[3:, 3:] = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    return (columns @ turn).expand(6, 20, 5)


def test_dead_latents_spoil_the_distance_unless_left_out():
    jacobians = with_two_dead_latents(0.76)
    variance = torch.tensor([0.1, 0.2, 0.7, 0.999, 1.0]).double().expand(6, 5)
    whole = dto(jacobians, variance, latents="all")
    assert whole.score == pytest.approx(1.05, abs=0.01)
    assert whole.active == 5
    assert whole.gap < 1e-6  # the warning
    alive = dto(jacobians, variance)
    assert alive.score == pytest.approx(0.0, abs=1e-7)
    assert alive.active == 3
    assert alive.gap == pytest.approx(1 / 3, abs=1e-9)
    assert dto(jacobians).score == whole.score


def test_activity_is_decided_by_the_mean_variance_and_its_threshold():
    jacobians = normals(2, 9, 3)
    variance = torch.tensor([[0.1, 0.5, 0.9], [0.3, 1.0, 0.9]]).double()  # means 0.2, 0.75, 0.9
    assert [dto(jacobians, variance, active_below=below).active.item() for below in (0.1, 0.5, 0.8, 1.0)] == [
        0,
        1,
        2,
        3,
    ]
    assert dto(jacobians, variance).score == dto(jacobians[..., :2]).score


def test_members_have_active_sets_of_their_own():
    jacobians = normals(2, 3, 6, 10, 4)
    variance = (
        torch.rand(2, 3, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5)).expand(2, 3, 6, 4) + 0.3
    )
    together = dto(jacobians, variance)
    assert together.active.unique().numel() > 1
    for index in np.ndindex(2, 3):
        for whole, alone in zip(together, dto(jacobians[index], variance[index]), strict=True):
            assert whole[index] == alone or (whole[index].isnan() and alone.isnan())


@pytest.mark.gpu
def test_devices_agree():
    jacobians, variance = normals(3, 6, 20, 4), torch.full((3, 6, 4), 0.5, dtype=torch.float64)
    variance[1, :, 2] = 1.0
    for there, here in zip(dto(jacobians.cuda(), variance.cuda()), dto(jacobians, variance), strict=True):
        assert there.is_cuda
        torch.testing.assert_close(there.cpu(), here, rtol=1e-10, atol=1e-10)


def test_no_active_latents_give_no_score():
    found = dto(normals(3, 8, 2), torch.ones(3, 2, dtype=torch.float64))
    assert found.score.isnan()
    assert found.active == 0
    assert found.gap.isnan()


def test_a_member_that_diverged_is_alone_in_it():
    jacobians = normals(3, 4, 8, 2)
    jacobians[1, 2, 0, 0] = torch.nan
    assert dto(jacobians).score.isnan().tolist() == [False, True, False]


def test_a_decoder_that_ignores_its_latents_has_no_gap():
    assert dto(torch.zeros(3, 8, 4)).gap == 0.0


def test_permuting_and_flipping_latents_changes_nothing_and_rotating_does():
    jacobians = (
        orthonormal(12, 4)
        @ torch.diag(torch.arange(1.0, 5).double())
        @ torch.linalg.matrix_exp(0.2 * (normals(5, 4, 4) - normals(5, 4, 4).mT))
    )
    score = dto(jacobians).score.item()
    assert dto(jacobians[..., [2, 0, 3, 1]] * torch.tensor([1, -1, -1, 1])).score == pytest.approx(score, abs=1e-9)
    assert dto(7.0 * jacobians).score == pytest.approx(score, abs=1e-9)
    assert abs(dto(jacobians @ orthonormal(4, 4)).score - score) > 0.1


@pytest.mark.usefixtures("as_installed")
def test_refuses_another_choice_of_latents():
    with pytest.raises(AxiswiseError, match=r'`latents` must be "active" or "all". Got \'some\'.'):
        dto(normals(3, 8, 2), latents="some")  # pyright: ignore[reportArgumentType]


@pytest.mark.usefixtures("as_installed")
def test_refuses_variances_of_other_samples():
    with pytest.raises(
        AxiswiseError, match=r"`variance` must have axes .* n = 3 as `jacobians` has. Got shape \(4, 2\)"
    ):
        dto(normals(3, 8, 2), torch.ones(4, 2))


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize("shape", [(8, 2), (0, 8, 2), (3, 8, 0)])
def test_refuses_jacobians_without_axes(shape):
    with pytest.raises(AxiswiseError, match=r"`jacobians` must have axes \(…, n, x, z\).* Got shape"):
        dto(torch.zeros(shape))


@pytest.mark.slow
def test_agrees_with_the_integer_program_on_five_hundred_rotations():
    """S75, on random orthogonal matrices of size 2 to 10; J = Σ Vᵀ has V for its right singular vectors."""
    generator = np.random.default_rng(0)
    worst = 0.0
    for number in range(500):
        size = 2 + number % 9
        rotation = scipy.stats.ortho_group.rvs(size, random_state=generator)
        slopes = torch.from_numpy(np.arange(size, 0.0, -1.0)[:, None] * rotation.T)
        worst = max(worst, abs(dto(slopes[None]).score.item() - by_integer_program(rotation)))
    assert worst < 1e-5
