"""Linear layer of int8 that quantises its activations, its sums shared along K, for few rows."""

from __future__ import annotations

from dataclasses import replace

from search_spaces.sketches.dynamic import Dynamic
from search_spaces.sketches.triton.base import Argument, WorkspaceArgument
from search_spaces.sketches.triton.matmul_k_split import MatmulKSplit
from search_spaces.space import Schedule
from search_spaces.task import Task


class Int8DynamicLinearKSplit(Dynamic, MatmulKSplit):
    """Each program finds the scales of its whole rows, which are few; pieces are whole sums, joined exactly."""

    name = "triton.int8_dynamic_linear_k_split"
    kernel = "search_spaces.kernels.dynamic:split"

    def workspaces(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of the product, for whole numbers."""
        made = super().workspaces(task, schedule)
        partial = made["partial"]
        assert isinstance(partial, WorkspaceArgument)
        return {**made, "partial": replace(partial, dtype="int32")}


SKETCH = Int8DynamicLinearKSplit()
