"""Linear layer with weights of 4 or 8 bits, its sums shared along K where there are few rows."""

from __future__ import annotations

import math

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.tiles import buffers, copies_ahead, fits_registers, gpu_only, on_tensor_cores, power_of_two
from search_spaces.sketches.triton.base import Argument, TensorArgument
from search_spaces.sketches.triton.matmul_k_split import FEW_ROWS, ROUNDS, MatmulKSplit
from search_spaces.sketches.triton.matmul_tiled import Tile
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Terms of the shortest product, in bytes of codes.
LEAST_BYTES = 16


class WeightOnlyLinearKSplit(MatmulKSplit):
    """Codes become floats in registers; a step's sums are scaled once, as it stays within a group."""

    name = "triton.weight_only_linear_k_split"
    operator = "weight_only_linear"
    kernel = "search_spaces.kernels.weight_only:split"
    summary = "several programs a tile, each a piece of K, codes made floats in registers"

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the product's sketch, and how integers become floats."""
        group, bits, dtype = task.workload["group"], task.workload["bits"], task.workload.dtype
        depths = tuple(d for d in (16, 32, 64, 128) if d <= group and d * bits >= 8 * LEAST_BYTES)
        # 8 bits are more than bfloat16 can count.
        ways = ("converted", "counted") if bits == 4 or dtype != "bfloat16" else ("converted",)
        made = [
            Knob("block_k", Family.TILE_SIZES, depths) if knob.name == "block_k" else knob
            for knob in super().knobs(task)
        ]
        at = next(i for i, knob in enumerate(made) if knob.runtime)
        return (*made[:at], Knob("floats", Family.REGISTERS, ways), *made[at:])

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the product's sketch; the sums of a step are held beside all of them."""
        limits = task.hardware.limits
        twice = fits_registers(
            limits,
            ("block_m", "block_n", "num_warps"),
            lambda bm, bn, warps: 2 * bm * bn / (warps * limits.warp),
            "num_warps",
        )
        return (*super().constraints(task), twice)

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program, at least: A and the codes on their way, where loads run ahead."""
        if tile.num_stages == 1:
            return 0
        limits = task.hardware.limits
        # On AMD they stay in registers.
        codes = tile.block_n * tile.block_k * task.workload["bits"] // 8 if copies_ahead(limits) else 0
        rows = tile.block_m * tile.block_k * ITEMSIZE[task.workload.dtype]
        return buffers(limits, tile.num_stages, False) * (rows + codes)

    def preferred(self, task: Task) -> dict[str, Value]:
        """Tiles as low as A, as deep as a group, the weights on the long side; K in pieces for two rounds."""
        m, n = task.workload["M"], task.workload["N"]
        tensor_cores = on_tensor_cores(task.hardware.limits, task.workload.dtype)
        tall = min(FEW_ROWS, max(16, power_of_two(m)))
        wide = 64
        pieces = ROUNDS * task.hardware.model.sms // (math.ceil(m / tall) * math.ceil(n / wide))
        wanted: dict[str, Value] = {"block_m": tall, "block_n": wide, "num_warps": 4, "group": 1}
        wanted.update(block_k=task.workload["group"] if tensor_cores else 32, num_stages=4 if tensor_cores else 2)
        return {**wanted, "split_k": max(1, pieces), "swapped": tensor_cores, "floats": "converted"}

    def grid(self, task: Task, schedule: Schedule) -> tuple[int, int, int]:
        """One a tile and piece."""
        return self.programs(task, schedule), 1, 1

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A, the codes, the scales and C, room for every piece, and the order of tiles."""
        tensors: dict[str, Argument] = {name.lower(): TensorArgument(name) for name in ("A", "B", "SCALE", "C")}
        return {**tensors, **self.workspaces(task, schedule)}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the tile, the codes and how they become floats."""
        made: dict[str, int | float | bool | str] = dict(zip("MNK", self.extents(task), strict=True))
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n", "block_k")})
        made.update(self.own_constants(schedule))
        made.update(BITS=task.workload["bits"], GROUP=task.workload["group"])
        return {**made, "COUNTED": schedule["floats"] == "counted"}


SKETCH = WeightOnlyLinearKSplit()
