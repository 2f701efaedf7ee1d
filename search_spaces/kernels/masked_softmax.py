"""Row-wise softmax of scaled and masked scores in float32, specialised to the shape."""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of
from search_spaces.kernels.softmax import LOG2E, write


@triton.jit
def normalise(
    x,
    mask,
    y,
    block,
    M: tl.constexpr,
    N: tl.constexpr,
    S: tl.constexpr,
    CAUSAL: tl.constexpr,
    SCALE: tl.constexpr,
    EVICTION: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Reads what is seen in block number `block` of `ROWS` whole rows, and writes its softmax."""
    row = block * ROWS + tl.arange(0, ROWS)
    MASKED: tl.constexpr = M % ROWS != 0 or N != BLOCK_N
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    at = row.to(tl.int64)[:, None] * N + column[None, :]
    inside = (row < M)[:, None] & (column < N)[None, :]
    if CAUSAL:
        # Never read where unseen: there a score costs no memory traffic.
        seen = column[None, :] <= tl.minimum(row % S + (N - S), N - 1)[:, None]
        if M % ROWS != 0:
            seen = seen & (row < M)[:, None]
        scores = tl.load(x + at, mask=seen, other=float("-inf"), eviction_policy=EVICTION).to(tl.float32) * SCALE
    elif MASKED:
        scores = tl.load(x + at, mask=inside, other=float("-inf"), eviction_policy=EVICTION).to(tl.float32) * SCALE
        added = tl.load(mask + (row % S)[:, None] * N + column[None, :], mask=inside, other=0.0)
        scores += added.to(tl.float32)
    else:
        scores = tl.load(x + at, eviction_policy=EVICTION).to(tl.float32) * SCALE
        scores += tl.load(mask + (row % S)[:, None] * N + column[None, :]).to(tl.float32)
    # A row past the last holds nothing but -inf, whose NaN is never stored.
    powers = tl.exp2((scores - tl.max(scores, 1)[:, None]) * LOG2E)
    write(y, at, powers * (1.0 / tl.sum(powers, 1))[:, None], inside, MASKED)


@triton.jit
def rows(
    x,
    mask,
    y,
    M: tl.constexpr,
    N: tl.constexpr,
    S: tl.constexpr,
    CAUSAL: tl.constexpr,
    SCALE: tl.constexpr,
    EVICTION: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """`ROWS` whole rows a program."""
    normalise(x, mask, y, tl.program_id(0), M, N, S, CAUSAL, SCALE, EVICTION, ROWS, BLOCK_N, VECTOR)


@triton.jit
def looped(
    x,
    mask,
    y,
    chunked,
    M: tl.constexpr,
    N: tl.constexpr,
    S: tl.constexpr,
    CAUSAL: tl.constexpr,
    SCALE: tl.constexpr,
    EVICTION: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A fixed number of programs share the rows: interleaved, or each a chunk of its own where `chunked` is 1."""
    BLOCKS: tl.constexpr = triton.cdiv(M, ROWS)
    first, last, step = share_of(BLOCKS, chunked)
    for block in tl.range(first, last, step, num_stages=STAGES):
        normalise(x, mask, y, block, M, N, S, CAUSAL, SCALE, EVICTION, ROWS, BLOCK_N, VECTOR)
