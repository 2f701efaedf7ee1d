"""Softmax of rows too long for registers: in pieces, in two passes."""

from __future__ import annotations

import math

from search_spaces.sketches.tiles import cuda_only, fits_shared, power_of_two, useful_stages
from search_spaces.sketches.triton.softmax_rows import SoftmaxRows, staged_bytes
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Shorter rows are one piece, which the other sketches read only once.
SHORTEST_ROW = 4097


class SoftmaxOnline(SoftmaxRows):
    """The first pass finds a row's maximum and sum together, the second writes the quotients."""

    name = "triton.softmax_online"
    kernel = "search_spaces.kernels.softmax:online"
    summary = "long rows in pieces, two passes"

    def refuses(self, task: Task) -> str | None:
        """Needs rows of several pieces."""
        if (reason := cuda_only(task)) is not None:
            return reason
        if task.workload["N"] < SHORTEST_ROW:
            return f"rows of {task.workload['N']} elements fit into registers whole (two passes from {SHORTEST_ROW} on)"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Piece, rows, vectors, warps, stages and the direction of the second pass."""
        return (
            Knob("rows", Family.TILE_SIZES, (1, 2, 4)),
            Knob("block_n", Family.TILE_SIZES, (512, 1024, 2048, 4096, 8192, 16384)),
            self.vector_knob(task),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16, 32)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4)),
            Knob("second_pass", Family.LOOP_ORDER, ("forward", "backward")),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and threads without work."""
        limits = task.hardware.limits
        return (
            Constraint(
                "takes more rows at a time than X has", ("rows",), lambda r: r <= power_of_two(task.workload["M"])
            ),
            # A piece's values with their maxima and sums are alive at a time.
            Constraint(
                "holds more values across its main loop than a thread has registers",
                ("rows", "block_n", "num_warps"),
                lambda rows, block, warps: 3 * rows * block <= min(65536, 192 * warps * limits.warp),
            ),
            Constraint(
                "leaves a thread fewer elements than its vector holds",
                ("rows", "block_n", "vector", "num_warps"),
                lambda rows, block, vector, warps: rows * block >= vector * warps * limits.warp,
            ),
            useful_stages(limits, ("block_n", "num_stages"), lambda block: math.ceil(task.workload["N"] / block)),
            fits_shared(
                limits,
                ("rows", "block_n", "vector", "num_stages"),
                lambda rows, block, vector, stages: staged_bytes(task, rows, block, vector, stages),
            ),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """A row at a time in pieces of 4096, 8 warps, 2 stages."""
        wanted = {k: v for k, v in super().preferred(task).items() if k != "maxnreg"}
        return {**wanted, "block_n": 4096, "num_stages": 2, "second_pass": "backward"}

    def width(self, task: Task, schedule: Schedule) -> int:
        """Elements of a piece."""
        del task
        return schedule.integer("block_n")

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least."""
        rows, block, vector, stages = map(schedule.integer, ("rows", "block_n", "vector", "num_stages"))
        return staged_bytes(task, rows, block, vector, stages)

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the piece, the depth of the pipeline and the direction."""
        made = super().constants(task, schedule)
        backward = schedule["second_pass"] == "backward"
        return {**made, "STAGES": schedule.integer("num_stages"), "BACKWARD": backward}


SKETCH = SoftmaxOnline()
