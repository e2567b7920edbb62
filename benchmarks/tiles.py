"""Which tiles suit the convolutions of a network? Times the kernels of its layers with several tiles, on a GPU.

Command: ``PYTHONPATH=src:benchmarks python benchmarks/tiles.py --network dcgan --network "residual group norm"``. For
each layer and each of the three products (`down`, `up`, `weights`), of 32 members at batch 64 in bfloat16: the tiles in
use, their microseconds and TFLOP/s, and the best of the others. Kernels are first compiled by several processes. The
tiles in use are functions of sizes in `numerics/_kernels/triton_convolution.py`, where what is learned here is written
down; they are never tuned at run time. Cost: one to two minutes on an H200.
"""

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import torch
from torch import nn

from axiswise.numerics._kernels import triton_convolution as kernels
from axiswise.numerics._kernels.triton_convolution import Blocks
from axiswise_benchmarks.networks import LATENTS, NETWORKS

MEMBERS, BATCH, REPEATS, LAUNCHES = 32, 64, 5, 20
LEAD = 20_000_000  # cycles, ten milliseconds
CHOICES = {"down": "gather_blocks", "up": "scatter_blocks", "weights": "weight_blocks"}
GATHERING = (
    *(Blocks(128, 128, 64, 8, 3), Blocks(128, 128, 64, 8, 4), Blocks(128, 128, 32, 4, 4), Blocks(64, 128, 64, 4, 4)),
    *(Blocks(128, 64, 64, 4, 3), Blocks(128, 64, 64, 4, 4), Blocks(256, 64, 64, 8, 3), Blocks(128, 256, 64, 8, 3)),
    *(Blocks(128, 32, 32, 4, 4), Blocks(256, 32, 32, 4, 4), Blocks(128, 64, 32, 4, 3), Blocks(256, 128, 64, 8, 3)),
)
SUMMING = (  # rows, columns, depth: sums run over rows
    *(Blocks(64, 128, 128, 8, 3), Blocks(64, 128, 128, 4, 3), Blocks(64, 128, 64, 4, 4), Blocks(64, 64, 64, 4, 4)),
    *(Blocks(128, 64, 64, 4, 3), Blocks(64, 64, 256, 4, 3), Blocks(64, 64, 128, 4, 3), Blocks(64, 128, 256, 8, 3)),
    *(Blocks(128, 32, 32, 4, 3), Blocks(128, 32, 128, 4, 3), Blocks(128, 64, 32, 4, 3), Blocks(128, 128, 128, 8, 2)),
    *(Blocks(64, 32, 128, 4, 3), Blocks(64, 32, 256, 8, 3), Blocks(64, 64, 256, 8, 3), Blocks(128, 64, 128, 8, 3)),
)


class Layer(NamedTuple):
    """A convolution, or a transposed one: channels and side of its big image, channels of its small one, and how."""

    big: int
    side: int
    small: int
    kernel: int
    stride: int
    padding: int

    @property
    def small_side(self) -> int:
        """Side of the small image."""
        return (self.side + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def flops(self) -> float:
        """Of each of the three products, over all members."""
        pixels = MEMBERS * BATCH * self.small_side**2
        return 2.0 * pixels * self.small * self.big * self.kernel**2


def layers(name: str) -> list[Layer]:
    """The square convolutions of a network, in one group and without dilation."""
    network, found = next(each for each in NETWORKS if each.name == name), []

    def record(layer: Any, inputs: Any, output: Any) -> None:
        big, small = (inputs[0], output) if isinstance(layer, nn.Conv2d) else (output, inputs[0])
        if layer.groups == 1 and layer.dilation == (1, 1) and isinstance(layer.padding, tuple):
            how = (layer.kernel_size[0], layer.stride[0], layer.padding[0])
            found.append(Layer(big.shape[1], big.shape[-1], small.shape[1], *how))

    encoder, decoder = network.build()
    for module in (*encoder.modules(), *decoder.modules()):
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            module.register_forward_hook(record)
    encoder(torch.rand(2, *network.shape))
    decoder(torch.randn(2, LATENTS))
    return list(dict.fromkeys(found))


def images(channels: int, side: int) -> torch.Tensor:
    """Random images of all members, channels last."""
    found = torch.randn(MEMBERS, BATCH, side, side, channels, device="cuda", dtype=torch.bfloat16)
    return found.permute(0, 1, 4, 2, 3)


def product(layer: Layer, kind: str) -> Any:
    """One of the three products of a layer, as a function without arguments."""
    big, small = images(layer.big, layer.side), images(layer.small, layer.small_side)
    weight = torch.randn(MEMBERS, layer.small, layer.big, layer.kernel, layer.kernel, device="cuda")
    how = (layer.stride, layer.padding)
    if kind == "down":
        return lambda: kernels.down(big, weight, None, None, *how, False)
    if kind == "up":
        return lambda: kernels.up(small, weight, None, None, *how, layer.side, layer.side, False)
    return lambda: kernels.weights(big, small, layer.kernel, layer.kernel, *how)


def with_blocks(kind: str, blocks: Blocks | None, run: Any) -> Any:
    """What a function returns with these tiles, or those in use; None where they do not fit the GPU."""
    name = CHOICES[kind]
    used = getattr(kernels, name)
    setattr(kernels, name, used if blocks is None else lambda *sizes, narrow: blocks)
    try:
        return run()
    except Exception as error:  # whatever Triton raises for tiles that need too much shared memory
        if "out of resource" in str(error):
            return None
        raise
    finally:
        setattr(kernels, name, used)


def milliseconds(run: Any) -> float:
    """Of one call, the median over repeats of many: a single one waits for Python longer than for a small kernel."""
    for _ in range(LAUNCHES):
        run()
    found = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        torch.cuda._sleep(LEAD)  # the GPU waits while calls are queued, so that none of it is Python's time
        begin.record()
        for _ in range(LAUNCHES):
            run()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / LAUNCHES)
    return sorted(found)[REPEATS // 2]


def jobs(names: list[str]) -> Iterator[tuple[Layer, str]]:
    """Layers and products; a kernel does not know the side of its images, of which the first is taken."""
    known = set()
    for layer in (layer for name in names for layer in layers(name)):
        if (key := layer._replace(side=0)) not in known and min(layer.big, layer.small) > 3:
            known.add(key)
            yield from ((layer, kind) for kind in CHOICES)


def candidates(layer: Layer, kind: str) -> list[Blocks]:
    """Tiles to try: those that are not wider than the result."""
    channels = layer.big if kind == "up" else layer.small
    return [blocks for blocks in (SUMMING if kind == "weights" else GATHERING) if blocks.columns <= max(32, channels)]


def prepare(job: tuple[Layer, str, Blocks | None]) -> None:
    """Compiles one kernel, which stays in Triton's cache."""
    layer, kind, blocks = job
    with_blocks(kind, blocks, product(layer, kind))


def main() -> None:
    """Prints a row for each layer and product."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", action="append", required=True)
    parser.add_argument("--processes", type=int, default=14)
    options = parser.parse_args()
    found = list(jobs(options.network))
    every = [(layer, kind, blocks) for layer, kind in found for blocks in (None, *candidates(layer, kind))]
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn")) as pool:
        list(pool.map(prepare, every, chunksize=4))
    for layer, kind in found:
        run = product(layer, kind)
        used = milliseconds(run)
        times = {blocks: with_blocks(kind, blocks, partial(milliseconds, run)) for blocks in candidates(layer, kind)}
        fitting = {blocks: time for blocks, time in times.items() if time is not None}
        ranked = sorted(fitting, key=fitting.__getitem__)[:3]
        rate = layer.flops / used / 1e9  # milliseconds to TFLOP/s
        best = "  ".join(f"{tuple(blocks)} {1e3 * fitting[blocks]:.0f}" for blocks in ranked)
        print(f"{tuple(layer)!s:28} {kind:8} {1e3 * used:7.0f} µs {rate:5.0f} TFLOP/s; {best}", flush=True)


if __name__ == "__main__":
    main()
