"""What the Triton sketches of RMS norm and layer norm add to those of rows: operands and eviction."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.sketches.rows import LoopedRows, RowPieces, WholeRows, staged_bytes
from search_spaces.sketches.tiles import fits_shared, power_of_two
from search_spaces.sketches.triton.base import Argument, TensorArgument
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Elements of a thread, with those of weight and bias that it keeps in their narrower dtype.
MOST_KEPT = 192


class NormRows(WholeRows):
    """Whole rows, read and written as data that is not needed again or not.

    Class attributes:
        eps: What the operator adds below the root.
        eviction: Knob values, and what they are called in PTX: how long what is read shall stay in the caches.
    """

    eps: float
    eviction: Mapping[str, str] = {"normal": "", "first": "evict_first"}

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows and how soon the caches may drop them."""
        return (*super().knobs(task), Knob("eviction", Family.SHARED_MEMORY, tuple(self.eviction)))

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the rows, without a hint to the caches."""
        return {**super().preferred(task), "eviction": "normal"}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """All operands of the kernel, X or Y in the place of one that this norm lacks, and what the rows need."""
        names = {t.name for t in task.operator.tensors(task.workload)}
        wanted = {"x": "X", "r": "R", "w": "W", "b": "B", "y": "Y", "s": "S"}
        instead = {"r": "X", "b": "W", "s": "Y"}
        tensors: dict[str, Argument] = {
            name: TensorArgument(tensor if tensor in names else instead[name]) for name, tensor in wanted.items()
        }
        return {**tensors, **{k: v for k, v in super().arguments(task, schedule).items() if k not in tensors}}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and which norm it is."""
        names = {t.name for t in task.operator.tensors(task.workload)}
        return {
            **super().constants(task, schedule),
            "EPS": self.eps,
            "CENTRED": "B" in names,
            "RESIDUAL": "R" in names,
            "EVICTION": self.eviction[str(schedule["eviction"])],
        }


class NormLooped(NormRows, LoopedRows):
    """Rows shared by a fixed number of programs, which may keep weight and bias in registers."""

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows and where weight and bias wait for the next rows."""
        *before, programs, order, eviction = super().knobs(task)
        kept = Knob("weights", Family.REGISTERS, ("reread", "kept"))
        return (*before, eviction, kept, programs, order)

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the rows, and room for weight and bias: in registers where they are kept, else among the loads."""
        limits, block, vectors = task.hardware.limits, power_of_two(task.workload["N"]), _vectors(task)
        fits = Constraint(
            f"gives a thread more than {MOST_KEPT} elements with the weights that it keeps",
            ("rows", "num_warps", "weights"),
            lambda rows, warps, kept: kept == "reread" or (rows + vectors) * block <= MOST_KEPT * warps * limits.warp,
        )
        staged = fits_shared(
            limits,
            ("rows", "vector", "num_stages", "weights"),
            lambda rows, vector, stages, weights: staged_bytes(
                task, rows, block, vector, stages, vectors if weights == "reread" else 0
            ),
        )
        return (*super().constraints(task), fits, staged)

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the rows, the weights left to the caches."""
        return {**super().preferred(task), "weights": "reread"}

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least: weights that are read again in every turn are staged like rows."""
        vector, stages = schedule.integer("vector"), schedule.integer("num_stages")
        weights = _vectors(task) if schedule["weights"] == "reread" else 0
        return super().shared_bytes(task, schedule) + staged_bytes(
            task, 0, self.width(task, schedule), vector, stages, weights
        )

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """Those of the rows, and whether the weights are kept."""
        return {**super().constants(task, schedule), "KEPT": schedule["weights"] == "kept"}


class NormPieces(NormRows, RowPieces):
    """Long rows in pieces, of which the first pass may ask the caches to keep what the second reads again."""

    eviction: Mapping[str, str] = {"normal": "", "last": "evict_last"}


def _vectors(task: Task) -> int:
    """Inputs of one row's length: weight and bias."""
    return sum(len(t.shape) == 1 for t in task.operator.tensors(task.workload))
