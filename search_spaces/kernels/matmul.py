"""Matrix products, specialised to their shape: through pointers for any architecture, through TMA from sm_90 on."""

import triton
import triton.language as tl


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
def tiled(
    a,
    b,
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
):
    """One tile of C a program; masks only what the shape makes necessary."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    # Wrapping around instead of masking: what is read twice is not stored.
    a_row = row if M % BLOCK_M == 0 else row % M
    b_column = column if N % BLOCK_N == 0 else column % N
    inner = tl.arange(0, BLOCK_K)
    a_at = a + a_row.to(tl.int64)[:, None] * K + inner[None, :]
    b_at = b + inner[:, None] * N + b_column[None, :]
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(triton.cdiv(K, BLOCK_K)):
        if K % BLOCK_K == 0:
            left = tl.load(a_at)
            right = tl.load(b_at)
        else:
            inside = inner < K - k * BLOCK_K
            left = tl.load(a_at, mask=inside[None, :], other=0.0)
            right = tl.load(b_at, mask=inside[:, None], other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
        a_at += BLOCK_K
        b_at += BLOCK_K * N
    # Its own operation: the hint would otherwise narrow the loads of B as well.
    out = tl.max_contiguous(tile_n * BLOCK_N + tl.arange(0, BLOCK_N), STORE_VECTOR)
    c_at = c + row.to(tl.int64)[:, None] * N + out[None, :]
    result = sums.to(c.dtype.element_ty)
    if M % BLOCK_M == 0 and N % BLOCK_N == 0:
        tl.store(c_at, result)
    else:
        tl.store(c_at, result, mask=(row < M)[:, None] & (out < N)[None, :])


@triton.jit
def product(a, b, row, column, K: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """The tile of C at (row, column), in float32; descriptors read zeros outside of the matrices."""
    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(triton.cdiv(K, BLOCK_K)):
        left = a.load([row, k * BLOCK_K])
        right = b.load([k * BLOCK_K, column])
        sums = tl.dot(left, right, sums)
    return sums


@triton.jit
def halves(tile, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Left and right half of a tile."""
    return tl.permute(tl.reshape(tile, (ROWS, 2, COLUMNS // 2)), (0, 2, 1)).split()


@triton.jit
def store(c, sums, row, column, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SUBTILES: tl.constexpr):
    """Stores a tile in pieces: each goes through shared memory, so that more pieces need less of it."""
    if SUBTILES == 1:
        c.store([row, column], sums.to(c.dtype))
    elif SUBTILES == 2:
        left, right = halves(sums, BLOCK_M, BLOCK_N)
        c.store([row, column], left.to(c.dtype))
        c.store([row, column + BLOCK_N // 2], right.to(c.dtype))
    else:
        left, right = halves(sums, BLOCK_M, BLOCK_N)
        first, second = halves(left, BLOCK_M, BLOCK_N // 2)
        third, fourth = halves(right, BLOCK_M, BLOCK_N // 2)
        c.store([row, column], first.to(c.dtype))
        c.store([row, column + BLOCK_N // 4], second.to(c.dtype))
        c.store([row, column + BLOCK_N // 2], third.to(c.dtype))
        c.store([row, column + 3 * (BLOCK_N // 4)], fourth.to(c.dtype))


@triton.jit
def tma(
    a,
    b,
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
):
    """One tile of C a program."""
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    row = tile_m * BLOCK_M
    column = tile_n * BLOCK_N
    sums = product(a, b, row, column, K, BLOCK_M, BLOCK_N, BLOCK_K)
    store(c, sums, row, column, BLOCK_M, BLOCK_N, SUBTILES)


@triton.jit
def persistent(
    a,
    b,
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
):
    """As many programs as the grid has share all tiles of C; each takes every `num_programs`-th."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    stored = tl.program_id(0)
    for tile in tl.range(tl.program_id(0), TILES_M * TILES_N, tl.num_programs(0), flatten=FLATTEN):
        tile_m, tile_n = tile_of(tile, group, columns, TILES_M, TILES_N)
        sums = product(a, b, tile_m * BLOCK_M, tile_n * BLOCK_N, K, BLOCK_M, BLOCK_N, BLOCK_K)
        # Counted apart from the loop's index, so that the store does not hold up the next tile's loads.
        out_m, out_n = tile_of(stored, group, columns, TILES_M, TILES_N)
        stored += tl.num_programs(0)
        store(c, sums, out_m * BLOCK_M, out_n * BLOCK_N, BLOCK_M, BLOCK_N, SUBTILES)
