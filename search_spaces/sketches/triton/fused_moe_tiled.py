"""A mixture of experts whose first product is gated before it is stored, each product with a tile of its own."""

from __future__ import annotations

import math

from search_spaces.sketches.experts import (
    KERNELS,
    Experts,
    Phase,
    choices,
    first_result,
    most_tiles,
    second_result,
    sorted_choices,
)
from search_spaces.sketches.tiles import on_tensor_cores, power_of_two
from search_spaces.sketches.triton.base import Argument, Constant, TensorArgument, TritonLaunch
from search_spaces.space import Family, Knob, Schedule, Value
from search_spaces.task import Task

_GATE = Phase("N", "K", sides=2)
_DOWN = Phase("K", "N", tile=("block_m", "down_n", "down_k", "down_warps", "down_stages"))
# Rows of a tile, at least and at most.
_LEAST, _MOST = 16, 128


class FusedMoeTiled(Experts):
    """Four kernels: both products have the rows of a tile in common, as the choices are sorted once."""

    name = "triton.fused_moe_tiled"
    kernel = f"{KERNELS}:gate"
    summary = "sort, gated product, second product and sum; a tile for each product"
    phases = (_GATE, _DOWN)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The rows that both products share, then the rest of each one's tile."""
        deep = (32, 64, 128) if on_tensor_cores(task.hardware.limits, task.workload.dtype) else (16, 32)
        return (
            Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128)),
            Knob("block_k", Family.TILE_SIZES, deep),
            Knob("num_warps", Family.WARPS, (2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5)),
            Knob("down_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("down_k", Family.TILE_SIZES, deep),
            Knob("down_warps", Family.WARPS, (2, 4, 8)),
            Knob("down_stages", Family.SHARED_MEMORY, (1, 2, 3, 4)),
            Knob("group", Family.LOOP_ORDER, (1, 4, 16)),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """Tiles no taller than an expert has choices on average."""
        rows = min(_MOST, max(_LEAST, power_of_two(self.rows(task))))
        tall = rows >= _MOST // 2
        wanted: dict[str, Value] = {"block_m": rows, "block_n": 64, "block_k": 64, "num_warps": 8 if tall else 4}
        wanted |= {"num_stages": 3, "down_n": 128, "down_k": 64, "down_warps": 8 if tall else 4, "down_stages": 3}
        if not on_tensor_cores(task.hardware.limits, task.workload.dtype):
            wanted |= {"block_m": min(rows, 32), "block_n": 32, "block_k": 16, "down_n": 64, "down_k": 16}
        return {**wanted, "group": 4 if tall else 1}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The first product."""
        tensors: dict[str, Argument] = {"x": TensorArgument("X"), "w1": TensorArgument("W1")}
        sorting = sorted_choices(task, schedule.integer("block_m"))
        return self._product(
            task, schedule, _GATE, {**tensors, **sorting, "hidden": first_result(task)}, {"T": task.workload["T"]}
        )

    def launches(self, task: Task, schedule: Schedule) -> tuple[TritonLaunch, ...]:
        """Sort, both products, sum."""
        tensors: dict[str, Argument] = {"hidden": first_result(task), "w2": TensorArgument("W2")}
        sorting = sorted_choices(task, schedule.integer("block_m"))
        given = {**tensors, "weights": TensorArgument("WEIGHTS"), **sorting, "terms": second_result(task)}
        down = self._product(task, schedule, _DOWN, given, {})
        return self.sorting(task, schedule), self.launch(task, schedule), down, self.summing(task)

    def _product(
        self,
        task: Task,
        schedule: Schedule,
        phase: Phase,
        arguments: dict[str, Argument],
        own: dict[str, Constant],
    ) -> TritonLaunch:
        bm, bn, bk, warps, stages = (schedule.integer(name) for name in phase.tile)
        tiles = most_tiles(task, bm)
        shape: dict[str, Constant] = {"N": task.workload["N"], "K": task.workload["K"], **own}
        shape |= {"CHOICES": choices(task), "TILES_M": tiles}
        return TritonLaunch(
            arguments=arguments,
            constants={**shape, "BLOCK_M": bm, "BLOCK_N": bn, "BLOCK_K": bk, "GROUP": schedule.integer("group")},
            grid=(tiles * math.ceil(phase.extents(task)[0] / bn), 1, 1),
            num_warps=warps,
            num_stages=stages,
            kernel="" if phase is _GATE else f"{KERNELS}:down",
        )


SKETCH = FusedMoeTiled()
