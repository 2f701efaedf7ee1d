"""Matrix products, specialised to their shape: through pointers for any architecture, through TMA from sm_90 on."""

import triton
import triton.language as tl

from search_spaces.kernels.epilogue import followed
from search_spaces.kernels.moved import product, store
from search_spaces.kernels.promoted import multiplied


@triton.jit
def tile_of(index, group, columns, TILES_M: tl.constexpr, TILES_N: tl.constexpr):
    """Row and column of tile number `index`, walking bands of `group` tiles; `columns` = 1 for bands of columns."""
    across = tl.where(columns != 0, TILES_M, TILES_N)
    along = tl.where(columns != 0, TILES_N, TILES_M)
    band = index // (group * across)
    first = band * group
    height = tl.minimum(along - first, group)
    rest = index % (group * across)
    major = first + rest % height
    minor = rest // height
    return tl.where(columns != 0, minor, major), tl.where(columns != 0, major, minor)


@triton.jit
def pointer_product(
    a,
    b,
    top,
    left,
    first,
    last,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    A_ROW: tl.constexpr,
    A_STEP: tl.constexpr,
    B_STEP: tl.constexpr,
    B_COLUMN: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """The tile of sums at (top, left) over the steps `first` to `last`; masks only what the shape makes necessary.

    A_ROW and B_COLUMN are the distances of neighbouring rows of A and columns of B, A_STEP and B_STEP those along K.
    """
    # Wrapping around instead of masking: what is read twice is not stored.
    row = top + tl.arange(0, BLOCK_M)
    a_row = row if M % BLOCK_M == 0 else row % M
    column = left + tl.arange(0, BLOCK_N)
    b_column = column if N % BLOCK_N == 0 else column % N
    inner = tl.arange(0, BLOCK_K)
    start = (first * BLOCK_K + inner).to(tl.int64)
    a_at = a + a_row.to(tl.int64)[:, None] * A_ROW + start[None, :] * A_STEP
    b_at = b + start[:, None] * B_STEP + b_column.to(tl.int64)[None, :] * B_COLUMN
    ACCUMULATOR: tl.constexpr = tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for k in range(first, last):
        if K % BLOCK_K == 0:
            a_tile = tl.load(a_at)
            b_tile = tl.load(b_at)
        else:
            inside = inner < K - k * BLOCK_K
            a_tile = tl.load(a_at, mask=inside[None, :], other=0.0)
            b_tile = tl.load(b_at, mask=inside[:, None], other=0.0)
        sums = multiplied(a_tile, b_tile, sums, PROMOTE)
        a_at += BLOCK_K * A_STEP
        b_at += BLOCK_K * B_STEP
    return sums.to(tl.float32)


@triton.jit
def finish(
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    sums,
    top,
    left,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Stores the tile at (top, left) through pointers, with what follows the product."""
    row = top + tl.arange(0, BLOCK_M)
    # Its own operation: the hint would otherwise narrow the loads of B as well.
    out = tl.max_contiguous(left + tl.arange(0, BLOCK_N), STORE_VECTOR)
    at = row.to(tl.int64)[:, None] * N + out[None, :]
    inside = (row < M)[:, None] & (out < N)[None, :]
    sums = followed(sums, bias, row_scale, column_scale, row, out, M, N, SCALED, BIAS, ACTIVATION)
    if RESIDUAL:
        sums += tl.load(residual + at, mask=inside, other=0.0).to(tl.float32)
    result = sums.to(c.dtype.element_ty)
    if M % BLOCK_M == 0 and N % BLOCK_N == 0:
        tl.store(c + at, result)
    else:
        tl.store(c + at, result, mask=inside)


@triton.jit
def tiled(
    a,
    b,
    c,
    bias,
    residual,
    row_scale,
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
    BATCH: tl.constexpr,
    TRANS_B: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """One tile of C a program; masks only what the shape makes necessary."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    if BATCH > 1:
        matrix = tl.program_id(1).to(tl.int64)
        a += matrix * M * K
        b += matrix * N * K
        c += matrix * M * N
    B_STEP: tl.constexpr = 1 if TRANS_B else N
    B_COLUMN: tl.constexpr = K if TRANS_B else 1
    sums = pointer_product(
        a,
        b,
        tile_m * BLOCK_M,
        tile_n * BLOCK_N,
        0,
        triton.cdiv(K, BLOCK_K),
        M,
        N,
        K,
        BLOCK_M,
        BLOCK_N,
        BLOCK_K,
        K,
        1,
        B_STEP,
        B_COLUMN,
        PROMOTE,
    )
    finish(
        c,
        bias,
        residual,
        row_scale,
        column_scale,
        sums,
        tile_m * BLOCK_M,
        tile_n * BLOCK_N,
        M,
        N,
        BLOCK_M,
        BLOCK_N,
        STORE_VECTOR,
        SCALED,
        BIAS,
        RESIDUAL,
        ACTIVATION,
    )


@triton.jit
def tma(
    a,
    b,
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    group,
    columns,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SUBTILES: tl.constexpr,
    BATCH: tl.constexpr,
    TRANS_B: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """One tile of C a program."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    matrix = 0
    if BATCH > 1:
        matrix = tl.program_id(1)
    row = matrix * M + tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    above = matrix * (N if TRANS_B else K)
    sums = product(
        a, b, row, column, above, 0, triton.cdiv(K, BLOCK_K), BLOCK_M, BLOCK_N, BLOCK_K, TRANS_B, False, PROMOTE
    )
    store(
        c,
        bias,
        residual,
        row_scale,
        column_scale,
        sums,
        row,
        column,
        M,
        N,
        BLOCK_M,
        BLOCK_N,
        SUBTILES,
        SCALED,
        BIAS,
        RESIDUAL,
        ACTIVATION,
    )


@triton.jit
def persistent(
    a,
    b,
    c,
    bias,
    residual,
    row_scale,
    column_scale,
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
    BATCH: tl.constexpr,
    TRANS_B: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """As many programs as the grid has share all tiles of C; each takes every `num_programs`-th."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    TILES: tl.constexpr = TILES_M * TILES_N
    stored = tl.program_id(0)
    for tile in tl.range(tl.program_id(0), BATCH * TILES, tl.num_programs(0), flatten=FLATTEN):
        matrix = tile // TILES if BATCH > 1 else 0
        tile_m, tile_n = tile_of(tile - matrix * TILES, group, columns, TILES_M, TILES_N)
        row = matrix * M + tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        above = matrix * (N if TRANS_B else K)
        sums = product(
            a, b, row, column, above, 0, triton.cdiv(K, BLOCK_K), BLOCK_M, BLOCK_N, BLOCK_K, TRANS_B, False, PROMOTE
        )
        # Counted apart from the loop's index, so that the store does not hold up the next tile's loads.
        matrix = stored // TILES if BATCH > 1 else 0
        out_m, out_n = tile_of(stored - matrix * TILES, group, columns, TILES_M, TILES_N)
        stored += tl.num_programs(0)
        row = matrix * M + out_m * BLOCK_M
        column = out_n * BLOCK_N
        store(
            c,
            bias,
            residual,
            row_scale,
            column_scale,
            sums,
            row,
            column,
            M,
            N,
            BLOCK_M,
            BLOCK_N,
            SUBTILES,
            SCALED,
            BIAS,
            RESIDUAL,
            ACTIVATION,
        )
