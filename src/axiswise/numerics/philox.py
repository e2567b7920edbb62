r"""Random numbers as a pure function of (seed, stream, step): Philox4x32-10 in integer tensor operations.

A counter-based generator has no state to save: the words of a draw are a keyed bijection of the draw's position,

.. math:: (w_0, w_1, w_2, w_3) = \mathrm{Philox}_{\mathrm{seed}}(\mathrm{block}, \mathrm{step}, \mathrm{stream}),

so that any member can draw any step on any device, alone or among others, and get the same numbers. Integers and
uniforms are bit-equal on CPU and CUDA and do not depend on the floating-point type; normals differ by the rounding of
the device's logarithm and cosine.

Every function takes `seed` and `step` as integers or integer tensors that broadcast against each other, and appends the
shape of the draw to their common shape: ``seed`` of shape ``(p,)`` and ``step`` of shape ``(s, 1)`` give draws of shape
``(s, p, *shape)`` for a block of ``s`` steps of ``p`` members in one call.

References:
    Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy as 1, 2, 3*, SC 2011, section 3.3 and table 2.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Annotated

import torch

from axiswise._arguments import Between, checked
from axiswise.errors import AxiswiseError
from axiswise.shapes import Float, Int, Tensor

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_INCREMENTS = (0x9E3779B9, 0xBB67AE85)  # golden ratio and sqrt(3) - 1, as 32-bit fractions
WORD = 0xFFFFFFFF
CACHE_BLOCKS = 1 << 16  # blocks worked on at a time on a CPU: enough for two threads, and the rounds stay in its cache


@checked
def philox(
    counter: Annotated[Sequence[Tensor], Between(4, 4)], key: Annotated[Sequence[Tensor], Between(2, 2)]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    r"""Encrypts a counter of four 32-bit words under a key of two, in ten rounds.

    One round multiplies two words into 64 bits and mixes the halves:
    :math:`(c_0, c_1, c_2, c_3) \to (\mathrm{hi}(M_1 c_2) \oplus c_1 \oplus k_0,\ \mathrm{lo}(M_1 c_2),\
    \mathrm{hi}(M_0 c_0) \oplus c_3 \oplus k_1,\ \mathrm{lo}(M_0 c_0))`. An int64 product wraps around modulo 2^64 but
    keeps all its bits, so shift and mask recover both halves.

    Arguments:
        counter: Four int64 tensors of values below 2^32, broadcastable with each other.
        key: Two int64 tensors of values below 2^32, broadcastable with the counter.

    Example:
        >>> zero = torch.zeros((), dtype=torch.int64)
        >>> [f"{word.item():08x}" for word in philox([zero] * 4, [zero] * 2)]
        ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    c0, c1, c2, c3, *_ = (
        word.clone(memory_format=torch.contiguous_format) for word in torch.broadcast_tensors(*counter, *key)
    )
    k0, k1 = key
    product0, product1 = torch.empty_like(c0), torch.empty_like(c0)
    # The six buffers take turns, so that the rounds allocate nothing. Words 1 and 3 keep the upper halves of their
    # products until the end: only a factor of the next product must be free of them.
    for _ in range(ROUNDS):
        torch.mul(c0, MULTIPLIERS[0], out=product0)
        torch.mul(c2, MULTIPLIERS[1], out=product1)
        torch.bitwise_right_shift(product1, 32, out=c0).bitwise_xor_(c1).bitwise_xor_(k0).bitwise_and_(WORD)
        torch.bitwise_right_shift(product0, 32, out=c2).bitwise_xor_(c3).bitwise_xor_(k1).bitwise_and_(WORD)
        c1, c3, product0, product1 = product1, product0, c1, c3
        k0, k1 = (k0 + KEY_INCREMENTS[0]) & WORD, (k1 + KEY_INCREMENTS[1]) & WORD
    return c0, c1.bitwise_and_(WORD), c2, c3.bitwise_and_(WORD)


@checked
def words(
    seed: int | Int[Tensor, "..."], stream: str, step: int | Int[Tensor, "..."], count: int
) -> Int[Tensor, "... count"]:
    r"""Draws `count` random 32-bit words, as int64, for each pair of a seed and a step.

    .. math:: (w_{4b}, \dots, w_{4b+3}) = \mathrm{Philox}_{\mathrm{seed}}(b, \mathrm{step}, \mathrm{stream})

    Arguments:
        seed: Key of the generator, 0 ≤ seed < 2^63.
        stream: Name of the draw ("index", "noise", …); different names give independent words.
        step: Training step, 0 ≤ step < 2^32.
        count: How many words to draw for each pair.

    Example:
        >>> together = words(torch.tensor([7, 8]), "noise", torch.arange(3)[:, None], 5)
        >>> together.shape, bool((together[2, 1] == words(8, "noise", 2, 5)).all())
        (torch.Size([3, 2, 5]), True)
    """
    seed = torch.as_tensor(seed, dtype=torch.int64)
    step = torch.as_tensor(step, dtype=torch.int64, device=seed.device)
    shape = torch.broadcast_shapes(seed.shape, step.shape)
    blocks = -(-count // 4)
    name = hashlib.sha256(stream.encode()).digest()
    stream_low, stream_high = int.from_bytes(name[:4], "little"), int.from_bytes(name[4:8], "little")
    block = torch.arange(blocks, dtype=torch.int64, device=seed.device)
    seed, step = seed.expand(shape).reshape(-1, 1), step.expand(shape).reshape(-1, 1)
    rows = max(1, CACHE_BLOCKS // max(blocks, 1)) if seed.device.type == "cpu" else max(len(seed), 1)
    out = torch.empty((len(seed), blocks, 4), dtype=torch.int64, device=seed.device)
    for start in range(0, len(seed), rows):
        part, key = step[start : start + rows], seed[start : start + rows]
        counter = (block, torch.full_like(block, stream_low), part, torch.full_like(block, stream_high))
        encrypted = philox(counter, (key & WORD, (key >> 32) & WORD))
        for column, word in enumerate(encrypted):
            out[start : start + rows, :, column] = word
    return out.reshape((*shape, blocks * 4))[..., :count]


@checked
def uniform(
    seed: int | Int[Tensor, "..."],
    stream: str,
    step: int | Int[Tensor, "..."],
    shape: Sequence[int] = (),
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "..."]:
    r"""Draws uniforms from the open interval (0, 1): :math:`(\lfloor w / 2^9 \rfloor + \tfrac12)\, 2^{-23}`.

    Twenty-three bits and a half fit the significand of every type from float32 up, so that the values are exact, never
    0 and never 1, and the same in float32 and float64.

    Example:
        >>> uniform(0, "example", 0, (2, 3)).shape
        torch.Size([2, 3])
    """
    drawn = words(seed, stream, step, math.prod(shape))
    return drawn.bitwise_right_shift_(9).to(dtype).add_(0.5).mul_(2.0**-23).reshape((*drawn.shape[:-1], *shape))


@checked
def normal(
    seed: int | Int[Tensor, "..."],
    stream: str,
    step: int | Int[Tensor, "..."],
    shape: Sequence[int] = (),
    *,
    dtype: torch.dtype = torch.float32,
) -> Float[Tensor, "..."]:
    r"""Draws standard normals by Box and Muller's transform of pairs of uniforms.

    :math:`z_1 = \sqrt{-2 \ln u_1} \cos 2\pi u_2` and :math:`z_2 = \sqrt{-2 \ln u_1} \sin 2\pi u_2`. The smallest
    uniform, 2^-24, bounds the draws by 5.77: beyond it lie eight in a thousand million.

    Example:
        >>> draws = normal(torch.arange(4), "example", 0, (1000,))
        >>> draws.shape, bool(draws.mean().abs() < 0.05)
        (torch.Size([4, 1000]), True)
    """
    count = math.prod(shape)
    half = -(-count // 2)
    pairs = uniform(seed, stream, step, (2, half), dtype=dtype)  # halves, not neighbours: contiguous rows are faster
    radius = pairs[..., 0, :].log().mul_(-2.0).sqrt_()
    angle = pairs[..., 1, :].mul(2.0 * math.pi)
    drawn = torch.cat((angle.cos().mul_(radius), angle.sin_().mul_(radius)), -1)
    return drawn[..., :count].reshape((*drawn.shape[:-1], *shape))


@checked
def integers(
    seed: int | Int[Tensor, "..."], stream: str, step: int | Int[Tensor, "..."], shape: Sequence[int], high: int
) -> Int[Tensor, "..."]:
    r"""Draws integers from 0 … high − 1, with replacement: :math:`\lfloor w \cdot \mathrm{high} / 2^{32} \rfloor`.

    No value is more than high / 2^32 (for dSprites 0.02 %) likelier than another, which no training run can see.

    Example:
        >>> drawn = integers(0, "index", torch.arange(100), (64,), 10)
        >>> drawn.shape, drawn.min().item(), drawn.max().item()
        (torch.Size([100, 64]), 0, 9)
    """
    if not 1 <= high < 2**31:
        raise AxiswiseError(f"`high` must lie in 1 … 2^31 - 1. Got {high}.")
    drawn = words(seed, stream, step, math.prod(shape))
    return drawn.mul_(high).bitwise_right_shift_(32).reshape((*drawn.shape[:-1], *shape))


@checked
def permutation(seed: int, stream: str, length: Annotated[int, Between(0)]) -> Int[Tensor, " length"]:
    r"""Draws a uniformly random order of 0 … length − 1, by sorting 62-bit random keys.

    .. math:: \pi = \mathrm{argsort}(k_0, \dots, k_{n-1}), \qquad
        k_i = 2^{31} \lfloor w_{2i} / 2 \rfloor + \lfloor w_{2i+1} / 2 \rfloor

    Example:
        >>> permutation(0, "split", 5).sort().values.tolist()
        [0, 1, 2, 3, 4]
    """
    pairs = words(seed, stream, 0, 2 * length).reshape(length, 2)
    keys = ((pairs[:, 0] >> 1) << 31) | (pairs[:, 1] >> 1)
    return keys.argsort(stable=True)
