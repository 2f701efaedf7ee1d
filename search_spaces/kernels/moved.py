"""Tiles of matrix products that TMA moves: the sums of one, and its store in pieces."""

import triton
import triton.language as tl

from search_spaces.kernels.epilogue import followed
from search_spaces.kernels.promoted import multiplied


@triton.jit
def product(
    a,
    b,
    row,
    column,
    above,
    first,
    last,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    TRANS_B: tl.constexpr,
    SWAPPED: tl.constexpr,
    PROMOTE: tl.constexpr,
):
    """The tile of sums at (row, column) over the steps `first` to `last`; descriptors read zeros outside.

    The first `above` rows of B belong to other products. With SWAPPED the transposed tile: B takes the long side of
    the tensor cores where A has few rows.
    """
    ACCUMULATOR: tl.constexpr = tl.int32 if a.dtype == tl.int8 else tl.float32
    sums = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), dtype=ACCUMULATOR)
    for k in range(first, last):
        left = a.load([row, k * BLOCK_K])
        right = b.load([above + column, k * BLOCK_K]).T if TRANS_B else b.load([above + k * BLOCK_K, column])
        sums = multiplied(right.T, left.T, sums, PROMOTE) if SWAPPED else multiplied(left, right, sums, PROMOTE)
    return sums.to(tl.float32)


@triton.jit
def halves(tile, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Left and right half of a tile."""
    return tl.permute(tl.reshape(tile, (ROWS, 2, COLUMNS // 2)), (0, 2, 1)).split()


@triton.jit
def store_piece(
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    sums,
    row,
    column,
    M: tl.constexpr,
    N: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Stores one piece of a tile through a descriptor, with what follows the product."""
    rows = row + tl.arange(0, sums.shape[0])
    across = column + tl.arange(0, sums.shape[1])
    sums = followed(sums, bias, row_scale, column_scale, rows, across, M, N, SCALED, BIAS, ACTIVATION)
    if RESIDUAL:
        sums += residual.load([row, column]).to(tl.float32)
    c.store([row, column], sums.to(c.dtype))


@triton.jit
def store(
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    sums,
    row,
    column,
    M: tl.constexpr,
    N: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SUBTILES: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    RESIDUAL: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Stores a tile in pieces: each goes through shared memory, so that more pieces need less of it."""
    if SUBTILES == 1:
        store_piece(
            c, bias, residual, row_scale, column_scale, sums, row, column, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION
        )
    else:
        HALF: tl.constexpr = BLOCK_N // 2
        left, right = halves(sums, BLOCK_M, BLOCK_N)
        if SUBTILES == 2:
            store_piece(
                c, bias, residual, row_scale, column_scale, left, row, column, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION
            )
            store_piece(
                c,
                bias,
                residual,
                row_scale,
                column_scale,
                right,
                row,
                column + HALF,
                M,
                N,
                SCALED,
                BIAS,
                RESIDUAL,
                ACTIVATION,
            )
        else:
            first, second = halves(left, BLOCK_M, HALF)
            third, fourth = halves(right, BLOCK_M, HALF)
            store_piece(
                c, bias, residual, row_scale, column_scale, first, row, column, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION
            )
            store_piece(
                c,
                bias,
                residual,
                row_scale,
                column_scale,
                second,
                row,
                column + HALF // 2,
                M,
                N,
                SCALED,
                BIAS,
                RESIDUAL,
                ACTIVATION,
            )
            store_piece(
                c,
                bias,
                residual,
                row_scale,
                column_scale,
                third,
                row,
                column + HALF,
                M,
                N,
                SCALED,
                BIAS,
                RESIDUAL,
                ACTIVATION,
            )
            store_piece(
                c,
                bias,
                residual,
                row_scale,
                column_scale,
                fourth,
                row,
                column + HALF + HALF // 2,
                M,
                N,
                SCALED,
                BIAS,
                RESIDUAL,
                ACTIVATION,
            )
