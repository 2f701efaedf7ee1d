"""Flash decoding over a cache in pages: as over one piece of memory, each position looked up in a table of pages."""

import triton
import triton.language as tl

from search_spaces.kernels.attention_decode import LOWEST, finish, folded, loaded


@triton.jit
def decode(
    q,
    k,
    v,
    table,
    o,
    partial,
    counters,
    pieces,
    pieces_first,
    B: tl.constexpr,
    H: tl.constexpr,
    G: tl.constexpr,
    S: tl.constexpr,
    T: tl.constexpr,
    D: tl.constexpr,
    PAGE: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    JOIN: tl.constexpr,
    DOT: tl.constexpr,
):
    """A block of the queries that share a key/value head, over one of so many `pieces` of its sequence, a program."""
    ROWS: tl.constexpr = H // G * T
    BLOCKS: tl.constexpr = triton.cdiv(ROWS, BLOCK_M)
    STEPS: tl.constexpr = triton.cdiv(S, BLOCK_N)
    UNITS: tl.constexpr = B * G * BLOCKS
    pid = tl.program_id(0)
    piece = tl.where(pieces_first != 0, pid % pieces, pid // UNITS)
    unit = tl.where(pieces_first != 0, pid // pieces, pid % UNITS)
    group = unit // BLOCKS
    start = unit % BLOCKS * BLOCK_M
    row = start + tl.arange(0, BLOCK_M)
    feature = tl.max_contiguous(tl.arange(0, BLOCK_D), VECTOR)
    q += group * (ROWS * D)
    o += group * (ROWS * D)
    k += group % G * D
    v += group % G * D
    table += group // G * triton.cdiv(S, PAGE)
    there = (row < ROWS)[:, None] & (feature < D)[None, :]
    query = tl.load(q + row[:, None] * D + feature[None, :], mask=there, other=0.0)
    last = S - T + row % T
    peak = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for step in tl.range(piece * STEPS // pieces, (piece + 1) * STEPS // pieces, num_stages=STAGES):
        column = step * BLOCK_N + tl.arange(0, BLOCK_N)
        if S % BLOCK_N == 0:
            page = tl.load(table + column // PAGE)
        else:
            page = tl.load(table + column // PAGE, mask=column < S, other=0)
        at = (page.to(tl.int64) * PAGE + column % PAGE)[:, None] * (G * D) + feature[None, :]
        key, value = loaded(k, v, at, column, feature, S, D, BLOCK_N, BLOCK_D)
        peak, total, sums = folded(query, key, value, column, last, peak, total, sums, S, T, SCALE, BLOCK_N, DOT)
    finish(
        o,
        partial,
        counters,
        pieces,
        piece,
        group,
        unit,
        start,
        peak,
        total,
        sums,
        ROWS,
        D,
        BLOCK_M,
        BLOCK_D,
        VECTOR,
        JOIN,
    )
