"""GELU(X) * U + V over flat memory, in float32, specialised to the number of elements."""

import triton
import triton.language as tl

from search_spaces.kernels.shares import share_of
from search_spaces.operators.elementwise import GELU_CUBE, GELU_SCALE

# With these, GELU is x sigmoid(SCALE (x + CUBE x^3)).
SCALE = tl.constexpr(2.0 * GELU_SCALE)
CUBE = tl.constexpr(GELU_CUBE)


@triton.jit
def chained(x, u, v):
    """GELU(x) * u + v."""
    return x * tl.sigmoid(SCALE * (x + CUBE * x * x * x)) * u + v


@triton.jit
def block_of(
    x,
    u,
    v,
    y,
    block,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """Block number `block` of `BLOCK` elements."""
    at = block * tl.full((), BLOCK, tl.int64) + tl.max_contiguous(tl.arange(0, BLOCK), VECTOR)
    if COUNT % BLOCK != 0:
        inside = at < COUNT
        chosen = tl.load(x + at, mask=inside, other=0.0, eviction_policy=EVICTION).to(tl.float32)
        factor = tl.load(u + at, mask=inside, other=0.0, eviction_policy=EVICTION).to(tl.float32)
        summand = tl.load(v + at, mask=inside, other=0.0, eviction_policy=EVICTION).to(tl.float32)
        result = chained(chosen, factor, summand)
        tl.store(y + at, result.to(y.dtype.element_ty), mask=inside, eviction_policy=EVICTION)
    else:
        chosen = tl.load(x + at, eviction_policy=EVICTION).to(tl.float32)
        factor = tl.load(u + at, eviction_policy=EVICTION).to(tl.float32)
        summand = tl.load(v + at, eviction_policy=EVICTION).to(tl.float32)
        result = chained(chosen, factor, summand)
        tl.store(y + at, result.to(y.dtype.element_ty), eviction_policy=EVICTION)


@triton.jit
def blocks(
    x,
    u,
    v,
    y,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    VECTOR: tl.constexpr,
    UNROLL: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """`UNROLL` blocks a program, one beside the other."""
    first = tl.program_id(0) * UNROLL
    for i in tl.static_range(UNROLL):
        block_of(x, u, v, y, first + i, COUNT, BLOCK, VECTOR, EVICTION)


@triton.jit
def looped(
    x,
    u,
    v,
    y,
    chunked,
    COUNT: tl.constexpr,
    BLOCK: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    EVICTION: tl.constexpr,
):
    """A fixed number of programs share the blocks: interleaved, or each a chunk of its own where `chunked` is 1."""
    BLOCKS: tl.constexpr = triton.cdiv(COUNT, BLOCK)
    first, last, step = share_of(BLOCKS, chunked)
    for block in tl.range(first, last, step, num_stages=STAGES):
        block_of(x, u, v, y, block, COUNT, BLOCK, VECTOR, EVICTION)
