"""Row-wise softmax in float32, specialised to the shape."""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def read(x, at, inside, MASKED: tl.constexpr):
    """Elements in float32; -inf outside of the matrix."""
    if MASKED:
        return tl.load(x + at, mask=inside, other=float("-inf")).to(tl.float32)
    return tl.load(x + at).to(tl.float32)


@triton.jit
def write(y, at, values, inside, MASKED: tl.constexpr):
    """Stores what is inside of the matrix."""
    if MASKED:
        tl.store(y + at, values.to(y.dtype.element_ty), mask=inside)
    else:
        tl.store(y + at, values.to(y.dtype.element_ty))


@triton.jit
def normalise(
    x,
    y,
    block,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Reads block number `block` of `ROWS` whole rows into registers and writes its softmax."""
    row = block * ROWS + tl.arange(0, ROWS)
    MASKED: tl.constexpr = M % ROWS != 0 or N != BLOCK_N
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    at = row.to(tl.int64)[:, None] * N + column[None, :]
    inside = (row < M)[:, None] & (column < N)[None, :]
    values = read(x, at, inside, MASKED)
    # A row past the last holds nothing but -inf, whose NaN is never stored.
    powers = tl.exp2((values - tl.max(values, 1)[:, None]) * LOG2E)
    write(y, at, powers * (1.0 / tl.sum(powers, 1))[:, None], inside, MASKED)


@triton.jit
def rows(
    x,
    y,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """`ROWS` whole rows a program."""
    normalise(x, y, tl.program_id(0), M, N, ROWS, BLOCK_N, VECTOR)


@triton.jit
def looped(
    x,
    y,
    chunked,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A fixed number of programs share the rows: interleaved, or each a chunk of its own where `chunked` is 1."""
    BLOCKS: tl.constexpr = triton.cdiv(M, ROWS)
    first, last, step = share_of(BLOCKS, chunked)
    for block in tl.range(first, last, step, num_stages=STAGES):
        normalise(x, y, block, M, N, ROWS, BLOCK_N, VECTOR)


@triton.jit
def online(
    x,
    y,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    BACKWARD: tl.constexpr,
):
    """Rows in pieces, in two passes: maximum and sum together, then the quotient.

    Walking `BACKWARD` in the second pass meets first what the first pass read last.
    """
    PIECES: tl.constexpr = triton.cdiv(N, BLOCK_N)
    MASKED: tl.constexpr = M % ROWS != 0 or N % BLOCK_N != 0
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    start = row.to(tl.int64)[:, None] * N
    exists = (row < M)[:, None]
    peak = tl.full((ROWS,), float("-inf"), tl.float32)
    # A sum for each lane: they are joined once, after the pass.
    total = tl.zeros((ROWS, BLOCK_N), tl.float32)
    for piece in tl.range(0, PIECES, num_stages=STAGES):
        at = piece * BLOCK_N + column[None, :]
        values = read(x, start + at, exists & (at < N), MASKED)
        higher = tl.maximum(peak, tl.max(values, 1))
        # As long as a row has shown nothing but -inf, any finite shift will do.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        total = total * tl.exp2((peak - shift) * LOG2E)[:, None] + tl.exp2((values - shift[:, None]) * LOG2E)
        peak = higher
    scale = (1.0 / tl.sum(total, 1))[:, None]
    for step in tl.range(0, PIECES, num_stages=STAGES):
        piece = PIECES - 1 - step if BACKWARD else step
        at = piece * BLOCK_N + column[None, :]
        inside = exists & (at < N)
        values = read(x, start + at, inside, MASKED)
        write(y, start + at, tl.exp2((values - peak[:, None]) * LOG2E) * scale, inside, MASKED)
