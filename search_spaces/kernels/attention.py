"""Attention in one pass over the keys with a running softmax, specialised to the shape."""

import triton
import triton.language as tl

# Below every score: a row whose first keys are all masked has this as its peak, and they weigh exactly nothing.
LOWEST = tl.constexpr(-1.0e38)


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
def attend(
    query,
    key,
    value,
    sums,
    peak,
    total,
    row,
    column,
    SCALE: tl.constexpr,
    S: tl.constexpr,
    WINDOW: tl.constexpr,
    MASK: tl.constexpr,
):
    """Takes one block of keys and values into the running softmax; `MASK` is "", "causal" or "length"."""
    scores = tl.dot(query, key, input_precision="ieee")
    if MASK == "causal":
        seen = column[None, :] <= row[:, None]
        if WINDOW > 0:
            seen = seen & (row[:, None] - column[None, :] < WINDOW)
        scores = tl.where(seen, scores, float("-inf"))
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
def whole_blocks(
    start,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    S: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """First key of the blocks that every query of the block at `start` sees whole, and the first key after them."""
    end = start // BLOCK_N * BLOCK_N if CAUSAL else S // BLOCK_N * BLOCK_N
    if WINDOW > 0:
        return tl.minimum(tl.cdiv(tl.maximum(start + BLOCK_M - WINDOW, 0), BLOCK_N) * BLOCK_N, end), end
    return 0, end


@triton.jit
def cut_blocks(
    start,
    first,
    end,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    S: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """How many blocks that the window cuts lie before the whole ones, and how many that the diagonal or S cuts after.

    The whole ones are those from `first` to `end`.
    """
    last = tl.minimum(start + BLOCK_M, S) if CAUSAL else S
    after = tl.cdiv(last - end, BLOCK_N)
    if WINDOW > 0:
        return first // BLOCK_N - tl.maximum(start - WINDOW + 1, 0) // BLOCK_N, after
    return 0, after


@triton.jit
def cut_block(index, before, first, end, WINDOW: tl.constexpr, BLOCK_N: tl.constexpr):
    """First key of cut block number `index`."""
    at = end + (index - before) * BLOCK_N
    if WINDOW > 0:
        at = tl.where(index < before, first - (before - index) * BLOCK_N, at)
    return tl.multiple_of(at, BLOCK_N)


@triton.jit
def rows_of(source, row, feature, S: tl.constexpr, D: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr):
    """Elements `feature` of the rows `row` of a head, broadcast; zeros past S where `MASKED`, and past D."""
    at = source + row * D + feature
    if MASKED and BLOCK_D != D:
        return tl.load(at, mask=(row < S) & (feature < D), other=0.0)
    if MASKED:
        return tl.load(at, mask=row < S, other=0.0)
    if BLOCK_D != D:
        return tl.load(at, mask=feature < D, other=0.0)
    return tl.load(at)


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
    WINDOW: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    STORE_VECTOR: tl.constexpr,
):
    """One block of queries of one head a program; with a `WINDOW` a query sees so many keys, its own the last."""
    block, head = place(heads_first, descending, B * H, triton.cdiv(S, BLOCK_M))
    start = block * BLOCK_M
    row = start + tl.arange(0, BLOCK_M)
    feature = tl.arange(0, BLOCK_D)
    q += head.to(tl.int64) * (S * D)
    o += head.to(tl.int64) * (S * D)
    k += key_head(head, H, G).to(tl.int64) * (S * D)
    v += key_head(head, H, G).to(tl.int64) * (S * D)
    query = rows_of(q, row[:, None], feature[None, :], S, D, BLOCK_D, S % BLOCK_M != 0)
    peak = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    # First the key blocks that every row sees whole, then those that the window, the diagonal or the end cuts.
    first, end = whole_blocks(start, CAUSAL, WINDOW, S, BLOCK_M, BLOCK_N)
    for at in range(first, end, BLOCK_N):
        column = tl.multiple_of(at, BLOCK_N) + tl.arange(0, BLOCK_N)
        key = rows_of(k, column[None, :], feature[:, None], S, D, BLOCK_D, False)
        value = rows_of(v, column[:, None], feature[None, :], S, D, BLOCK_D, False)
        sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, WINDOW, "")
    if CAUSAL or S % BLOCK_N != 0:
        before, after = cut_blocks(start, first, end, CAUSAL, WINDOW, S, BLOCK_M, BLOCK_N)
        for index in range(before + after):
            column = cut_block(index, before, first, end, WINDOW, BLOCK_N) + tl.arange(0, BLOCK_N)
            key = rows_of(k, column[None, :], feature[:, None], S, D, BLOCK_D, S % BLOCK_N != 0)
            value = rows_of(v, column[:, None], feature[None, :], S, D, BLOCK_D, S % BLOCK_N != 0)
            MASK: tl.constexpr = "causal" if CAUSAL else "length"
            sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, WINDOW, MASK)
    # Its own operation: the hint would otherwise narrow the loads as well.
    out = tl.max_contiguous(tl.arange(0, BLOCK_D), STORE_VECTOR)
    result = (sums / total[:, None]).to(o.dtype.element_ty)
    if S % BLOCK_M == 0 and D == BLOCK_D:
        tl.store(o + row[:, None] * D + out[None, :], result)
    elif D == BLOCK_D:
        tl.store(o + row[:, None] * D + out[None, :], result, mask=(row < S)[:, None])
    else:
        tl.store(o + row[:, None] * D + out[None, :], result, mask=(row < S)[:, None] & (out < D)[None, :])


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
    WINDOW: tl.constexpr,
    SCALE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """As `pointers`, through descriptors over (heads, S, D): reads past S or D are zeros, writes past them dropped."""
    tl.static_assert(D <= BLOCK_D)
    block, head = place(heads_first, descending, B * H, triton.cdiv(S, BLOCK_M))
    start = block * BLOCK_M
    row = start + tl.arange(0, BLOCK_M)
    shared = key_head(head, H, G)
    query = q.load([head, start, 0]).reshape(BLOCK_M, BLOCK_D)
    peak = tl.full((BLOCK_M,), LOWEST, tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    sums = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    first, end = whole_blocks(start, CAUSAL, WINDOW, S, BLOCK_M, BLOCK_N)
    for at in range(first, end, BLOCK_N):
        column = at + tl.arange(0, BLOCK_N)
        key = k.load([shared, at, 0]).reshape(BLOCK_N, BLOCK_D).T
        value = v.load([shared, at, 0]).reshape(BLOCK_N, BLOCK_D)
        sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, WINDOW, "")
    if CAUSAL or S % BLOCK_N != 0:
        before, after = cut_blocks(start, first, end, CAUSAL, WINDOW, S, BLOCK_M, BLOCK_N)
        for index in range(before + after):
            at = cut_block(index, before, first, end, WINDOW, BLOCK_N)
            column = at + tl.arange(0, BLOCK_N)
            key = k.load([shared, at, 0]).reshape(BLOCK_N, BLOCK_D).T
            value = v.load([shared, at, 0]).reshape(BLOCK_N, BLOCK_D)
            MASK: tl.constexpr = "causal" if CAUSAL else "length"
            sums, peak, total = attend(query, key, value, sums, peak, total, row, column, SCALE, S, WINDOW, MASK)
    result = (sums / total[:, None]).to(o.dtype)
    o.store([head, start, 0], result.reshape(1, BLOCK_M, BLOCK_D))
