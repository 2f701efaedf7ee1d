"""Products of int8 whose left operand is quantised by rows on the way: one pass for the scales, one for the sums."""

import triton
import triton.language as tl

from search_spaces.kernels.epilogue import activated
from search_spaces.kernels.matmul import tile_of
from search_spaces.kernels.split import is_last, place, summed

# Added to a float32 of less than half as much, this leaves no bits behind the point: the sum is rounded, ties to even.
ROUNDING = tl.constexpr(12582912.0)
LARGEST_CODE = tl.constexpr(127.0)


@triton.jit
def read(
    a,
    row,
    step,
    M: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """A step of some rows of A in float32; rows beyond the last are others', terms beyond the last zero."""
    inside = row if M % BLOCK_M == 0 else row % M
    inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
    at = a + inside.to(tl.int64)[:, None] * K + inner[None, :]
    if K % BLOCK_K == 0:
        return tl.load(at).to(tl.float32)
    return tl.load(at, mask=(inner < K)[None, :], other=0.0).to(tl.float32)


@triton.jit
def largest_of(a, row, M: tl.constexpr, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    """The largest magnitude of each row."""
    lanes = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
    for step in range(triton.cdiv(K, BLOCK_K)):
        lanes = tl.maximum(lanes, tl.abs(read(a, row, step, M, K, BLOCK_M, BLOCK_K)))
    return tl.max(lanes, 1)


@triton.jit
def product(
    a,
    b,
    row,
    column,
    largest,
    first,
    last,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SWAPPED: tl.constexpr,
):
    """The tile of whole sums over the steps `first` to `last`, transposed with SWAPPED."""
    divisor = tl.where(largest > 0.0, largest, 1.0)[:, None]
    inside = column if N % BLOCK_N == 0 else column % N
    sums = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), tl.int32)
    for step in range(first, last):
        # The product is exact and the quotient rounded rightly: half of a row's largest is a tie, which nothing else
        # may decide.
        scaled = tl.div_rn(read(a, row, step, M, K, BLOCK_M, BLOCK_K) * LARGEST_CODE, divisor)
        codes = ((scaled + ROUNDING) - ROUNDING).to(tl.int8)
        inner = step * BLOCK_K + tl.arange(0, BLOCK_K)
        at = b + inside.to(tl.int64)[:, None] * K + inner[None, :]
        weights = tl.load(at) if K % BLOCK_K == 0 else tl.load(at, mask=(inner < K)[None, :], other=0)
        if SWAPPED:
            sums = tl.dot(weights, codes.T, sums, out_dtype=tl.int32)
        else:
            sums = tl.dot(codes, weights.T, sums, out_dtype=tl.int32)
    return sums


@triton.jit
def finish(
    c,
    bias,
    column_scale,
    sums,
    largest,
    row,
    column,
    M: tl.constexpr,
    N: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Stores a tile of sums with its scales, bias and the activation."""
    out = tl.max_contiguous(column, STORE_VECTOR)
    result = sums.to(tl.float32) * (largest / LARGEST_CODE)[:, None]
    result *= tl.load(column_scale + column, mask=column < N, other=0.0)[None, :]
    if BIAS:
        result += tl.load(bias + column, mask=column < N, other=0.0).to(tl.float32)[None, :]
    at = row.to(tl.int64)[:, None] * N + out[None, :]
    inside = (row < M)[:, None] & (out < N)[None, :]
    tl.store(c + at, activated(result, ACTIVATION).to(c.dtype.element_ty), mask=inside)


@triton.jit
def tiled(
    a,
    b,
    c,
    bias,
    column_scale,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """One tile of C a program, which reads its rows twice: the second time from the caches."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    largest = largest_of(a, row, M, K, BLOCK_M, BLOCK_K)
    STEPS: tl.constexpr = triton.cdiv(K, BLOCK_K)
    sums = product(a, b, row, column, largest, 0, STEPS, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, False)
    finish(c, bias, column_scale, sums, largest, row, column, M, N, STORE_VECTOR, BIAS, ACTIVATION)


@triton.jit
def split(
    a,
    b,
    c,
    bias,
    column_scale,
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
    BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """One of `SPLIT` pieces of K of one tile of C a program; whole rows are read for the scales by each."""
    STEPS: tl.constexpr = triton.cdiv(K, BLOCK_K)
    EACH: tl.constexpr = triton.cdiv(STEPS, SPLIT)
    ROWS: tl.constexpr = BLOCK_N if SWAPPED else BLOCK_M
    COLUMNS: tl.constexpr = BLOCK_M if SWAPPED else BLOCK_N
    # The pieces of a tile run side by side.
    piece = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    tile_m, tile_n = tile_of(tile, group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    largest = largest_of(a, row, M, K, BLOCK_M, BLOCK_K)
    last = tl.minimum(piece * EACH + EACH, STEPS)
    sums = product(a, b, row, column, largest, piece * EACH, last, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, SWAPPED)
    mine = SPLIT == 1
    if SPLIT > 1:
        tl.store(place(partial, tile * SPLIT + piece, ROWS, COLUMNS), sums)
        mine = is_last(counters, tile, SPLIT)
        if mine:
            sums = summed(partial, tile, SPLIT, ROWS, COLUMNS)
    if mine:
        finished = tl.trans(sums) if SWAPPED else sums
        finish(c, bias, column_scale, finished, largest, row, column, M, N, STORE_VECTOR, BIAS, ACTIVATION)
