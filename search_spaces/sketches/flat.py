"""Triton sketches of elementwise operators, which see their tensors as flat memory in blocks."""

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
    useful_stages,
    vectors,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

BLOCKS = (256, 512, 1024, 2048, 4096, 8192, 16384)
# Of each tensor: nothing has to live on, but each is an instruction of its own.
MOST_ELEMENTS = 128
# Knob values, and what they are called in PTX: what is read or written is not needed again.
EVICTION: Mapping[str, str] = {"normal": "", "first": "evict_first"}


def elements(task: Task) -> int:
    """Elements of the result."""
    return math.prod(task.operator.tensors(task.workload)[-1].shape)


def read(task: Task) -> int:
    """Tensors that are read."""
    return sum(not t.output for t in task.operator.tensors(task.workload))


class FlatBlocks(TiledSketch):
    """Some blocks of elements a program."""

    summary = "blocks of flat memory, some a program"

    def refuses(self, task: Task) -> str | None:
        """Applies to every shape on CUDA."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Blocks, vectors, warps, unrolling and eviction."""
        return (*self.block_knobs(task), Knob("unroll", Family.UNROLLING, (1, 2, 4, 8)))

    def block_knobs(self, task: Task) -> tuple[Knob, ...]:
        """What every sketch of blocks decides."""
        widths = vectors(task.hardware.limits, task.workload.dtype, elements(task), 4)
        return (
            Knob("block", Family.TILE_SIZES, BLOCKS),
            Knob("vector", Family.VECTOR_WIDTH, widths),
            Knob("num_warps", Family.WARPS, (1, 2, 4, 8, 16, 32)),
            Knob("eviction", Family.SHARED_MEMORY, tuple(EVICTION)),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Threads without work or with too much, and blocks beyond the end."""
        count = elements(task)
        beyond = Constraint(
            "gives a program blocks that lie beyond the end",
            ("block", "unroll"),
            lambda block, unroll: unroll == 1 or block * (unroll - 1) < count,
        )
        return (*self.block_constraints(task), beyond)

    def block_constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Limits on block, vector and warps."""
        warp = task.hardware.limits.warp
        return (
            Constraint(
                "leaves a thread fewer elements than its vector holds",
                ("block", "vector", "num_warps"),
                lambda block, vector, warps: block >= vector * warps * warp,
            ),
            Constraint(
                f"unrolls more than {MOST_ELEMENTS} elements a thread",
                ("block", "num_warps"),
                lambda block, warps: block <= MOST_ELEMENTS * warps * warp,
            ),
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """Triton's vector addition tutorial: blocks of 1024 by 4 warps, whole vectors."""
        vector = 16 // ITEMSIZE[task.workload.dtype]
        return {"block": 1024, "vector": vector, "num_warps": 4, "eviction": "normal", "unroll": 1}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one for so many blocks."""
        return math.ceil(elements(task) / (schedule.integer("block") * schedule.integer("unroll")))

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program: none."""
        del task, schedule
        return 0

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A block of each tensor in registers; the operator's operations on what is read."""
        block, warps = schedule.integer("block"), schedule.integer("num_warps")
        count, tensors = elements(task), read(task)
        programs = self.programs(task, schedule)
        operations = task.operator.cost(task.workload).operations
        return Footprint(
            programs=programs,
            warps=warps,
            shared_bytes=self.shared_bytes(task, schedule),
            registers=tensors * block / (warps * task.hardware.limits.warp),
            steps=math.ceil(math.ceil(count / block) / programs),
            intensity=operations / (count * tensors * ITEMSIZE[task.workload.dtype]),
            padding=padded((count,), (block,)),
        )

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features, and how much a thread moves at a time."""
        vector = schedule.integer("vector") * ITEMSIZE[task.workload.dtype]
        return {**super().derived(task, schedule), "vector_bytes": float(vector)}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """All tensors, the kernel's names being the operator's in small letters."""
        del schedule
        return {t.name.lower(): TensorArgument(t.name) for t in task.operator.tensors(task.workload)}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The size and the block."""
        return {
            "COUNT": elements(task),
            "BLOCK": schedule.integer("block"),
            "VECTOR": schedule.integer("vector"),
            "UNROLL": schedule.integer("unroll"),
            "EVICTION": EVICTION[str(schedule["eviction"])],
        }

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=1,
        )


class FlatLooped(FlatBlocks):
    """Each program walks over blocks, so that loading the next ones overlaps with computing these."""

    summary = "persistent programs share the blocks, loads pipelined through shared memory"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Blocks, vectors, warps, eviction, stages, programs and which blocks go to which program."""
        return (
            *self.block_knobs(task),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4)),
            Knob("programs_per_sm", Family.PERSISTENCE, (1, 2, 3, 4, 6, 8, 12, 16, 32), runtime=True),
            Knob("order", Family.LOOP_ORDER, ("interleaved", "chunks"), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and more programs than find room or work."""
        limits, count, sms = task.hardware.limits, elements(task), task.hardware.model.sms
        return (
            *self.block_constraints(task),
            useful_stages(
                limits,
                ("block", "programs_per_sm", "num_stages"),
                lambda block, programs: math.ceil(count / (block * sms * programs)),
            ),
            fits_shared(
                limits,
                ("block", "vector", "num_stages"),
                lambda block, vector, stages: staged_bytes(task, block, vector, stages),
            ),
            Constraint(
                "asks for more programs than find room on a multiprocessor",
                ("num_warps", "programs_per_sm"),
                lambda warps, programs: (
                    programs <= limits.blocks_per_sm and programs * warps * limits.warp <= limits.threads_per_sm
                ),
            ),
            Constraint(
                "asks for more programs than there are blocks",
                ("block", "programs_per_sm"),
                lambda block, programs: programs == 1 or programs * sms <= math.ceil(count / block),
            ),
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for the blocks, two stages, as many programs as find room."""
        wanted = {k: v for k, v in super().preferred(task).items() if k != "unroll"}
        return {**wanted, "num_stages": 2, "programs_per_sm": 16, "order": "interleaved"}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: so many a multiprocessor, no more than there is work for."""
        blocks = math.ceil(elements(task) / schedule.integer("block"))
        return min(blocks, task.hardware.model.sms * schedule.integer("programs_per_sm"))

    def shared_bytes(self, task: Task, schedule: Schedule) -> int:
        """Shared memory of a program, at least."""
        return staged_bytes(task, *map(schedule.integer, ("block", "vector", "num_stages")))

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """The tensors and how blocks are shared out."""
        chunked = ScalarArgument(int(schedule["order"] == "chunks"))
        return {**super().arguments(task, schedule), "chunked": chunked}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The size, the block and the depth of the pipeline."""
        return {
            "COUNT": elements(task),
            "BLOCK": schedule.integer("block"),
            "VECTOR": schedule.integer("vector"),
            "STAGES": schedule.integer("num_stages"),
            "EVICTION": EVICTION[str(schedule["eviction"])],
        }


def staged_bytes(task: Task, block: int, vector: int, stages: int) -> int:
    """Shared memory for loads under way: asynchronous copies move 4 bytes or more, and came with sm_80."""
    itemsize = ITEMSIZE[task.workload.dtype]
    staged = vector * itemsize >= 4 and copies_ahead(task.hardware.limits)
    return (stages - 1) * read(task) * block * itemsize if staged else 0
