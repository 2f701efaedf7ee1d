"""Softmax of whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

import math

from search_spaces.sketches.tiles import fits_shared, power_of_two, useful_stages
from search_spaces.sketches.triton.base import Argument, ScalarArgument
from search_spaces.sketches.triton.softmax_rows import SoftmaxRows, staged_bytes
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task


class SoftmaxLooped(SoftmaxRows):
    """Each program walks over rows, so that loading the next ones overlaps with computing these."""

    name = "triton.softmax_looped"
    kernel = "search_spaces.kernels.softmax:looped"
    summary = "persistent programs share the rows, loads pipelined through shared memory"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Rows, vectors, warps, stages, programs and which rows go to which program."""
        return (
            Knob("rows", Family.TILE_SIZES, (1, 2, 4, 8, 16)),
            self.vector_knob(task),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16, 32)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4)),
            Knob("programs_per_sm", Family.PERSISTENCE, (1, 2, 3, 4, 6, 8, 12, 16, 32), runtime=True),
            Knob("order", Family.LOOP_ORDER, ("interleaved", "chunks"), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and more programs than find room or work."""
        limits, m = task.hardware.limits, task.workload["M"]
        width = power_of_two(task.workload["N"])
        return (
            *self.tile_constraints(task),
            useful_stages(
                limits,
                ("rows", "programs_per_sm", "num_stages"),
                lambda rows, count: math.ceil(m / (rows * task.hardware.model.sms * count)),
            ),
            fits_shared(
                limits,
                ("rows", "vector", "num_stages"),
                lambda rows, vector, stages: staged_bytes(task, rows, width, vector, stages),
            ),
            Constraint(
                "asks for more programs than find room on a multiprocessor",
                ("num_warps", "programs_per_sm"),
                lambda warps, count: (
                    count <= limits.blocks_per_sm and count * warps * limits.warp <= limits.threads_per_sm
                ),
            ),
            Constraint(
                "asks for more programs than there are rows",
                ("rows", "programs_per_sm"),
                lambda rows, count: count == 1 or count * task.hardware.model.sms <= math.ceil(m / rows),
            ),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """Triton's softmax tutorial: one row at a time, 8 warps, 4 stages (2 on small shared memory)."""
        stages = 4 if task.hardware.limits.shared_per_sm > 200_000 else 2
        wanted = {k: v for k, v in super().preferred(task).items() if k != "maxnreg"}
        return {**wanted, "num_stages": stages, "programs_per_sm": 4, "order": "interleaved"}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: so many a multiprocessor, no more than there is work for."""
        return min(super().programs(task, schedule), task.hardware.model.sms * schedule.integer("programs_per_sm"))

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least."""
        rows, vector, stages = map(schedule.integer, ("rows", "vector", "num_stages"))
        return super().shared_bytes(task, schedule) + staged_bytes(
            task, rows, self.width(task, schedule), vector, stages
        )

    def arguments(self, schedule: Schedule) -> dict[str, Argument]:
        """X, Y and how rows are shared out."""
        return {**super().arguments(schedule), "chunked": ScalarArgument(int(schedule["order"] == "chunks"))}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and the depth of the pipeline."""
        return {**super().constants(task, schedule), "STAGES": schedule.integer("num_stages")}


SKETCH = SoftmaxLooped()
