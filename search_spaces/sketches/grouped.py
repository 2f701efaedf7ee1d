"""What the Triton sketches of grouped products add to those of one: rows in groups that only the kernel can read."""

from __future__ import annotations

import math
from dataclasses import replace

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import Footprint, gpu_only, needs_tma, on_tensor_cores, padded, power_of_two
from search_spaces.sketches.triton.base import Argument, DescriptorArgument, TensorArgument
from search_spaces.sketches.triton.matmul_tiled import MatmulTiled, Tile, order
from search_spaces.sketches.triton.matmul_tma import TMA_ALIGNMENT, MatmulTma
from search_spaces.space import Knob, Schedule, Value
from search_spaces.task import Task

# The lowest tile, in rows.
LEAST_ROWS, MOST_ROWS = 16, 128


class Grouped(MatmulTiled):
    """Tiles of one group each."""

    operator = "grouped_matmul"

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape."""
        return gpu_only(task)

    def extents(self, task: Task) -> tuple[int, int, int]:
        """Rows of all groups, columns and terms."""
        return task.workload["M"] * task.workload["T"], task.workload["N"], task.workload["K"]

    def rows(self, task: Task) -> int:
        """Rows of a group, on average."""
        return math.ceil(self.extents(task)[0] / task.workload["E"])

    def preferred(self, task: Task) -> dict[str, Value]:
        """As for one product, its tiles no taller than a group is on average."""
        wanted = dict(super().preferred(task))
        if on_tensor_cores(task.hardware.limits, task.workload.dtype):
            wanted["block_m"] = min(MOST_ROWS, max(LEAST_ROWS, power_of_two(self.rows(task))))
        return wanted

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one a tile, were all groups to end with a tile begun."""
        m, n, _ = self.extents(task)
        block = schedule.integer("block_m")
        return min(m, m // block + task.workload["E"]) * math.ceil(n / schedule.integer("block_n"))

    def grid(self, task: Task, schedule: Schedule) -> tuple[int, int, int]:
        """The programs of all groups."""
        return self.programs(task, schedule), 1, 1

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """That of a tile; the padding is that of a group of average size."""
        made = super().footprint(task, schedule)
        tile = tuple(schedule.integer(name) for name in ("block_m", "block_n", "block_k"))
        return replace(made, padding=padded((self.rows(task), *self.extents(task)[1:]), tile))

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A, B, the ends of the groups, C, and the order of a group's tiles."""
        matrices: dict[str, Argument] = {name.lower(): TensorArgument(name) for name in ("A", "B", "ENDS", "C")}
        return {**matrices, **order(schedule)}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and the number of groups."""
        made: dict[str, int | float | bool | str] = {axis: task.workload[axis] for axis in "NK"}
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n", "block_k")})
        experts = task.workload["E"]
        return {**made, **self.own_constants(schedule), "E": experts, "BLOCK_E": power_of_two(experts)}


class GroupedTma(Grouped, MatmulTma):
    """A and B move through descriptors that see the rows of all groups; C does not, as a group may end anywhere."""

    tile_knobs = MatmulTiled.tile_knobs

    def refuses(self, task: Task) -> str | None:
        """Needs TMA, tensor cores and rows of a multiple of 16 bytes."""
        if (reason := needs_tma(task, "triton.grouped_matmul_tiled")) is not None:
            return reason
        k = task.workload["K"]
        if k * ITEMSIZE[task.workload.dtype] % TMA_ALIGNMENT:
            return f"K={k} makes rows that are no multiple of TMA's {TMA_ALIGNMENT} bytes"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the TMA sketch, with the vectors of the store in the place of its pieces."""
        vector = next(knob for knob in MatmulTiled.knobs(self, task) if knob.name == "store_vector")
        return tuple(vector if knob.name == "subtiles" else knob for knob in MatmulTma.knobs(self, task))

    def store_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory for the store, at least: none."""
        del task, tile
        return 0

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A and B by descriptor, the others by address."""
        m, n, k = self.extents(task)
        bm, bn, bk = map(schedule.integer, ("block_m", "block_n", "block_k"))
        return {
            **Grouped.arguments(self, task, schedule),
            "a": DescriptorArgument("A", (m, k), (bm, bk)),
            "b": DescriptorArgument("B", (task.workload["E"] * n, k), (bn, bk)),
        }

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """The vectors of the store."""
        return MatmulTiled.own_constants(self, schedule)
