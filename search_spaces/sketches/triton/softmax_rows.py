"""Softmax of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    cuda_only,
    fits_registers,
    padded,
    pipelined,
    power_of_two,
    vectors,
)
from search_spaces.sketches.triton.base import Argument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, SketchSpace, Value
from search_spaces.task import Task

# The longest row that the registers of 1024 threads hold in float32.
LONGEST_ROW = 32768
# Beyond this their addresses and powers spill.
MOST_ELEMENTS = 64
# What ptxas manages with beside the elements where it must.
CAPPED_OVERHEAD = 12


class SoftmaxRows(TiledSketch):
    """Reads every row once: maximum, sum and quotient come from registers."""

    name = "triton.softmax_rows"
    operator = "softmax"
    kernel = "search_spaces.kernels.softmax:rows"
    summary = "whole rows in registers, some rows a program"

    def refuses(self, task: Task) -> str | None:
        """Needs rows that fit into registers."""
        if (reason := cuda_only(task)) is not None:
            return reason
        if task.workload["N"] > LONGEST_ROW:
            return f"rows of {task.workload['N']} elements do not fit into registers (at most {LONGEST_ROW})"
        return None

    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """Rows, vectors, warps and registers."""
        return (SketchSpace(self.name, self.knobs(task), self.constraints(task)),)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""
        return (
            Knob("rows", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)),
            self.vector_knob(task),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16, 32)),
            Knob("maxnreg", Family.REGISTERS, (0, 32, 64, 128)),
        )

    def vector_knob(self, task: Task) -> Knob:
        """Elements that a thread loads and stores at a time."""
        widths = vectors(task.hardware.limits, task.workload.dtype, task.workload["N"], 4)
        return Knob("vector", Family.VECTOR_WIDTH, widths)

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and threads or rows without work."""
        return (*self.tile_constraints(task), self.cap_constraint(task))

    def tile_constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Limits on whole rows, the vector and the warps."""
        limits, names = task.hardware.limits, ("rows", "vector", "num_warps")
        block = power_of_two(task.workload["N"])
        return (
            Constraint(
                "takes more rows at a time than X has", ("rows",), lambda r: r <= power_of_two(task.workload["M"])
            ),
            fits_registers(limits, names, lambda r, _, warps: r * block / (warps * limits.warp), "num_warps"),
            Constraint(
                "leaves a thread fewer elements than its vector holds",
                names,
                lambda r, vector, warps: warps == 1 or r * block >= vector * warps * limits.warp,
            ),
            Constraint(
                f"gives a thread more than {MOST_ELEMENTS} elements",
                ("rows", "num_warps"),
                lambda r, warps: r * block <= MOST_ELEMENTS * warps * limits.warp,
            ),
        )

    def cap_constraint(self, task: Task) -> Constraint:
        """A register cap must leave room for the row and be one that binds."""
        limits = task.hardware.limits
        block = power_of_two(task.workload["N"])

        def holds(rows: int, warps: int, cap: int) -> bool:
            threads = warps * limits.warp
            return cap == 0 or (
                rows * block / threads + CAPPED_OVERHEAD <= cap and cap * threads <= limits.registers_per_sm
            )

        return Constraint(
            "its register cap is below what it holds or above what there is", ("rows", "num_warps", "maxnreg"), holds
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """One row a program, as many warps as a row has work for up to 8, whole vectors."""
        return {"rows": 1, "vector": 16 // ITEMSIZE[task.workload.dtype], "num_warps": 8, "maxnreg": 0}

    def width(self, task: Task, schedule: Schedule) -> int:
        """Elements of a row that a program holds at a time."""
        del schedule
        return power_of_two(task.workload["N"])

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one for so many rows."""
        return math.ceil(task.workload["M"] / schedule.integer("rows"))

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program: a word a warp and row joins their maxima and sums."""
        del task
        return 4 * schedule.integer("rows") * schedule.integer("num_warps")

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """Rows in registers; five operations an element."""
        rows, warps = schedule.integer("rows"), schedule.integer("num_warps")
        m, n = task.workload["M"], task.workload["N"]
        width = self.width(task, schedule)
        programs = self.programs(task, schedule)
        return Footprint(
            programs=programs,
            warps=warps,
            shared_bytes=self.shared_bytes(task, schedule),
            registers=rows * width / (warps * task.hardware.limits.warp),
            steps=math.ceil(math.ceil(m / rows) / programs) * math.ceil(n / width),
            intensity=5.0 / ITEMSIZE[task.workload.dtype],
            padding=padded((m, n), (rows, width)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and how much a thread moves at a time."""
        vector = schedule.integer("vector") * ITEMSIZE[task.workload.dtype]
        return {**super().derived(task, schedule), "vector_bytes": float(vector)}

    def arguments(self, schedule: Schedule) -> dict[str, Argument]:
        """X and Y."""
        del schedule
        return {"x": TensorArgument("X"), "y": TensorArgument("Y")}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape and the tile."""
        return {
            "M": task.workload["M"],
            "N": task.workload["N"],
            "ROWS": schedule.integer("rows"),
            "BLOCK_N": self.width(task, schedule),
            "VECTOR": schedule.integer("vector"),
        }

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        cap = schedule.integer("maxnreg") if "maxnreg" in schedule.knobs else 0
        return TritonLaunch(
            arguments=self.arguments(schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=1,
            maxnreg=cap or None,
        )


def staged_bytes(task: Task, rows: int, width: int, vector: int, stages: int) -> int:
    """Shared memory for loads under way: asynchronous copies move 4 bytes or more, and came with sm_80."""
    itemsize = ITEMSIZE[task.workload.dtype]
    staged = vector * itemsize >= 4 and pipelined(task.hardware.limits)
    return (stages - 1) * rows * width * itemsize if staged else 0


SKETCH = SoftmaxRows()
