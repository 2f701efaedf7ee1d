"""What the TMA sketches of batched products add to those of one: no tile reaches into the next matrix."""

from __future__ import annotations

from search_spaces.sketches.followed import form_of
from search_spaces.sketches.triton.matmul_tma import MatmulTma
from search_spaces.space import Constraint
from search_spaces.task import Task

# The lowest and the shallowest tile of the TMA sketches.
LEAST_ROWS, LEAST_STEP = 64, 32


class Batched(MatmulTma):
    """The matrices below each other are one for the descriptors, which cut nothing off where one of them ends."""

    operator = "batched_matmul"

    def refuses(self, task: Task) -> str | None:
        """Needs what the TMA sketch needs, and matrices that tiles divide."""
        if (reason := super().refuses(task)) is not None:
            return reason
        if task.workload["M"] % LEAST_ROWS:
            return f"M={task.workload['M']} is no multiple of {LEAST_ROWS}: a tile would reach into the next matrix"
        if not form_of(task).trans_b and task.workload["K"] % LEAST_STEP:
            return f"K={task.workload['K']} is no multiple of {LEAST_STEP}: a tile would reach into the next matrix"
        return None

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of one product, and tiles that divide the matrices."""
        m, k = task.workload["M"], task.workload["K"]
        kept = [Constraint("has tiles that reach into the next matrix", ("block_m",), lambda bm: m % bm == 0)]
        if not form_of(task).trans_b:
            kept.append(Constraint("has steps that reach into the next matrix", ("block_k",), lambda bk: k % bk == 0))
        return (*super().constraints(task), *kept)
