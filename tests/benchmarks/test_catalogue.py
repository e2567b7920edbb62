"""How rows of the catalogue of networks are found: side by side, and in spite of processes that are lost."""

from multiprocessing import get_context

import pytest
import torch

from axiswise.errors import AxiswiseError
from axiswise_benchmarks.catalogue import Row, _measured, arriving, rows

CPU = torch.device("cpu")


@pytest.mark.slow
def test_processes_find_one_row_each():
    found = list(rows(CPU, only=("mnist", "dense layer norm"), processes=2))
    assert {row.network for row in found} == {"mnist", "dense layer norm"}
    assert all(row.cpu is not None and row.cpu < 1e-13 and row.cohort is None for row in found)


@pytest.mark.slow
def test_a_process_that_is_lost_holds_up_no_other(capfd):
    context = get_context("spawn")
    ready, turn, found = context.Barrier(2), context.Lock(), context.Queue()
    shared = (CPU, None, 2, False, ready, turn, found)
    started = [context.Process(target=_measured, args=(name, *shared)) for name in ("mnist", "no such network")]
    for process in started:
        process.start()
    assert list(arriving(started, ready, found)) == [Row("mnist")]
    assert started[1].exitcode == 1  # for which the other would have waited forever
    assert "StopIteration" in capfd.readouterr().err


def test_unknown_networks_are_refused_before_anything_starts():
    with pytest.raises(AxiswiseError, match=r"Expected networks of the catalogue \(relu, .*\)\. Got lenet\."):
        next(rows(CPU, only=("lenet",), processes=2))
