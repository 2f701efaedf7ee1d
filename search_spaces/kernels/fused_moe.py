"""The layer of a mixture of experts in four kernels: choices into tiles, gate and product, second product, their sum.

A choice is a token's place in the router's list, `token * T + slot`. `ROWS` lists choices by expert, each expert's
share filled up with the number of choices to whole tiles, so that no tile is over two experts.
"""

import triton
import triton.language as tl

from search_spaces.kernels.epilogue import activated
from search_spaces.kernels.matmul import tile_of
from search_spaces.products import SILU

ACTIVATION = tl.constexpr(SILU)


@triton.jit
def sort(
    ids,
    rows,
    experts,
    used,
    CHOICES: tl.constexpr,
    E: tl.constexpr,
    BINS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    CHUNK: tl.constexpr,
):
    """One expert a program: its choices in their order, its tiles' `experts`, and in `used` the rows of all tiles.

    `BINS` is a power of two above `E`.
    """
    expert = tl.program_id(0)
    lanes = tl.arange(0, CHUNK)
    counts = tl.zeros((BINS,), tl.int32)
    for start in range(0, CHOICES, CHUNK):
        # What lies behind the last choice is counted where no expert is.
        chosen = tl.load(ids + start + lanes, mask=start + lanes < CHOICES, other=BINS - 1)
        counts += tl.histogram(chosen, BINS)
    bins = tl.arange(0, BINS)
    padded = tl.where(bins < E, tl.cdiv(counts, BLOCK_M) * BLOCK_M, 0)
    first = tl.sum(tl.where(bins < expert, padded, 0), 0)
    last = first + tl.sum(tl.where(bins == expert, padded, 0), 0)
    tl.store(used, tl.sum(padded, 0), mask=expert == 0)

    free = first
    for start in range(0, CHOICES, CHUNK):
        chosen = tl.load(ids + start + lanes, mask=start + lanes < CHOICES, other=BINS - 1)
        mine = (chosen == expert).to(tl.int32)
        tl.store(rows + free + tl.cumsum(mine, 0) - 1, start + lanes, mask=mine != 0)
        free += tl.sum(mine, 0)
    rest = free + tl.arange(0, BLOCK_M)
    tl.store(rows + rest, CHOICES, mask=rest < last)
    for tile in range(first // BLOCK_M, last // BLOCK_M):
        tl.store(experts + tile, expert)


@triton.jit
def count(used, ROWS: tl.constexpr):
    """In the place of sorting, where each choice is a tile of its own: all tiles count."""
    tl.store(used, ROWS)


@triton.jit
def tile_rows(rows, experts, tile, CHOICES: tl.constexpr, BLOCK_M: tl.constexpr):
    """The choices of a tile, which of them are real, and their expert."""
    choice = tl.load(rows + tile * BLOCK_M + tl.arange(0, BLOCK_M))
    return choice, choice < CHOICES, tl.load(experts + tile).to(tl.int64)


@triton.jit
def store_rows(out, value, choice, real, column, WIDTH: tl.constexpr):
    """Stores a tile's columns in the rows of its choices, as far as they are real and there."""
    at = out + choice.to(tl.int64)[:, None] * WIDTH + column[None, :]
    tl.store(at, value.to(out.dtype.element_ty), mask=real[:, None] & (column < WIDTH)[None, :])


@triton.jit
def of_rows(at, real, inside, EVEN: tl.constexpr):
    """A tile at the addresses `at`, zero where a row is not `real` or, unless `EVEN`, a column not `inside`."""
    if EVEN:
        return tl.load(at, mask=real[:, None], other=0.0)
    return tl.load(at, mask=real[:, None] & inside[None, :], other=0.0)


@triton.jit
def of_columns(at, inside, EVEN: tl.constexpr):
    """A tile at the addresses `at`, zero where, unless `EVEN`, a row is not `inside`."""
    if EVEN:
        return tl.load(at)
    return tl.load(at, mask=inside[:, None], other=0.0)


@triton.jit
def gate(
    x,
    w1,
    rows,
    experts,
    used,
    hidden,
    N: tl.constexpr,
    K: tl.constexpr,
    T: tl.constexpr,
    CHOICES: tl.constexpr,
    TILES_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of SiLU(X G^T) (X U^T) a program, both products in it."""
    tile_m, tile_n = tile_of(tl.program_id(0), GROUP, 0, TILES_M, tl.cdiv(N, BLOCK_N))
    if tile_m * BLOCK_M < tl.load(used):
        choice, real, expert = tile_rows(rows, experts, tile_m, CHOICES, BLOCK_M)
        column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K)
        left = x + (choice // T).to(tl.int64)[:, None] * K + inner[None, :]
        # Columns beyond the end are read from its start, and never stored.
        right = w1 + (expert * 2 * N + column % N)[None, :] * K + inner[:, None]
        gates = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        ups = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(tl.cdiv(K, BLOCK_K)):
            inside = inner < K - step * BLOCK_K
            tile = of_rows(left, real, inside, K % BLOCK_K == 0)
            gates = tl.dot(tile, of_columns(right, inside, K % BLOCK_K == 0), gates, input_precision="ieee")
            ups = tl.dot(tile, of_columns(right + N * K, inside, K % BLOCK_K == 0), ups, input_precision="ieee")
            left += BLOCK_K
            right += BLOCK_K
        store_rows(hidden, activated(gates, ACTIVATION) * ups, choice, real, column, N)


@triton.jit
def down(
    hidden,
    w2,
    weights,
    rows,
    experts,
    used,
    terms,
    N: tl.constexpr,
    K: tl.constexpr,
    CHOICES: tl.constexpr,
    TILES_M: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One tile of an expert's second product a program, each row times its choice's weight.

    `BLOCK_N` columns of the K of `terms`, `BLOCK_K` of the N that are summed.
    """
    tile_m, tile_n = tile_of(tl.program_id(0), GROUP, 0, TILES_M, tl.cdiv(K, BLOCK_N))
    if tile_m * BLOCK_M < tl.load(used):
        choice, real, expert = tile_rows(rows, experts, tile_m, CHOICES, BLOCK_M)
        column = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
        inner = tl.arange(0, BLOCK_K)
        left = hidden + choice.to(tl.int64)[:, None] * N + inner[None, :]
        right = w2 + (expert * K + column % K)[None, :] * N + inner[:, None]
        sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for step in range(tl.cdiv(N, BLOCK_K)):
            inside = inner < N - step * BLOCK_K
            tile = of_rows(left, real, inside, N % BLOCK_K == 0)
            sums = tl.dot(tile, of_columns(right, inside, N % BLOCK_K == 0), sums, input_precision="ieee")
            left += BLOCK_K
            right += BLOCK_K
        sums *= tl.load(weights + choice, mask=real, other=0.0)[:, None]
        store_rows(terms, sums, choice, real, column, K)


@triton.jit
def total(terms, out, K: tl.constexpr, T: tl.constexpr, BLOCK: tl.constexpr):
    """The sum over a token's choices, a block of its columns a program."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros((BLOCK,), tl.float32)
    for slot in range(T):
        sums += tl.load(terms + (token * T + slot) * K + column, mask=column < K, other=0.0).to(tl.float32)
    tl.store(out + token * K + column, sums.to(out.dtype.element_ty), mask=column < K)


@triton.jit
def gated(both, hidden, N: tl.constexpr, BLOCK: tl.constexpr):
    """SiLU of the first N columns times the last N, as the engines have it between their two products."""
    choice = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    value = activated(tl.load(both + choice * 2 * N + column, mask=column < N, other=0.0).to(tl.float32), ACTIVATION)
    # Each is rounded before they are multiplied, as theirs are.
    value = value.to(hidden.dtype.element_ty) * tl.load(both + choice * 2 * N + N + column, mask=column < N, other=0.0)
    tl.store(hidden + choice * N + column, value.to(hidden.dtype.element_ty), mask=column < N)
