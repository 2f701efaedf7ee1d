"""What the sketches of products that quantise A on the way add to those of products: A is wide, and has no scales."""

from __future__ import annotations

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import buffers, capability, fits_registers
from search_spaces.sketches.triton.base import Argument
from search_spaces.sketches.triton.matmul_tiled import MatmulTiled, Tile
from search_spaces.space import Constraint, Schedule
from search_spaces.task import Task


class Dynamic(MatmulTiled):
    """Tiles of A become int8 in registers."""

    operator = "int8_dynamic_linear"
    followed: tuple[str, ...] = ("BIAS", "ACTIVATION")

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the product; the largest magnitudes are found lane by lane before the sums are begun."""
        limits = task.hardware.limits
        lanes = fits_registers(
            limits,
            ("block_m", "block_k", "num_warps"),
            lambda bm, bk, warps: bm * bk / (warps * limits.warp),
            "num_warps",
        )
        return (*super().constraints(task), lanes)

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program, at least: B and wide A on their way, where loads run ahead."""
        if tile.num_stages == 1:
            return 0
        limits, (wide, deep) = task.hardware.limits, (ITEMSIZE[task.workload.dtype], tile.block_k)
        if capability(limits) is None:
            # What is on its way stays in registers, and A is int8 before it is in shared memory.
            return max(1, tile.num_stages - 2) * (tile.block_m + tile.block_n) * deep
        return buffers(limits, tile.num_stages, False) * (tile.block_m * wide + tile.block_n) * deep

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of the product but for the residual and the scales of the rows."""
        given = super().arguments(task, schedule)
        return {name: argument for name, argument in given.items() if name not in ("residual", "row_scale")}
