"""Compiles all kernels for an H200, which takes no GPU, and raises where that fails or a tile does not fit."""

import torch
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.jit import JITFunction

from axiswise.data._triton_shapes3d import compose
from axiswise.numerics._kernels import triton_convolution as kernels
from axiswise.numerics._kernels.triton_adam import adam

SHARED_BYTES = 227 << 10  # of memory that a program has to itself, on GPUs of compute capability 9.0

# Channels of the big and of the small image, kernel, stride and padding: what chooses among tiles.
LAYERS = [
    (1, 32, 4, 2, 1),
    (32, 64, 4, 2, 1),
    (128, 256, 4, 2, 1),
    (64, 64, 3, 1, 1),
    (3, 17, 3, 2, 1),
    (130, 200, 2, 3, 1),
]


class Absent:
    """The driver of a GPU that is not there."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0


def convolve(dtype, big, small, kernel, stride, padding, *, far=False):
    """The three products of a layer, with everything fused; of images far apart in memory, if they shall be."""
    side = 9
    small_side = (side + 2 * padding - kernel) // stride + 1
    x, y = (image(dtype, c, length, far) for c, length in ((big, side), (small, small_side)))
    weight = torch.empty(2, small, big, kernel, kernel)
    kernels.down(x, weight, torch.empty(2, small), y, stride, padding, True)
    kernels.up(y, weight, torch.empty(2, big), x, stride, padding, side, side, True)
    kernels.up(y, weight, torch.empty(2, big), None, stride, padding, stride * small_side, stride * small_side, False)
    kernels.weights(x, y, kernel, kernel, stride, padding)


def image(dtype, channels, side, far):
    """Images of two members, channels last in memory, which is not written to."""
    steps = (0, 1 << 29 if far else side * side * channels, 1, side * channels, channels)
    return torch.empty(0, dtype=dtype).set_(
        torch.UntypedStorage(5 << 30 if far else 1 << 24), 0, (2, 3, channels, side, side), steps
    )


def main():
    launched, compiled = JITFunction.run, {}

    def compile_only(self, *arguments, grid, warmup, **named):
        kernel = launched(self, *arguments, grid=grid, warmup=True, **named)
        compiled[kernel.hash] = (self.__name__, kernel.metadata.shared)
        return kernel

    driver.set_active(Absent())
    JITFunction.run = compile_only
    for dtype in (torch.float32, torch.bfloat16):
        for layer in LAYERS:
            convolve(dtype, *layer)
        convolve(dtype, 130, 40, 3, 2, 1, far=True)
    for dtype in (torch.float32, torch.float64):
        adam(
            *(torch.empty(2, 3000, dtype=dtype) for _ in range(4)), *(torch.empty(2, 1, dtype=dtype) for _ in range(4))
        )
    compose(torch.empty(480, 7, 64, 64, dtype=torch.uint8), torch.empty(10, 3), torch.empty(3), torch.arange(5), 180.0)
    assert {name for name, _ in compiled.values()} == {
        *("_down_kernel", "_up_kernel", "_weights_kernel", "_adam_kernel", "_compose_kernel")
    }
    assert all(shared <= SHARED_BYTES for _, shared in compiled.values()), compiled
    print(f"{len(compiled)} kernels, of at most {max(shared for _, shared in compiled.values())} bytes")


if __name__ == "__main__":
    main()
