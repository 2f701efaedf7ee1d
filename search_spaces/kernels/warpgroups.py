"""Matrix product on Hopper, in roles: one group of warps copies ahead, two multiply and store.

Each multiplying group has its own half of a tile and waits for copies only, so that the tensor cores go on with one
group's product while another group stores. Two blocks of a cluster can share the columns of B: each copies half of
them to both. Gluon 3.6 has no words for that: `everywhere` marks the instructions that the generator rewrites.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma, warpgroup_mma, warpgroup_mma_wait

from search_spaces.kernels.cluster import everywhere, here, meet, publish
from search_spaces.kernels.warpgroup_store import activated, halves, store

# Registers of a thread by its role; together with those of the default role they fill the register file.
MULTIPLYING = gl.constexpr(240)
COPYING = gl.constexpr(24)
# Of a row of A that one instruction multiplies.
INSTRUCTION_BITS = gl.constexpr(256)


@gluon.jit
def tile_of(index, group, columns, serpentine, TILES_M: gl.constexpr, TILES_N: gl.constexpr):
    """Row and column of tile number `index`, walking bands of `group` tiles; `columns` = 1 for bands of columns.

    With `serpentine` = 1 every other band runs backwards, so that it starts with what the last one left in the cache.
    """
    across = gl.where(columns != 0, TILES_M, TILES_N)
    along = gl.where(columns != 0, TILES_N, TILES_M)
    band = index // (group * across)
    first = band * group
    height = gl.minimum(along - first, group)
    rest = index % (group * across)
    major = first + rest % height
    minor = rest // height
    minor = gl.where((serpentine & band & 1) != 0, across - 1 - minor, minor)
    return gl.where(columns != 0, minor, major), gl.where(columns != 0, major, minor)


@gluon.jit
def before(stage, STAGES: gl.constexpr):
    """The stage before this one in the ring.

    Computed, since a loop does not carry on a variable that enters it as the same value as another.
    """
    return gl.where(stage == 0, STAGES, stage) - 1


@gluon.jit
def copy(
    a,
    b,
    up,
    a_ring,
    b_ring,
    full,
    empty,
    CLUSTER: gl.constexpr,
    group,
    columns,
    serpentine,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
    STEPS: gl.constexpr,
    TRANS_B: gl.constexpr,
    GATED: gl.constexpr,
):
    """Fills the rings with the tiles of A and B, as far ahead as they have room."""
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    PART: gl.constexpr = b.block_shape[0 if TRANS_B else 1]
    STAGES: gl.constexpr = full.shape[0]
    SIDES: gl.constexpr = 2 if GATED else CLUSTER
    BYTES: gl.constexpr = 2 * a.block_type.nbytes + SIDES * b.block_type.nbytes
    meet(CLUSTER)
    rank = gl.program_id(0) % CLUSTER
    clusters = gl.num_programs(0) // CLUSTER
    stage = 0
    phase = 1
    backwards = 0
    for tile in range(gl.program_id(0) // CLUSTER, TILES_M * TILES_N, clusters):
        tile_m, tile_n = tile_of(tile, group, columns, serpentine, TILES_M, TILES_N)
        row = (tile_m * CLUSTER + rank) * (2 * ROWS)
        column = (tile_n * CLUSTER + rank) * PART
        for k in range(STEPS):
            at = gl.where(backwards != 0, STEPS - 1 - k, k) * BLOCK_K
            ready = full.index(stage)
            mbarrier.wait(empty.index(stage), phase)
            mbarrier.expect(ready, BYTES)
            tma.async_copy_global_to_shared(a, [row, at], ready, a_ring.index(2 * stage))
            tma.async_copy_global_to_shared(a, [row + ROWS, at], ready, a_ring.index(2 * stage + 1))
            everywhere(CLUSTER)
            if GATED:
                tma.async_copy_global_to_shared(b, [column, at], ready, b_ring.index(2 * stage))
                tma.async_copy_global_to_shared(up, [column, at], ready, b_ring.index(2 * stage + 1))
            elif TRANS_B:
                tma.async_copy_global_to_shared(b, [column, at], ready, b_ring.index(stage * CLUSTER + rank))
            else:
                tma.async_copy_global_to_shared(b, [at, column], ready, b_ring.index(stage * CLUSTER + rank))
            here(CLUSTER)
            stage += 1
            phase = gl.where(stage == STAGES, phase ^ 1, phase)
            stage = gl.where(stage == STAGES, 0, stage)
        backwards = serpentine - backwards
    meet(CLUSTER)


@gluon.jit
def chain(
    sums,
    first,
    last,
    stage,
    phase,
    a_ring,
    b_ring,
    full,
    empty,
    started,
    HALF: gl.constexpr,
    CLUSTER: gl.constexpr,
    LEAD: gl.constexpr,
    TRANS_B: gl.constexpr,
):
    """Adds to `sums` the products of the steps `first` to `last`; what follows in the ring and its phase."""
    STAGES: gl.constexpr = full.shape[0]
    for k in range(first, last):
        mbarrier.wait(full.index(stage), phase)
        right = b_ring.index(stage)
        if TRANS_B:
            right = right.permute((1, 0))
        sums = warpgroup_mma(a_ring.index(2 * stage + HALF), right, sums, is_async=True)
        sums = warpgroup_mma_wait(1, deps=[sums])
        everywhere(CLUSTER)
        mbarrier.arrive(empty.index(before(stage, STAGES)), pred=k > first)
        here(CLUSTER)
        if LEAD > 0 and HALF == 0:
            mbarrier.arrive(started, pred=k == LEAD)
        stage += 1
        phase = gl.where(stage == STAGES, phase ^ 1, phase)
        stage = gl.where(stage == STAGES, 0, stage)
    sums = warpgroup_mma_wait(0, deps=[sums])
    everywhere(CLUSTER)
    mbarrier.arrive(empty.index(before(stage, STAGES)))
    here(CLUSTER)
    return sums, stage, phase


@gluon.jit
def multiply(
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    a_ring,
    b_ring,
    full,
    empty,
    started,
    pieces,
    HALF: gl.constexpr,
    CLUSTER: gl.constexpr,
    LEAD: gl.constexpr,
    group,
    columns,
    serpentine,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
    STEPS: gl.constexpr,
    M: gl.constexpr,
    N: gl.constexpr,
    CHAIN: gl.constexpr,
    TRANS_B: gl.constexpr,
    SCALED: gl.constexpr,
    BIAS: gl.constexpr,
    RESIDUAL: gl.constexpr,
    ACTIVATION: gl.constexpr,
    GATED: gl.constexpr,
):
    """Multiplies the upper or lower half of each tile with what the rings bring, and stores it.

    After each `CHAIN` steps the sums of the tensor cores are added to others, which lose no bits.
    """
    ROWS: gl.constexpr = a_ring.shape[1]
    BLOCK_N: gl.constexpr = b_ring.shape[1 if TRANS_B else 2]
    DEPTH: gl.constexpr = INSTRUCTION_BITS // a_ring.dtype.primitive_bitwidth
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, DEPTH])
    meet(CLUSTER)
    rank = gl.program_id(0) % CLUSTER
    scales = (row_scale, column_scale)
    rings = (a_ring, b_ring, full, empty, started)
    stage = 0
    phase = 0
    if LEAD > 0 and HALF > 0:
        mbarrier.wait(started, 0)
    for tile in range(gl.program_id(0) // CLUSTER, TILES_M * TILES_N, gl.num_programs(0) // CLUSTER):
        sums = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
        if CHAIN == STEPS:
            sums, stage, phase = chain(sums, 0, STEPS, stage, phase, *rings, HALF, CLUSTER, LEAD, TRANS_B)
        else:
            for first in range(0, STEPS, CHAIN):
                last = gl.minimum(first + CHAIN, STEPS)
                part = gl.zeros([ROWS, BLOCK_N], gl.float32, layout)
                part, stage, phase = chain(part, first, last, stage, phase, *rings, HALF, CLUSTER, LEAD, TRANS_B)
                sums += part
        tile_m, tile_n = tile_of(tile, group, columns, serpentine, TILES_M, TILES_N)
        row = ((tile_m * CLUSTER + rank) * 2 + HALF) * ROWS
        piece = pieces.index(HALF)
        if GATED:
            # B and UP lie below each other in the ring, so that one product has both.
            gate, factor = halves(sums)
            gated = activated(gate, ACTIVATION) * factor
            column = tile_n * (BLOCK_N // 2)
            store(c, bias, residual, *scales, piece, row, column, gated, M, N, False, False, False, 0)
        else:
            column = tile_n * BLOCK_N
            store(c, bias, residual, *scales, piece, row, column, sums, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION)
    tma.store_wait(0)
    meet(CLUSTER)


@gluon.jit
def warpgroups(
    a,
    b,
    up,
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    group,
    columns,
    serpentine,
    M: gl.constexpr,
    N: gl.constexpr,
    K: gl.constexpr,
    CLUSTER: gl.constexpr,
    STAGES: gl.constexpr,
    LEAD: gl.constexpr,
    CHAIN: gl.constexpr,
    TRANS_B: gl.constexpr,
    SCALED: gl.constexpr,
    BIAS: gl.constexpr,
    RESIDUAL: gl.constexpr,
    ACTIVATION: gl.constexpr,
    GATED: gl.constexpr,
):
    """As many clusters as the grid has share all tiles of C; each takes every `num_programs / CLUSTER`-th."""
    ROWS: gl.constexpr = a.block_shape[0]
    BLOCK_K: gl.constexpr = a.block_shape[1]
    PART: gl.constexpr = b.block_shape[0 if TRANS_B else 1]
    TILES_M: gl.constexpr = triton.cdiv(M, CLUSTER * 2 * ROWS)
    TILES_N: gl.constexpr = triton.cdiv(N, CLUSTER * PART)
    STEPS: gl.constexpr = triton.cdiv(K, BLOCK_K)
    a_ring = gl.allocate_shared_memory(a.dtype, [2 * STAGES, ROWS, BLOCK_K], a.layout)
    SIDES: gl.constexpr = 2 if GATED else CLUSTER
    parts = gl.allocate_shared_memory(b.dtype, [STAGES * SIDES, b.block_shape[0], b.block_shape[1]], b.layout)
    # Neighbouring parts are one tile: both are made of slabs as wide as the swizzle, or are parts of one slab.
    if TRANS_B:
        b_ring = parts._reinterpret(b.dtype, [STAGES, SIDES * PART, BLOCK_K], b.layout)
    else:
        b_ring = parts._reinterpret(b.dtype, [STAGES, BLOCK_K, CLUSTER * PART], b.layout)
    pieces = gl.allocate_shared_memory(c.dtype, [2, ROWS, c.block_shape[1]], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    started = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2 * CLUSTER)
    mbarrier.init(started, count=1)
    publish(CLUSTER)
    # A barrier of the cluster wants every warp of the block: none may be left without a role.
    COPIERS: gl.constexpr = 1 if CLUSTER == 1 else 4
    gl.warp_specialize(
        [
            (
                multiply,
                (
                    c,
                    bias,
                    residual,
                    row_scale,
                    column_scale,
                    a_ring,
                    b_ring,
                    full,
                    empty,
                    started,
                    pieces,
                    gl.constexpr(0),
                    CLUSTER,
                    LEAD,
                    group,
                    columns,
                    serpentine,
                    TILES_M,
                    TILES_N,
                    STEPS,
                    M,
                    N,
                    CHAIN,
                    TRANS_B,
                    SCALED,
                    BIAS,
                    RESIDUAL,
                    ACTIVATION,
                    GATED,
                ),
            ),
            (
                multiply,
                (
                    c,
                    bias,
                    residual,
                    row_scale,
                    column_scale,
                    a_ring,
                    b_ring,
                    full,
                    empty,
                    started,
                    pieces,
                    gl.constexpr(1),
                    CLUSTER,
                    LEAD,
                    group,
                    columns,
                    serpentine,
                    TILES_M,
                    TILES_N,
                    STEPS,
                    M,
                    N,
                    CHAIN,
                    TRANS_B,
                    SCALED,
                    BIAS,
                    RESIDUAL,
                    ACTIVATION,
                    GATED,
                ),
            ),
            (
                copy,
                (
                    a,
                    b,
                    up,
                    a_ring,
                    parts,
                    full,
                    empty,
                    CLUSTER,
                    group,
                    columns,
                    serpentine,
                    TILES_M,
                    TILES_N,
                    STEPS,
                    TRANS_B,
                    GATED,
                ),
            ),
        ],
        [4, COPIERS],
        [MULTIPLYING, COPYING],
    )
