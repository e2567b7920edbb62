"""Definition 1 and the angle of a turned square, against values worked out by hand."""

import math

import pytest
import torch

from axiswise_papers.rolinek2019.measures import axis_angle, polarized_regime


def test_conditions_are_taken_over_the_right_latents():
    wanted = {
        "mean_square": (1.2, 0.9, 0.03, 0.01),
        "variance": (0.02, 0.05, 0.97, 1.08),
        "columns": (8.0, 1.0, 0.6, 0.4),
    }
    signs = torch.tensor([1.0, -1.0]).double()
    wanted = {name: torch.tensor(values, dtype=torch.float64) for name, values in wanted.items()}
    codes = signs[:, None] * wanted["mean_square"].sqrt()
    variance = wanted["variance"].expand(2, 4)
    jacobian = torch.diag(wanted["columns"].sqrt())
    gram = (jacobian.T @ jacobian).expand(2, 4, 4) + 0.1 * (torch.ones(4, 4) - torch.eye(4))  # only the diagonal counts
    found = polarized_regime(codes, variance, gram)
    assert found.active == 2
    assert [round(part.item(), 9) for part in found[2:]] == [0.03, 0.08, 0.05, 0.1]
    assert found.score.item() == pytest.approx(0.1)
    all_active = polarized_regime(codes, variance, gram, active_below=2.0)
    assert [all_active.active.item(), all_active.passive_share.item()] == [4, 0.0]
    assert all_active.active_variance.item() == pytest.approx(1.08)
    members = polarized_regime(*(torch.stack([part, part]) for part in (codes, variance, gram)))
    assert members.score.tolist() == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize("degrees", [0.0, 10.0, 45.0, 80.0, 200.0])
def test_the_angle_of_a_turned_square_is_that_to_the_nearest_side(degrees):
    square = torch.rand(500, 2, generator=torch.Generator().manual_seed(0)).double()
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    turn = torch.tensor([[cosine, -sine], [sine, cosine]], dtype=torch.float64)
    found = axis_angle(3.0 * square @ turn.T * torch.tensor([1.0, -0.5]) + 7.0, square)
    expected = min(degrees % 90, 90 - degrees % 90)
    assert found.angles.tolist() == pytest.approx([expected, expected], abs=1e-9)
    assert found.score.item() == pytest.approx(expected, abs=1e-9)
