"""Linear layer with weights of 4 or 8 bits for few rows: no tensor cores, every code one multiply-add a row."""

from __future__ import annotations

import math

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    copies_ahead,
    fits_registers,
    fits_shared,
    gpu_only,
    padded,
    power_of_two,
    useful_stages,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# The bits of the float 1.
ONE = 0x3F800000
# A thread loads so many words of codes at a time.
WORDS = 2
WORD_BITS = 32
# With more rows tensor cores have enough to do, and registers do not.
MOST_ROWS = 4
# Values of a word that live on for each row: its products of this step and its sums.
ALIVE = 2
# Registers of a row's inputs that belong to a word of 4 bits, and to one of 8.
INPUTS = {4: 4, 8: 2}


class WeightOnlyLinearVector(TiledSketch):
    """Tensor cores would multiply many rows of nothing; without them what takes time is turning codes into floats."""

    name = "triton.weight_only_linear_vector"
    operator = "weight_only_linear"
    kernel = "search_spaces.kernels.weight_only_vector:vector"
    summary = "few rows: columns a program, codes put into floats and multiplied in float32 (vector)"

    def refuses(self, task: Task) -> str | None:
        """Applies to few rows of 16-bit inputs."""
        if task.workload["M"] > MOST_ROWS:
            return f"A has {task.workload['M']} rows; without tensor cores it takes {MOST_ROWS} at most"
        if ITEMSIZE[task.workload.dtype] != 2:
            return f"it loads inputs of 16 bits in fours, not {task.workload.dtype}"
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Columns, terms and threads of a program, and loads that run ahead."""
        deepest = power_of_two(task.workload["K"])
        depths = tuple(d for d in (256, 512, 1024, 2048, 4096, 8192) if task.workload["group"] <= d <= deepest)
        return (
            Knob("block_n", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32, 64)),
            Knob("block_k", Family.TILE_SIZES, depths or (task.workload["group"],)),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5)),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and threads that would have nothing to load."""
        limits, tile, k = task.hardware.limits, ("block_n", "block_k", "num_warps"), task.workload["K"]
        return (
            Constraint(
                "its block is wider than C",
                ("block_n",),
                lambda bn: bn <= power_of_two(task.workload["N"]),
            ),
            Constraint(
                "has threads without a pair of words",
                tile,
                lambda bn, bk, warps: self._words(task, bn, bk) >= WORDS * warps * limits.warp,
            ),
            fits_registers(limits, tile, lambda bn, bk, warps: self._registers(task, bn, bk, warps), "num_warps"),
            fits_shared(
                limits,
                ("block_n", "block_k", "num_stages"),
                lambda bn, bk, stages: self._shared_bytes(task, bn, bk, stages),
            ),
            useful_stages(limits, ("block_k", "num_stages"), lambda bk: math.ceil(k / bk)),
        )

    def _words(self, task: Task, block_n: int, block_k: int) -> int:
        """Words of codes of a step."""
        return block_n * block_k * task.workload["bits"] // WORD_BITS

    def _registers(self, task: Task, block_n: int, block_k: int, warps: int) -> float:
        """Values that a thread holds: of its words, and of the inputs that belong to them whatever the column."""
        threads = warps * task.hardware.limits.warp
        words, rows = self._words(task, 1, block_k), task.workload["M"]
        inputs = words / min(threads, max(1, words // WORDS))
        return (1 + ALIVE * rows) * block_n * words / threads + rows * INPUTS[task.workload["bits"]] * inputs

    def _shared_bytes(self, task: Task, block_n: int, block_k: int, stages: int) -> int:
        """Codes and inputs on their way, at least, where loads run ahead; without, next to nothing."""
        if stages == 1 or not copies_ahead(task.hardware.limits):
            return 0
        codes = block_n * block_k * task.workload["bits"] // 8
        wide, rows = ITEMSIZE[task.workload.dtype], task.workload["M"]
        return (stages - 1) * (codes + wide * rows * block_k)

    def preferred(self, task: Task) -> dict[str, Value]:
        """All of K of a small layer a step, so that each thread has its inputs but once."""
        return {"block_n": 8, "block_k": 4096, "num_warps": 4, "num_stages": 1}

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A block of columns, and a step's share of K."""
        bn, bk, warps = (schedule.integer(name) for name in ("block_n", "block_k", "num_warps"))
        m, n, k = (task.workload[axis] for axis in "MNK")
        codes = bn * bk * task.workload["bits"] / 8
        return Footprint(
            programs=math.ceil(n / bn),
            warps=warps,
            shared_bytes=self._shared_bytes(task, bn, bk, schedule.integer("num_stages")),
            registers=self._registers(task, bn, bk, warps),
            steps=math.ceil(k / bk),
            intensity=2.0 * m * bn * bk / (codes + m * bk * ITEMSIZE[task.workload.dtype]),
            padding=padded((n, k), (bn, bk)),
        )

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        workload, stages = task.workload, schedule.integer("num_stages")
        tensors: dict[str, Argument] = {name.lower(): TensorArgument(name) for name in ("A", "B", "SCALE", "C")}
        return TritonLaunch(
            arguments={**tensors, "one": ScalarArgument(ONE)},
            constants={
                "M": workload["M"],
                "N": workload["N"],
                "K": workload["K"],
                "BLOCK_N": schedule.integer("block_n"),
                "BLOCK_K": schedule.integer("block_k"),
                "BITS": workload["bits"],
                "GROUP": workload["group"],
                "STAGES": stages,
            },
            grid=(math.ceil(workload["N"] / schedule.integer("block_n")), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=stages,
        )


SKETCH = WeightOnlyLinearVector()
