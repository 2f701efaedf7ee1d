"""Grouped matrix product by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.grouped import GroupedTma
from search_spaces.sketches.tiles import RESERVED_SHARED
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task


class GroupedMatmulPersistent(GroupedTma):
    """No program is without a tile where groups are small, or left over where they are uneven."""

    name = "triton.grouped_matmul_persistent"
    kernel = "search_spaces.kernels.grouped:persistent"
    summary = "persistent programs share the tiles of all groups, moved by TMA (sm_90 and later)"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the TMA sketch, and how many programs there are."""
        return (*super().knobs(task), Knob("programs_per_sm", Family.PERSISTENCE, (1, 2, 3, 4), runtime=True))

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the TMA sketch, and no more programs than find room or work."""
        limits = task.hardware.limits
        m, n, _ = self.extents(task)

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
                lambda bm, bn, count: count == 1 or -(-m // bm) * -(-n // bn) > task.hardware.model.sms,
            ),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """One program a multiprocessor."""
        return {**super().preferred(task), "programs_per_sm": 1}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: so many a multiprocessor, no more than there may be tiles."""
        return min(super().programs(task, schedule), task.hardware.model.sms * schedule.integer("programs_per_sm"))


SKETCH = GroupedMatmulPersistent()
