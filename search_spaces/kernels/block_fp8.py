"""Products of fp8 matrices with a scale for each block of 128 along K, for each row of A and 128 columns of C."""

import triton
import triton.language as tl

from search_spaces.kernels.matmul import tile_of


@triton.jit
def tiled(
    a,
    b,
    a_scale,
    b_scale,
    c,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    SCALED: tl.constexpr,
):
    """One tile of C a program; `SCALED` values share a scale, a multiple of `BLOCK_K` and of `BLOCK_N`."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    SCALES: tl.constexpr = triton.cdiv(K, SCALED)
    tile_m, tile_n = tile_of(tl.program_id(0), GROUP, 0, TILES_M, TILES_N)

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.arange(0, BLOCK_K)
    # Rows beyond the end are read from its start, and never stored.
    inside_m, inside_n = rows % M, columns % N
    left = a + inside_m[:, None].to(tl.int64) * K + steps[None, :]
    right = b + inside_n[None, :].to(tl.int64) * K + steps[:, None]
    row_scale = a_scale + inside_m * SCALES
    column_scale = b_scale + (tile_n * BLOCK_N // SCALED) * SCALES

    sums = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(triton.cdiv(K, BLOCK_K)):
        if K % BLOCK_K == 0:
            x = tl.load(left)
            y = tl.load(right)
        else:
            x = tl.load(left, mask=steps[None, :] < K - step * BLOCK_K, other=0.0)
            y = tl.load(right, mask=steps[:, None] < K - step * BLOCK_K, other=0.0)
        place = step * BLOCK_K // SCALED
        scale = tl.load(row_scale + place) * tl.load(column_scale + place)
        sums += tl.dot(x, y) * scale[:, None]
        left += BLOCK_K
        right += BLOCK_K

    out = c + rows[:, None].to(tl.int64) * N + columns[None, :]
    tl.store(out, sums.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))
