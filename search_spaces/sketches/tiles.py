"""What the tiled Triton sketches share: what a program occupies, the features that follow, and their defaults."""

from __future__ import annotations

import math
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from search_spaces.hardware import Hardware, Limits
from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.triton.base import TritonSketch
from search_spaces.space import SKETCH, Constraint, Knob, Schedule, ScheduleSpace, SketchSpace, Value
from search_spaces.task import Task

# Registers that addresses, masks and loop counters take beside the values counted.
OVERHEAD_REGISTERS = 24
# Shared memory that the driver keeps of each resident block.
RESERVED_SHARED = 1024
# Where groups of four warps multiply from shared memory; sm_120 has gone back to single warps and registers.
WARP_GROUP_ARCHS = ("sm_90", "sm_100")


@dataclass(frozen=True)
class Footprint:
    """What one program of a schedule occupies and does, estimated from its tiles.

    Attributes:
        programs: Programs in the grid.
        warps: Warps of a program.
        shared_bytes: Shared memory of a program, at least.
        registers: Values that a thread holds across the main loop.
        steps: Iterations of the main loop.
        intensity: Operations per byte that a program reads.
        padding: Fraction of the tiles' elements that lie outside of the shape.
    """

    programs: int
    warps: int
    shared_bytes: int
    registers: float
    steps: int
    intensity: float
    padding: float

    def resident(self, limits: Limits) -> int:
        """Blocks that one multiprocessor holds at a time, at least one."""
        threads = self.warps * limits.warp
        registers = min(limits.registers_per_thread, self.registers + OVERHEAD_REGISTERS)
        return max(
            1,
            min(
                limits.blocks_per_sm,
                limits.threads_per_sm // threads,
                int(limits.registers_per_sm // (registers * threads)),
                limits.shared_per_sm // (self.shared_bytes + RESERVED_SHARED),
            ),
        )

    def features(self, hardware: Hardware) -> dict[str, float]:
        """The quantities a cost model can learn from."""
        limits = hardware.limits
        resident = self.resident(limits)
        waves = self.programs / (hardware.model.sms * resident)
        return {
            "threads": float(self.warps * limits.warp),
            "log2_programs": math.log2(self.programs),
            "shared_bytes": float(self.shared_bytes),
            "shared_fraction": self.shared_bytes / limits.shared_per_block,
            "registers": self.registers,
            "register_pressure": (self.registers + OVERHEAD_REGISTERS) / limits.registers_per_thread,
            "resident_blocks": float(resident),
            "occupancy": resident * self.warps * limits.warp / limits.threads_per_sm,
            "log2_waves": math.log2(waves),
            "wave_efficiency": waves / math.ceil(waves),
            "log2_steps": math.log2(self.steps),
            "log2_intensity": math.log2(self.intensity),
            "padding": self.padding,
        }


class TiledSketch(TritonSketch):
    """A Triton sketch whose default and features follow from a wish list and a footprint."""

    @abstractmethod
    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""

    @abstractmethod
    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What a legal schedule keeps."""

    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """The knobs with their limits."""
        limits, knobs, kept = task.hardware.limits, self.knobs(task), self.constraints(task)
        fits = Constraint(
            f"has more than the {limits.threads_per_block} threads of a block",
            ("num_warps",),
            lambda warps: warps * limits.warp <= limits.threads_per_block,
        )
        too_many = any(not fits.holds(warps) for knob in knobs if knob.name == "num_warps" for warps in knob.values)
        return (SketchSpace(self.name, knobs, (fits, *kept) if too_many else kept),)

    @abstractmethod
    def preferred(self, task: Task) -> Mapping[str, Value]:
        """The values of Triton's own tutorial, by knob."""

    @abstractmethod
    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """What a program of `schedule` occupies."""

    def default(self, task: Task) -> Schedule | None:
        """The legal schedule nearest to the tutorial's, the last knobs giving way first."""
        return nearest(self.spaces(task)[0], self.preferred(task))

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """The footprint's features."""
        return self.footprint(task, schedule).features(task.hardware)

    def sources(self) -> tuple[Path, ...]:
        """The kernel's file, and those of the sketch's class and of every class that it extends down to here."""
        modules = [c.__module__ for c in type(self).__mro__ if issubclass(c, TiledSketch)]
        files = [Path(str(sys.modules[m].__file__)) for m in modules]
        return tuple(dict.fromkeys((*super().sources(), *files)))


def nearest(space: SketchSpace, wanted: Mapping[str, Value]) -> Schedule | None:
    """The first legal schedule found when every knob tries its values in order of distance to the wanted one."""
    whole = ScheduleSpace((space,))

    def order(prefix: Schedule, options: tuple[Value, ...]) -> Sequence[Value]:
        target = wanted.get(whole.next_knob(prefix) or "")
        return options if target is None else sorted(options, key=lambda value: _distance(value, target))

    return whole.complete(Schedule(((SKETCH, space.sketch),)), order)


def _distance(value: Value, target: Value) -> float:
    if value == target:
        return 0.0
    if isinstance(value, int) and isinstance(target, int):
        return abs(math.log2(value + 1) - math.log2(target + 1))
    return math.inf


def gpu_only(task: Task) -> str | None:
    """Why no Triton sketch applies to the target, None where one may."""
    return None if task.target.kind in ("cuda", "hip") else "Triton makes kernels of GPUs only: CUDA's and HIP's"


def needs_tma(task: Task, instead: str) -> str | None:
    """Why a sketch whose products move by TMA does not apply, None where it may; `instead` takes exact float32."""
    if (reason := gpu_only(task)) is not None:
        return reason
    if not task.hardware.limits.tma:
        return f"{task.target.arch} has no TMA, which came with sm_90"
    if task.operator.arithmetic(task.workload) == "float32":
        return f"exact float32 runs on no tensor core; {instead} takes it"
    return None


def power_of_two(least: int) -> int:
    """The smallest power of two that is at least `least`."""
    return 1 << (least - 1).bit_length()


def padded(extents: Sequence[int], tiles: Sequence[int]) -> float:
    """Fraction of the tiles' elements that lie outside of the extents."""
    inside = 1.0
    for extent, tile in zip(extents, tiles, strict=True):
        inside *= extent / (math.ceil(extent / tile) * tile)
    return 1.0 - inside


def vectors(limits: Limits, dtype: str, extent: int, count: int) -> tuple[int, ...]:
    """The `count` widest vectors, in elements, that hardware and the alignment of rows of `extent` elements allow."""
    widest = math.gcd(limits.vector_bytes // ITEMSIZE[dtype], extent)
    return tuple(widest >> i for i in range(count) if widest >> i)


def on_tensor_cores(limits: Limits, dtype: str) -> bool:
    """Whether Triton puts a product on tensor cores: not in full float32, and not before sm_80."""
    return dtype != "float32" and pipelined(limits)


def warp_group_product(limits: Limits, dtype: str, rows: int, warps: int) -> bool:
    """Whether a product runs on wgmma or tcgen05, which read their operands from shared memory while they run."""
    return limits.arch in WARP_GROUP_ARCHS and on_tensor_cores(limits, dtype) and rows >= 64 and warps % 4 == 0


def capability(limits: Limits) -> int | None:
    """NVIDIA's number of the architecture, 90 for sm_90; None for another maker's."""
    return int(limits.arch.removeprefix("sm_")) if limits.arch.startswith("sm_") else None


def register_caps(limits: Limits, *caps: int) -> tuple[int, ...]:
    """Caps on a thread's registers, 0 for none; only NVIDIA's assembler takes one."""
    return (0, *caps) if capability(limits) is not None else (0,)


def pipelined(limits: Limits) -> bool:
    """Whether loads can run ahead of their use: by the asynchronous copies of sm_80, on AMD through registers."""
    return (capability(limits) or 80) >= 80


def copies_ahead(limits: Limits) -> bool:
    """Whether loads that feed no product run ahead through shared memory; on AMD they stay in registers."""
    return pipelined(limits) and capability(limits) is not None


def one_operand(limits: Limits, stages: int) -> bool:
    """Whether the smaller operand alone may be in shared memory: on AMD where nothing runs ahead."""
    return stages == 1 and capability(limits) is None


def buffers(limits: Limits, stages: int, asynchronous: bool) -> int:
    """Copies of a loop's operands in shared memory: one a stage, less the one in use unless it is used from there.

    On AMD with one stage it may be that of one operand alone: see `one_operand`.
    """
    if not pipelined(limits):
        return 1
    return max(1, stages if asynchronous else stages - 1)


def busy_warps(*knobs: str) -> Constraint:
    """A tile with a piece of tensor cores' size for each warp; `knobs` are those of its sides and, last, the warps."""

    def holds(*values: int) -> bool:
        *sides, warps = values
        return math.prod(sides) >= warps * 16 * 8

    return Constraint("has warps without a piece of the tile", knobs, holds)


def short_unrolled(limits: Limits, most: int, knobs: tuple[str, ...], each: int = 1) -> Constraint:
    """Without tensor cores every multiply-add of a step is an instruction of its own, and compiling takes as long.

    Args:
        limits: The architecture's.
        most: Multiply-adds of a thread.
        knobs: Those whose values are multiplied with each other, and, last, the warps.
        each: Multiply-adds for each of the product.
    """

    def holds(*values: int) -> bool:
        *extents, warps = values
        return each * math.prod(extents) <= most * warps * limits.warp

    return Constraint(f"unrolls more than {most} multiply-adds", knobs, holds)


def operand_bytes(
    limits: Limits, dtype: str, tile: tuple[int, int, int], warps: int, stages: int, sides: int = 1, first: int = 0
) -> int:
    """Shared memory for the operands of a product on their way, at least.

    Args:
        limits: The architecture's.
        dtype: Of the operands.
        tile: Rows, columns and depth.
        warps: Of a program.
        stages: Of the loop over the depth.
        sides: Matrices in the place of the second operand, each as wide as the tile.
        first: Rows of the operand that goes first into the tensor cores, where they are not the tile's.
    """
    rows, columns, depth = tile
    if capability(limits) is None:
        # On AMD the smaller operand is not always copied ahead, and where nothing is the larger need not be there.
        smaller, larger = sorted((rows, sides * columns))
        ahead = 0 if one_operand(limits, stages) else buffers(limits, stages, asynchronous=False) * larger
        return (ahead + smaller) * depth * ITEMSIZE[dtype]
    copies = buffers(limits, stages, warp_group_product(limits, dtype, first or rows, warps))
    # With one stage the first operand is in registers before the second matrix arrives.
    strips = sides * columns + (rows if sides == 1 or stages > 1 else 0)
    return copies * strips * depth * ITEMSIZE[dtype]


def useful_stages(limits: Limits, knobs: tuple[str, ...], steps: Callable[..., int]) -> Constraint:
    """No deeper pipeline than the main loop has `steps`; `knobs` are those that `steps` takes and, last, the stages."""

    def holds(*values: int) -> bool:
        *shape, stages = values
        return stages == 1 or (pipelined(limits) and stages <= steps(*shape))

    return Constraint("has more stages than its main loop can fill", knobs, holds)


def fits_shared(limits: Limits, knobs: tuple[str, ...], needs: Callable[..., int]) -> Constraint:
    """The limit on the shared memory of a block, `needs` being a lower bound in bytes."""
    return Constraint(
        f"needs more shared memory than the {limits.shared_per_block} bytes that a block can have on {limits.arch}",
        knobs,
        lambda *values: needs(*values) <= limits.shared_per_block,
    )


def fits_registers(limits: Limits, knobs: tuple[str, ...], needs: Callable[..., float], warps: str) -> Constraint:
    """The limit on registers, `needs` being the values a thread holds across the main loop; `warps` names that knob."""
    at = knobs.index(warps)

    def holds(*values: int) -> bool:
        registers = needs(*values) + OVERHEAD_REGISTERS
        file = limits.registers_per_sm // (values[at] * limits.warp)
        return registers <= min(limits.registers_per_thread, file)

    return Constraint("holds more values across its main loop than a thread has registers", knobs, holds)
