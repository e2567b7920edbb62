import io
import os
from collections.abc import Iterator

import jaxtyping
import numpy as np
import pytest
import torch
from hypothesis import settings

# A busy machine may take any time: speed is measured by the benchmarks.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Hides GPUs from all tests but those of a GPU: training would take one where no device is named."""
    chosen = config.option.markexpr
    if "gpu" not in chosen or "not gpu" in chosen:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture(autouse=True, scope="session")
def _one_thread_a_worker():
    """The tests run in several processes: one thread each keeps them from fighting over the cores."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def kernels() -> Iterator[torch.device]:
    """The device on which Triton's kernels run: a GPU, or the CPU, where its interpreter does what the GPU would.

    The interpreter also sees what a GPU keeps to itself: addresses outside of tensors, integers that overflow, and
    results that no program writes.
    """
    if "TRITON_INTERPRET" not in os.environ:
        yield torch.device("cuda")
        return
    from triton.runtime import interpreter

    from axiswise.numerics import _convolution as convolution

    spans: list[tuple[int, int]] = []
    builder, launched = interpreter.InterpreterBuilder, interpreter.InterpretedFunction.run

    def run(self, *arguments, **named):
        tensors = [each for each in arguments if isinstance(each, torch.Tensor) and each.numel()]
        reach = [sum((n - 1) * step for n, step in zip(each.shape, each.stride(), strict=True)) for each in tensors]
        spans[:] = [
            (t.data_ptr(), t.data_ptr() + last * t.element_size()) for t, last in zip(tensors, reach, strict=True)
        ]
        return launched(self, *arguments, **named)

    def inside(access, place):
        def checked(self, pointers, *rest):
            used = pointers.data[np.broadcast_to(rest[place].data, pointers.data.shape)]
            assert np.logical_or.reduce([(used >= first) & (used <= last) for first, last in spans]).all()
            return access(self, pointers, *rest)

        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_has_kernel", lambda image: image.dtype != torch.float64)
        patch.setattr(interpreter.InterpretedFunction, "run", run)
        patch.setattr(builder, "create_masked_load", inside(builder.create_masked_load, 0))
        patch.setattr(builder, "create_masked_store", inside(builder.create_masked_store, 1))
        patch.setattr(interpreter.interpreter_builder, "options", interpreter.InterpreterOptions(debug=True))
        torch.use_deterministic_algorithms(True)  # which has new tensors hold NaN
        yield torch.device("cpu")
        torch.use_deterministic_algorithms(False)


@pytest.fixture
def as_installed() -> Iterator[None]:
    """Turns the test run's signature checks off, so that a function meets bad arguments as it does at a user's."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def python_object() -> bytes:
    """A numpy file that claims to hold Python objects; what it holds would open the file "exploded" if it were run."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "|O", "fortran_order": False, "shape": (1,)})
    return file.getvalue() + b"cbuiltins\nopen\n(Vexploded\nVw\ntR."
