"""Matrix product in tiles that the bulk copy engine (TMA) moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.followed import (
    b_descriptor,
    batch_of,
    deeper,
    follow_arguments,
    form_of,
    needs_narrow,
    operand_dtype,
)
from search_spaces.sketches.promotion import promotion_knobs, too_short
from search_spaces.sketches.tiles import buffers, needs_tma, warp_group_product
from search_spaces.sketches.triton.base import Argument, DescriptorArgument
from search_spaces.sketches.triton.matmul_tiled import MatmulTiled, Tile, order, order_knobs
from search_spaces.space import Family, Knob, Schedule, Value
from search_spaces.task import Task

# Bytes to which TMA wants the rows of a tensor aligned.
TMA_ALIGNMENT = 16
# A copy under way is waited for at a barrier in shared memory.
BARRIER_BYTES = 8


class MatmulTma(MatmulTiled):
    """One tile of C a program; A, B and C move through descriptors."""

    name = "triton.matmul_tma"
    kernel = "search_spaces.kernels.matmul:tma"
    summary = "one tile a program, moved by TMA (sm_90 and later)"
    tile_knobs = (*MatmulTiled.tile_knobs, "subtiles")

    def refuses(self, task: Task) -> str | None:
        """Needs TMA, tensor cores and rows of a multiple of 16 bytes."""
        if (reason := needs_tma(task, "triton.matmul_tiled") or needs_narrow(task) or too_short(task)) is not None:
            return reason
        narrow = operand_dtype(task)
        dtypes = {"K": narrow, "N": task.workload.dtype if form_of(task).trans_b else narrow}
        for axis, dtype in dtypes.items():
            if task.workload[axis] * ITEMSIZE[dtype] % TMA_ALIGNMENT:
                return f"{axis}={task.workload[axis]} makes rows that are no multiple of TMA's {TMA_ALIGNMENT} bytes"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Tiles, warps, stages, pieces of the store and the order of tiles."""
        return (
            Knob("block_m", Family.TILE_SIZES, (64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, (32, 64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, deeper(task, 32, 64, 128)),
            Knob("num_warps", Family.WARPS, (4, 8)),
            Knob("subtiles", Family.SHARED_MEMORY, (1, 2, 4)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6)),
            *promotion_knobs(task),
            *order_knobs(),
        )

    def operand_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory for the tiles of A and B on their way, each copy with its barrier, in bytes."""
        limits, dtype = task.hardware.limits, operand_dtype(task)
        read_there = warp_group_product(limits, dtype, tile.rows, tile.num_warps)
        strips = tile.block_m + self.sides * tile.block_n
        if tile.num_stages == 1 and not read_there:
            # A is in registers before B arrives in its place.
            strips = max(tile.block_m, self.sides * tile.block_n)
        copies = buffers(limits, tile.num_stages, read_there)
        return copies * (strips * tile.block_k * ITEMSIZE[dtype] + self.sides * BARRIER_BYTES)

    def store_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory for one piece of the tile of C, in bytes."""
        return tile.block_m * tile.block_n // tile.subtiles * ITEMSIZE[task.workload.dtype]

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program: the store comes after the loop and takes its room."""
        return max(self.operand_bytes(task, tile), self.store_bytes(task, tile))

    def preferred(self, task: Task) -> dict[str, Value]:
        """Triton's persistent matmul tutorial: 128x256x64, 8 warps, 3 stages, groups of 8."""
        return {**super().preferred(task), "subtiles": 1}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A, B, C and the residual by descriptor, the bias by address, and the order of tiles."""
        m, n, k = (task.workload[axis] for axis in "MNK")
        bm, bn, bk = map(schedule.integer, ("block_m", "block_n", "block_k"))
        piece = (bm, bn // schedule.integer("subtiles"))
        return {
            "a": DescriptorArgument("A", (batch_of(task) * m, k), (bm, bk)),
            "b": b_descriptor(task, bk, bn),
            "c": DescriptorArgument("C", (batch_of(task) * m, n), piece),
            **follow_arguments(task, piece),
            **order(schedule),
        }

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """The pieces of the store."""
        return {"SUBTILES": schedule.integer("subtiles")}


SKETCH = MatmulTma()
