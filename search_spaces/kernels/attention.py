"""Attention in one pass over the keys with a running softmax, specialised to the shape."""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def place(heads_first, descending, HEADS: tl.constexpr, BLOCKS: tl.constexpr):
    """This program's query block and head, in the order asked for at launch."""
    pid = tl.program_id(0)
    block = tl.where(heads_first != 0, pid // HEADS, pid % BLOCKS)
    head = tl.where(heads_first != 0, pid % HEADS, pid // BLOCKS)
    return tl.where(descending != 0, BLOCKS - 1 - block, block), head


@triton.jit
def key_head(head, H: tl.constexpr, G: tl.constexpr):
    """The key/value head that query head `head` (counted over the batch) attends to."""
    return head // H * G + head % H // (H // G)


@triton.jit
def attend(query, key, value, sums, peak, total, row, column, SCALE: tl.constexpr, S: tl.constexpr, MASK: tl.constexpr):
    """Takes one block of keys and values into the running softmax; `MASK` is "", "causal" or "length"."""
    scores = tl.dot(query, key, input_precision="ieee")
    if MASK == "causal":
        scores = tl.where(column[None, :] <= row[:, None], scores, float("-inf"))
    elif MASK == "length":
        scores = tl.where((column < S)[None, :], scores, float("-inf"))
    # Scaled here, where it is one multiply-add with the subtraction.
    higher = tl.maximum(peak, tl.max(scores, 1) * SCALE)
    weights = tl.exp2(scores * SCALE - higher[:, None])
    kept = tl.exp2(peak - higher)
    total = total * kept + tl.sum(weights, 1)
    sums = tl.dot(weights.to(value.dtype), value, sums * kept[:, None], input_precision="ieee")
    return sums, higher, total


@triton.jit
def pointers(
    q,
    k,
    v,
    o,
    heads_first,
    descending,
    B: tl.constexpr,
    H: tl.constexpr,
    G: tl.constexpr,
    S: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
):
    """One block of queries of one head a program."""
    block, head = place(heads_first, descending, B * H, triton.cdiv(S, BLOCK_M))
    start = block * BLOCK_M
    row = start + tl.arange(0, BLOCK_M)
    feature = tl.arange(0, D)
    q += head.to(tl.int64) * (S * D)
    o += head.to(tl.int64) * (S * D)
    k += key_head(head, H, G).to(tl.int64) * (S * D)
    v += key_head(head, H, G).to(tl.int64) * (S * D)
    if S % BLOCK_M == 0:
        query = tl.load(q + row[:, None] * D + feature[None, :])
    else:
        query = tl.load(q + row[:, None] * D + feature[None, :], mask=(row < S)[:, None], other=0.0)
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, D), tl.float32)
    # First the key blocks that every row sees whole, then those that the diagonal or the end cuts.
    whole = start // BLOCK_N * BLOCK_N if CAUSAL else S // BLOCK_N * BLOCK_N
    for at in range(0, whole, BLOCK_N):
        column = tl.multiple_of(at, BLOCK_N) + tl.arange(0, BLOCK_N)
        key = tl.load(k + column[None, :] * D + feature[:, None])
        value = tl.load(v + column[:, None] * D + feature[None, :])
        sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, "")
    if CAUSAL or S % BLOCK_N != 0:
        end = tl.minimum(start + BLOCK_M, S) if CAUSAL else S
        for at in range(whole, end, BLOCK_N):
            column = tl.multiple_of(at, BLOCK_N) + tl.arange(0, BLOCK_N)
            if S % BLOCK_N == 0:
                key = tl.load(k + column[None, :] * D + feature[:, None])
                value = tl.load(v + column[:, None] * D + feature[None, :])
            else:
                key = tl.load(k + column[None, :] * D + feature[:, None], mask=(column < S)[None, :], other=0.0)
                value = tl.load(v + column[:, None] * D + feature[None, :], mask=(column < S)[:, None], other=0.0)
            MASK: tl.constexpr = "causal" if CAUSAL else "length"
            sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, MASK)
    # Its own operation: the hint would otherwise narrow the loads as well.
    out = tl.max_contiguous(tl.arange(0, D), STORE_VECTOR)
    result = (sums / total[:, None]).to(o.dtype.element_ty)
    if S % BLOCK_M == 0:
        tl.store(o + row[:, None] * D + out[None, :], result)
    else:
        tl.store(o + row[:, None] * D + out[None, :], result, mask=(row < S)[:, None])


@triton.jit
def descriptors(
    q,
    k,
    v,
    o,
    heads_first,
    descending,
    B: tl.constexpr,
    H: tl.constexpr,
    G: tl.constexpr,
    S: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """As `pointers`, through descriptors over (heads, S, D): reads past S are zeros and writes past it are dropped."""
    block, head = place(heads_first, descending, B * H, triton.cdiv(S, BLOCK_M))
    start = block * BLOCK_M
    row = start + tl.arange(0, BLOCK_M)
    shared = key_head(head, H, G)
    query = q.load([head, start, 0]).reshape(BLOCK_M, D)
    peak = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, D), tl.float32)
    whole = start // BLOCK_N * BLOCK_N if CAUSAL else S // BLOCK_N * BLOCK_N
    for at in range(0, whole, BLOCK_N):
        column = at + tl.arange(0, BLOCK_N)
        key = k.load([shared, at, 0]).reshape(BLOCK_N, D).T
        value = v.load([shared, at, 0]).reshape(BLOCK_N, D)
        sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, "")
    if CAUSAL or S % BLOCK_N != 0:
        end = tl.minimum(start + BLOCK_M, S) if CAUSAL else S
        for at in range(whole, end, BLOCK_N):
            column = at + tl.arange(0, BLOCK_N)
            key = k.load([shared, at, 0]).reshape(BLOCK_N, D).T
            value = v.load([shared, at, 0]).reshape(BLOCK_N, D)
            MASK: tl.constexpr = "causal" if CAUSAL else "length"
            sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, MASK)
    result = (sums / total[:, None]).to(o.dtype)
    o.store([head, start, 0], result.reshape(1, BLOCK_M, D))
