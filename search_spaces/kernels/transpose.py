"""Transposes of matrices tile by tile, specialised to the shape. Tiles turn in registers, through shared memory."""

import triton
import triton.language as tl


@triton.jit
def place(tile, group, down, TILES_M: tl.constexpr, TILES_N: tl.constexpr):
    """Row and column of a tile: strips of `group` lines of tiles, walked across; lines run down X where `down` is 1."""
    lines = tl.where(down != 0, TILES_N, TILES_M)
    across = tl.where(down != 0, TILES_M, TILES_N)
    strip = tile // (group * across)
    height = tl.minimum(lines - strip * group, group)
    inside = tile - strip * group * across
    line = strip * group + inside % height
    position = inside // height
    return tl.where(down != 0, position, line), tl.where(down != 0, line, position)


@triton.jit
def turn(
    x,
    y,
    tile,
    group,
    down,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """Tile number `tile` over all matrices."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    matrix = tile // (TILES_M * TILES_N) * tl.full((), M * N, tl.int64)
    tile_m, tile_n = place(tile % (TILES_M * TILES_N), group, down, TILES_M, TILES_N)
    row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)
    above = tile_m * BLOCK_M + tl.max_contiguous(tl.arange(0, BLOCK_M), STORE_VECTOR)
    beside = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    source = matrix + row.to(tl.int64)[:, None] * N + column[None, :]
    target = matrix + beside.to(tl.int64)[:, None] * M + above[None, :]
    if M % BLOCK_M != 0 or N % BLOCK_N != 0:
        values = tl.load(x + source, mask=(row < M)[:, None] & (column < N)[None, :], eviction_policy=EVICTION)
        inside = (beside < N)[:, None] & (above < M)[None, :]
        tl.store(y + target, tl.trans(values), mask=inside, eviction_policy=EVICTION)
    else:
        tl.store(y + target, tl.trans(tl.load(x + source, eviction_policy=EVICTION)), eviction_policy=EVICTION)


@triton.jit
def tiles(
    x,
    y,
    group,
    down,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """A tile a program."""
    turn(x, y, tl.program_id(0), group, down, M, N, BLOCK_M, BLOCK_N, VECTOR, STORE_VECTOR, EVICTION)


@triton.jit
def looped(
    x,
    y,
    group,
    down,
    B: tl.constexpr,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
    STAGES: tl.constexpr,
):
    """A fixed number of programs share the tiles."""
    TILES: tl.constexpr = B * triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N)
    for tile in tl.range(tl.program_id(0), TILES, tl.num_programs(0), num_stages=STAGES):
        turn(x, y, tile, group, down, M, N, BLOCK_M, BLOCK_N, VECTOR, STORE_VECTOR, EVICTION)
