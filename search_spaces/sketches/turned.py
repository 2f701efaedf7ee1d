"""Triton sketches of transposes: tiles read in rows of the source and written in rows of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    copies_ahead,
    fits_shared,
    gpu_only,
    padded,
    power_of_two,
    useful_stages,
    vectors,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

SIDES = (16, 32, 64, 128, 256)
MOST_ELEMENTS = 64
# Knob values, and what they are called in PTX: what is read or written is not needed again.
EVICTION: Mapping[str, str] = {"normal": "", "first": "evict_first"}


class TurnedTiles(TiledSketch):
    """A tile a program, whose rows turn into columns through shared memory."""

    summary = "tiles turned through shared memory, one a program"

    def refuses(self, task: Task) -> str | None:
        """Applies to every shape on CUDA."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Tiles, both vectors, warps, eviction and the order in which tiles are met."""
        limits, dtype = task.hardware.limits, task.workload.dtype
        return (
            Knob("block_m", Family.TILE_SIZES, SIDES),
            Knob("block_n", Family.TILE_SIZES, SIDES),
            Knob("vector", Family.VECTOR_WIDTH, vectors(limits, dtype, task.workload["N"], 3)),
            Knob("store_vector", Family.VECTOR_WIDTH, vectors(limits, dtype, task.workload["M"], 3)),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16)),
            Knob("eviction", Family.SHARED_MEMORY, tuple(EVICTION)),
            Knob("order", Family.LOOP_ORDER, ("rows", "columns"), runtime=True),
            Knob("group", Family.LOOP_ORDER, (1, 8), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Tiles beyond the matrix, threads without work or with too much, strips wider than there are tiles."""
        m, n, limits = task.workload["M"], task.workload["N"], task.hardware.limits
        itemsize = ITEMSIZE[task.workload.dtype]

        def worked(block_m: int, block_n: int, vector: int, store: int, warps: int) -> bool:
            return block_m * block_n >= max(vector, store) * warps * limits.warp

        def filled(block_m: int, block_n: int, order: str, group: int) -> bool:
            lines = math.ceil(m / block_m) if order == "rows" else math.ceil(n / block_n)
            return group <= lines

        return (
            Constraint("is higher than the matrix", ("block_m",), lambda b: b <= max(SIDES[0], power_of_two(m))),
            Constraint("is wider than the matrix", ("block_n",), lambda b: b <= max(SIDES[0], power_of_two(n))),
            Constraint("has a vector longer than its tile", ("block_n", "vector"), lambda b, vector: vector <= b),
            Constraint("has a vector longer than its tile", ("block_m", "store_vector"), lambda b, store: store <= b),
            Constraint(
                "leaves a thread fewer elements than its vector holds",
                ("block_m", "block_n", "vector", "store_vector", "num_warps"),
                worked,
            ),
            Constraint(
                f"gives a thread more than {MOST_ELEMENTS} elements",
                ("block_m", "block_n", "num_warps"),
                lambda bm, bn, warps: bm * bn <= MOST_ELEMENTS * warps * limits.warp,
            ),
            fits_shared(limits, ("block_m", "block_n"), lambda bm, bn: bm * bn * itemsize),
            Constraint("has wider strips than there are tiles", ("block_m", "block_n", "order", "group"), filled),
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """Square tiles of 64 by 4 warps, whole vectors, row after row."""
        vector = 16 // ITEMSIZE[task.workload.dtype]
        return {
            "block_m": 64,
            "block_n": 64,
            "vector": vector,
            "store_vector": vector,
            "num_warps": 4,
            "eviction": "normal",
            "order": "rows",
            "group": 1,
        }

    def tiles(self, task: Task, schedule: Schedule) -> int:
        """Tiles of all matrices."""
        b, m, n = task.workload.values
        return b * math.ceil(m / schedule.integer("block_m")) * math.ceil(n / schedule.integer("block_n"))

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid."""
        return self.tiles(task, schedule)

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least: Triton may turn small tiles by shuffles alone."""
        del task, schedule
        return 0

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile in registers; a move an element."""
        block_m, block_n, warps = map(schedule.integer, ("block_m", "block_n", "num_warps"))
        programs = self.programs(task, schedule)
        return Footprint(
            programs=programs,
            warps=warps,
            shared_bytes=self.shared_bytes(task, schedule),
            registers=block_m * block_n / (warps * task.hardware.limits.warp),
            steps=math.ceil(self.tiles(task, schedule) / programs),
            intensity=1.0 / ITEMSIZE[task.workload.dtype],
            padding=padded((task.workload["M"], task.workload["N"]), (block_m, block_n)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, how much a thread moves at a time, and how long the runs of memory are."""
        itemsize = ITEMSIZE[task.workload.dtype]
        return {
            **super().derived(task, schedule),
            "vector_bytes": float(schedule.integer("vector") * itemsize),
            "store_vector_bytes": float(schedule.integer("store_vector") * itemsize),
            "read_run_bytes": float(schedule.integer("block_n") * itemsize),
            "written_run_bytes": float(schedule.integer("block_m") * itemsize),
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape and the tile."""
        return {
            "M": task.workload["M"],
            "N": task.workload["N"],
            "BLOCK_M": schedule.integer("block_m"),
            "BLOCK_N": schedule.integer("block_n"),
            "VECTOR": schedule.integer("vector"),
            "STORE_VECTOR": schedule.integer("store_vector"),
            "EVICTION": EVICTION[str(schedule["eviction"])],
        }

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        arguments: dict[str, Argument] = {
            "x": TensorArgument("X"),
            "y": TensorArgument("Y"),
            "group": ScalarArgument(schedule.integer("group")),
            "down": ScalarArgument(int(schedule["order"] == "columns")),
        }
        return TritonLaunch(
            arguments=arguments,
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=1,
        )


class TurnedLooped(TurnedTiles):
    """Each program walks over tiles, so that loading the next ones overlaps with writing these."""

    summary = "persistent programs share the tiles, loads pipelined through shared memory"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the tiles, stages and programs."""
        *before, order, group = super().knobs(task)
        stages = Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3))
        return (
            *before,
            stages,
            Knob("programs_per_sm", Family.PERSISTENCE, (1, 2, 4, 8), runtime=True),
            order,
            group,
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the tiles, and more programs than find room or work."""
        limits, sms = task.hardware.limits, task.hardware.model.sms
        b, m, n = task.workload.values

        def tiles(block_m: int, block_n: int) -> int:
            return b * math.ceil(m / block_m) * math.ceil(n / block_n)

        return (
            *super().constraints(task),
            useful_stages(
                limits,
                ("block_m", "block_n", "programs_per_sm", "num_stages"),
                lambda bm, bn, programs: math.ceil(tiles(bm, bn) / (sms * programs)),
            ),
            fits_shared(
                limits,
                ("block_m", "block_n", "vector", "num_stages"),
                lambda bm, bn, vector, stages: staged_bytes(task, bm * bn, vector, stages),
            ),
            Constraint(
                "asks for more programs than find room on a multiprocessor",
                ("num_warps", "programs_per_sm"),
                lambda warps, programs: (
                    programs <= limits.blocks_per_sm and programs * warps * limits.warp <= limits.threads_per_sm
                ),
            ),
            Constraint(
                "asks for more programs than there are tiles",
                ("block_m", "block_n", "programs_per_sm"),
                lambda bm, bn, programs: programs == 1 or programs * sms <= tiles(bm, bn),
            ),
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the tiles, two stages, 8 programs a multiprocessor."""
        return {**super().preferred(task), "num_stages": 2, "programs_per_sm": 8}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: so many a multiprocessor, no more than there is work for."""
        return min(self.tiles(task, schedule), task.hardware.model.sms * schedule.integer("programs_per_sm"))

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least."""
        tile = schedule.integer("block_m") * schedule.integer("block_n")
        return staged_bytes(task, tile, schedule.integer("vector"), schedule.integer("num_stages"))

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The batch, the shape, the tile and the depth of the pipeline."""
        made = super().constants(task, schedule)
        return {"B": task.workload["B"], **made, "STAGES": schedule.integer("num_stages")}


def staged_bytes(task: Task, tile: int, vector: int, stages: int) -> int:
    """Shared memory for loads under way: asynchronous copies move 4 bytes or more, and came with sm_80."""
    itemsize = ITEMSIZE[task.workload.dtype]
    staged = vector * itemsize >= 4 and copies_ahead(task.hardware.limits)
    return (stages - 1) * tile * itemsize if staged else 0
