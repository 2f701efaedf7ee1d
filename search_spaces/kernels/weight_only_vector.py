"""Product of few rows with weights of 4 or 8 bits, without tensor cores: for few tokens the codes are all the work.

A code is not converted: its bits become some of a float's fraction, by one logical operation of three operands and,
where they are at no place that serves, a shift that several codes share. What such a float has beside the code is a
multiple of the input, taken out once a word for all columns.
"""

import triton
import triton.language as tl


@triton.jit
def ordered(words, BITS: tl.constexpr):
    """Codes in two's complement as codes in order from 0 on: their highest bits turned round."""
    return words ^ (-0x77777778 if BITS == 4 else -0x7F7F7F80)


@triton.jit
def floats(words, one, FROM: tl.constexpr, TO: tl.constexpr, BITS: tl.constexpr):
    """1 + code 2^(TO - 23), of the codes whose lowest bit is `FROM`.

    An operation of three operands holds one constant. The other, the bits of the float 1, comes as `one`, which the
    compiler does not know and so keeps in a register.
    """
    if TO > FROM:
        moved = words << (TO - FROM)
    elif TO < FROM:
        moved = words >> (FROM - TO)
    else:
        moved = words
    CODE: tl.constexpr = ((1 << BITS) - 1) << TO
    return ((moved & CODE) | one).to(tl.float32, bitcast=True)


@triton.jit
def zeros(M: tl.constexpr, GROUPS: tl.constexpr, COLUMNS: tl.constexpr, WORDS: tl.constexpr):
    """Sums of each row, to begin with."""
    made = ()
    for _ in tl.static_range(M):
        made += (tl.zeros((GROUPS, COLUMNS, WORDS), tl.float32),)
    return made


@triton.jit
def fours_of(places, exists, M: tl.constexpr, K: tl.constexpr, MASKED: tl.constexpr):
    """Four inputs of each row as one integer, 0 where there is no group."""
    made = ()
    for row in tl.static_range(M):
        four = tl.load(places + row * (K // 4))
        if MASKED:
            four = tl.where(exists, four, 0)
        made += (four,)
    return made


@triton.jit
def vector(
    a,
    b,
    scale,
    c,
    one,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BITS: tl.constexpr,
    GROUP: tl.constexpr,
    STAGES: tl.constexpr,
):
    """`BLOCK_N` columns of C a program, `BLOCK_K` terms a step, each thread with sums of its own until the end."""
    WORDS: tl.constexpr = GROUP * BITS // 32
    GROUPS: tl.constexpr = K // GROUP
    TAKEN: tl.constexpr = BLOCK_K // GROUP
    column = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    # What lies outside is read from elsewhere: other columns are not stored, other groups have inputs of 0.
    inner = column if N % BLOCK_N == 0 else column % N
    # Words in pairs, and four inputs as one integer, also in pairs: threads have of both what belongs together.
    word = tl.max_contiguous(tl.arange(0, WORDS), 2)
    in_words = b.to(tl.pointer_type(tl.int32))
    in_fours = a.to(tl.pointer_type(tl.int64))
    sums = zeros(M, TAKEN, BLOCK_N, WORDS)
    for step in tl.range(tl.cdiv(GROUPS, TAKEN), num_stages=STAGES):
        group = step * TAKEN + tl.arange(0, TAKEN)
        there = group if GROUPS % TAKEN == 0 else group % GROUPS
        exists = (group < GROUPS)[:, None, None]
        rows = there.to(tl.int64)[:, None] * N + inner[None, :]
        words = ordered(tl.load(in_words + rows[:, :, None] * WORDS + word[None, None, :]), BITS)
        factors = tl.load(scale + rows).to(tl.float32)[:, :, None]
        places = in_fours + there[:, None, None] * (GROUP // 4) + word[None, None, :]
        parts = zeros(M, TAKEN, BLOCK_N, WORDS)
        beside = zeros(M, TAKEN, 1, WORDS)
        for half in tl.static_range(8 // BITS):
            # Of 4 bits the upper halves of bytes belong to the second half of a group. Lower halves go to bit 16, upper
            # ones to bit 12: so some are in place, and shifts serve two codes each.
            packed = fours_of(places + half * (GROUP // 8), exists, M, K, GROUPS % TAKEN != 0)
            for byte in tl.static_range(4):
                weights = floats(words, one, byte * 8 + half * 4, 15 if BITS == 8 else 16 - half * 4, BITS)
                more, less = (), ()
                for row in tl.static_range(M):
                    inputs = (packed[row] >> (16 * byte)).to(tl.int16).to(a.dtype.element_ty, bitcast=True)
                    inputs = inputs.to(tl.float32)
                    scaled = inputs * (256.0 if BITS == 8 else 2048.0 if half else 128.0)
                    more += (parts[row] + scaled * weights,)
                    less += (beside[row] + (scaled + inputs * (1 << (BITS - 1))),)
                parts, beside = more, less
        total = ()
        for row in tl.static_range(M):
            total += (sums[row] + (parts[row] - beside[row]) * factors,)
        sums = total
    for row in tl.static_range(M):
        made = tl.sum(tl.sum(sums[row], 2), 0).to(c.dtype.element_ty)
        tl.store(c + row * N + column, made, mask=column < N)
