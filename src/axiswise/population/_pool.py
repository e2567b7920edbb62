"""What lets members of several runs of a study train together: one dataset made of theirs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import torch

from axiswise.data import FactorDataset
from axiswise.shapes import Float, Int, Tensor


def joined(datasets: Sequence[FactorDataset]) -> FactorDataset:
    """One dataset for the members of a cohort, each of which sees its own; all have as many rows of one shape.

    Arguments:
        datasets: The dataset of each member. Of rows ``(p, n)`` it renders those of each member from these.

    Example:
        >>> from axiswise.data import arrays
        >>> first, second = arrays(torch.zeros(4, 2)), arrays(torch.ones(4, 2))
        >>> joined([first, first, second]).x(torch.zeros(3, 1, dtype=torch.int64))[:, 0].tolist()
        [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
        >>> joined([first, first]) is first
        True
    """
    parts = [(same[0], len(same)) for _, own in groupby(datasets, key=id) if (same := list(own))]
    if len(parts) == 1:
        return datasets[0]
    counts = [count for _, count in parts]

    def render(tensors: Mapping[str, Tensor], index: Int[Tensor, "p n"]) -> Float[Tensor, "p n ..."]:
        blocks = zip(parts, index.split(counts), strict=True)
        return torch.cat([dataset.x(rows) for (dataset, _), rows in blocks])

    return replace(datasets[0], render=render, rows=None, transition=None)
