"""Matrix products whose sums several programs share: a fixed number of pieces of K, or equal shares of all steps.

A piece that is not the whole of K goes to a workspace. The program that finds itself the last of a tile, by a counter,
adds the pieces in the order of K, so that the result does not depend on which one that is, and sets the counter back.
"""

import triton
import triton.language as tl

from search_spaces.kernels.matmul import finish, pointer_product, tile_of
from search_spaces.kernels.moved import product, store


@triton.jit
def is_last(counters, tile, pieces):
    """Whether this is the last of so many programs to bring a piece of a tile: all pieces can then be read."""
    # Every thread's stores come before the one thread's release.
    tl.debug_barrier()
    arrived = tl.atomic_add(counters + tile, 1, sem="acq_rel")
    last = arrived == pieces - 1
    if last:
        tl.store(counters + tile, 0)
    return last


@triton.jit
def place(partial, slot, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Addresses of a piece in the workspace."""
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return partial + slot * tl.full((), ROWS * COLUMNS, tl.int64) + at


@triton.jit
def summed(partial, tile, SPLIT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """All pieces of a tile, in the order of K."""
    sums = tl.zeros((ROWS, COLUMNS), partial.dtype.element_ty)
    for other in range(SPLIT):
        sums += tl.load(place(partial, tile * SPLIT + other, ROWS, COLUMNS), cache_modifier=".cg")
    return sums


@triton.jit
def split(
    a,
    b,
    c,
    bias,
    residual,
    row_scale,
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
    TRANS_B: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """One of `SPLIT` pieces of K of one tile of C a program, through pointers."""
    STEPS: tl.constexpr = triton.cdiv(K, BLOCK_K)
    EACH: tl.constexpr = triton.cdiv(STEPS, SPLIT)
    ROWS: tl.constexpr = BLOCK_N if SWAPPED else BLOCK_M
    COLUMNS: tl.constexpr = BLOCK_M if SWAPPED else BLOCK_N
    # The pieces of a tile run side by side.
    piece = tl.program_id(0) % SPLIT
    tile = tl.program_id(0) // SPLIT
    tile_m, tile_n = tile_of(tile, group, columns, triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    top = tile_m * BLOCK_M
    left = tile_n * BLOCK_N
    first = piece * EACH
    last = tl.minimum(first + EACH, STEPS)
    B_STEP: tl.constexpr = 1 if TRANS_B else N
    B_COLUMN: tl.constexpr = K if TRANS_B else 1
    # Swapped, B takes the long side of the tensor cores where A has few rows.
    if SWAPPED:
        sums = pointer_product(
            b, a, left, top, first, last, N, M, K, BLOCK_N, BLOCK_M, BLOCK_K, B_COLUMN, B_STEP, 1, K, PROMOTE
        )
    else:
        sums = pointer_product(
            a, b, top, left, first, last, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K, K, 1, B_STEP, B_COLUMN, PROMOTE
        )
    mine = SPLIT == 1
    if SPLIT > 1:
        tl.store(place(partial, tile * SPLIT + piece, ROWS, COLUMNS), sums)
        mine = is_last(counters, tile, SPLIT)
        if mine:
            sums = summed(partial, tile, SPLIT, ROWS, COLUMNS)
    if mine:
        finished = tl.trans(sums) if SWAPPED else sums
        finish(
            c,
            bias,
            residual,
            row_scale,
            column_scale,
            finished,
            top,
            left,
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
def owner(step, each, longer):
    """Which program has this step, where each has `each` steps and the first `longer` ones have one more."""
    head = longer * (each + 1)
    return tl.where(step < head, step // (each + 1), longer + (step - head) // tl.maximum(each, 1))


@triton.jit
def stream(
    a,
    b,
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    partial,
    counters,
    group,
    columns,
    whole,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    SUBTILES: tl.constexpr,
    SWAPPED: tl.constexpr,
    TRANS_B: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """Stream-K (Osama et al. 2023) by TMA: after `whole` tiles that one program sums each, equal shares."""
    TILES_M: tl.constexpr = triton.cdiv(M, BLOCK_M)
    TILES_N: tl.constexpr = triton.cdiv(N, BLOCK_N)
    STEPS: tl.constexpr = triton.cdiv(K, BLOCK_K)
    ROWS: tl.constexpr = BLOCK_N if SWAPPED else BLOCK_M
    COLUMNS: tl.constexpr = BLOCK_M if SWAPPED else BLOCK_N
    program = tl.program_id(0)
    programs = tl.num_programs(0)
    for tile in range(program, whole, programs):
        tile_m, tile_n = tile_of(tile, group, columns, TILES_M, TILES_N)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        sums = product(a, b, row, column, 0, 0, STEPS, BLOCK_M, BLOCK_N, BLOCK_K, TRANS_B, SWAPPED, PROMOTE)
        if SWAPPED:
            sums = tl.trans(sums)
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
    each = (TILES_M * TILES_N - whole) * STEPS // programs
    longer = (TILES_M * TILES_N - whole) * STEPS % programs
    at = program * each + tl.minimum(program, longer)
    end = at + each + (program < longer).to(tl.int32)
    while at < end:
        shared = at // STEPS
        first = at - shared * STEPS
        last = tl.minimum(STEPS, first + end - at)
        tile_m, tile_n = tile_of(whole + shared, group, columns, TILES_M, TILES_N)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        sums = product(a, b, row, column, 0, first, last, BLOCK_M, BLOCK_N, BLOCK_K, TRANS_B, SWAPPED, PROMOTE)
        mine = last - first == STEPS
        if not mine:
            # Of its incomplete tiles a program begins one at the first step of K, and only comes into the other.
            begun = (first == 0).to(tl.int32)
            tl.store(place(partial, 2 * program + begun, ROWS, COLUMNS), sums)
            lowest = owner(shared * STEPS, each, longer)
            highest = owner(shared * STEPS + STEPS - 1, each, longer)
            mine = is_last(counters, shared, highest - lowest + 1)
            if mine:
                sums = tl.load(place(partial, 2 * lowest + 1, ROWS, COLUMNS), cache_modifier=".cg")
                for other in range(lowest + 1, highest + 1):
                    sums += tl.load(place(partial, 2 * other, ROWS, COLUMNS), cache_modifier=".cg")
        if mine:
            finished = tl.trans(sums) if SWAPPED else sums
            store(
                c,
                bias,
                residual,
                row_scale,
                column_scale,
                finished,
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
        at += last - first
