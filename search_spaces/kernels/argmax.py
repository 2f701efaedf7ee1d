"""Row-wise index of the largest value, the first of equals, specialised to the shape."""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of
from search_spaces.kernels.split import is_last

# Above every index.
NOWHERE = tl.constexpr(2**31 - 1)


@triton.jit
def read(x, at, inside, MASKED: tl.constexpr, EVICTION: tl.constexpr):
    """Elements in float32, which orders narrower ones as they are; outside of the matrix -inf."""
    if MASKED:
        return tl.load(x + at, mask=inside, other=float("-inf"), eviction_policy=EVICTION).to(tl.float32)
    return tl.load(x + at, eviction_policy=EVICTION).to(tl.float32)


@triton.jit
def first(values, places):
    """The largest of `values` along the second axis, and the least of the places where it is."""
    largest = tl.max(values, 1)
    return largest, tl.min(tl.where(values == largest[:, None], places, NOWHERE), 1)


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
    EVICTION: tl.constexpr,
):
    """Reads block number `block` of `ROWS` whole rows into registers and writes one index a row."""
    row = block * ROWS + tl.arange(0, ROWS)
    MASKED: tl.constexpr = M % ROWS != 0 or N != BLOCK_N
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    at = row.to(tl.int64)[:, None] * N + column[None, :]
    inside = (row < M)[:, None] & (column < N)[None, :]
    _, place = first(read(x, at, inside, MASKED, EVICTION), column[None, :])
    tl.store(y + row, place, mask=row < M)


@triton.jit
def rows(
    x,
    y,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """`ROWS` whole rows a program."""
    whole(x, y, tl.program_id(0), M, N, ROWS, BLOCK_N, VECTOR, EVICTION)


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
    EVICTION: tl.constexpr,
):
    """A fixed number of programs share the rows: interleaved, or each a chunk of its own where `chunked` is 1."""
    BLOCKS: tl.constexpr = triton.cdiv(M, ROWS)
    start, end, step = share_of(BLOCKS, chunked)
    for block in tl.range(start, end, step, num_stages=STAGES):
        whole(x, y, block, M, N, ROWS, BLOCK_N, VECTOR, EVICTION)


@triton.jit
def pieces(
    x,
    y,
    partial,
    places,
    counters,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    SPLIT: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """One of `SPLIT` shares of `ROWS` long rows a program, in pieces.

    Shares' values and indices go to workspaces. The last program of its rows, by a counter, joins them and leaves the
    counter at zero for the next launch.
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
    # A value and an index for each lane: they are joined once, after the pass.
    best = tl.full((ROWS, BLOCK_N), float("-inf"), tl.float32)
    found = tl.zeros((ROWS, BLOCK_N), tl.int32) + share * EACH * BLOCK_N + column
    for piece in tl.range(share * EACH, tl.minimum(share * EACH + EACH, PIECES), num_stages=STAGES):
        at = piece * BLOCK_N + column
        values = read(x, start + at, exists & (at < N), MASKED, EVICTION)
        # Only what is larger replaces, so that a lane keeps its first.
        found = tl.where(values > best, at, found)
        best = tl.maximum(best, values)
    largest, place = first(best, found)
    if SPLIT > 1:
        mine = (block * SPLIT + share) * ROWS + line
        tl.store(partial + mine, largest)
        tl.store(places + mine, place)
        if is_last(counters, block, SPLIT):
            others = block * SPLIT * ROWS + tl.arange(0, SPLIT)[None, :] * ROWS + line[:, None]
            values = tl.load(partial + others, cache_modifier=".cg")
            _, joined = first(values, tl.load(places + others, cache_modifier=".cg"))
            tl.store(y + row, joined, mask=row < M)
    else:
        tl.store(y + row, place, mask=row < M)
