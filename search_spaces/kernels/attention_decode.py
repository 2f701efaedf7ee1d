"""Attention of few queries over a long cache: programs take pieces of it, the last of each head joins the pieces.

The cache is split as in flash-decoding (Dao, Haziza, Massa and Sizov, 2023); joining in the same launch, by the
program that counts itself last, spares the second launch of that method.
"""

import triton
import triton.language as tl

from search_spaces.kernels.split import is_last

# Below every score that float32 can hold by products of finite values: with it, what is masked weighs exactly nothing.
LOWEST = tl.constexpr(-1.0e38)


@triton.jit
def scored(query, key, DOT: tl.constexpr):
    """Query[M,D] times key[N,D] transposed: on tensor cores, or as sums of products, which have no least M."""
    if DOT:
        return tl.dot(query, key.T, input_precision="ieee")
    return tl.sum(query.to(tl.float32)[:, None, :] * key.to(tl.float32)[None, :, :], 2)


@triton.jit
def weighted(weights, value, DOT: tl.constexpr):
    """Weights[M,N] times value[N,D]."""
    if DOT:
        return tl.dot(weights.to(value.dtype), value, input_precision="ieee")
    return tl.sum(weights[:, :, None] * value.to(tl.float32)[None, :, :], 1)


@triton.jit
def joined(
    partial,
    peaks,
    totals,
    pieces,
    ROWS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    JOIN: tl.constexpr,
    start,
):
    """Sums and totals over all pieces of rows from `start` on, `JOIN` pieces at a time."""
    row = start + tl.arange(0, BLOCK_M)
    feature = tl.arange(0, BLOCK_D)
    peak = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for first in range(0, pieces, JOIN):
        piece = first + tl.arange(0, JOIN)
        at = piece[:, None] * ROWS + row[None, :]
        exists = (piece < pieces)[:, None] & (row < ROWS)[None, :]
        # Other programs wrote these: past the first cache, which may not know.
        high = tl.load(peaks + at, mask=exists, other=LOWEST, cache_modifier=".cg")
        part = tl.load(totals + at, mask=exists, other=0.0, cache_modifier=".cg")
        inside = exists[:, :, None] & (feature < D)[None, None, :]
        values = tl.load(partial + at[:, :, None] * D + feature, mask=inside, other=0.0, cache_modifier=".cg")
        higher = tl.maximum(peak, tl.max(high, 0))
        kept = tl.exp2(peak - higher)
        share = tl.exp2(high - higher[None, :])
        total = total * kept + tl.sum(part * share, 0)
        sums = sums * kept[:, None] + tl.sum(values * share[:, :, None], 0)
        peak = higher
    return sums, total


@triton.jit
def loaded(
    k,
    v,
    at,
    column,
    feature,
    S: tl.constexpr,
    D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Keys and values of the positions `column`, which lie at `at`; 0 outside of the cache."""
    if S % BLOCK_N == 0 and D == BLOCK_D:
        key = tl.load(k + at)
        value = tl.load(v + at)
    else:
        inside = (column < S)[:, None] & (feature < D)[None, :]
        key = tl.load(k + at, mask=inside, other=0.0)
        value = tl.load(v + at, mask=inside, other=0.0)
    return key, value


@triton.jit
def folded(
    query,
    key,
    value,
    column,
    last,
    peak,
    total,
    sums,
    S: tl.constexpr,
    T: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
):
    """Peak, total and sums of the rows with the positions `column` taken in; a row sees none behind its `last`."""
    scores = scored(query, key, DOT)
    if S % BLOCK_N != 0 or T > 1:
        scores = tl.where(column[None, :] <= last[:, None], scores, float("-inf"))
    higher = tl.maximum(peak, tl.max(scores, 1) * SCALE)
    weights = tl.exp2(scores * SCALE - higher[:, None])
    kept = tl.exp2(peak - higher)
    return higher, total * kept + tl.sum(weights, 1), sums * kept[:, None] + weighted(weights, value, DOT)


@triton.jit
def stored(
    o,
    sums,
    total,
    start,
    ROWS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    VECTOR: tl.constexpr,
):
    """Stores means of the values: `sums` over `total`, of rows from `start` on."""
    row = start + tl.arange(0, BLOCK_M)
    feature = tl.max_contiguous(tl.arange(0, BLOCK_D), VECTOR)
    out = (sums / total[:, None]).to(o.dtype.element_ty)
    there = (row < ROWS)[:, None] & (feature < D)[None, :]
    tl.store(o + row[:, None] * D + feature[None, :], out, mask=there)


@triton.jit
def finish(
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
    ROWS: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
    VECTOR: tl.constexpr,
    JOIN: tl.constexpr,
):
    """Stores rows from `start` on of a head group's `o`: of one piece at once, of several by the last to come."""
    # Tensor cores may want more rows than there are: joining takes those alone, and so more pieces at a time.
    TAKEN: tl.constexpr = BLOCK_M if ROWS > BLOCK_M else triton.next_power_of_2(ROWS)
    if pieces == 1:
        stored(o, sums, total, start, ROWS, D, BLOCK_M, BLOCK_D, VECTOR)
    else:
        row = start + tl.arange(0, BLOCK_M)
        feature = tl.max_contiguous(tl.arange(0, BLOCK_D), VECTOR)
        there = (row < ROWS)[:, None] & (feature < D)[None, :]
        partial += group.to(tl.int64) * pieces * (ROWS * (D + 2))
        peaks = partial + pieces * (ROWS * D)
        totals = peaks + pieces * ROWS
        place = piece * ROWS + row
        tl.store(partial + place[:, None] * D + feature[None, :], sums, mask=there)
        tl.store(peaks + place, peak, mask=row < ROWS)
        tl.store(totals + place, total, mask=row < ROWS)
        if is_last(counters, unit, pieces):
            joint, whole = joined(partial, peaks, totals, pieces, ROWS, TAKEN, D, BLOCK_D, JOIN, start)
            stored(o, joint, whole, start, ROWS, D, TAKEN, BLOCK_D, VECTOR)


@triton.jit
def decode(
    q,
    k,
    v,
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
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    JOIN: tl.constexpr,
    DOT: tl.constexpr,
):
    """A block of the queries that share a key/value head, over one of so many `pieces` of the cache, a program."""
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
    k += group.to(tl.int64) * (S * D)
    v += group.to(tl.int64) * (S * D)
    there = (row < ROWS)[:, None] & (feature < D)[None, :]
    query = tl.load(q + row[:, None] * D + feature[None, :], mask=there, other=0.0)
    last = S - T + row % T
    peak = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for step in tl.range(piece * STEPS // pieces, (piece + 1) * STEPS // pieces, num_stages=STAGES):
        column = step * BLOCK_N + tl.arange(0, BLOCK_N)
        at = column[:, None] * D + feature[None, :]
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
