"""Triton sketches of operators that reduce each row of a matrix and write the row: softmax, norms.

Three structures: whole rows in registers, the same by a fixed number of programs, and long rows in pieces.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    capability,
    copies_ahead,
    fits_registers,
    fits_shared,
    gpu_only,
    padded,
    power_of_two,
    register_caps,
    useful_stages,
    vectors,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# The longest row that the registers of 1024 threads hold in float32.
LONGEST_ROW = 32768
# Beyond this their addresses and powers spill.
MOST_ELEMENTS = 128
# What ptxas manages with beside the elements where it must.
CAPPED_OVERHEAD = 12
# Shorter rows are one piece, which whole rows read only once.
SHORTEST_ROW = 4097


class WholeRows(TiledSketch):
    """Reads every row once, some rows a program: what is reduced comes from registers."""

    summary = "whole rows in registers, some rows a program"
    # Elements that a thread may have, and what is said of more.
    most_elements: int = MOST_ELEMENTS
    beyond: str = "gives a thread more than {} elements"
    # Values of a thread that live at a time, for each element of whole rows and of a piece.
    alive: float = 1.0
    alive_of_piece: float = 1.5

    def refuses(self, task: Task) -> str | None:
        """Needs rows that fit into registers."""
        if (reason := gpu_only(task)) is not None:
            return reason
        if task.workload["N"] > LONGEST_ROW:
            return f"rows of {task.workload['N']} elements do not fit into registers (at most {LONGEST_ROW})"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Rows, vectors, warps and registers: those that need a new binary first."""
        return (
            Knob("rows", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)),
            self.vector_knob(task),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16, 32)),
            Knob("maxnreg", Family.REGISTERS, register_caps(task.hardware.limits, 32, 64, 128)),
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
            fits_registers(
                limits, names, lambda r, _, warps: self.alive * r * block / (warps * limits.warp), "num_warps"
            ),
            Constraint(
                "leaves a thread fewer elements than its vector holds",
                names,
                lambda r, vector, warps: warps == 1 or r * block >= vector * warps * limits.warp,
            ),
            Constraint(
                self.beyond.format(self.most_elements),
                ("rows", "num_warps"),
                lambda r, warps: r * block <= self.most_elements * warps * limits.warp,
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
        """Shared memory of a program: a word a warp and row joins what warps have reduced, on AMD only of several."""
        if capability(task.hardware.limits) is None:
            return 0
        return 4 * schedule.integer("rows") * schedule.integer("num_warps")

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """Rows in registers; the operator's operations on each element that is read."""
        rows, warps = schedule.integer("rows"), schedule.integer("num_warps")
        m, n = task.workload["M"], task.workload["N"]
        width = self.width(task, schedule)
        programs = self.programs(task, schedule)
        operations = task.operator.cost(task.workload).operations
        return Footprint(
            programs=programs,
            warps=warps,
            shared_bytes=self.shared_bytes(task, schedule),
            registers=rows * width / (warps * task.hardware.limits.warp),
            steps=math.ceil(math.ceil(m / rows) / programs) * math.ceil(n / width),
            intensity=operations / (m * n * matrices(task) * ITEMSIZE[task.workload.dtype]),
            padding=padded((m, n), (rows, width)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and how much a thread moves at a time."""
        vector = schedule.integer("vector") * ITEMSIZE[task.workload.dtype]
        return {**super().derived(task, schedule), "vector_bytes": float(vector)}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """X and Y."""
        del task, schedule
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
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=1,
            maxnreg=cap or None,
        )


class LoopedRows(WholeRows):
    """Each program walks over rows, so that loading the next ones overlaps with computing these."""

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

    def preferred(self, task: Task) -> Mapping[str, Value]:
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

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """The tensors and how rows are shared out."""
        chunked = ScalarArgument(int(schedule["order"] == "chunks"))
        return {**super().arguments(task, schedule), "chunked": chunked}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and the depth of the pipeline."""
        return {**super().constants(task, schedule), "STAGES": schedule.integer("num_stages")}


class RowPieces(WholeRows):
    """The first pass over a row's pieces reduces, the second, which reads them again, writes."""

    summary = "long rows in pieces, two passes"

    def refuses(self, task: Task) -> str | None:
        """Needs rows of several pieces."""
        if (reason := gpu_only(task)) is not None:
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
            # A piece's values with what lanes have reduced are alive at a time.
            Constraint(
                "holds more values across its main loop than a thread has registers",
                ("rows", "block_n", "num_warps"),
                lambda rows, block, warps: self.alive_of_piece * rows * block <= min(65536, 192 * warps * limits.warp),
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

    def preferred(self, task: Task) -> Mapping[str, Value]:
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


def matrices(task: Task) -> int:
    """Inputs as large as the output, which a program streams through; vectors stay in the caches."""
    shape = (task.workload["M"], task.workload["N"])
    return sum(t.shape == shape and not t.output for t in task.operator.tensors(task.workload))


def staged_bytes(task: Task, rows: int, width: int, vector: int, stages: int, single: int = 0) -> int:
    """Shared memory for loads under way: asynchronous copies move 4 bytes or more, and came with sm_80.

    Args:
        task: What is tuned.
        rows: Rows of each matrix that a program reads at a time.
        width: Elements of a row.
        vector: Elements that a thread moves at a time.
        stages: Depth of the pipeline.
        single: Further rows that every turn of the loop reads, such as weights.
    """
    itemsize = ITEMSIZE[task.workload.dtype]
    staged = vector * itemsize >= 4 and copies_ahead(task.hardware.limits)
    return (stages - 1) * (rows * matrices(task) + single) * width * itemsize if staged else 0
