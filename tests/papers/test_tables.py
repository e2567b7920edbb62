"""Values in the rows of studies, and differences of them: pairs match by seed, whatever the order of rows."""

import math
import random
from operator import sub
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from axiswise.errors import AxiswiseError
from axiswise_papers._tables import by_settings, combined, contrast, difference, rows_of, values
from axiswise_papers.allen2024.claims import path_distances
from axiswise_papers.ledger import CLAIMS

RESULTS = Path(__file__).parents[2] / "results"
COMMITTED = {
    f"{claim.id}, {part.study}": (part, RESULTS / part.study.replace(".", "/"))
    for claim in CLAIMS
    for part in claim.trained
    if (RESULTS / part.study.replace(".", "/")).is_dir()
}


def row(seed, value, run="a", beta=1.0):
    return {"run": run, "measure": "mig", "seed": seed, "value": value, "detail": {}, "hyperparameters": {"beta": beta}}


@pytest.mark.parametrize("name", COMMITTED)
def test_the_order_of_rows_is_irrelevant_to_every_judge(name):
    """Bit by bit, on the committed records."""
    part, folder = COMMITTED[name]
    rows = rows_of(folder, part.runs)
    shuffled = {run: random.Random(run).sample(own, len(own)) for run, own in rows.items()}
    assert shuffled != rows
    assert repr(list(part.judge(shuffled))) == repr(list(part.judge(rows)))  # NaN equals itself in a text


def test_a_seed_that_one_run_lacks_does_not_shift_the_pairs():
    rows = {
        "a": [row(seed, float(seed)) for seed in range(6)],
        "b": [row(seed, seed - 0.5) for seed in (5, 0, 3, 1, 4)],
    }
    a, b = (values(rows, run, "mig") for run in rows)
    found = difference(a, b)
    assert (found.estimate, found.low, found.high, found.known, found.left_out) == (0.5, 0.5, 0.5, 5, 1)
    for first, second in ((a, b), (b, a)):
        pairs = combined(sub, first, second)
        assert [seed for seed, value in pairs.items() if math.isnan(value)] == [2]
        assert len(pairs) == 6


def test_two_members_of_a_seed_are_refused_unless_told_apart():
    rows = {"sweep": [row(seed, beta, beta=beta) for beta in (1.0, 4.0) for seed in (0, 1)]}
    assert values(rows, "sweep", "mig", beta=4.0) == {0: 4.0, 1: 4.0}
    assert by_settings(rows["sweep"], "mig", ["beta"]) == {(1.0,): {0: 1.0, 1: 1.0}, (4.0,): {0: 4.0, 1: 4.0}}
    with pytest.raises(AxiswiseError, match=r"Got two of 'mig' in the run 'sweep' with seed 0; choose rows by β"):
        values(rows, "sweep", "mig")
    with pytest.raises(AxiswiseError, match=r"Got two of 'mig' with seed 0 at {}; name in `by`"):
        by_settings(rows["sweep"], "mig", [])


def test_paths_are_compared_by_steps_and_seed():
    def path(numbers):
        return [{"steps": steps, "seed": seed, "detail": {"numbers": own}} for (steps, seed), own in numbers.items()]

    first = path({(10, 0): [1.0], (20, 0): [2.0], (10, 1): [3.0]})
    second = path({(10, 1): [4.0], (20, 0): None, (10, 0): [2.0], (10, 2): [5.0]})
    found = path_distances({"a": first, "b": second}, "a", "b")
    assert list(found) == [10, 20]
    assert found[10].keys() == {0, 1, 2}
    assert (found[10][0], found[10][1]) == (0.5, 0.25)
    assert math.isnan(found[10][2])  # only one of them has it
    assert math.isnan(found[20][0])  # one of them diverged
    with pytest.raises(AxiswiseError, match=r"Got two of 'b' with seed \(10, 1\)"):
        path_distances({"a": first, "b": [*second, second[0]]}, "a", "b")


def test_a_contrast_of_one_and_two_groups_is_that_of_known_tests():
    first, second = [3.0, 5.0, 4.0, 8.0], [1.0, 2.0, math.nan, 0.0]
    alone, one = contrast([(1.0, first)], level=0.9), ttest_1samp(first, 0.0).confidence_interval(0.9)
    assert (alone.low, alone.high) == pytest.approx((one.low, one.high), abs=1e-13)
    welch = ttest_ind(first, second, equal_var=False, nan_policy="omit").confidence_interval(0.95)
    both = contrast([(1.0, first), (-1.0, second)])
    assert (both.low, both.high) == pytest.approx((float(welch.low), float(welch.high)), abs=1e-13)
    assert (both.known, both.left_out) == (7, 1)


def test_a_contrast_of_four_groups_covers_its_target():
    generator = np.random.default_rng(0)
    shares, deviations, sizes = (0.5, 0.5, -0.5, -0.5), (1.0, 3.0, 1.0, 0.5), (5, 5, 10, 10)
    missed = 0
    for _ in range(2000):
        groups = [deviation * generator.normal(size=size) for deviation, size in zip(deviations, sizes, strict=True)]
        found = contrast([(share, group.tolist()) for share, group in zip(shares, groups, strict=True)], level=0.9)
        missed += not found.low <= 0.0 <= found.high
    assert 0.08 < missed / 2000 < 0.12  # 0.1, with a standard error of 0.007


def test_a_contrast_needs_two_values_of_each_group():
    assert contrast([]).method == "undefined: a group has fewer than two values"
    assert math.isnan(contrast([(1.0, [1.0, 2.0]), (-1.0, [3.0])]).low)
