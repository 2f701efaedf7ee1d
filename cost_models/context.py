"""The task as numbers: what a policy or a model that serves many tasks is told beside the schedule."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.hardware import Hardware
from search_spaces.operator import Cost
from search_spaces.task import Task

Context = Mapping[str, float]
_BITS = {"float64": 64, "float32": 32, "tf32": 32, "float16": 16, "bfloat16": 16, "int8": 8, "float8_e4m3fn": 8}


def context_of(task: Task) -> dict[str, float]:
    """The axes, dtype, work and device of a task; large quantities by their logarithm to base 2."""
    workload = task.workload
    dtype = task.operator.arithmetic(workload)
    return {
        **workload_context(dict(workload.axes), dtype, task.operator.cost(workload)),
        **hardware_context(task.hardware, dtype),
    }


def workload_context(axes: Mapping[str, int], dtype: str, cost: Cost) -> dict[str, float]:
    """What is computed, whatever computes it."""
    return {
        **{f"axis {n}": math.log2(max(1, v)) for n, v in axes.items()},
        "bits": float(_BITS.get(dtype, 32)),
        "operations": math.log2(cost.operations),
        "bytes": math.log2(cost.bytes),
        "intensity": math.log2(cost.operations / cost.bytes),
    }


def hardware_context(hardware: Hardware, dtype: str) -> dict[str, float]:
    """The device alone: its units, memories, warp and rates."""
    limits, model = hardware.limits, hardware.model
    numbers = {
        "units": model.sms,
        "cache": model.l2_bytes,
        "shared": limits.shared_per_block,
        "threads": limits.threads_per_sm,
        "warp": limits.warp,
        "bandwidth": model.bandwidth,
        "peak": hardware.peak(dtype),
    }
    return {f"device {n}": math.log2(v) for n, v in numbers.items() if 0 < v < math.inf}
