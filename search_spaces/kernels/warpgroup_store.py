"""What a group of warps does with the sums of its tile: scales, bias, activation, residual, and the store by TMA."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, tma

from search_spaces.kernels.epilogue import CUBE, SCALE


@gluon.jit
def activated(x, ACTIVATION: gl.constexpr):
    """As `epilogue.activated`."""
    if ACTIVATION == 1:
        x = gl.maximum(x, 0.0)
    elif ACTIVATION == 2:
        x = x / (1.0 + gl.exp(-SCALE * (x + CUBE * x * x * x)))
    elif ACTIVATION == 3:
        x = x / (1.0 + gl.exp(-x))
    return x


@gluon.jit
def halves(tile):
    """Left and right half of a tile."""
    return tile.reshape([tile.shape[0], 2, tile.shape[1] // 2]).permute(0, 2, 1).split()


@gluon.jit
def store(
    c,
    bias,
    residual,
    row_scale,
    column_scale,
    piece,
    row,
    column,
    sums,
    M: gl.constexpr,
    N: gl.constexpr,
    SCALED: gl.constexpr,
    BIAS: gl.constexpr,
    RESIDUAL: gl.constexpr,
    ACTIVATION: gl.constexpr,
):
    """Stores a tile with what follows the product, through a piece of shared memory that is free once it was read."""
    ROWS: gl.constexpr = sums.shape[0]
    COLUMNS: gl.constexpr = sums.shape[1]
    if c.block_shape[1] == COLUMNS:
        layout: gl.constexpr = sums.type.layout
        rows = row + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
        across = column + gl.arange(0, COLUMNS, layout=gl.SliceLayout(0, layout))
        if SCALED:
            sums *= gl.load(row_scale + rows, mask=rows < M, other=0.0)[:, None]
            sums *= gl.load(column_scale + across, mask=across < N, other=0.0)[None, :]
        if BIAS:
            sums += gl.load(bias + across, mask=across < N, other=0.0).to(gl.float32)[None, :]
        sums = activated(sums, ACTIVATION)
        if RESIDUAL:
            at = rows.to(gl.int64)[:, None] * N + across[None, :]
            inside = (rows < M)[:, None] & (across < N)[None, :]
            sums += gl.load(residual + at, mask=inside, other=0.0).to(gl.float32)
        tma.store_wait(0)
        piece.store(sums.to(c.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(c, [row, column], piece)
    else:
        HALF: gl.constexpr = COLUMNS // 2
        left, right = halves(sums)
        scales = (row_scale, column_scale)
        store(c, bias, residual, *scales, piece, row, column, left, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION)
        store(c, bias, residual, *scales, piece, row, column + HALF, right, M, N, SCALED, BIAS, RESIDUAL, ACTIVATION)
