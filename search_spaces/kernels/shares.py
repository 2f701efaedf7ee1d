"""How a fixed number of programs shares blocks of work."""

import triton
import triton.language as tl


@triton.jit
def share_of(BLOCKS: tl.constexpr, chunked):
    """First block of this program, end and step of its blocks: interleaved, or a chunk where `chunked` is 1."""
    programs = tl.num_programs(0)
    pid = tl.program_id(0)
    share = tl.cdiv(BLOCKS, programs)
    first = tl.where(chunked != 0, pid * share, pid)
    end = tl.where(chunked != 0, tl.minimum(pid * share + share, BLOCKS), BLOCKS)
    return first, end, tl.where(chunked != 0, 1, programs)
