"""Attention on Hopper, in roles: one warp copies ahead, two groups of warps multiply, each its half of the queries.

As in FlashAttention-3 (Shah et al., 2024): the softmax of a block of keys runs while the product of the block before it
with its values is under way, and with `PINGPONG` the groups take turns, so that one's softmax hides in the other's
products.
"""

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

# Registers of a thread that copies.
COPYING = gl.constexpr(24)
# Below every score: what is masked weighs exactly nothing beside it.
LOWEST = gl.constexpr(-1.0e38)


@gluon.jit
def rounds_of(order, TILES: gl.constexpr):
    """How many tiles this program takes."""
    serpentine = order[2]
    programs, pid = gl.num_programs(0), gl.program_id(0)
    whole = TILES // programs
    place = gl.where((serpentine & whole & 1) != 0, programs - 1 - pid, pid)
    return whole + gl.where(whole * programs + place < TILES, 1, 0)


@gluon.jit
def tile_of(turn, order, HEADS: gl.constexpr, BLOCKS: gl.constexpr):
    """Head and block of queries of this program's tile number `turn`.

    `order` is `group`, `descending` and `serpentine`. Tiles are walked by `group` heads at a time, all of whose blocks
    come before the next heads', the longest first where `descending`. With `serpentine` every other round of the
    programs runs backwards, which evens out their work.
    """
    group, descending, serpentine = order
    programs, pid = gl.num_programs(0), gl.program_id(0)
    index = turn * programs + gl.where((serpentine & turn & 1) != 0, programs - 1 - pid, pid)
    first = index // (group * BLOCKS) * group
    heads = gl.minimum(HEADS - first, group)
    rest = index - first * BLOCKS
    block = rest // heads
    return first + rest % heads, gl.where(descending != 0, BLOCKS - 1 - block, block)


@gluon.jit
def blocks_of(
    start,
    CAUSAL: gl.constexpr,
    WINDOW: gl.constexpr,
    S: gl.constexpr,
    ROWS: gl.constexpr,
    BLOCK_N: gl.constexpr,
):
    """First of the blocks of keys that 2 `ROWS` queries from `start` on see, and the one after the last."""
    first = gl.maximum(start - WINDOW + 1, 0) // BLOCK_N if WINDOW > 0 else start * 0
    if CAUSAL:
        return first, gl.cdiv(gl.minimum(start + 2 * ROWS, S), BLOCK_N)
    return first, gl.cdiv(S, BLOCK_N)


@gluon.jit
def copy(
    q,
    k,
    v,
    queries,
    keys,
    values,
    order,
    HEADS: gl.constexpr,
    SHARE: gl.constexpr,
    S: gl.constexpr,
    CAUSAL: gl.constexpr,
    WINDOW: gl.constexpr,
):
    """Fills the rings with queries, keys and values, as far ahead as they have room.

    Each comes with the barriers of its places: the one that says full, and the one that says empty.
    """
    q_ring, q_full, q_empty = queries
    k_ring, k_full, k_empty = keys
    v_ring, v_full, v_empty = values
    ROWS: gl.constexpr = q.block_shape[1]
    BLOCK_N: gl.constexpr = k.block_shape[1]
    SLOTS: gl.constexpr = q_full.shape[0]
    STAGES: gl.constexpr = k_full.shape[0]
    BLOCKS: gl.constexpr = triton.cdiv(S, 2 * ROWS)
    count = 0
    for turn in range(rounds_of(order, HEADS * BLOCKS)):
        head, block = tile_of(turn, order, HEADS, BLOCKS)
        start = block * (2 * ROWS)
        slot = turn % SLOTS
        arrived = q_full.index(slot)
        mbarrier.wait(q_empty.index(slot), (turn // SLOTS & 1) ^ 1)
        mbarrier.expect(arrived, 2 * q.block_type.nbytes)
        tma.async_copy_global_to_shared(q, [head, start, 0], arrived, q_ring.index(2 * slot))
        tma.async_copy_global_to_shared(q, [head, start + ROWS, 0], arrived, q_ring.index(2 * slot + 1))
        first, end = blocks_of(start, CAUSAL, WINDOW, S, ROWS, BLOCK_N)
        for step in range(end - first):
            at = (end - 1 - step) * BLOCK_N
            stage = count % STAGES
            phase = (count // STAGES & 1) ^ 1
            mbarrier.wait(k_empty.index(stage), phase)
            mbarrier.expect(k_full.index(stage), k.block_type.nbytes)
            tma.async_copy_global_to_shared(k, [head // SHARE, at, 0], k_full.index(stage), k_ring.index(stage))
            mbarrier.wait(v_empty.index(stage), phase)
            mbarrier.expect(v_full.index(stage), v.block_type.nbytes)
            tma.async_copy_global_to_shared(v, [head // SHARE, at, 0], v_full.index(stage), v_ring.index(stage))
            count += 1


@gluon.jit
def masked(scores, row, at, S: gl.constexpr, CAUSAL: gl.constexpr, WINDOW: gl.constexpr):
    """Scores of the queries from `row` on with the keys from `at` on, -inf where a query does not see the key."""
    across: gl.constexpr = gl.SliceLayout(0, scores.type.layout)
    down: gl.constexpr = gl.SliceLayout(1, scores.type.layout)
    column = at + gl.arange(0, scores.shape[1], across)
    if CAUSAL:
        query = row + gl.arange(0, scores.shape[0], down)
        seen = column[None, :] <= query[:, None]
        if WINDOW > 0:
            seen = seen & (query[:, None] - column[None, :] < WINDOW)
    else:
        seen = (column < S)[None, :] & (gl.arange(0, scores.shape[0], down) >= 0)[:, None]
    return gl.where(seen, scores, float("-inf"))


@gluon.jit
def softened(scores, peak, total, SCALE: gl.constexpr):
    """One step of the running softmax: weights, peak and total with it, and what earlier sums keep."""
    higher = gl.maximum(peak, gl.max(scores, 1) * SCALE)
    weights = gl.exp2(scores * SCALE - higher[:, None])
    kept = gl.exp2(peak - higher)
    return weights, higher, total * kept + gl.sum(weights, 1), kept


@gluon.jit
def attend(
    query,
    keys,
    values,
    turns,
    running,
    count,
    row,
    at,
    HALF: gl.constexpr,
    S: gl.constexpr,
    CAUSAL: gl.constexpr,
    WINDOW: gl.constexpr,
    SCALE: gl.constexpr,
    MASKED: gl.constexpr,
    PINGPONG: gl.constexpr,
):
    """Takes in block number `count` of keys, and the block of values before it, whose weights are there.

    `running` is the sums, those weights, and each query's peak and total.
    """
    sums, weights, peak, total = running
    k_ring, k_full, k_empty = keys
    v_ring, v_full, v_empty = values
    ROWS: gl.constexpr = query.shape[0]
    STAGES: gl.constexpr = k_full.shape[0]
    BLOCK_N: gl.constexpr = k_ring.shape[2]
    D: gl.constexpr = k_ring.shape[3]
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    stage = count % STAGES
    last = (count - 1) % STAGES
    mbarrier.wait(k_full.index(stage), count // STAGES & 1)
    mbarrier.wait(v_full.index(last), (count - 1) // STAGES & 1)
    if PINGPONG:
        mbarrier.wait(turns.index(HALF), (count + 1 - HALF) & 1)
    key = k_ring.index(stage).reshape([BLOCK_N, D]).permute((1, 0))
    nothing = gl.zeros([ROWS, BLOCK_N], gl.float32, wide)
    scores = warpgroup_mma(query, key, nothing, use_acc=False, is_async=True)
    sums = warpgroup_mma(weights, v_ring.index(last).reshape([BLOCK_N, D]), sums, is_async=True)
    if PINGPONG:
        mbarrier.arrive(turns.index(1 - HALF))
    scores = warpgroup_mma_wait(1, deps=[scores])
    mbarrier.arrive(k_empty.index(stage))
    if MASKED:
        scores = masked(scores, row, at, S, CAUSAL, WINDOW)
    fresh, peak, total, kept = softened(scores, peak, total, SCALE)
    fresh = gl.convert_layout(fresh.to(k_ring.dtype), weights.type.layout)
    # Complete since long, but a branch: ptxas would else move the wait for the product up to before the softmax.
    mbarrier.wait(v_full.index(last), (count - 1) // STAGES & 1)
    sums = warpgroup_mma_wait(0, deps=[sums])
    mbarrier.arrive(v_empty.index(last))
    sums = sums * gl.convert_layout(kept, gl.SliceLayout(1, sums.type.layout))[:, None]
    return sums, fresh, peak, total


@gluon.jit
def multiply(
    o,
    queries,
    keys,
    values,
    turns,
    HALF: gl.constexpr,
    order,
    HEADS: gl.constexpr,
    S: gl.constexpr,
    CAUSAL: gl.constexpr,
    WINDOW: gl.constexpr,
    SCALE: gl.constexpr,
    PINGPONG: gl.constexpr,
):
    """The upper or lower half of each tile's queries, against all blocks of keys from the last that they see on."""
    q_ring, q_full, q_empty = queries
    k_ring, k_full, k_empty = keys
    v_ring, v_full, v_empty = values
    ROWS: gl.constexpr = q_ring.shape[2]
    BLOCK_N: gl.constexpr = k_ring.shape[2]
    D: gl.constexpr = k_ring.shape[3]
    SLOTS: gl.constexpr = q_full.shape[0]
    STAGES: gl.constexpr = k_full.shape[0]
    BLOCKS: gl.constexpr = triton.cdiv(S, 2 * ROWS)
    CUT: gl.constexpr = CAUSAL or S % BLOCK_N != 0
    wide: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    narrow: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    operand: gl.constexpr = gl.DotOperandLayout(0, narrow, 2)
    count = 0
    for turn in range(rounds_of(order, HEADS * BLOCKS)):
        head, block = tile_of(turn, order, HEADS, BLOCKS)
        start = block * (2 * ROWS)
        row = start + HALF * ROWS
        first, end = blocks_of(start, CAUSAL, WINDOW, S, ROWS, BLOCK_N)
        # Blocks from `low` to `high` are seen whole by every query; the last one is taken in before the loops.
        high = gl.maximum(gl.minimum((row + 1) // BLOCK_N if CAUSAL else S // BLOCK_N, end - 1), first)
        low = first
        if WINDOW > 0:
            low = gl.minimum(gl.cdiv(gl.maximum(row + ROWS - WINDOW, 0), BLOCK_N), high)
        # What the last tile stored has left its place, which is free for other queries.
        tma.store_wait(0)
        mbarrier.arrive(q_empty.index((turn + SLOTS - 1) % SLOTS), pred=turn > 0)
        slot = turn % SLOTS
        piece = q_ring.index(2 * slot + HALF)
        query = piece.reshape([ROWS, D])
        mbarrier.wait(q_full.index(slot), turn // SLOTS & 1)
        stage = count % STAGES
        mbarrier.wait(k_full.index(stage), count // STAGES & 1)
        if PINGPONG:
            mbarrier.wait(turns.index(HALF), (count + 1 - HALF) & 1)
        key = k_ring.index(stage).reshape([BLOCK_N, D]).permute((1, 0))
        nothing = gl.zeros([ROWS, BLOCK_N], gl.float32, wide)
        scores = warpgroup_mma(query, key, nothing, use_acc=False, is_async=True)
        if PINGPONG:
            mbarrier.arrive(turns.index(1 - HALF))
        scores = warpgroup_mma_wait(0, deps=[scores])
        mbarrier.arrive(k_empty.index(stage))
        if CUT:
            scores = masked(scores, row, (end - 1) * BLOCK_N, S, CAUSAL, WINDOW)
        peak = gl.full([ROWS], LOWEST, gl.float32, gl.SliceLayout(1, wide))
        total = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, wide))
        fresh, peak, total, _ = softened(scores, peak, total, SCALE)
        weights = gl.convert_layout(fresh.to(k_ring.dtype), operand)
        running = (gl.zeros([ROWS, D], gl.float32, narrow), weights, peak, total)
        count += 1
        if CUT:
            for step in range(end - 1 - high):
                at = (end - 2 - step) * BLOCK_N
                running = attend(
                    query, keys, values, turns, running, count, row, at, HALF, S, CAUSAL, WINDOW, SCALE, True, PINGPONG
                )
                count += 1
        for step in range(high - low):
            at = (high - 1 - step) * BLOCK_N
            running = attend(
                query, keys, values, turns, running, count, row, at, HALF, S, CAUSAL, WINDOW, SCALE, False, PINGPONG
            )
            count += 1
        if WINDOW > 0:
            for step in range(low - first):
                at = (low - 1 - step) * BLOCK_N
                running = attend(
                    query, keys, values, turns, running, count, row, at, HALF, S, CAUSAL, WINDOW, SCALE, True, PINGPONG
                )
                count += 1
        sums, weights, _, total = running
        last = (count - 1) % STAGES
        mbarrier.wait(v_full.index(last), (count - 1) // STAGES & 1)
        sums = warpgroup_mma(weights, v_ring.index(last).reshape([BLOCK_N, D]), sums, is_async=True)
        sums = warpgroup_mma_wait(0, deps=[sums])
        mbarrier.arrive(v_empty.index(last))
        quotient = sums / gl.convert_layout(total, gl.SliceLayout(1, narrow))[:, None]
        # No product reads the queries any more: their place takes what is stored.
        query.store(quotient.to(o.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(o, [head, row, 0], piece)
    tma.store_wait(0)


@gluon.jit
def warpgroups(
    q,
    k,
    v,
    o,
    group,
    descending,
    serpentine,
    B: gl.constexpr,
    H: gl.constexpr,
    G: gl.constexpr,
    S: gl.constexpr,
    CAUSAL: gl.constexpr,
    WINDOW: gl.constexpr,
    SCALE: gl.constexpr,
    SLOTS: gl.constexpr,
    STAGES: gl.constexpr,
    PINGPONG: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    """The programs of the grid share all tiles: two blocks of queries of one head, one for each group of warps.

    A thread that multiplies asks for so many `REGISTERS`; those of the default role get what is left.
    """
    HEADS: gl.constexpr = B * H
    SHARE: gl.constexpr = H // G
    q_ring = gl.allocate_shared_memory(q.dtype, [2 * SLOTS, 1, q.block_shape[1], q.block_shape[2]], q.layout)
    k_ring = gl.allocate_shared_memory(k.dtype, [STAGES, 1, k.block_shape[1], k.block_shape[2]], k.layout)
    v_ring = gl.allocate_shared_memory(v.dtype, [STAGES, 1, v.block_shape[1], v.block_shape[2]], v.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [SLOTS, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(turns.index(i), count=1)
    for i in gl.static_range(SLOTS):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=2)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=2)
    queries, keys, values = (q_ring, q_full, q_empty), (k_ring, k_full, k_empty), (v_ring, v_full, v_empty)
    order = (group, descending, serpentine)
    upper, lower = gl.constexpr(0), gl.constexpr(1)
    gl.warp_specialize(
        [
            (
                multiply,
                (o, queries, keys, values, turns, upper, order, HEADS, S, CAUSAL, WINDOW, SCALE, PINGPONG),
            ),
            (
                multiply,
                (o, queries, keys, values, turns, lower, order, HEADS, S, CAUSAL, WINDOW, SCALE, PINGPONG),
            ),
            (copy, (q, k, v, queries, keys, values, order, HEADS, SHARE, S, CAUSAL, WINDOW)),
        ],
        [4, 1],
        [REGISTERS, COPYING],
    )
