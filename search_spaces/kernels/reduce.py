"""Row-wise sum or maximum in float32, specialised to the shape."""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of
from search_spaces.kernels.split import is_last


@triton.jit
def read(x, at, inside, MASKED: tl.constexpr, MAXIMUM: tl.constexpr, EVICTION: tl.constexpr):
    """Elements in float32; outside of the matrix what changes no sum and no maximum."""
    if MASKED:
        return tl.load(x + at, mask=inside, other=float("-inf") if MAXIMUM else 0.0, eviction_policy=EVICTION).to(
            tl.float32
        )
    return tl.load(x + at, eviction_policy=EVICTION).to(tl.float32)


@triton.jit
def reduced(values, MAXIMUM: tl.constexpr):
    """Along the second axis."""
    return tl.max(values, 1) if MAXIMUM else tl.sum(values, 1)


@triton.jit
def write(y, row, values, M: tl.constexpr, ROWS: tl.constexpr):
    """Stores one value a row."""
    if M % ROWS != 0:
        tl.store(y + row, values.to(y.dtype.element_ty), mask=row < M)
    else:
        tl.store(y + row, values.to(y.dtype.element_ty))


@triton.jit
def whole(
    x,
    y,
    block,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    MAXIMUM: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """Reads block number `block` of `ROWS` whole rows into registers and writes one value a row."""
    row = block * ROWS + tl.arange(0, ROWS)
    MASKED: tl.constexpr = M % ROWS != 0 or N != BLOCK_N
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    at = row.to(tl.int64)[:, None] * N + column[None, :]
    inside = (row < M)[:, None] & (column < N)[None, :]
    write(y, row, reduced(read(x, at, inside, MASKED, MAXIMUM, EVICTION), MAXIMUM), M, ROWS)


@triton.jit
def rows(
    x,
    y,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    MAXIMUM: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """`ROWS` whole rows a program."""
    whole(x, y, tl.program_id(0), M, N, ROWS, BLOCK_N, VECTOR, MAXIMUM, EVICTION)


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
    MAXIMUM: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """A fixed number of programs share the rows: interleaved, or each a chunk of its own where `chunked` is 1."""
    BLOCKS: tl.constexpr = triton.cdiv(M, ROWS)
    first, last, step = share_of(BLOCKS, chunked)
    for block in tl.range(first, last, step, num_stages=STAGES):
        whole(x, y, block, M, N, ROWS, BLOCK_N, VECTOR, MAXIMUM, EVICTION)


@triton.jit
def pieces(
    x,
    y,
    partial,
    counters,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    SPLIT: tl.constexpr,
    MAXIMUM: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """One of `SPLIT` shares of `ROWS` long rows a program, in pieces.

    The shares' results go to a workspace. The last program of its rows, by a counter, joins them in a fixed order and
    leaves the counter at zero for the next launch.
    """
    PIECES: tl.constexpr = triton.cdiv(N, BLOCK_N)
    EACH: tl.constexpr = triton.cdiv(PIECES, SPLIT)
    MASKED: tl.constexpr = M % ROWS != 0 or N % BLOCK_N != 0
    share = tl.program_id(0) % SPLIT
    block = tl.program_id(0) // SPLIT
    line = tl.arange(0, ROWS)
    row = block * ROWS + line
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)[None, :]
    start = row.to(tl.int64)[:, None] * N
    exists = (row < M)[:, None]
    # A value for each lane: they are joined once, after the pass.
    lanes = tl.full((ROWS, BLOCK_N), float("-inf") if MAXIMUM else 0.0, tl.float32)
    for piece in tl.range(share * EACH, tl.minimum(share * EACH + EACH, PIECES), num_stages=STAGES):
        at = piece * BLOCK_N + column
        values = read(x, start + at, exists & (at < N), MASKED, MAXIMUM, EVICTION)
        if MAXIMUM:
            lanes = tl.maximum(lanes, values)
        else:
            lanes += values
    found = reduced(lanes, MAXIMUM)
    if SPLIT > 1:
        tl.store(partial + (block * SPLIT + share) * ROWS + line, found)
        if is_last(counters, block, SPLIT):
            others = tl.arange(0, SPLIT)[None, :] * ROWS + line[:, None]
            joined = tl.load(partial + block * SPLIT * ROWS + others, cache_modifier=".cg")
            write(y, row, reduced(joined, MAXIMUM), M, ROWS)
    else:
        write(y, row, found, M, ROWS)
