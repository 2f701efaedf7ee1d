"""What follows a matrix product before it is stored: scales, bias, activation."""

import triton
import triton.language as tl

from search_spaces.products import GELU_CUBE, GELU_SCALE

SCALE = tl.constexpr(GELU_SCALE)
CUBE = tl.constexpr(GELU_CUBE)


@triton.jit
def activated(x, ACTIVATION: tl.constexpr):
    """ReLU, GELU or SiLU by its number in `products.ACTIVATIONS`."""
    if ACTIVATION == 1:
        x = tl.maximum(x, 0.0)
    elif ACTIVATION == 2:
        x = x * tl.sigmoid(SCALE * (x + CUBE * x * x * x))
    elif ACTIVATION == 3:
        x = x * tl.sigmoid(x)
    return x


@triton.jit
def followed(
    sums,
    bias,
    row_scale,
    column_scale,
    row,
    column,
    M: tl.constexpr,
    N: tl.constexpr,
    SCALED: tl.constexpr,
    BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
):
    """Sums of the rows `row` and the columns `column`, with their scales, bias and the activation, in float32."""
    if SCALED:
        sums *= tl.load(row_scale + row, mask=row < M, other=0.0)[:, None]
        sums *= tl.load(column_scale + column, mask=column < N, other=0.0)[None, :]
    if BIAS:
        sums += tl.load(bias + column, mask=column < N, other=0.0).to(tl.float32)[None, :]
    return activated(sums, ACTIVATION)
