"""What the Triton sketches of the masked softmax add to those of rows: the mask, and eviction of the scores."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operators.masked_softmax import SCALE
from search_spaces.sketches.rows import LoopedRows, WholeRows
from search_spaces.sketches.triton.base import Argument, TensorArgument
from search_spaces.space import Family, Knob, Schedule, Value
from search_spaces.task import Task

# Knob values, and what they are called in PTX: the scores are not needed again, the mask is.
EVICTION: Mapping[str, str] = {"normal": "", "first": "evict_first"}


class MaskedRows(WholeRows):
    """Whole rows, scaled and masked as they come."""

    operator = "masked_softmax"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows and how soon the caches may drop the scores."""
        return (*super().knobs(task), Knob("eviction", Family.SHARED_MEMORY, tuple(EVICTION)))

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the rows, without a hint to the caches."""
        return {**super().preferred(task), "eviction": "normal"}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """X, the mask (X in its place where it is causal), Y and what the rows need."""
        mask = "X" if task.workload["causal"] else "MASK"
        rest = {k: v for k, v in super().arguments(task, schedule).items() if k != "x"}
        return {"x": TensorArgument("X"), "mask": TensorArgument(mask), **rest}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the mask and the tile."""
        made = super().constants(task, schedule)
        shape = {axis: made.pop(axis) for axis in "MN"}
        masked = {"S": task.workload["S"], "CAUSAL": bool(task.workload["causal"]), "SCALE": SCALE}
        return {**shape, **masked, "EVICTION": EVICTION[str(schedule["eviction"])], **made}


class MaskedLooped(MaskedRows, LoopedRows):
    """Rows shared by a fixed number of programs."""

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the rows, those that need no new binary last."""
        *before, programs, order, eviction = super().knobs(task)
        return (*before, eviction, programs, order)
