"""Two matrix products of one A, the first one activated and multiplied by the second; both B stored [N,K]."""

import triton
import triton.language as tl

from search_spaces.kernels.epilogue import activated
from search_spaces.kernels.matmul import finish, tile_of
from search_spaces.kernels.moved import store


@triton.jit
def tiled(
    a,
    b,
    up,
    c,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """One tile of C a program, through pointers; masks only what the shape makes necessary."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    top = tile_m * BLOCK_M
    left = tile_n * BLOCK_N
    # Wrapping around instead of masking: what is read twice is not stored.
    row = top + tl.arange(0, BLOCK_M)
    a_row = row if M % BLOCK_M == 0 else row % M
    column = left + tl.arange(0, BLOCK_N)
    b_column = column if N % BLOCK_N == 0 else column % N
    inner = tl.arange(0, BLOCK_K)
    a_at = a + a_row.to(tl.int64)[:, None] * K + inner[None, :]
    side = inner[:, None] + b_column.to(tl.int64)[None, :] * K
    b_at = b + side
    up_at = up + side
    gates = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(triton.cdiv(K, BLOCK_K)):
        if K % BLOCK_K == 0:
            a_tile = tl.load(a_at)
            b_tile = tl.load(b_at)
            up_tile = tl.load(up_at)
        else:
            inside = inner < K - k * BLOCK_K
            a_tile = tl.load(a_at, mask=inside[None, :], other=0.0)
            b_tile = tl.load(b_at, mask=inside[:, None], other=0.0)
            up_tile = tl.load(up_at, mask=inside[:, None], other=0.0)
        gates = tl.dot(a_tile, b_tile, gates, input_precision="ieee")
        sums = tl.dot(a_tile, up_tile, sums, input_precision="ieee")
        a_at += BLOCK_K
        b_at += BLOCK_K
        up_at += BLOCK_K
    result = activated(gates, ACTIVATION) * sums
    finish(c, c, c, c, c, result, top, left, M, N, BLOCK_M, BLOCK_N, STORE_VECTOR, False, False, False, 0)


@triton.jit
def product(
    a,
    b,
    up,
    row,
    column,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """The tile of C at (row, column), in float32; descriptors read zeros outside of the matrices."""
    gates = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(triton.cdiv(K, BLOCK_K)):
        left = a.load([row, k * BLOCK_K])
        gates = tl.dot(left, b.load([column, k * BLOCK_K]).T, gates)
        sums = tl.dot(left, up.load([column, k * BLOCK_K]).T, sums)
    return activated(gates, ACTIVATION) * sums


@triton.jit
def tma(
    a,
    b,
    up,
    c,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SUBTILES: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """One tile of C a program."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    row = tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    sums = product(a, b, up, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K, ACTIVATION)
    store(c, c, c, c, c, sums, row, column, M, N, BLOCK_M, BLOCK_N, SUBTILES, False, False, False, 0)


@triton.jit
def persistent(
    a,
    b,
    up,
    c,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SUBTILES: tl.constexpr,
    FLATTEN: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """As many programs as the grid has share all tiles of C; each takes every `num_programs`-th."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    stored = tl.program_id(0)
    for tile in tl.range(tl.program_id(0), TILES_M * TILES_N, tl.num_programs(0), flatten=FLATTEN):
        tile_m, tile_n = tile_of(tile, group, columns, TILES_M, TILES_N)
        sums = product(a, b, up, tile_m * BLOCK_M, tile_n * BLOCK_N, K, BLOCK_M, BLOCK_N, BLOCK_K, ACTIVATION)
        # Counted apart from the loop's index, so that the store does not hold up the next tile's loads.
        out_m, out_n = tile_of(stored, group, columns, TILES_M, TILES_N)
        stored += tl.num_programs(0)
        row = out_m * BLOCK_M
        column = out_n * BLOCK_N
        store(c, c, c, c, c, sums, row, column, M, N, BLOCK_M, BLOCK_N, SUBTILES, False, False, False, 0)
