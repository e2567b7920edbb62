"""What the quickstart's introduction says of its data, read off the data."""

import pytest
import torch

from axiswise.geometry import dto
from axiswise.studies.quickstart import bent_square


@pytest.mark.parametrize(("bend", "expected"), [("along the axes", 0.11), ("askew", 0.75)])
def test_principal_directions_of_the_bent_squares_are_the_axes_or_are_not(bend, expected):
    """Jacobians are fitted to the points near each of a few hundred: x − x₀ ≈ J (v − v₀)."""
    dataset = bent_square(bend)
    index = torch.arange(len(dataset))
    square, x = dataset.factors(index).double(), dataset.x(index).double()
    centres = square[:300]
    near = torch.cdist(centres, square).topk(40, largest=False).indices
    shifts, moved = square[near] - centres[:, None], x[near] - x[:300, None]
    jacobians = torch.linalg.lstsq(shifts, moved).solution.mT
    assert dto(jacobians).score.item() == pytest.approx(expected, abs=0.02)  # 300 angles: ± 0.01 of their mean
