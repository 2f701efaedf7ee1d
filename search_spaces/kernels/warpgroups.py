"""Matrix product on Hopper: one warp copies, two groups of four warps multiply; what each does is written out."""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def tile_of(index, group, columns, TILES_M: gl.constexpr, TILES_N: gl.constexpr):
    """Row and column of tile number `index`, walking bands of `group` tiles; `columns` = 1 for bands of columns."""
    across = gl.where(columns != 0, TILES_M, TILES_N)
    along = gl.where(columns != 0, TILES_N, TILES_M)
    band = index // (group * across)
    first = band * group
    height = gl.minimum(along - first, group)
    rest = index % (group * across)
    major = first + rest % height
    minor = rest // height
    return gl.where(columns != 0, minor, major), gl.where(columns != 0, major, minor)


@gluon.jit
def before(stage, STAGES: gl.constexpr):
    """The stage before this one in the ring."""
    return gl.where(stage == 0, STAGES, stage) - 1


@gluon.jit
def copy(
    a,
    b,
    a_ring,
    b_ring,
    full,
    empty,
    group,
    columns,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
    STEPS: gl.constexpr,
    STAGES: gl.constexpr,
):
    """Fills the rings with the tiles of A and B, as far ahead as they have room."""
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BLOCK_N: gl.constexpr = b.block_shape[1]
    stage = 0
    phase = 1
    for tile in range(gl.program_id(0), TILES_M * TILES_N, gl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, group, columns, TILES_M, TILES_N)
        row = tile_m * (2 * ROWS)
        column = tile_n * BLOCK_N
        for k in range(STEPS):
            ready = full.index(stage)
            mbarrier.wait(empty.index(stage), phase)
            mbarrier.expect(ready, 2 * a.block_type.nbytes + b.block_type.nbytes)
            tma.async_copy_global_to_shared(a, [row, k * BLOCK_K], ready, a_ring.index(2 * stage))
            tma.async_copy_global_to_shared(b, [k * BLOCK_K, column], ready, b_ring.index(stage))
            tma.async_copy_global_to_shared(a, [row + ROWS, k * BLOCK_K], ready, a_ring.index(2 * stage + 1))
            stage += 1
            phase = gl.where(stage == STAGES, phase ^ 1, phase)
            stage = gl.where(stage == STAGES, 0, stage)


@gluon.jit
def store(c, piece, row, column, sums):
    """Stores a tile through a piece of shared memory, which is free again once it was read."""
    ROWS: gl.constexpr = sums.shape[0]
    COLUMNS: gl.constexpr = sums.shape[1]
    if c.block_shape[1] == COLUMNS:
        tma.store_wait(0)
        piece.store(sums.to(c.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c, [row, column], piece)
    else:
        left, right = sums.reshape([ROWS, 2, COLUMNS // 2]).permute(0, 2, 1).split()
        store(c, piece, row, column, left)
        store(c, piece, row, column + COLUMNS // 2, right)


@gluon.jit
def multiply(
    c,
    a_ring,
    b_ring,
    full,
    empty,
    started,
    piece,
    group,
    columns,
    HALF: gl.constexpr,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
    STEPS: gl.constexpr,
    STAGES: gl.constexpr,
    LEAD: gl.constexpr,
):
    """Multiplies the upper or lower half of each tile with what the rings bring, and stores it."""
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[2]
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16]
    )
    stage = 0
    phase = 0
    if LEAD > 0 and HALF == 1:
        mbarrier.wait(started, 0)
    for tile in range(gl.program_id(0), TILES_M * TILES_N, gl.num_programs(0)):
        sums = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        for k in range(STEPS):
            mbarrier.wait(full.index(stage), phase)
            sums = warpgroup_mma(a_ring.index(2 * stage + HALF), b_ring.index(stage), sums, is_async=True)
            sums = warpgroup_mma_wait(1, deps=[sums])
            mbarrier.arrive(empty.index(before(stage, STAGES)), pred=k > 0)
            if LEAD > 0 and HALF == 0:
                mbarrier.arrive(started, pred=k == LEAD)
            stage += 1
            phase = gl.where(stage == STAGES, phase ^ 1, phase)
            stage = gl.where(stage == STAGES, 0, stage)
        sums = warpgroup_mma_wait(0, deps=[sums])
        mbarrier.arrive(empty.index(before(stage, STAGES)))
        tile_m, tile_n = tile_of(tile, group, columns, TILES_M, TILES_N)
        store(c, piece, (2 * tile_m + HALF) * ROWS, tile_n * BLOCK_N, sums)
    tma.store_wait(0)


@gluon.jit
def warpgroups(
    a,
    b,
    c,
    group,
    columns,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    STAGES: gl.constexpr,
    LEAD: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    """As many programs as the grid has share all tiles of C; each takes every `num_programs`-th."""
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    BLOCK_N: gl.constexpr = b.block_shape[1]
    TILES_M: gl.constexpr = triton.cdiv(M, 2 * ROWS)
    TILES_N: gl.constexpr = triton.cdiv(N, BLOCK_N)
    STEPS: gl.constexpr = triton.cdiv(K, BLOCK_K)
    a_ring = gl.allocate_shared_memory(a.dtype, [2 * STAGES, ROWS, BLOCK_K], a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [STAGES, BLOCK_K, BLOCK_N], b.layout)
    pieces = gl.allocate_shared_memory(c.dtype, [2, ROWS, c.block_shape[1]], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    started = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)
    mbarrier.init(started, count=1)
    gl.warp_specialize(
        [
            (
                multiply,
                (
                    c,
                    a_ring,
                    b_ring,
                    full,
                    empty,
                    started,
                    pieces.index(0),
                    group,
                    columns,
                    gl.constexpr(0),
                    TILES_M,
                    TILES_N,
                    STEPS,
                    STAGES,
                    LEAD,
                ),
            ),
            (
                multiply,
                (
                    c,
                    a_ring,
                    b_ring,
                    full,
                    empty,
                    started,
                    pieces.index(1),
                    group,
                    columns,
                    gl.constexpr(1),
                    TILES_M,
                    TILES_N,
                    STEPS,
                    STAGES,
                    LEAD,
                ),
            ),
            (copy, (a, b, a_ring, b_ring, full, empty, group, columns, TILES_M, TILES_N, STEPS, STAGES)),
        ],
        [4, 1],
        [REGISTERS, 24],
    )
