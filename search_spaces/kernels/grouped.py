"""Products of groups of rows with a matrix each, the groups' ends read by the kernel: no program knows them before."""

import triton
import triton.language as tl

from search_spaces.kernels.moved import product
from search_spaces.kernels.promoted import multiplied


@triton.jit
def tiles_before(ends, E: tl.constexpr, BLOCK_E: tl.constexpr, BLOCK_M: tl.constexpr, TILES_N: tl.constexpr):
    """For each expert the number of tiles up to its last: its rows and those before, no tile over two groups."""
    expert = tl.arange(0, BLOCK_E)
    end = tl.load(ends + expert, mask=expert < E, other=0)
    start = tl.load(ends + expert - 1, mask=(expert > 0) & (expert < E), other=0)
    return tl.cumsum(tl.where(expert < E, tl.cdiv(end - start, BLOCK_M) * TILES_N, 0), 0)


@triton.jit
def place(
    ends,
    after,
    index,
    group,
    columns,
    E: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    TILES_N: tl.constexpr,
):
    """Of tile number `index` the expert, its first row and column, and where the expert's rows end.

    Within a group tiles run in bands of `group` tiles, along the rows, or along the columns where `columns` is 1.
    """
    expert = tl.minimum(tl.sum((after <= index).to(tl.int32), 0), E - 1)
    local = index - tl.max(tl.where(after <= index, after, 0), 0)
    start = tl.load(ends + expert - 1, mask=expert > 0, other=0)
    end = tl.load(ends + expert)
    tiles_m = tl.cdiv(end - start, BLOCK_M)
    across = tl.where(columns != 0, tiles_m, TILES_N)
    along = tl.where(columns != 0, TILES_N, tiles_m)
    band = local // (group * across)
    height = tl.minimum(along - band * group, group)
    rest = local % (group * across)
    major = band * group + rest % height
    minor = rest // height
    row = start + tl.where(columns != 0, minor, major) * BLOCK_M
    column = tl.where(columns != 0, major, minor) * BLOCK_N
    return expert, row, column, end


@triton.jit
def store(
    c,
    sums,
    row,
    column,
    end,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
):
    """Stores the tile at (row, column) as far as the group goes."""
    down = row + tl.arange(0, BLOCK_M)
    # Its own operation: the hint would otherwise narrow the loads of B as well.
    out = tl.max_contiguous(column + tl.arange(0, BLOCK_N), STORE_VECTOR)
    inside = (down < end)[:, None] & (out < N)[None, :]
    tl.store(c + down.to(tl.int64)[:, None] * N + out[None, :], sums.to(c.dtype.element_ty), mask=inside)


@triton.jit
def tiled(
    a,
    b,
    ends,
    c,
    group,
    columns,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
):
    """One tile a program; there are as many programs as the worst groups need tiles, and those left over end."""
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    after = tiles_before(ends, E, BLOCK_E, BLOCK_M, TILES_N)
    if tl.program_id(0) < tl.max(after, 0):
        expert, row, column, end = place(ends, after, tl.program_id(0), group, columns, E, BLOCK_M, BLOCK_N, TILES_N)
        inner = tl.arange(0, BLOCK_K)
        # What lies outside of the group is read from its last row and not stored.
        down = tl.minimum(row + tl.arange(0, BLOCK_M), end - 1)
        across = column + tl.arange(0, BLOCK_N)
        across = across if N % BLOCK_N == 0 else across % N
        a_at = a + down.to(tl.int64)[:, None] * K + inner[None, :]
        b_at = b + (expert.to(tl.int64) * N + across)[None, :] * K + inner[:, None]
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(triton.cdiv(K, BLOCK_K)):
            if K % BLOCK_K == 0:
                a_tile = tl.load(a_at)
                b_tile = tl.load(b_at)
            else:
                inside = inner < K - k * BLOCK_K
                a_tile = tl.load(a_at, mask=inside[None, :], other=0.0)
                b_tile = tl.load(b_at, mask=inside[:, None], other=0.0)
            sums = multiplied(a_tile, b_tile, sums, 0)
            a_at += BLOCK_K
            b_at += BLOCK_K
        store(c, sums, row, column, end, N, BLOCK_M, BLOCK_N, STORE_VECTOR)


@triton.jit
def tma(
    a,
    b,
    ends,
    c,
    group,
    columns,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
):
    """One tile a program, A and B moved by descriptors that see all groups: only the store is cut off at the end."""
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    after = tiles_before(ends, E, BLOCK_E, BLOCK_M, TILES_N)
    if tl.program_id(0) < tl.max(after, 0):
        expert, row, column, end = place(ends, after, tl.program_id(0), group, columns, E, BLOCK_M, BLOCK_N, TILES_N)
        sums = product(
            a, b, row, column, expert * N, 0, triton.cdiv(K, BLOCK_K), BLOCK_M, BLOCK_N, BLOCK_K, True, False, 0
        )
        store(c, sums, row, column, end, N, BLOCK_M, BLOCK_N, STORE_VECTOR)


@triton.jit
def persistent(
    a,
    b,
    ends,
    c,
    group,
    columns,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    E: tl.constexpr,
    BLOCK_E: tl.constexpr,
):
    """As many programs as the grid has share the tiles, of which only the kernel knows how many there are."""
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    after = tiles_before(ends, E, BLOCK_E, BLOCK_M, TILES_N)
    for tile in range(tl.program_id(0), tl.max(after, 0), tl.num_programs(0)):
        expert, row, column, end = place(ends, after, tile, group, columns, E, BLOCK_M, BLOCK_N, TILES_N)
        sums = product(
            a, b, row, column, expert * N, 0, triton.cdiv(K, BLOCK_K), BLOCK_M, BLOCK_N, BLOCK_K, True, False, 0
        )
        store(c, sums, row, column, end, N, BLOCK_M, BLOCK_N, STORE_VECTOR)
