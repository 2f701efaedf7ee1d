"""Matrix product whose sums are shared along K, through pointers: for few rows, where C has few tiles."""

from __future__ import annotations

import math
from dataclasses import replace

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.followed import deeper, operand_dtype
from search_spaces.sketches.promotion import NAME, preferred_terms
from search_spaces.sketches.tiles import Footprint, on_tensor_cores, power_of_two
from search_spaces.sketches.triton.base import Argument, WorkspaceArgument
from search_spaces.sketches.triton.matmul_tiled import MatmulTiled, order, tiles
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Where tiles of this size give every multiprocessor so many, sharing sums costs more than a last round half empty.
LARGE_TILE = 128
ENOUGH = 2
# Rounds of programs that the untuned default aims at where A has few rows, so that more loads are under way.
ROUNDS = 2
# Rows up to which the tensor cores do better with the operands swapped.
FEW_ROWS = 64
# More programs than this for each multiprocessor only hand pieces to each other.
MOST_ROUNDS = 16
# Registers' worth that a thread can load at once where loads do not go to shared memory by themselves: not all of it
# has to be there before the first is used.
MOST_LOADED = 320


def few_tiles(task: Task) -> str | None:
    """Why sums need not be shared: C has tiles enough; None where they may be."""
    m, n = task.workload["M"], task.workload["N"]
    count = math.ceil(m / LARGE_TILE) * math.ceil(n / LARGE_TILE)
    if count >= ENOUGH * task.hardware.model.sms:
        return f"C has {count} tiles of {LARGE_TILE} x {LARGE_TILE}, enough to share no sums between programs"
    return None


class MatmulKSplit(MatmulTiled):
    """Several programs a tile, each a piece of K; the last one adds the pieces in their order."""

    name = "triton.matmul_k_split"
    kernel = "search_spaces.kernels.split:split"
    summary = "several programs a tile through pointers, each a piece of K (split-K)"
    followed: tuple[str, ...] = ("TRANS_B", "SCALED", "BIAS", "RESIDUAL", "ACTIVATION", "PROMOTE")
    tile_knobs = (*MatmulTiled.tile_knobs, "swapped")

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture where C has few tiles."""
        return super().refuses(task) or few_tiles(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the tiled sketch, taller steps along K, pieces of K, and which operand has the rows."""
        tensor_cores = on_tensor_cores(task.hardware.limits, operand_dtype(task))
        depths = deeper(task, 32, 64, 128, 256) if tensor_cores else (16, 32, 64)
        own = {
            "block_m": Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128)),
            "block_k": Knob("block_k", Family.TILE_SIZES, depths),
        }
        *built, way, group = super().knobs(task)
        return (
            *(own.get(knob.name, knob) for knob in built),
            Knob("split_k", Family.PARALLELISM, (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)),
            Knob("swapped", Family.LOOP_ORDER, (False, True)),
            way,
            group,
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the tiled sketch; every piece has steps, and no program comes too late to help."""
        m, n, k = self.extents(task)
        size = ITEMSIZE[operand_dtype(task)]
        most = MOST_ROUNDS * task.hardware.model.sms

        def has_steps(block_k: int, pieces: int) -> bool:
            steps = math.ceil(k / block_k)
            return (pieces - 1) * math.ceil(steps / pieces) < steps

        return (
            *super().constraints(task),
            Constraint("has pieces of K without a step", ("block_k", "split_k"), has_steps),
            Constraint(
                "splits K over more programs than the device can use",
                ("block_m", "block_n", "split_k"),
                lambda bm, bn, pieces: pieces == 1 or pieces * math.ceil(m / bm) * math.ceil(n / bn) <= most,
            ),
            Constraint(
                "loads more at once than a thread has registers",
                ("block_m", "block_n", "block_k", "num_warps", "num_stages"),
                lambda bm, bn, bk, warps, stages: (
                    stages > 1 or (bm + bn) * bk * size <= 4 * MOST_LOADED * warps * task.hardware.limits.warp
                ),
            ),
            Constraint(
                f"swaps operands although its tile has more than {FEW_ROWS} rows",
                ("block_m", "swapped"),
                lambda bm, swapped: not swapped or bm <= FEW_ROWS,
            ),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """Tiles as low as A for few rows, K in pieces for two rounds of programs; else those of the tutorial."""
        m, n = task.workload["M"], task.workload["N"]
        tensor_cores = on_tensor_cores(task.hardware.limits, operand_dtype(task))
        if m <= FEW_ROWS and tensor_cores:
            tall, wide, rounds = max(16, power_of_two(m)), 64, ROUNDS
            (deep,) = deeper(task, 128)
            wanted: dict[str, Value] = {"block_k": deep, "num_warps": 4, "num_stages": 4, "group": 1}
            wanted[NAME] = preferred_terms(tall)
        else:
            tall, wide, rounds = (128, 256, 1) if tensor_cores else (64, 64, 1)
            wanted = dict(super().preferred(task))
        pieces = rounds * task.hardware.model.sms // (math.ceil(m / tall) * math.ceil(n / wide))
        return {**wanted, "block_m": tall, "block_n": wide, "split_k": max(1, pieces), "swapped": False}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """One a tile and piece."""
        return tiles(task, schedule) * schedule.integer("split_k")

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """That of a tile, its main loop over one piece of K."""
        made = super().footprint(task, schedule)
        return replace(made, steps=math.ceil(made.steps / schedule.integer("split_k")))

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of the tiled sketch, and room for every piece with a counter a tile."""
        ordered = order(schedule)
        given = {k: v for k, v in super().arguments(task, schedule).items() if k not in ordered}
        return {**given, **self.workspaces(task, schedule)}

    def workspaces(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Room for every piece with a counter a tile, and the order of tiles."""
        pieces = self.programs(task, schedule) if schedule.integer("split_k") > 1 else 1
        size = schedule.integer("block_m") * schedule.integer("block_n")
        spaces = {
            "partial": WorkspaceArgument(pieces * size),
            "counters": WorkspaceArgument(tiles(task, schedule), "int32"),
        }
        return {**spaces, **order(schedule)}

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """The store's vectors, the pieces, and which operand has the rows."""
        return {
            **super().own_constants(schedule),
            "SPLIT": schedule.integer("split_k"),
            "SWAPPED": bool(schedule["swapped"]),
        }


SKETCH = MatmulKSplit()
