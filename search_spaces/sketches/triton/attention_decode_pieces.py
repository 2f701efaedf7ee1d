"""Attention of few queries over a long cache that is split among programs, the pieces joined in the same launch."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    copies_ahead,
    fits_registers,
    fits_shared,
    gpu_only,
    on_tensor_cores,
    padded,
    pipelined,
    power_of_two,
    short_unrolled,
    useful_stages,
    vectors,
)
from search_spaces.sketches.triton.base import (
    Argument,
    ScalarArgument,
    TensorArgument,
    TritonLaunch,
    WorkspaceArgument,
)
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Rows of a tensor core's product; fewer are multiplied and summed without it.
PRODUCT_ROWS = 16
# Multiply-adds of a thread in a step.
UNROLLED_LIMIT = 512
# More programs than this a multiprocessor leave each too short a piece.
MOST_PROGRAMS = 32
PIECES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 27, 32, 33, 37, 48, 64, 66, 96, 128)
# With them as many more as make so many programs a multiprocessor, but not so many that joining them takes long.
PROGRAMS = (1, 2, 3, 4, 6, 8)
MOST_PIECES = 160
# Values of pieces that a thread can join at a time.
MOST_JOINED = 128


class AttentionDecodePieces(TiledSketch):
    """A piece of one head's cache a program, against the queries that share it; as many pieces as asked for."""

    name = "triton.attention_decode_pieces"
    operator = "attention_decode"
    kernel = "search_spaces.kernels.attention_decode:decode"
    summary = "flash decoding: the cache in pieces, joined by the program that ends last"

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""
        widths = vectors(task.hardware.limits, task.workload.dtype, task.workload["D"], 2)
        return (
            Knob("block_m", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32, 64)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("vector", Family.VECTOR_WIDTH, widths),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6)),
            Knob("join", Family.UNROLLING, (1, 4, 8, 16)),
            Knob("pieces", Family.PARALLELISM, self.piece_counts(task), runtime=True),
            Knob("inner", Family.LOOP_ORDER, ("pieces", "heads"), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and programs without work."""
        limits, rows, head = task.hardware.limits, queries(task), power_of_two(task.workload["D"])
        length = task.workload["S"]

        def live(block_m: int, block_n: int, warps: int) -> float:
            return self.accumulators(head, block_m, block_n, warps)

        made = [
            Constraint(
                "takes more queries at a time than share a key/value head",
                ("block_m",),
                lambda b: b <= power_of_two(rows) or (b == PRODUCT_ROWS and rows > 1) or (b == PRODUCT_ROWS and dot),
            ),
            Constraint(
                "its block of keys is longer than the cache",
                ("block_n",),
                lambda b: b <= max(16, power_of_two(length)),
            ),
            fits_registers(limits, ("block_m", "block_n", "num_warps"), live, "num_warps"),
            fits_shared(
                limits,
                ("block_m", "block_n", "num_stages"),
                lambda *values: self.staged_bytes(task, *values),
            ),
            useful_stages(limits, ("block_n", "num_stages"), lambda b: math.ceil(length / b)),
            Constraint(
                "joins more at a time than a thread has registers",
                ("block_m", "num_warps", "join"),
                lambda b, warps, join: (
                    join == 1 or join * min(b, power_of_two(rows)) * head <= MOST_JOINED * warps * limits.warp
                ),
            ),
            Constraint(
                "has pieces without keys", ("block_n", "pieces"), lambda b, pieces: pieces <= math.ceil(length / b)
            ),
            Constraint(
                "joins more at a time than there are pieces", ("join", "pieces"), lambda j, p: j == 1 or j < 2 * p
            ),
            Constraint(
                f"makes more than {MOST_PROGRAMS} programs a multiprocessor",
                ("block_m", "pieces"),
                lambda b, pieces: (
                    pieces == 1 or self.units(task, b) * pieces <= MOST_PROGRAMS * task.hardware.model.sms
                ),
            ),
        ]
        dot = on_tensor_cores(limits, task.workload.dtype)
        if not dot:
            made.append(short_unrolled(limits, UNROLLED_LIMIT, ("block_m", "block_n", "num_warps"), head))
        return tuple(made)

    def piece_counts(self, task: Task) -> tuple[int, ...]:
        """Those of every device, and those that fill this one with all queries of a head together."""
        units = self.units(task, max(PRODUCT_ROWS, power_of_two(queries(task))))
        full = {each * task.hardware.model.sms // units for each in PROGRAMS}
        return tuple(sorted({*PIECES, *(count for count in full if 1 <= count <= MOST_PIECES)}))

    def accumulators(self, head: int, block_m: int, block_n: int, num_warps: int) -> float:
        """Values of a thread across a step: sums and scores, and where there is no tensor core the products summed."""
        products = 0 if block_m >= PRODUCT_ROWS else block_m * block_n * head
        return (block_m * (block_n + head) + products) / (num_warps * 32)

    def staged_bytes(self, task: Task, block_m: int, block_n: int, stages: int) -> int:
        """Shared memory for keys and values on their way: one copy less than stages, as the last one is in registers.

        Where nothing runs ahead, a product on tensor cores still takes its keys through shared memory.
        """
        tile = block_n * task.workload["D"] * ITEMSIZE[task.workload.dtype]
        if not pipelined(task.hardware.limits):
            return 0
        if stages == 1:
            return tile if block_m >= PRODUCT_ROWS and on_tensor_cores(task.hardware.limits, task.workload.dtype) else 0
        if copies_ahead(task.hardware.limits):
            return (stages - 1) * 2 * tile
        return (stages - 2) * 2 * tile if block_m >= PRODUCT_ROWS else 0

    def units(self, task: Task, block_m: int) -> int:
        """Blocks of queries, over all key/value heads."""
        return task.workload["B"] * task.workload["G"] * math.ceil(queries(task) / block_m)

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """All queries of a head together, 64 keys, 4 warps, 3 stages, and two programs a multiprocessor."""
        block_m = max(PRODUCT_ROWS, power_of_two(queries(task)))
        if not on_tensor_cores(task.hardware.limits, task.workload.dtype):
            block_m = min(4, power_of_two(queries(task)))
        pieces = max(1, 2 * task.hardware.model.sms // self.units(task, block_m))
        wanted: dict[str, Value] = {"block_m": block_m, "block_n": 64, "num_warps": 4, "num_stages": 3}
        return {**wanted, "join": 8 if pieces > 4 else 4 if pieces > 2 else 1, "pieces": pieces, "inner": "pieces"}

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A block of queries against a piece of the cache."""
        bm, bn, warps, stages, pieces = map(
            schedule.integer, ("block_m", "block_n", "num_warps", "num_stages", "pieces")
        )
        length, head = task.workload["S"], power_of_two(task.workload["D"])
        return Footprint(
            programs=self.units(task, bm) * pieces,
            warps=warps,
            shared_bytes=self.staged_bytes(task, bm, bn, stages),
            registers=self.accumulators(head, bm, bn, warps),
            steps=math.ceil(math.ceil(length / bn) / pieces),
            intensity=2.0 * bm / ITEMSIZE[task.workload.dtype],
            padding=padded((queries(task), length, task.workload["D"]), (bm, bn, head)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and what joining moves against the cache."""
        w, pieces = task.workload, schedule.integer("pieces")
        joined = 0.0 if pieces == 1 else 8.0 * pieces * queries(task) * (w["D"] + 2)
        cache = 2.0 * w["S"] * w["D"] * ITEMSIZE[w.dtype]
        return {**super().derived(task, schedule), "joined_bytes": joined / cache, "log2_pieces": math.log2(pieces)}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        units = self.units(task, schedule.integer("block_m"))
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(units * schedule.integer("pieces"), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=1,
        )

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """The tensors, with memory for the pieces' sums and a count a block of queries, and how pieces are dealt."""
        w, pieces = task.workload, schedule.integer("pieces")
        words = w["B"] * w["G"] * queries(task) * (w["D"] + 2) * pieces
        arguments: dict[str, Argument] = {name.lower(): TensorArgument(name) for name in "QKVO"}
        arguments["partial"] = WorkspaceArgument(words if pieces > 1 else 1)
        arguments["counters"] = WorkspaceArgument(self.units(task, schedule.integer("block_m")), "int32")
        arguments["pieces"] = ScalarArgument(pieces)
        arguments["pieces_first"] = ScalarArgument(int(schedule["inner"] == "pieces"))
        return arguments

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the scale of the scores in powers of two, and the blocks."""
        made: dict[str, int | float | bool | str] = {axis: task.workload[axis] for axis in "BHGSTD"}
        made["SCALE"] = math.log2(math.e) / math.sqrt(task.workload["D"])
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n")})
        made["BLOCK_D"] = power_of_two(task.workload["D"])
        made.update(VECTOR=schedule.integer("vector"), STAGES=schedule.integer("num_stages"))
        made.update(JOIN=schedule.integer("join"), DOT=schedule.integer("block_m") >= PRODUCT_ROWS)
        return made


def queries(task: Task) -> int:
    """Query rows that share a key/value head: its heads times the new tokens."""
    return task.workload["H"] // task.workload["G"] * task.workload["T"]


SKETCH = AttentionDecodePieces()
