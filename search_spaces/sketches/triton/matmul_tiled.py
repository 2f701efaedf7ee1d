"""Matrix product in tiles, through pointers: one tile a program, for every architecture."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.followed import (
    batch_of,
    deeper,
    follow_arguments,
    follow_constants,
    needs_narrow,
    operand_dtype,
)
from search_spaces.sketches.promotion import (
    NAME,
    PREFERRED_TERMS,
    promoted_terms,
    promotion_constraints,
    promotion_knobs,
    sums_short,
    unpromoted_sums,
)
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    busy_warps,
    fits_registers,
    fits_shared,
    gpu_only,
    nearest,
    on_tensor_cores,
    operand_bytes,
    padded,
    power_of_two,
    short_unrolled,
    useful_stages,
    vectors,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Multiply-adds of a thread in a step.
UNROLLED_LIMIT = 2048


@dataclass(frozen=True)
class Tile:
    """The knobs that decide what a program occupies."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int
    num_stages: int
    subtiles: int = 1
    swapped: bool = False
    flatten: bool = False

    @property
    def rows(self) -> int:
        """Rows of the operand that goes first into the tensor cores."""
        return self.block_n if self.swapped else self.block_m

    @property
    def columns(self) -> int:
        """Columns of the other operand."""
        return self.block_m if self.swapped else self.block_n

    def accumulators(self, warp: int) -> float:
        """Sums that a thread holds."""
        return self.block_m * self.block_n / (self.num_warps * warp)


class MatmulTiled(TiledSketch):
    """One tile of C a program, loads pipelined with asynchronous copies where the architecture has them."""

    name = "triton.matmul_tiled"
    operator = "matmul"
    kernel = "search_spaces.kernels.matmul:tiled"
    summary = "one tile a program through pointers, grouped order"
    # Names of the knobs that make a `Tile`, in its order.
    tile_knobs: tuple[str, ...] = ("block_m", "block_n", "block_k", "num_warps", "num_stages")
    # What follows the product, and how it is summed, as constants of its kernel.
    followed: tuple[str, ...] = ("BATCH", "TRANS_B", "SCALED", "BIAS", "RESIDUAL", "ACTIVATION", "PROMOTE")
    # Matrices in the place of B, each with its own sums.
    sides: int = 1

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape, with narrow operands where tensor cores take them."""
        return gpu_only(task) or needs_narrow(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""
        tensor_cores = on_tensor_cores(task.hardware.limits, operand_dtype(task))
        return (
            Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, deeper(task, 16, 32, 64, 128) if tensor_cores else (16, 32)),
            Knob("num_warps", Family.WARPS, (2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6)),
            Knob(
                "store_vector",
                Family.VECTOR_WIDTH,
                vectors(task.hardware.limits, task.workload.dtype, task.workload["N"], 2),
            ),
            *promotion_knobs(task),
            *order_knobs(),
        )

    def extents(self, task: Task) -> tuple[int, int, int]:
        """Rows and columns of C, and terms of a sum."""
        return task.workload["M"], task.workload["N"], task.workload["K"]

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and tiles that the shape or the warps leave idle."""
        m, n, k = self.extents(task)
        limits = task.hardware.limits
        extents = {"block_m": m, "block_n": n, "block_k": k}
        tiled = [knob for knob in self.knobs(task) if knob.name in extents]
        most = {knob.name: max(min(knob.values), power_of_two(extents[knob.name])) for knob in tiled}
        made = [
            Constraint("its tile is taller than C", ("block_m",), lambda b: b <= most["block_m"]),
            Constraint("its tile is wider than C", ("block_n",), lambda b: b <= most["block_n"]),
            Constraint("its tile is deeper than A is wide", ("block_k",), lambda b: b <= most["block_k"]),
            fits_registers(
                limits,
                ("block_m", "block_n", "num_warps"),
                lambda bm, bn, warps: self.sides * bm * bn / (warps * limits.warp),
                "num_warps",
            ),
            busy_warps("block_m", "block_n", "num_warps"),
            fits_shared(limits, self.tile_knobs, lambda *values: self.shared_bytes(task, self.tile(values))),
            useful_stages(limits, ("block_k", "num_stages"), lambda b: math.ceil(k / b)),
            Constraint(
                "groups more tiles than C has",
                ("block_m", "block_n", "order", "group"),
                lambda bm, bn, order, group: group < 2 * math.ceil(m / bm if order == "rows" else n / bn),
            ),
            *promotion_constraints(task, self.tile_knobs, self.product),
        ]
        if not on_tensor_cores(limits, operand_dtype(task)):
            unrolled = ("block_m", "block_n", "block_k", "num_warps")
            made.append(short_unrolled(limits, UNROLLED_LIMIT, unrolled, self.sides))
        return tuple(made)

    def tile(self, values: Iterable[Any]) -> Tile:
        """The values of `tile_knobs` by their names."""
        return Tile(**dict(zip(self.tile_knobs, values, strict=True)))

    def product(self, *values: Any) -> tuple[int, int]:
        """Rows of the operand that goes first into the tensor cores, and warps, from the values of `tile_knobs`."""
        tile = self.tile(values)
        return tile.rows, tile.num_warps

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program, at least: the tiles of A and B on their way."""
        whole = (tile.block_m, tile.block_n, tile.block_k)
        warps, stages = tile.num_warps, tile.num_stages
        return operand_bytes(
            task.hardware.limits, operand_dtype(task), whole, warps, stages, sides=self.sides, first=tile.rows
        )

    def default(self, task: Task) -> Schedule | None:
        """The legal schedule nearest to the preferred one, and precise where the tensor cores' sums alone are not."""
        return nearest(self.spaces(task)[0], {NAME: PREFERRED_TERMS, **self.preferred(task)})

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """Triton's matmul tutorial: 128x256x64, 8 warps, 3 stages, groups of 8; smaller tiles without tensor cores.

        Half as wide where each sum is held twice.
        """
        if not on_tensor_cores(task.hardware.limits, operand_dtype(task)):
            return {"block_m": 64, "block_n": 64, "block_k": 16, "num_warps": 4, "num_stages": 3, "group": 8}
        (deep,) = deeper(task, 64)
        wide = 128 if sums_short(task) else 256
        return {"block_m": 128, "block_n": wide, "block_k": deep, "num_warps": 8, "num_stages": 3, "group": 8}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one a tile."""
        return tiles(task, schedule)

    def grid(self, task: Task, schedule: Schedule) -> tuple[int, int, int]:
        """The programs of one product, for each of the batch."""
        return self.programs(task, schedule), batch_of(task), 1

    def unit(self, schedule: Schedule) -> tuple[int, int, int]:
        """Rows and columns of C that neighbouring programs take together, and how many programs: a tile by one."""
        return schedule.integer("block_m"), schedule.integer("block_n"), 1

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile of C and the strips of A and B that it needs."""
        tile = self.tile(schedule[name] for name in self.tile_knobs)
        m, n, k = self.extents(task)
        bm, bn, bk = tile.block_m, tile.block_n, tile.block_k
        return Footprint(
            programs=math.prod(self.grid(task, schedule)),
            warps=tile.num_warps,
            shared_bytes=self.shared_bytes(task, tile),
            registers=self.sides * tile.accumulators(task.hardware.limits.warp)
            + unpromoted_sums(schedule, tile.rows, tile.columns, tile.num_warps),
            steps=math.ceil(k / bk),
            intensity=2.0 * self.sides * bm * bn / ((bm + self.sides * bn) * ITEMSIZE[operand_dtype(task)]),
            padding=padded((m, n, k), (bm, bn, bk)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and what the programs that run at a time read, against the last-level cache."""
        made = self.footprint(task, schedule)
        hardware = task.hardware
        rows, columns, together = self.unit(schedule)
        m, n, k = self.extents(task)
        sides = {"rows": (rows, m), "columns": (columns, n)}
        (tall, high), (wide, broad) = sides.values() if schedule["order"] == "rows" else reversed(sides.values())
        at_a_time = min(made.programs, hardware.model.sms * made.resident(hardware.limits)) // together
        group = min(schedule.integer("group"), math.ceil(high / tall))
        strips = group * tall + min(broad, math.ceil(at_a_time / group) * wide)
        read = strips * k * ITEMSIZE[operand_dtype(task)]
        return {**made.features(hardware), "log2_wave_cache": math.log2(read / hardware.model.l2_bytes)}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A, B and C by address, what follows the product, and the order of tiles."""
        matrices = {name.lower(): TensorArgument(name) for name in "ABC"}
        return {**matrices, **follow_arguments(task), **order(schedule)}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile and what follows the product."""
        made: dict[str, int | float | bool | str] = dict(zip("MNK", self.extents(task), strict=True))
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n", "block_k")})
        last = {**follow_constants(task), "PROMOTE": promoted_terms(schedule)}
        follow = {name: value for name, value in last.items() if name in self.followed}
        return {**made, **self.own_constants(schedule), **follow}

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """Constants that only this sketch's kernel has."""
        return {"STORE_VECTOR": schedule.integer("store_vector")}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=self.grid(task, schedule),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
        )


def order_knobs() -> tuple[Knob, ...]:
    """Which way the bands of tiles run that share operands in the cache, and how many tiles wide they are."""
    return (
        Knob("order", Family.LOOP_ORDER, ("rows", "columns"), runtime=True),
        Knob("group", Family.LOOP_ORDER, (1, 2, 4, 8, 16), runtime=True),
    )


def order(schedule: Schedule) -> dict[str, Argument]:
    """The run-time arguments for `order_knobs`."""
    return {
        "group": ScalarArgument(schedule.integer("group")),
        "columns": ScalarArgument(int(schedule["order"] == "columns")),
    }


def tiles(task: Task, schedule: Schedule) -> int:
    """Number of tiles of C."""
    m, n = task.workload["M"], task.workload["N"]
    return math.ceil(m / schedule.integer("block_m")) * math.ceil(n / schedule.integer("block_n"))


SKETCH = MatmulTiled()
