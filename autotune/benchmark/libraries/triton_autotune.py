"""Triton's own autotuner over the configurations that its tutorials list, with this package's plain kernels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.sketches.triton.base import ScalarArgument, TensorArgument, TritonSketch
from search_spaces.space import Schedule
from search_spaces.task import Task

SKETCHES = "search_spaces.sketches.triton"
# The sketch of the tutorial's structure: one tile a program in groups of 8, one block of queries a program.
STRUCTURES = {"matmul": "matmul_tiled", "linear": "linear_tiled", "attention": "attention_pointers"}
# Rows, columns and steps of a tile, warps, stages and tiles of a group, as the matrix multiplication tutorial has them
# for float16.
MATMUL: tuple[tuple[int, ...], ...] = (
    (128, 256, 64, 8, 3, 8),
    (64, 256, 32, 4, 4, 8),
    (128, 128, 32, 4, 4, 8),
    (128, 64, 32, 4, 4, 8),
    (64, 128, 32, 4, 4, 8),
    (128, 32, 32, 4, 4, 8),
    (64, 32, 32, 2, 5, 8),
    (32, 64, 32, 2, 5, 8),
)
# Rows of queries, of keys, warps and stages of the fused attention tutorial, all with all.
ATTENTION: tuple[tuple[int, ...], ...] = tuple(itertools.product((64, 128), (32, 64, 128), (4, 8), (2, 3, 4)))


class TritonAutotune(Library):
    """The tutorials' lists for matrix products and attention."""

    summary = "Triton's autotuner over its tutorials' configurations"
    kinds = ("cuda",)
    slow = True

    def missing(self) -> str | None:
        """It needs torch too."""
        return next((f"{name} is not installed" for name in ("torch", "triton") if not registry.available(name)), None)

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """The kernel, which times its configurations at the first call."""
        if task.workload.operator not in STRUCTURES:
            return {}
        triton = registry.optional("triton", "cuda")
        sketch = structure(task)
        listed = schedules(task)
        module, _, name = sketch.kernel.partition(":")
        kernel = getattr(registry.optional(module, "cuda"), name)
        launches = {s: sketch.launch(task, s) for s in listed}
        first = next(iter(launches.values()))
        varying = [n for n in first.constants if len({made.constants[n] for made in launches.values()}) > 1]
        configs = [
            triton.Config({n: made.constants[n] for n in varying}, num_warps=made.num_warps, num_stages=made.num_stages)
            for made in launches.values()
        ]
        grids = {tuple(made.constants[n] for n in varying): made.grid for made in launches.values()}
        tuned = triton.autotune(configs=configs, key=[])(kernel)
        arrays = dict(zip((t.name for t in task.operator.tensors(task.workload)), (*inputs, *outputs), strict=True))
        given: dict[str, Any] = {}
        for n, argument in first.arguments.items():
            assert isinstance(argument, TensorArgument | ScalarArgument), f"{sketch.name} passes {n} in another way"
            given[n] = arrays[argument.tensor] if isinstance(argument, TensorArgument) else argument.value
        fixed = {n: value for n, value in first.constants.items() if n not in varying}

        def grid(chosen: Mapping[str, Any]) -> tuple[int, int, int]:
            return grids[tuple(chosen[n] for n in varying)]

        return {"triton.autotune": lambda: tuned[grid](**given, **fixed)}


def structure(task: Task) -> TritonSketch:
    """The sketch whose kernel the tutorial's is like."""
    found: TritonSketch = registry.find(SKETCHES, STRUCTURES[task.workload.operator], "sketch")
    return found


def schedules(task: Task) -> list[Schedule]:
    """The list for the task's operator as schedules of that sketch; what does not fit Triton finds out itself."""
    default = structure(task).default(task)
    assert default is not None
    if task.workload.operator == "attention":
        wanted = [dict(zip(("block_m", "block_n", "num_warps", "num_stages"), row, strict=True)) for row in ATTENTION]
    else:
        names = ("block_m", "block_n", "block_k", "num_warps", "num_stages", "group")
        wanted = [dict(zip(names, row, strict=True)) for row in MATMUL]
    return [Schedule(tuple((name, given.get(name, value)) for name, value in default.items)) for given in wanted]


LIBRARY = TritonAutotune()
