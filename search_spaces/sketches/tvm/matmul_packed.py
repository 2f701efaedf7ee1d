"""Matrix product on a CPU: a micro-kernel that keeps its tile of C in vector registers, over packed panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from search_spaces.schedule import Schedule
from search_spaces.sketches.tvm.base import TvmSketch, cores_of, empty_schedule, refused
from search_spaces.space import Constraint, Family, Knob, SketchSpace

if TYPE_CHECKING:
    from search_spaces.task import Task

ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16)
FEWEST_ROWS = 4
COLUMNS = (8, 16, 24, 32, 48, 64, 96, 128)
VECTORS = (8, 16, 32)
UNROLLS = (1, 2, 4, 8)
PACKED = ("none", "a", "b", "ab")
ORDERS = ("mn", "nm")
# Vector registers of AVX-512, and the floats that each holds.
REGISTERS = 32
REGISTER_FLOATS = 16
PACK_COLUMNS = 16


class MatmulPacked(TvmSketch):
    """Parallel blocks of C, each a grid of register tiles that run along the whole of K."""

    name = "tvm.matmul_packed"
    operator = "matmul"
    summary = "CPU: register tile of C over packed panels of A and B, blocks of C in parallel"

    def refuses_task(self, task: Task) -> str | None:
        """For float32 on a CPU, B row-major, with N a multiple of the narrowest tile."""
        if task.target.kind != "llvm":
            return "it is made for CPUs"
        if task.workload.dtype != "float32":
            return f"its register tile is made for float32, not {task.workload.dtype}"
        if task.workload["trans_b"]:
            return "it packs B by columns of C, not as rows of length K"
        if task.workload["N"] % COLUMNS[0]:
            return f"N={task.workload['N']} is not a multiple of {COLUMNS[0]}"
        return None

    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """Sizes that divide the shape only: nothing is padded."""
        m, n, k = (task.workload[a] for a in "MNK")
        cores = cores_of(task)
        knobs = (
            Knob("micro_m", Family.REGISTERS, _rows(m)),
            Knob("micro_n", Family.REGISTERS, _dividing(COLUMNS, n)),
            Knob("vector", Family.VECTOR_WIDTH, _dividing(VECTORS, n)),
            Knob("block_m", Family.TILE_SIZES, _divisors(m)),
            Knob("block_n", Family.TILE_SIZES, _divisors(n)),
            Knob("block_k", Family.TILE_SIZES, tuple(d for d in _divisors(k) if d >= min(k, 64))),
            Knob("order", Family.LOOP_ORDER, ORDERS),
            Knob("inner_order", Family.LOOP_ORDER, ORDERS),
            Knob("pack", Family.SHARED_MEMORY, PACKED),
            Knob("unroll", Family.UNROLLING, _dividing(UNROLLS, k)),
        )
        return (SketchSpace(self.name, knobs, _constraints(m, n, cores)),)

    def scheduled(self, task: Task, schedule: Schedule) -> Any:
        """Builds the loops by hand."""
        try:
            return _loops(task, schedule)
        except (RuntimeError, ValueError, TypeError) as error:
            raise refused(error) from error


def _dividing(candidates: tuple[int, ...], extent: int) -> tuple[int, ...]:
    return tuple(c for c in candidates if extent % c == 0)


def _rows(m: int) -> tuple[int, ...]:
    """Heights of the register tile: few rows reuse nothing, and on panels LLVM takes half a minute over one row."""
    found = _dividing(ROWS, m)
    return tuple(r for r in found if r >= FEWEST_ROWS) or found


def _divisors(extent: int) -> tuple[int, ...]:
    return tuple(d for d in range(1, extent + 1) if extent % d == 0)


def _constraints(m: int, n: int, cores: int) -> tuple[Constraint, ...]:
    def in_registers(micro_m: int, micro_n: int) -> bool:
        columns = math.ceil(micro_n / REGISTER_FLOATS)
        return micro_m * columns + columns + 1 <= REGISTERS

    return (
        Constraint("the tile of C does not fit the vector registers", ("micro_m", "micro_n"), in_registers),
        Constraint("vector does not divide micro_n", ("micro_n", "vector"), lambda columns, v: columns % v == 0),
        Constraint("micro_m does not divide block_m", ("micro_m", "block_m"), lambda micro, b: b % micro == 0),
        Constraint("micro_n does not divide block_n", ("micro_n", "block_n"), lambda micro, b: b % micro == 0),
        Constraint(
            "fewer blocks than cores", ("block_m", "block_n"), lambda bm, bn: (m // bm) * (n // bn) >= min(cores, m * n)
        ),
        Constraint("unroll does not divide block_k", ("block_k", "unroll"), lambda b, u: b % u == 0),
    )


def _loops(task: Task, schedule: Schedule) -> Any:
    knob = schedule.integer
    made = empty_schedule(task)
    block = made.get_sblock("C", "main")
    micro_m, micro_n, vector = knob("micro_m"), knob("micro_n"), knob("vector")
    pack = str(schedule["pack"])
    panels = []
    if "b" in pack:
        panels.append(_packed(made, block, 1, lambda k, n: (n // micro_n, k, n % micro_n)))
    if "a" in pack:
        panels.append(_packed(made, block, 0, lambda m, k: (m // micro_m, k, m % micro_m)))
    blocked = knob("block_k") < task.workload["K"]
    tile = None if blocked else made.cache_write(block, 0, "local")

    i, j, k = made.get_loops(block)
    rows = made.split(i, [None, knob("block_m") // micro_m, micro_m])
    columns = made.split(j, [None, knob("block_n") // micro_n, micro_n // vector, vector])
    depth = made.split(k, [None, knob("block_k") // knob("unroll"), knob("unroll")])
    outer = [rows[0], columns[0]] if schedule["order"] == "mn" else [columns[0], rows[0]]
    inner = [rows[1], columns[1]] if schedule["inner_order"] == "mn" else [columns[1], rows[1]]
    made.reorder(*outer, depth[0], *inner, *depth[1:], rows[2], columns[2], columns[3])
    if tile is not None:
        made.reverse_compute_at(tile, inner[-1])
        *_, row, column = made.get_loops(tile)
        _, lanes = made.split(column, [None, vector])
        made.vectorize(lanes)
        made.unroll(row)
    made.parallel(made.fuse(*outer))
    made.vectorize(columns[3])
    for loop in (columns[2], rows[2], depth[2]):
        made.unroll(loop)
    # Last: the initial values take over the loops' kinds, which could not be changed any more.
    made.decompose_reduction(block, depth[0])
    for panel, operand in panels:
        _pack_loops(made, panel, operand, micro_m if operand == 0 else micro_n)
    return made


def _packed(made: Any, block: Any, operand: int, layout: Any) -> tuple[Any, int]:
    """Copies an operand into panels as wide as the register tile, so that the micro-kernel reads it in order."""
    panel = made.cache_read(block, operand, "global")
    made.transform_layout(block, ("read", operand), layout)
    return panel, operand


def _pack_loops(made: Any, panel: Any, operand: int, width: int) -> None:
    """Panels in parallel; rows of B are copied as vectors, columns of A are gathered."""
    first, second = made.get_loops(panel)
    if operand == 1:
        outer, lanes = made.split(second, [None, width])
        made.reorder(outer, first, lanes)
    else:
        outer, lanes = made.split(first, [None, width])
        made.reorder(outer, second, lanes)
    made.parallel(outer)
    made.vectorize(lanes)


SKETCH = MatmulPacked()
