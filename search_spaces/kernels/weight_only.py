"""Product with weights of 4 or 8 bits that are made floats on their way, with a scale for each group of inputs."""

import triton
import triton.language as tl

from search_spaces.kernels.matmul import finish, tile_of
from search_spaces.kernels.split import is_last, place, summed

# Floats with these bits, a power of two each, count by ones in their lowest bits: what is put there is added to them.
HALF_BITS, HALF_BASE = tl.constexpr(0x6400), tl.constexpr(1024.0)
BRAIN_BITS, BRAIN_BASE = tl.constexpr(0x4300), tl.constexpr(128.0)
SINGLE_BITS, SINGLE_BASE = tl.constexpr(0x4B000000), tl.constexpr(8388608.0)


@triton.jit
def counted(unsigned, LESS: tl.constexpr, dtype: tl.constexpr):
    """`unsigned` - LESS as floats, by putting integers into the bits of a float instead of converting them."""
    if dtype == tl.float16:
        made = (unsigned.to(tl.int16) | HALF_BITS).to(tl.float16, bitcast=True) - (HALF_BASE + LESS)
    elif dtype == tl.bfloat16:
        made = (unsigned.to(tl.int16) | BRAIN_BITS).to(tl.bfloat16, bitcast=True) - (BRAIN_BASE + LESS)
    else:
        made = (unsigned.to(tl.int32) | SINGLE_BITS).to(tl.float32, bitcast=True) - (SINGLE_BASE + LESS)
    return made


@triton.jit
def lower(codes, COUNTED: tl.constexpr, dtype: tl.constexpr):
    """The integers in the lower halves of bytes, in two's complement."""
    if COUNTED:
        return counted((codes & 15) ^ 8, 8, dtype)
    return ((codes << 4) >> 4).to(dtype)


@triton.jit
def upper(codes, COUNTED: tl.constexpr, dtype: tl.constexpr):
    """The integers in the upper halves."""
    if COUNTED:
        return counted(((codes >> 4) & 15) ^ 8, 8, dtype)
    return (codes >> 4).to(dtype)


@triton.jit
def whole(codes, COUNTED: tl.constexpr, dtype: tl.constexpr):
    """The integers of 8 bits."""
    if COUNTED:
        return counted((codes.to(tl.int16) & 255) ^ 128, 128, dtype)
    return codes.to(dtype)


@triton.jit
def added(inputs, weights, sums, SWAPPED: tl.constexpr):
    """`sums` and inputs[M,K] weights[N,K]^T, or its transpose, which has the weights on the tensor cores' long side."""
    if SWAPPED:
        sums = tl.dot(weights, inputs.T, sums, input_precision="ieee")
    else:
        sums = tl.dot(inputs, weights.T, sums, input_precision="ieee")
    return sums


@triton.jit
def split(
    a,
    b,
    scale,
    c,
    partial,
    counters,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    SPLIT: tl.constexpr,
    SWAPPED: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    COUNTED: tl.constexpr,
):
    """One of `SPLIT` pieces of K of one tile of C a program; a step is a part of a group, or all of it."""
    STEPS: tl.constexpr = K // BLOCK_K
    EACH: tl.constexpr = triton.cdiv(STEPS, SPLIT)
    PARTS: tl.constexpr = GROUP // BLOCK_K
    BYTES: tl.constexpr = GROUP * BITS // 8
    MOVED: tl.constexpr = BLOCK_K * BITS // 8
    ROWS: tl.constexpr = BLOCK_N if SWAPPED else BLOCK_M
    COLUMNS: tl.constexpr = BLOCK_M if SWAPPED else BLOCK_N
    # The pieces of a tile run side by side.
    piece = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    tile_m, tile_n = tile_of(tile, group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    # What lies outside is read from other rows and columns and not stored.
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    row = row if M % BLOCK_M == 0 else row % M
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    column = column if N % BLOCK_N == 0 else column % N
    # Places within a step stay; only where it starts is computed each time, once for all threads.
    byte = tl.arange(0, MOVED)
    a_at = row.to(tl.int64)[:, None] * K + byte[None, :]
    b_at = column[:, None] * BYTES + byte[None, :]
    sums = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for step in range(piece * EACH, tl.minimum(piece * EACH + EACH, STEPS)):
        number = step // PARTS
        first = step % PARTS * MOVED
        before = number.to(tl.int64) * N
        codes = tl.load(b + (before * BYTES + first) + b_at)
        factors = tl.load(scale + before + column).to(tl.float32)
        start = number * GROUP + first
        part = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        inputs = tl.load(a + start + a_at)
        if BITS == 8:
            part = added(inputs, whole(codes, COUNTED, inputs.dtype), part, SWAPPED)
        else:
            part = added(inputs, lower(codes, COUNTED, inputs.dtype), part, SWAPPED)
            inputs = tl.load(a + (start + GROUP // 2) + a_at)
            part = added(inputs, upper(codes, COUNTED, inputs.dtype), part, SWAPPED)
        sums += part * (factors[:, None] if SWAPPED else factors[None, :])
    mine = SPLIT == 1
    if SPLIT > 1:
        tl.store(place(partial, tile * SPLIT + piece, ROWS, COLUMNS), sums)
        mine = is_last(counters, tile, SPLIT)
        if mine:
            sums = summed(partial, tile, SPLIT, ROWS, COLUMNS)
    if mine:
        finished = tl.trans(sums) if SWAPPED else sums
        finish(
            c,
            c,
            c,
            c,
            c,
            finished,
            tile_m * BLOCK_M,
            tile_n * BLOCK_N,
            M,
            N,
            BLOCK_M,
            BLOCK_N,
            STORE_VECTOR,
            False,
            False,
            False,
            0,
        )
