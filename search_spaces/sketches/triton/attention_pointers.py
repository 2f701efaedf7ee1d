"""Attention in one pass over the keys, through pointers, for every architecture."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.hardware import Limits
from search_spaces.operator import ITEMSIZE
from search_spaces.operators.attention import Attention
from search_spaces.sketches.tiles import (
    OVERHEAD_REGISTERS,
    Footprint,
    TiledSketch,
    buffers,
    capability,
    fits_registers,
    fits_shared,
    gpu_only,
    on_tensor_cores,
    power_of_two,
    register_caps,
    short_unrolled,
    useful_stages,
    vectors,
    warp_group_product,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Multiply-adds of a thread in a step.
UNROLLED_LIMIT = 1024
# Register caps at which one more block of 4 or 8 warps finds room on a multiprocessor, and some that only steer ptxas.
REGISTER_CAPS = (80, 96, 128, 168, 192, 224, 255)


class AttentionPointers(TiledSketch):
    """A block of queries of one head a program; it walks over the keys with a running softmax."""

    name = "triton.attention_pointers"
    operator = "attention"
    kernel = "search_spaces.kernels.attention:pointers"
    summary = "flash attention through pointers, a block of queries a program"

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""
        limits, dtype = task.hardware.limits, task.workload.dtype
        vector = Knob("store_vector", Family.VECTOR_WIDTH, vectors(limits, dtype, task.workload["D"], 2))
        return (*self.tile_knobs(limits), vector, *order_knobs())

    def tile_knobs(self, limits: Limits) -> tuple[Knob, ...]:
        """Blocks of queries and keys, and what they run with."""
        return (
            Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5)),
            Knob("maxnreg", Family.REGISTERS, register_caps(limits, *REGISTER_CAPS)),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and blocks that the sequence or the warps leave idle."""
        limits, head, longest = task.hardware.limits, width(task), max(16, power_of_two(task.workload["S"]))

        def live(block_m: int, block_n: int, warps: int) -> float:
            return self.accumulators(head, block_m, block_n, warps)

        def capped(block_m: int, block_n: int, warps: int, cap: int) -> bool:
            needed = live(block_m, block_n, warps) + OVERHEAD_REGISTERS
            return cap == 0 or (needed <= cap and cap * warps * limits.warp <= registers)

        registers = limits.registers_per_sm
        # A tensor core's product has 16 rows; without one a warp can do with fewer.
        tensor_cores = on_tensor_cores(limits, task.workload.dtype)
        rows = 16 if tensor_cores else 2
        made = [
            Constraint("its block of queries is longer than the sequence", ("block_m",), lambda b: b <= longest),
            Constraint("its block of keys is longer than the sequence", ("block_n",), lambda b: b <= longest),
            Constraint(
                "has warps without rows of queries", ("block_m", "num_warps"), lambda b, warps: b >= rows * warps
            ),
            fits_registers(limits, ("block_m", "block_n", "num_warps"), live, "num_warps"),
            fits_shared(
                limits,
                ("block_m", "block_n", "num_warps", "num_stages"),
                lambda *values: self.operand_bytes(task, *values),
            ),
            useful_stages(limits, ("block_n", "num_stages"), lambda b: math.ceil(task.workload["S"] / b)),
            Constraint(
                "its register cap is below what it holds or above what there is",
                ("block_m", "block_n", "num_warps", "maxnreg"),
                capped,
            ),
        ]
        if not tensor_cores:
            made.append(short_unrolled(limits, UNROLLED_LIMIT, ("block_m", "block_n", "num_warps"), head))
        return tuple(made)

    def accumulators(self, head: int, block_m: int, block_n: int, num_warps: int) -> float:
        """Values of a thread across a step: the sums and the scores."""
        return block_m * (block_n + head) / (num_warps * 32)

    def operand_bytes(self, task: Task, block_m: int, block_n: int, warps: int, stages: int) -> int:
        """Shared memory for the queries and for the keys and values on their way, in bytes."""
        limits, dtype = task.hardware.limits, task.workload.dtype
        copies = buffers(limits, stages, warp_group_product(limits, dtype, block_m, warps))
        if capability(limits) is None:
            # The queries stay in registers, and where nothing runs ahead the values take the keys' place.
            return (1 if stages == 1 else copies * 2) * block_n * width(task) * ITEMSIZE[dtype]
        return (block_m + copies * 2 * block_n) * width(task) * ITEMSIZE[dtype]

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """Triton's attention tutorial: 128x64, 4 warps (8 for large heads), 3 stages; less without tensor cores."""
        if not on_tensor_cores(task.hardware.limits, task.workload.dtype):
            return {"block_m": 32, "block_n": 32, "num_warps": 4, "num_stages": 2, "maxnreg": 0, **TUTORIAL_ORDER}
        warps = 8 if task.workload["D"] > 128 else 4
        return {"block_m": 128, "block_n": 64, "num_warps": warps, "num_stages": 3, "maxnreg": 0, **TUTORIAL_ORDER}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one a block of queries and head."""
        blocks = math.ceil(task.workload["S"] / schedule.integer("block_m"))
        return blocks * task.workload["B"] * task.workload["H"]

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A block of queries against the keys that it sees."""
        bm, bn, warps, stages = map(schedule.integer, ("block_m", "block_n", "num_warps", "num_stages"))
        needed, visited = self.pairs(task, bm, bn)
        return Footprint(
            programs=self.programs(task, schedule),
            warps=warps,
            shared_bytes=self.operand_bytes(task, bm, bn, warps, stages),
            registers=self.accumulators(width(task), bm, bn, warps),
            steps=math.ceil(task.workload["S"] / bn),
            intensity=2.0 * bm / ITEMSIZE[task.workload.dtype],
            padding=max(0.0, 1.0 - needed / visited),
        )

    def pairs(self, task: Task, block_m: int, block_n: int) -> tuple[float, float]:
        """Pairs of a query and a key that it sees in one head, and those in the blocks that are visited for them."""
        s, reach = task.workload["S"], reach_of(task)
        blocks, area = math.ceil(s / block_m), block_m * block_n
        if reach is None:
            return float(s * s), float(blocks * math.ceil(s / block_n) * area)
        ends = (math.ceil(min((i + 1) * block_m, s) / block_n) for i in range(blocks))
        firsts = (max(i * block_m - reach + 1, 0) // block_n for i in range(blocks))
        visited = sum(end - first for end, first in zip(ends, firsts, strict=True))
        return s * reach - reach * (reach - 1) / 2, float(visited * area)

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and how far the register cap is from what is held."""
        made = self.footprint(task, schedule)
        cap = schedule.integer("maxnreg") or task.hardware.limits.registers_per_thread
        return {**made.features(task.hardware), "spare_registers": cap - made.registers}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Q, K, V and O by address, and the order of programs."""
        del task
        return {**{name.lower(): TensorArgument(name) for name in "QKVO"}, **order(schedule)}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, which keys a query sees, and the blocks."""
        made: dict[str, int | float | bool | str] = {axis: task.workload[axis] for axis in "BHGSD"}
        made.update(masking(task))
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n")})
        made["BLOCK_D"] = width(task)
        return {**made, **self.own_constants(schedule)}

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """Constants that only this sketch's kernel has."""
        return {"STORE_VECTOR": schedule.integer("store_vector")}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
            maxnreg=schedule.integer("maxnreg") or None,
        )


def reach_of(task: Task) -> int | None:
    """How many keys a query sees, its own the last; None where it sees all."""
    operator = task.operator
    assert isinstance(operator, Attention), f"{operator.name} is no attention"
    return operator.reach(task.workload)


def masking(task: Task) -> dict[str, int | float | bool | str]:
    """Constants of every attention kernel: which keys a query sees, and the scale of the scores in powers of two."""
    reach = reach_of(task)
    window = 0 if reach is None or reach >= task.workload["S"] else reach
    scale = math.log2(math.e) / math.sqrt(task.workload["D"])
    return {"CAUSAL": reach is not None, "WINDOW": window, "SCALE": scale}


def width(task: Task) -> int:
    """Columns of a tile of queries or keys: the head size, up to a power of two."""
    return power_of_two(task.workload["D"])


# The tutorial's grid counts query blocks first, then heads.
TUTORIAL_ORDER: Mapping[str, Value] = {"inner": "blocks", "query_blocks": "ascending"}


def order_knobs() -> tuple[Knob, ...]:
    """Which of blocks and heads neighbouring programs differ in, and whether the last, longest blocks come first."""
    return (
        Knob("inner", Family.LOOP_ORDER, ("blocks", "heads"), runtime=True),
        Knob("query_blocks", Family.LOOP_ORDER, ("ascending", "descending"), runtime=True),
    )


def order(schedule: Schedule) -> dict[str, Argument]:
    """The run-time arguments for `order_knobs`."""
    return {
        "heads_first": ScalarArgument(int(schedule["inner"] == "heads")),
        "descending": ScalarArgument(int(schedule["query_blocks"] == "descending")),
    }


SKETCH = AttentionPointers()
