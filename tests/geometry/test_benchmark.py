"""The benchmark: both ways find the same, and the limits that do not depend on who else uses the machine."""

import numpy as np
import pytest
import scipy.stats
import torch

from axiswise.distributions import Bernoulli
from axiswise_benchmarks.geometry import assignment_seconds, compare, nearest_by_integer_program


def test_both_ways_find_the_same():
    weight = torch.randn(3, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    decoders = [(dtype, lambda z: (z.tanh() @ weight.to(z)).sigmoid()) for dtype in (torch.float64, torch.float32)]
    double, single = compare(decoders, Bernoulli(), 3, points=12, loop_points=5, reverse_points=2)
    assert (double.dtype, single.dtype) == ("float64", "float32")
    assert max(double.dto_difference, double.law_difference) < 1e-10
    assert max(single.dto_difference, single.law_difference) < 1e-5
    assert double.dto > 0.1
    assert double.ratio > 0
    assert double.ratio_to_double == pytest.approx(double.loop_seconds / double.seconds)
    assert single.ratio_to_double == pytest.approx(double.loop_seconds / single.seconds)


def test_ten_thousand_assignments_take_less_than_a_second():
    assert min(assignment_seconds() for _ in range(3)) < 1.0


def test_the_integer_program_finds_the_nearest_of_a_permutation_turned_a_little():
    turned = scipy.stats.ortho_group.rvs(4, random_state=0)
    signed = np.diag([1.0, -1.0, 1.0, -1.0])[[2, 0, 3, 1]]
    near = signed @ scipy.linalg.expm(0.01 * (turned - turned.T))
    assert nearest_by_integer_program(near) == pytest.approx(np.linalg.norm(near - signed), abs=1e-10)
