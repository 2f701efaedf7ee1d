"""Matrix product by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.followed import batch_of, form_of
from search_spaces.sketches.tiles import RESERVED_SHARED
from search_spaces.sketches.triton.matmul_tiled import Tile, tiles
from search_spaces.sketches.triton.matmul_tma import BARRIER_BYTES, MatmulTma
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task


class MatmulPersistent(MatmulTma):
    """Each program takes tile after tile, so that storing one overlaps with loading the next."""

    name = "triton.matmul_persistent"
    kernel = "search_spaces.kernels.matmul:persistent"
    summary = "persistent programs share the tiles, moved by TMA (sm_90 and later)"
    tile_knobs = (*MatmulTma.tile_knobs, "flatten")

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the TMA sketch, and how the loop over tiles runs."""
        return (
            *super().knobs(task),
            Knob("flatten", Family.PERSISTENCE, (False, True)),
            Knob("programs_per_sm", Family.PERSISTENCE, (1, 2), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the TMA sketch, and no more programs than find room or work."""
        limits = task.hardware.limits

        def room(*values: int) -> bool:
            *tile, count = values
            return count * (self.shared_bytes(task, self.tile(tile)) + RESERVED_SHARED) <= limits.shared_per_sm

        return (
            *super().constraints(task),
            Constraint(
                "asks for more programs than find room on a multiprocessor",
                (*self.tile_knobs, "programs_per_sm"),
                room,
            ),
            Constraint(
                "asks for more programs than there are tiles",
                ("block_m", "block_n", "programs_per_sm"),
                lambda bm, bn, count: (
                    count == 1
                    or batch_of(task) * -(-task.workload["M"] // bm) * -(-task.workload["N"] // bn)
                    > task.hardware.model.sms
                ),
            ),
        )

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program: where loads are pipelined, the next tile's overlap with the store of this one.

        In flattened loops the residual is one of them.
        """
        operands, store = self.operand_bytes(task, tile), self.store_bytes(task, tile)
        if tile.num_stages == 1:
            return max(operands, store)
        return operands + store + (store + BARRIER_BYTES if tile.flatten and form_of(task).residual else 0)

    def preferred(self, task: Task) -> dict[str, Value]:
        """As the tutorial: one program a multiprocessor, the loops flattened."""
        return {**super().preferred(task), "flatten": True, "programs_per_sm": 1}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: so many a multiprocessor, no more than tiles."""
        return min(
            batch_of(task) * tiles(task, schedule), task.hardware.model.sms * schedule.integer("programs_per_sm")
        )

    def grid(self, task: Task, schedule: Schedule) -> tuple[int, int, int]:
        """Programs take the tiles of all products."""
        return self.programs(task, schedule), 1, 1

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """The pieces of the store, and whether the loops over tiles and over K become one."""
        return {**super().own_constants(schedule), "FLATTEN": bool(schedule["flatten"])}


SKETCH = MatmulPersistent()
