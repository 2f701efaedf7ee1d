"""Whether a kernel computes what its operator says, on random inputs of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autotune.checking import tolerance
from search_spaces.operator import EPSILON
from search_spaces.task import Task


def agrees(task: Task, xp: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> bool:
    """Whether `outputs` are the operator's of `inputs`, within what rounding may cost.

    Args:
        task: The task.
        xp: Array API namespace of the arrays.
        inputs: The operator's, in order.
        outputs: What a kernel made of them.
    """
    wide = [xp.astype(i, xp.float64) for i in inputs]
    allowed = tolerance(task.workload.dtype, task.operator.reduction_length(task.workload))
    specs = [t for t in task.operator.tensors(task.workload) if t.output]
    for spec, got, right in zip(specs, outputs, task.operator.reference(task.workload, xp, *wide), strict=True):
        if spec.dtype not in EPSILON:
            if not bool(xp.all(xp.astype(got, xp.float64) == right)):
                return False
            continue
        rms = xp.sqrt(xp.mean(right * right, axis=-1, keepdims=True))
        within = xp.abs(xp.astype(got, xp.float64) - right) <= allowed.relative * xp.abs(right) + allowed.of_rms * rms
        if not bool(xp.all(within)):
            return False
    return True
