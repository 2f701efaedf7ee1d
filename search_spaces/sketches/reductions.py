"""What the Triton sketches of reductions add to those of rows: which reduction, eviction, and shares of long rows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from search_spaces.sketches.rows import LoopedRows, RowPieces, WholeRows
from search_spaces.sketches.tiles import Footprint, power_of_two
from search_spaces.sketches.triton.base import Argument, WorkspaceArgument
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Knob values, and what they are called in PTX: what is read is not needed again.
EVICTION: Mapping[str, str] = {"normal": "", "first": "evict_first"}
SPLITS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
# Programs for each multiprocessor that the untuned default splits long rows into.
PROGRAMS_PER_SM = 4


class ReducedRows(WholeRows):
    """Whole rows, of which one value each is written.

    What is read need not live on, so that registers set no limit to it; but each element is an instruction of its own.
    """

    most_elements = 256
    beyond = "unrolls the reading of more than {} elements a thread"
    alive = 0.0
    alive_of_piece = 0.75

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows and how soon the caches may drop them."""
        return (*super().knobs(task), Knob("eviction", Family.SHARED_MEMORY, tuple(EVICTION)))

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the rows, without a hint to the caches."""
        return {**super().preferred(task), "eviction": "normal"}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and which reduction it is."""
        return {**super().constants(task, schedule), **self.reduction(task, schedule)}

    def reduction(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """Which reduction it is, and how what is read is kept."""
        return {"MAXIMUM": bool(task.workload["maximum"]), **eviction(schedule)}


class ReducedLooped(ReducedRows, LoopedRows):
    """Rows shared by a fixed number of programs."""

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows, those that need no new binary last."""
        *before, programs, order, eviction = super().knobs(task)
        return (*before, eviction, programs, order)


class ReducedPieces(ReducedRows, RowPieces):
    """Long rows in pieces, a row's pieces shared by several programs where there are few rows."""

    summary = "long rows in pieces, shared by several programs; the last one joins their results"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Piece, rows, vectors, warps, stages, eviction and the number of shares."""
        kept = [knob for knob in super().knobs(task) if knob.name != "second_pass"]
        return (*kept, Knob("split", Family.PARALLELISM, SPLITS))

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the pieces, and no share without one."""
        n = task.workload["N"]
        shares = Constraint(
            "leaves a program without a piece",
            ("block_n", "split"),
            lambda block, split: (split - 1) * math.ceil(math.ceil(n / block) / split) < math.ceil(n / block),
        )
        return (*super().constraints(task), shares)

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the pieces, in as many shares as fill the device."""
        wanted = {k: v for k, v in super().preferred(task).items() if k != "second_pass"}
        split = power_of_two(max(1, PROGRAMS_PER_SM * task.hardware.model.sms // task.workload["M"]))
        return {**wanted, "split": min(SPLITS[-1], split)}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one for each share of so many rows."""
        return super().programs(task, schedule) * schedule.integer("split")

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """As for the pieces, of which a program has its share."""
        pieces = math.ceil(task.workload["N"] / schedule.integer("block_n"))
        return replace(super().footprint(task, schedule), steps=math.ceil(pieces / schedule.integer("split")))

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """The tensors, and room for the shares' results and a counter for each block of rows."""
        rows, split = schedule.integer("rows"), schedule.integer("split")
        blocks = math.ceil(task.workload["M"] / rows)
        return {
            **super().arguments(task, schedule),
            "partial": WorkspaceArgument(blocks * rows * split if split > 1 else 1),
            "counters": WorkspaceArgument(blocks if split > 1 else 1, "int32"),
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the piece, the depth of the pipeline, the shares and which reduction it is."""
        return {
            **WholeRows.constants(self, task, schedule),
            "STAGES": schedule.integer("num_stages"),
            "SPLIT": schedule.integer("split"),
            **self.reduction(task, schedule),
        }


def eviction(schedule: Schedule) -> dict[str, int | float | bool | str]:
    """How what is read is kept."""
    return {"EVICTION": EVICTION[str(schedule["eviction"])]}
