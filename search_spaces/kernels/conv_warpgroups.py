"""Convolution on Hopper, in roles: one warp copies ahead, two groups of warps multiply and store, each its own box.

As `boxes` of the plain kernels, but the boxes of pixels are multiplied from where they were copied to.
"""

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

from search_spaces.kernels.warpgroups import before, tile_of

# Registers of a thread by its role; together with those of the default role they fill the register file.
MULTIPLYING = gl.constexpr(240)
COPYING = gl.constexpr(24)


@gluon.jit
def place(box, y, P: gl.constexpr, Q: gl.constexpr):
    """First image, row and column of box number `box`, boxes being counted along rows, then down, then by image."""
    IMAGES: gl.constexpr = y.block_shape[0]
    ROWS: gl.constexpr = y.block_shape[1]
    COLUMNS: gl.constexpr = y.block_shape[2]
    DOWN: gl.constexpr = triton.cdiv(P, ROWS)
    ACROSS: gl.constexpr = triton.cdiv(Q, COLUMNS)
    return box // (DOWN * ACROSS) * IMAGES, box // ACROSS % DOWN * ROWS, box % ACROSS * COLUMNS


@gluon.jit
def copy(
    x,
    f,
    y,
    x_ring,
    f_ring,
    full,
    empty,
    group,
    columns,
    C: gl.constexpr,
    R: gl.constexpr,
    P: gl.constexpr,
    Q: gl.constexpr,
    STRIDE: gl.constexpr,
    PAD: gl.constexpr,
    PLACES: gl.constexpr,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
):
    """Fills the rings with two boxes of X and a tile of filters, as far ahead as they have room."""
    BLOCK_K: gl.constexpr = f.block_shape[1]
    BLOCK_N: gl.constexpr = f.block_shape[0]
    STAGES: gl.constexpr = full.shape[0]
    PARTS: gl.constexpr = triton.cdiv(C, BLOCK_K)
    BYTES: gl.constexpr = 2 * x.block_type.nbytes + f.block_type.nbytes
    stage = 0
    phase = 1
    for tile in range(gl.program_id(0), TILES_M * TILES_N, gl.num_programs(0)):
        tile_m, tile_n = tile_of(tile, group, columns, 0, TILES_M, TILES_N)
        upper_image, upper_row, upper_column = place(2 * tile_m, y, P, Q)
        lower_image, lower_row, lower_column = place(2 * tile_m + 1, y, P, Q)
        for step in range(R * R * PARTS):
            spot = step // PARTS if PLACES else step % (R * R)
            channel = (step % PARTS if PLACES else step // (R * R)) * BLOCK_K
            # Counted from a whole number of strides before the image, since division rounds towards zero.
            r = spot // R - PAD + PAD * STRIDE
            s = spot % R - PAD + PAD * STRIDE
            down = r // STRIDE - PAD
            right = s // STRIDE - PAD
            inner = s % STRIDE * C + channel
            ready = full.index(stage)
            mbarrier.wait(empty.index(stage), phase)
            mbarrier.expect(ready, BYTES)
            tma.async_copy_global_to_shared(
                x,
                [upper_image, upper_row + down, r % STRIDE, upper_column + right, inner],
                ready,
                x_ring.index(2 * stage),
            )
            tma.async_copy_global_to_shared(
                x,
                [lower_image, lower_row + down, r % STRIDE, lower_column + right, inner],
                ready,
                x_ring.index(2 * stage + 1),
            )
            tma.async_copy_global_to_shared(f, [tile_n * BLOCK_N, spot * C + channel], ready, f_ring.index(stage))
            stage += 1
            phase = gl.where(stage == STAGES, phase ^ 1, phase)
            stage = gl.where(stage == STAGES, 0, stage)


@gluon.jit
def store(y, piece, at, column, sums):
    """Stores a box through a piece of shared memory, which is free again once it was read."""
    COLUMNS: gl.constexpr = sums.shape[1]
    PIXELS: gl.constexpr = sums.shape[0]
    if y.block_shape[3] == COLUMNS:
        tma.store_wait(0)
        piece.reshape([PIXELS, COLUMNS]).store(sums.to(y.dtype))
        fence_async_shared()
        image, row, left = at
        tma.async_copy_shared_to_global(y, [image, row, left, column], piece)
    else:
        first, second = sums.reshape([PIXELS, 2, COLUMNS // 2]).permute(0, 2, 1).split()
        store(y, piece, at, column, first)
        store(y, piece, at, column + COLUMNS // 2, second)


@gluon.jit
def multiply(
    y,
    x_ring,
    f_ring,
    full,
    empty,
    pieces,
    HALF: gl.constexpr,
    group,
    columns,
    P: gl.constexpr,
    Q: gl.constexpr,
    STEPS: gl.constexpr,
    TILES_M: gl.constexpr,
    TILES_N: gl.constexpr,
):
    """Multiplies one of each tile's two boxes with what the rings bring, and stores it."""
    BLOCK_N: gl.constexpr = f_ring.shape[1]
    BLOCK_K: gl.constexpr = f_ring.shape[2]
    PIXELS: gl.constexpr = x_ring.shape[1] * x_ring.shape[2] * x_ring.shape[4]
    STAGES: gl.constexpr = full.shape[0]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    stage = 0
    phase = 0
    for tile in range(gl.program_id(0), TILES_M * TILES_N, gl.num_programs(0)):
        sums = gl.zeros([PIXELS, BLOCK_N], gl.float32, layout)
        for step in range(STEPS):
            mbarrier.wait(full.index(stage), phase)
            box = x_ring.index(2 * stage + HALF).reshape([PIXELS, BLOCK_K])
            sums = warpgroup_mma(box, f_ring.index(stage).permute((1, 0)), sums, is_async=True)
            sums = warpgroup_mma_wait(1, deps=[sums])
            mbarrier.arrive(empty.index(before(stage, STAGES)), pred=step > 0)
            stage += 1
            phase = gl.where(stage == STAGES, phase ^ 1, phase)
            stage = gl.where(stage == STAGES, 0, stage)
        sums = warpgroup_mma_wait(0, deps=[sums])
        mbarrier.arrive(empty.index(before(stage, STAGES)))
        tile_m, tile_n = tile_of(tile, group, columns, 0, TILES_M, TILES_N)
        store(y, pieces.index(HALF), place(2 * tile_m + HALF, y, P, Q), tile_n * BLOCK_N, sums)
    tma.store_wait(0)


@gluon.jit
def warpgroups(
    x,
    f,
    y,
    group,
    columns,
    N: gl.constexpr,
    C: gl.constexpr,
    K: gl.constexpr,
    R: gl.constexpr,
    P: gl.constexpr,
    Q: gl.constexpr,
    STRIDE: gl.constexpr,
    PAD: gl.constexpr,
    PLACES: gl.constexpr,
    STAGES: gl.constexpr,
):
    """The programs of the grid share all tiles: two boxes of pixels by filters."""
    BOXES: gl.constexpr = (
        triton.cdiv(N, y.block_shape[0]) * triton.cdiv(P, y.block_shape[1]) * triton.cdiv(Q, y.block_shape[2])
    )
    TILES_M: gl.constexpr = triton.cdiv(BOXES, 2)
    TILES_N: gl.constexpr = triton.cdiv(K, f.block_shape[0])
    STEPS: gl.constexpr = R * R * triton.cdiv(C, f.block_shape[1])
    IMAGES: gl.constexpr = y.block_shape[0]
    ROWS: gl.constexpr = y.block_shape[1]
    COLUMNS: gl.constexpr = y.block_shape[2]
    x_ring = gl.allocate_shared_memory(x.dtype, [2 * STAGES, IMAGES, ROWS, 1, COLUMNS, x.block_shape[4]], x.layout)
    f_ring = gl.allocate_shared_memory(f.dtype, [STAGES, f.block_shape[0], f.block_shape[1]], f.layout)
    pieces = gl.allocate_shared_memory(y.dtype, [2, IMAGES, ROWS, COLUMNS, y.block_shape[3]], y.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=2)
    upper, lower = gl.constexpr(0), gl.constexpr(1)
    gl.warp_specialize(
        [
            (
                multiply,
                (y, x_ring, f_ring, full, empty, pieces, upper, group, columns, P, Q, STEPS, TILES_M, TILES_N),
            ),
            (
                multiply,
                (y, x_ring, f_ring, full, empty, pieces, lower, group, columns, P, Q, STEPS, TILES_M, TILES_N),
            ),
            (
                copy,
                (
                    x,
                    f,
                    y,
                    x_ring,
                    f_ring,
                    full,
                    empty,
                    group,
                    columns,
                    C,
                    R,
                    P,
                    Q,
                    STRIDE,
                    PAD,
                    PLACES,
                    TILES_M,
                    TILES_N,
                ),
            ),
        ],
        [4, 1],
        [MULTIPLYING, COPYING],
    )
