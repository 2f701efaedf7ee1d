"""Convolution as a matrix product whose left operand is never made: pixels of the output times filters.

A row of the product is a pixel of the output, a column a filter, and the sum goes over places of the filter and
channels. Strides are constants, so that one kernel serves channels last and channels first.
"""

import triton
import triton.language as tl

from search_spaces.kernels.matmul import tile_of


@triton.jit
def pixels(
    x,
    f,
    y,
    group,
    columns,
    PIXELS: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    STRIDE: tl.constexpr,
    PAD: tl.constexpr,
    X_IMAGE: tl.constexpr,
    X_ROW: tl.constexpr,
    X_COLUMN: tl.constexpr,
    X_CHANNEL: tl.constexpr,
    F_PLACE: tl.constexpr,
    F_CHANNEL: tl.constexpr,
    Y_IMAGE: tl.constexpr,
    Y_PIXEL: tl.constexpr,
    Y_FILTER: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WALK: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
):
    """One tile of pixels and filters a program, through pointers.

    `WALK` says what a step of the sum takes: with "places" channels of one place of the filter, all of a place's before
    the next; with "channels" the same channels of all places one after another; with "terms" whatever comes next in the
    filter's own memory, across places.
    """
    tile_m, tile_n = tile_of(tl.program_id(0), group, columns, triton.cdiv(PIXELS, BLOCK_M), triton.cdiv(K, BLOCK_N))
    pixel = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    # Wrapping around instead of masking: what is read twice is not stored.
    source = pixel if PIXELS % BLOCK_M == 0 else pixel % PIXELS
    wanted = column if K % BLOCK_N == 0 else column % K
    place = source % (P * Q)
    top = place // Q * STRIDE - PAD
    left = place % Q * STRIDE - PAD
    x_at = x + (source // (P * Q)).to(tl.int64) * X_IMAGE + top * X_ROW + left * X_COLUMN
    f_at = f + wanted * (R * R * C)
    inner = tl.arange(0, BLOCK_K)
    PARTS: tl.constexpr = triton.cdiv(C, BLOCK_K)
    STEPS: tl.constexpr = triton.cdiv(R * R * C, BLOCK_K) if WALK == "terms" else R * R * PARTS
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(STEPS):
        if WALK == "terms":
            term = step * BLOCK_K + inner
            channel = term % C if F_CHANNEL == 1 else term // (R * R)
            spot = term // C if F_CHANNEL == 1 else term % (R * R)
            filters = term
            valid = term < R * R * C
            ragged: tl.constexpr = R * R * C % BLOCK_K != 0
        else:
            spot = step // PARTS if WALK == "places" else step % (R * R)
            channel = (step % PARTS if WALK == "places" else step // (R * R)) * BLOCK_K + inner
            filters = spot * F_PLACE + channel * F_CHANNEL
            valid = channel < C
            ragged: tl.constexpr = C % BLOCK_K != 0
        r = spot // R
        s = spot % R
        inputs = r * X_ROW + s * X_COLUMN + channel * X_CHANNEL
        if WALK == "terms":
            row = top[:, None] + r[None, :]
            across = left[:, None] + s[None, :]
        else:
            row = (top + r)[:, None]
            across = (left + s)[:, None]
        if PAD > 0 and ragged:
            inside = (row >= 0) & (row < H) & (across >= 0) & (across < W) & valid[None, :]
            a = tl.load(x_at[:, None] + inputs[None, :], mask=inside, other=0.0)
        elif PAD > 0:
            inside = (row >= 0) & (row < H) & (across >= 0) & (across < W)
            a = tl.load(x_at[:, None] + inputs[None, :], mask=inside, other=0.0)
        elif ragged:
            a = tl.load(x_at[:, None] + inputs[None, :], mask=valid[None, :], other=0.0)
        else:
            a = tl.load(x_at[:, None] + inputs[None, :])
        if ragged:
            b = tl.load(f_at[None, :] + filters[:, None], mask=valid[:, None], other=0.0)
        else:
            b = tl.load(f_at[None, :] + filters[:, None])
        sums = tl.dot(a, b, sums, input_precision="ieee")
    stored = (pixel // (P * Q)).to(tl.int64) * Y_IMAGE + pixel % (P * Q) * Y_PIXEL
    # Its own operation: the hint would otherwise narrow the loads as well.
    out = tile_n * BLOCK_N + tl.max_contiguous(tl.arange(0, BLOCK_N), STORE_VECTOR)
    result = sums.to(y.dtype.element_ty)
    if PIXELS % BLOCK_M == 0 and K % BLOCK_N == 0:
        tl.store(y + stored[:, None] + out[None, :] * Y_FILTER, result)
    else:
        there = (pixel < PIXELS)[:, None] & (out < K)[None, :]
        tl.store(y + stored[:, None] + out[None, :] * Y_FILTER, result, mask=there)


@triton.jit
def boxes(
    x,
    f,
    y,
    group,
    columns,
    N: tl.constexpr,
    C: tl.constexpr,
    K: tl.constexpr,
    R: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    STRIDE: tl.constexpr,
    PAD: tl.constexpr,
    IMAGES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    WALK: tl.constexpr,
    SUBTILES: tl.constexpr,
):
    """One box of neighbouring pixels, by filters, a program; channels last, through descriptors.

    X is seen as (N, H / STRIDE, STRIDE, W / STRIDE, STRIDE C), so that each place of the filter meets a dense box of
    it; the padding is what descriptors read outside, zeros.
    """
    DOWN: tl.constexpr = triton.cdiv(P, ROWS)
    ACROSS: tl.constexpr = triton.cdiv(Q, COLUMNS)
    BLOCK_M: tl.constexpr = IMAGES * ROWS * COLUMNS
    tile_m, tile_n = tile_of(
        tl.program_id(0), group, columns, triton.cdiv(N, IMAGES) * DOWN * ACROSS, triton.cdiv(K, BLOCK_N)
    )
    image = tile_m // (DOWN * ACROSS) * IMAGES
    top = tile_m // ACROSS % DOWN * ROWS
    left = tile_m % ACROSS * COLUMNS
    PARTS: tl.constexpr = triton.cdiv(C, BLOCK_K)
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for step in range(R * R * PARTS):
        spot = step // PARTS if WALK == "places" else step % (R * R)
        channel = (step % PARTS if WALK == "places" else step // (R * R)) * BLOCK_K
        # Counted from a whole number of strides before the image, since division rounds towards zero.
        r = spot // R - PAD + PAD * STRIDE
        s = spot % R - PAD + PAD * STRIDE
        row = top + r // STRIDE - PAD
        column = left + s // STRIDE - PAD
        a = x.load([image, row, r % STRIDE, column, s % STRIDE * C + channel]).reshape(BLOCK_M, BLOCK_K)
        b = f.load([tile_n * BLOCK_N, spot * C + channel]).T
        sums = tl.dot(a, b, sums)
    store(y, image, top, left, tile_n * BLOCK_N, sums, IMAGES, ROWS, COLUMNS, BLOCK_N, SUBTILES)


@triton.jit
def store(
    y,
    image,
    top,
    left,
    column,
    sums,
    IMAGES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SUBTILES: tl.constexpr,
):
    """Stores a tile in `SUBTILES` pieces, each through shared memory."""
    if SUBTILES == 1:
        y.store([image, top, left, column], sums.to(y.dtype).reshape(IMAGES, ROWS, COLUMNS, BLOCK_N))
    else:
        HALF: tl.constexpr = BLOCK_N // 2
        pieces = sums.reshape(IMAGES * ROWS * COLUMNS, 2, HALF).permute(0, 2, 1)
        first, second = pieces.split()
        store(y, image, top, left, column, first, IMAGES, ROWS, COLUMNS, HALF, SUBTILES // 2)
        store(y, image, top, left, column + HALF, second, IMAGES, ROWS, COLUMNS, HALF, SUBTILES // 2)
