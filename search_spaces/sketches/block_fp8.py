"""Products of fp8 matrices scaled by blocks: one space for this project's kernel and for those of inference engines."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operators.block_fp8_matmul import BLOCK, blocks
from search_spaces.sketches.engines import EngineSketch, engine_tile
from search_spaces.sketches.followed import needs_narrow
from search_spaces.sketches.tiles import (
    Footprint,
    TiledSketch,
    buffers,
    busy_warps,
    fits_registers,
    fits_shared,
    gpu_only,
    nearest,
    padded,
    power_of_two,
    useful_stages,
    warp_group_product,
)
from search_spaces.sketches.triton.base import Argument, ScalarArgument, TensorArgument, TritonLaunch
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

TILE = ("block_m", "block_n", "block_k", "num_warps", "num_stages")
_OPERAND = "float8_e4m3fn"
_TENSORS = {"a": "A", "b": "B", "a_scale": "A_SCALE", "b_scale": "B_SCALE", "c": "C"}


class BlockFp8Tiled(TiledSketch):
    """One tile of C a program; at each step of K the tile's product is scaled and added in float32."""

    operator = "block_fp8_matmul"
    widths: tuple[int, ...] = (16, 32, 64, 128)

    def refuses(self, task: Task) -> str | None:
        """Applies wherever tensor cores take fp8."""
        return gpu_only(task) or needs_narrow(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions; each needs a binary of its own."""
        return (
            Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, self.widths),
            Knob("block_k", Family.TILE_SIZES, (32, 64, 128)),
            Knob("num_warps", Family.WARPS, (2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6)),
            Knob("group", Family.LOOP_ORDER, (1, 2, 4, 8, 16, 32, 64)),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and tiles that the shape or the warps leave idle."""
        m, n, k = task.workload.values
        limits = task.hardware.limits
        most = {"block_m": max(16, power_of_two(m)), "block_n": max(16, power_of_two(n))}
        return (
            Constraint("its tile is taller than C", ("block_m",), lambda b: b <= most["block_m"]),
            Constraint("its tile is wider than C", ("block_n",), lambda b: b <= most["block_n"]),
            fits_registers(
                limits,
                ("block_m", "block_n", "num_warps"),
                # A step's product stands beside the sums that it is scaled into.
                lambda bm, bn, warps: 2 * bm * bn / (warps * limits.warp),
                "num_warps",
            ),
            busy_warps("block_m", "block_n", "num_warps"),
            fits_shared(limits, TILE, lambda *tile: _shared_bytes(task, *tile)),
            useful_stages(limits, ("block_k", "num_stages"), lambda b: math.ceil(k / b)),
            Constraint(
                "groups more tiles than C has", ("block_m", "group"), lambda bm, group: group < 2 * math.ceil(m / bm)
            ),
        )

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """What the engines take where they have no file: 64 rows, a scale's columns and depth, 4 warps, 3 stages."""
        return {"block_m": 64, "block_n": BLOCK, "block_k": BLOCK, "num_warps": 4, "num_stages": 3, "group": 32}

    def default(self, task: Task) -> Schedule | None:
        """The legal schedule nearest to the preferred one."""
        return nearest(self.spaces(task)[0], self.preferred(task))

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile of C, a step's product, and the strips of A and B that it needs."""
        bm, bn, bk, warps, stages = (schedule.integer(name) for name in TILE)
        return Footprint(
            programs=self.programs(task, schedule),
            warps=warps,
            shared_bytes=_shared_bytes(task, bm, bn, bk, warps, stages),
            registers=2 * bm * bn / (warps * 32),
            steps=math.ceil(task.workload["K"] / bk),
            intensity=2.0 * bm * bn / (bm + bn),
            padding=padded(task.workload.values, (bm, bn, bk)),
        )

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Tiles of C."""
        m, n = task.workload["M"], task.workload["N"]
        return math.ceil(m / schedule.integer("block_m")) * math.ceil(n / schedule.integer("block_n"))

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments=self.arguments(task),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
        )

    def arguments(self, task: Task) -> dict[str, Argument]:
        """The tensors by address."""
        return {name: TensorArgument(tensor) for name, tensor in _TENSORS.items()}

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape and the tile."""
        names = ("block_m", "block_n", "block_k", "group")
        tile = {name.upper(): schedule.integer(name) for name in names}
        return {**{axis: task.workload[axis] for axis in "MNK"}, **tile, "SCALED": BLOCK}


def _shared_bytes(task: Task, rows: int, columns: int, depth: int, warps: int, stages: int) -> int:
    """Shared memory of a program, at least: the tiles of A and B on their way."""
    limits = task.hardware.limits
    copies = buffers(limits, stages, warp_group_product(limits, _OPERAND, rows, warps))
    return copies * (columns + (rows if stages > 1 else 0)) * depth


class EngineBlockFp8(EngineSketch, BlockFp8Tiled):
    """The kernel of an inference engine."""

    widths = (16, 32, 64, 128, 256)

    def refuses(self, task: Task) -> str | None:
        """Where the engine is not installed; else as this project's own kernel."""
        return self.missing() or super().refuses(task)

    def arguments(self, task: Task) -> dict[str, Argument]:
        """Tensors, extents and strides, the integers specialised as at the engine's own launch."""
        m, n, k = task.workload.values
        strides = {"am": k, "ak": 1, "bk": 1, "bn": k, "cm": n, "cn": 1}
        scales = {"As_m": blocks(k), "As_k": 1, "Bs_k": 1, "Bs_n": blocks(k)}
        numbers = {"M": m, "N": n, "K": k, "group_n": BLOCK, "group_k": BLOCK}
        numbers |= {f"stride_{name}": value for name, value in {**strides, **scales}.items()}
        tensors = {"A": "A", "B": "B", "C": "C", "As": "A_SCALE", "Bs": "B_SCALE"}
        return {
            **{name: TensorArgument(tensor) for name, tensor in tensors.items()},
            **{name: ScalarArgument(value, specialised=True) for name, value in numbers.items()},
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The tile under the engine's names."""
        return dict(engine_tile(schedule))
