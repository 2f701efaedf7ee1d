"""What sketches of a mixture of experts share: choices sorted into tiles, two products, the sum of a token's."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    busy_warps,
    fits_registers,
    fits_shared,
    gpu_only,
    on_tensor_cores,
    operand_bytes,
    padded,
    power_of_two,
    short_unrolled,
    useful_stages,
)
from search_spaces.sketches.triton.base import Argument, Constant, TensorArgument, TritonLaunch, WorkspaceArgument
from search_spaces.sketches.triton.matmul_tiled import UNROLLED_LIMIT
from search_spaces.space import Constraint, Schedule
from search_spaces.task import Task

KERNELS = "search_spaces.kernels.fused_moe"
# Choices that a program sorts at a time, and columns that one of the kernels between the products takes.
_CHUNK, _COLUMNS = 1024, 1024


@dataclass(frozen=True)
class Phase:
    """One of the two products: the knobs of its tile, and where its columns and terms are.

    Attributes:
        columns: Axis that its columns run over.
        terms: Axis that its sums run over.
        sides: Matrices whose product with the rows a program computes.
        times: How often its columns run over their axis, one after the other.
        tile: Knobs for rows, columns, depth, warps and stages.
    """

    columns: str
    terms: str
    sides: int = 1
    times: int = 1
    tile: tuple[str, str, str, str, str] = ("block_m", "block_n", "block_k", "num_warps", "num_stages")

    def extents(self, task: Task) -> tuple[int, int]:
        """Columns and terms."""
        return self.times * task.workload[self.columns], task.workload[self.terms]


def choices(task: Task) -> int:
    """Rows of both products: an expert of a token each."""
    return task.workload["M"] * task.workload["T"]


def most_tiles(task: Task, rows: int) -> int:
    """Tiles of so many rows that the worst choices fill, none of them over two experts."""
    count = choices(task)
    return (count + min(task.workload["E"], count) * (rows - 1)) // rows


class Experts(TiledSketch):
    """Kernels one after the other: sort, first product, gate if it is apart, second product, sum.

    Class attributes:
        phases: The first product and the second.
    """

    operator = "fused_moe"
    phases: tuple[Phase, Phase]

    def refuses(self, task: Task) -> str | None:
        """Applies to every GPU and shape."""
        return gpu_only(task)

    def rows(self, task: Task) -> int:
        """Choices of an expert, on average."""
        return math.ceil(choices(task) / task.workload["E"])

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and tiles that the shape or the warps leave idle, of both products."""
        tallest = max(16, power_of_two(task.workload["M"]))
        made = [Constraint("its tile is taller than there are tokens", ("block_m",), lambda b: b <= tallest)]
        for phase in dict.fromkeys(self.phases):
            made += self._of_product(task, phase)
        return tuple(made)

    def _of_product(self, task: Task, phase: Phase) -> list[Constraint]:
        limits, dtype = task.hardware.limits, task.workload.dtype
        block_m, block_n, block_k, warps, stages = phase.tile
        columns, terms = phase.extents(task)
        widest = max(16, power_of_two(columns))
        made = [
            Constraint("its tile is wider than the product", (block_n,), lambda b: b <= widest),
            fits_registers(
                limits,
                (block_m, block_n, warps),
                lambda bm, bn, count: phase.sides * bm * bn / (count * limits.warp),
                warps,
            ),
            busy_warps(block_m, block_n, warps),
            fits_shared(
                limits,
                phase.tile,
                lambda bm, bn, bk, count, deep: operand_bytes(limits, dtype, (bm, bn, bk), count, deep, phase.sides),
            ),
            useful_stages(limits, (block_k, stages), lambda b: math.ceil(terms / b)),
        ]
        if not on_tensor_cores(limits, dtype):
            made.append(short_unrolled(limits, UNROLLED_LIMIT, (block_m, block_n, block_k, warps), phase.sides))
        return made

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """That of the first product."""
        return self.footprint_of(task, schedule, self.phases[0])

    def footprint_of(self, task: Task, schedule: Schedule, phase: Phase) -> Footprint:
        """A tile of one product and the strips that it needs; the padding is that of an expert of average size."""
        bm, bn, bk, warps, stages = (schedule.integer(name) for name in phase.tile)
        limits, dtype, sides = task.hardware.limits, task.workload.dtype, phase.sides
        columns, terms = phase.extents(task)
        return Footprint(
            programs=most_tiles(task, bm) * math.ceil(columns / bn),
            warps=warps,
            shared_bytes=operand_bytes(limits, dtype, (bm, bn, bk), warps, stages, sides),
            registers=sides * bm * bn / (warps * limits.warp),
            steps=math.ceil(terms / bk),
            intensity=2.0 * sides * bm * bn / ((bm + sides * bn) * ITEMSIZE[dtype]),
            padding=padded((self.rows(task), columns, terms), (bm, bn, bk)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The features of both products."""
        down = self.footprint_of(task, schedule, self.phases[1]).features(task.hardware)
        return {**super().derived(task, schedule), **{f"down_{name}": value for name, value in down.items()}}

    def sorting(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel that sorts choices by expert; a program an expert."""
        rows, experts = schedule.integer("block_m"), task.workload["E"]
        constants = {"CHOICES": choices(task), "E": experts, "BINS": power_of_two(experts + 1), "BLOCK_M": rows}
        return TritonLaunch(
            arguments={"ids": TensorArgument("IDS"), **sorted_choices(task, rows)},
            constants={**constants, "CHUNK": min(_CHUNK, power_of_two(max(16, choices(task))))},
            grid=(experts, 1, 1),
            num_warps=4,
            num_stages=1,
            kernel=f"{KERNELS}:sort",
        )

    def summing(self, task: Task) -> TritonLaunch:
        """The kernel that sums a token's choices."""
        tokens, terms, columns = task.workload["M"], task.workload["T"], task.workload["K"]
        arguments: dict[str, Argument] = {"terms": second_result(task), "out": TensorArgument("OUT")}
        return _by_rows("total", arguments, {"K": columns, "T": terms}, tokens, columns)

    def gating(self, task: Task) -> TritonLaunch:
        """The kernel between two products where the first has no gate."""
        width = task.workload["N"]
        arguments: dict[str, Argument] = {"both": ungated_result(task), "hidden": first_result(task)}
        return _by_rows("gated", arguments, {"N": width}, choices(task), width)


def _by_rows(
    function: str, arguments: dict[str, Argument], constants: dict[str, Constant], rows: int, columns: int
) -> TritonLaunch:
    """A kernel of which each program takes a block of a row's columns."""
    block = min(_COLUMNS, power_of_two(columns))
    grid = (rows, math.ceil(columns / block), 1)
    return TritonLaunch(arguments, {**constants, "BLOCK": block}, grid, 4, 1, kernel=f"{KERNELS}:{function}")


def sorted_choices(task: Task, rows: int) -> dict[str, WorkspaceArgument]:
    """Choices by expert in tiles of so many rows, the tiles' experts, and the rows of all tiles together."""
    tiles = most_tiles(task, rows)
    return {
        "rows": WorkspaceArgument(tiles * rows, "int32", "rows"),
        "experts": WorkspaceArgument(tiles, "int32", "experts"),
        "used": WorkspaceArgument(1, "int32", "used"),
    }


def ungated_result(task: Task) -> WorkspaceArgument:
    """What comes out of a first product without a gate: the gate's columns, then the others, a row a choice."""
    return WorkspaceArgument(choices(task) * 2 * task.workload["N"], task.workload.dtype, "both")


def first_result(task: Task) -> WorkspaceArgument:
    """What goes into the second product, a row a choice."""
    return WorkspaceArgument(choices(task) * task.workload["N"], task.workload.dtype, "hidden")


def second_result(task: Task) -> WorkspaceArgument:
    """What comes out of it, times the choice's weight."""
    return WorkspaceArgument(choices(task) * task.workload["K"], task.workload.dtype, "terms")
