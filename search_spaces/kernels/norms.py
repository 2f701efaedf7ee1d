"""RMS norm and layer norm of each row in float32, specialised to the shape.

Every kernel takes the operands of all norms. What a norm lacks (`r` and `s` without `RESIDUAL`, `b` without `CENTRED`)
is never touched.
"""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of


@triton.jit
def read(x, at, inside, MASKED: tl.constexpr, EVICTION: tl.constexpr):
    """Elements in float32; zero outside of the matrix."""
    if MASKED:
        return tl.load(x + at, mask=inside, other=0.0, eviction_policy=EVICTION).to(tl.float32)
    return tl.load(x + at, eviction_policy=EVICTION).to(tl.float32)


@triton.jit
def summed(x, r, at, inside, MASKED: tl.constexpr, EVICTION: tl.constexpr, RESIDUAL: tl.constexpr):
    """What is normalised: X, or X + R."""
    values = read(x, at, inside, MASKED, EVICTION)
    if RESIDUAL:
        values += read(r, at, inside, MASKED, EVICTION)
    return values


@triton.jit
def write(y, at, values, inside, MASKED: tl.constexpr, EVICTION: tl.constexpr):
    """Stores what is inside of the matrix."""
    if MASKED:
        tl.store(y + at, values.to(y.dtype.element_ty), mask=inside, eviction_policy=EVICTION)
    else:
        tl.store(y + at, values.to(y.dtype.element_ty), eviction_policy=EVICTION)


@triton.jit
def operand(w, column, N: tl.constexpr, MASKED: tl.constexpr):
    """Weight or bias of the columns, as narrow as it is stored."""
    if MASKED:
        return tl.load(w + column, mask=column < N, other=0.0)
    return tl.load(w + column)


@triton.jit
def normalise(
    x,
    r,
    y,
    s,
    weight,
    bias,
    block,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    EPS: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """Reads block number `block` of `ROWS` whole rows into registers and writes its norm."""
    row = block * ROWS + tl.arange(0, ROWS)
    MASKED: tl.constexpr = M % ROWS != 0 or N != BLOCK_N
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)[None, :]
    at = row.to(tl.int64)[:, None] * N + column
    inside = (row < M)[:, None] & (column < N)
    values = summed(x, r, at, inside, MASKED, EVICTION, RESIDUAL)
    if RESIDUAL:
        write(s, at, values, inside, MASKED, EVICTION)
    if CENTRED:
        values -= (tl.sum(values, 1) * (1.0 / N))[:, None]
        if N != BLOCK_N:
            values = tl.where(column < N, values, 0.0)
    scale = tl.rsqrt(tl.sum(values * values, 1) * (1.0 / N) + EPS)
    values = values * scale[:, None] * weight.to(tl.float32)
    if CENTRED:
        values += bias.to(tl.float32)
    write(y, at, values, inside, MASKED, EVICTION)


@triton.jit
def rows(
    x,
    r,
    w,
    b,
    y,
    s,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    EPS: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """`ROWS` whole rows a program."""
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)[None, :]
    weight = operand(w, column, N, N != BLOCK_N)
    bias = operand(b, column, N, N != BLOCK_N) if CENTRED else weight
    block = tl.program_id(0)
    normalise(x, r, y, s, weight, bias, block, M, N, ROWS, BLOCK_N, VECTOR, EPS, CENTRED, RESIDUAL, EVICTION)


@triton.jit
def looped(
    x,
    r,
    w,
    b,
    y,
    s,
    chunked,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    EPS: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EVICTION: tl.constexpr,
    KEPT: tl.constexpr,
):
    """A fixed number of programs share the rows: interleaved, or each a chunk of its own where `chunked` is 1.

    Where weight and bias are not `KEPT` in registers, every block of rows reads them from the cache again.
    """
    BLOCKS: tl.constexpr = triton.cdiv(M, ROWS)
    first, last, step = share_of(BLOCKS, chunked)
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)[None, :]
    kept_weight = operand(w, column, N, N != BLOCK_N) if KEPT else 0.0
    kept_bias = operand(b, column, N, N != BLOCK_N) if KEPT and CENTRED else 0.0
    for block in tl.range(first, last, step, num_stages=STAGES):
        weight = kept_weight if KEPT else operand(w, column, N, N != BLOCK_N)
        bias = operand(b, column, N, N != BLOCK_N) if CENTRED and not KEPT else kept_bias
        normalise(x, r, y, s, weight, bias, block, M, N, ROWS, BLOCK_N, VECTOR, EPS, CENTRED, RESIDUAL, EVICTION)


@triton.jit
def pieces(
    x,
    r,
    w,
    b,
    y,
    s,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    BACKWARD: tl.constexpr,
    EPS: tl.constexpr,
    CENTRED: tl.constexpr,
    RESIDUAL: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """Rows in pieces, in two passes: moments first, then the quotient.

    Walking `BACKWARD` in the second pass meets first what the first pass read last. `EVICTION` is the first pass's.
    The moments of a lane are Welford's, joined as Chan, Golub and LeVeque do ("Updating formulae and a pairwise
    algorithm for computing sample variances", 1979): a sum of squares would cancel where a mean is large.
    """
    PIECES: tl.constexpr = triton.cdiv(N, BLOCK_N)
    UNEVEN: tl.constexpr = N % BLOCK_N != 0
    MASKED: tl.constexpr = M % ROWS != 0 or UNEVEN
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.max_contiguous(tl.arange(0, BLOCK_N), VECTOR)[None, :]
    start = row.to(tl.int64)[:, None] * N
    exists = (row < M)[:, None]
    mean = tl.zeros((ROWS, BLOCK_N), tl.float32)
    squares = tl.zeros((ROWS, BLOCK_N), tl.float32)
    for piece in tl.range(0, PIECES, num_stages=STAGES):
        at = piece * BLOCK_N + column
        values = summed(x, r, start + at, exists & (at < N), MASKED, EVICTION, RESIDUAL)
        if CENTRED:
            off = values - mean
            if UNEVEN:
                off = tl.where(at < N, off, 0.0)
            mean += off * (1.0 / (piece + 1))
            squares += off * (values - mean)
        else:
            squares += values * values
    if CENTRED:
        count = tl.where((PIECES - 1) * BLOCK_N + column < N, PIECES, PIECES - 1).to(tl.float32)
        centre = (tl.sum(mean * count, 1) * (1.0 / N))[:, None]
        squares += count * (mean - centre) * (mean - centre)
    scale = tl.rsqrt(tl.sum(squares, 1) * (1.0 / N) + EPS)[:, None]
    for step in tl.range(0, PIECES, num_stages=STAGES):
        piece = PIECES - 1 - step if BACKWARD else step
        at = piece * BLOCK_N + column
        inside = exists & (at < N)
        values = summed(x, r, start + at, inside, MASKED, "evict_first", RESIDUAL)
        if RESIDUAL:
            write(s, start + at, values, inside, MASKED, "")
        if CENTRED:
            values -= centre
        values = values * scale * operand(w, at, N, UNEVEN).to(tl.float32)
        if CENTRED:
            values += operand(b, at, N, UNEVEN).to(tl.float32)
        write(y, start + at, values, inside, MASKED, "")
