"""Attention in one pass over the keys, moved by the bulk copy engine (TMA), from sm_90 on."""

from __future__ import annotations

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import buffers, needs_tma, warp_group_product
from search_spaces.sketches.triton.attention_pointers import AttentionPointers, order, order_knobs, width
from search_spaces.sketches.triton.base import Argument, DescriptorArgument
from search_spaces.sketches.triton.matmul_tma import BARRIER_BYTES
from search_spaces.space import Knob, Schedule
from search_spaces.task import Task


class AttentionDescriptors(AttentionPointers):
    """As the pointer sketch; Q, K, V and O move through descriptors over (heads, S, D)."""

    name = "triton.attention_descriptors"
    kernel = "search_spaces.kernels.attention:descriptors"
    summary = "flash attention moved by TMA (sm_90 and later), a block of queries a program"
    # The sketch that takes what this one refuses.
    instead = "triton.attention_pointers"

    def refuses(self, task: Task) -> str | None:
        """Needs TMA and tensor cores."""
        return needs_tma(task, self.instead)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Blocks of queries and keys, warps, stages, register cap and the order of programs."""
        return (*self.tile_knobs(task.hardware.limits), *order_knobs())

    def operand_bytes(self, task: Task, block_m: int, block_n: int, warps: int, stages: int) -> int:
        """Shared memory for the queries, which stay only for wgmma, and for the keys and values on their way."""
        limits, dtype = task.hardware.limits, task.workload.dtype
        row = width(task) * ITEMSIZE[dtype]
        stay = warp_group_product(limits, dtype, block_m, warps)
        if stages == 1 and not stay:
            # Each block is in registers before the next arrives in its place.
            return max(block_m, block_n) * row + BARRIER_BYTES
        loop = buffers(limits, stages, stay) * (2 * block_n * row + BARRIER_BYTES)
        return loop + block_m * row if stay else max(loop, block_m * row)

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Q, K, V and O by descriptor, and the order of programs."""
        batch, heads, groups, s, d = (task.workload[axis] for axis in "BHGSD")
        queries, keys = (1, schedule.integer("block_m"), width(task)), (1, schedule.integer("block_n"), width(task))
        return {
            "q": DescriptorArgument("Q", (batch * heads, s, d), queries),
            "k": DescriptorArgument("K", (batch * groups, s, d), keys),
            "v": DescriptorArgument("V", (batch * groups, s, d), keys),
            "o": DescriptorArgument("O", (batch * heads, s, d), queries),
            **order(schedule),
        }

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """None: descriptors store as they were made."""
        del schedule
        return {}


SKETCH = AttentionDescriptors()
