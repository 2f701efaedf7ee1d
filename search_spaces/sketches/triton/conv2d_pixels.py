"""Convolution through pointers, a tile of pixels by filters a program, for every architecture and both layouts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.convolutions import WALKS, Convolution, intensity, output, steps, terms
from search_spaces.sketches.tiles import (
    Footprint,
    buffers,
    gpu_only,
    on_tensor_cores,
    one_operand,
    padded,
    power_of_two,
    vectors,
    warp_group_product,
)
from search_spaces.sketches.triton.base import TensorArgument, TritonLaunch
from search_spaces.sketches.triton.matmul_tiled import order, order_knobs
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Fewer channels than this fill no step: several places are then taken at a time.
FEW_CHANNELS = 16


class Conv2dPixels(Convolution):
    """Pixels counted over all images, so that no tile but the last has idle rows."""

    name = "triton.conv2d_pixels"
    kernel = "search_spaces.kernels.conv:pixels"
    summary = "implicit product through pointers, a tile of pixels by filters a program"
    tall_knobs = ("block_m",)
    room_knobs = ("block_m", "block_n", "block_k", "num_warps", "num_stages")

    def refuses(self, task: Task) -> str | None:
        """Applies to every CUDA architecture and shape."""
        return gpu_only(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Tiles, warps, stages, what a step sums over, the store's vectors and the order of tiles."""
        contiguous = task.workload["K"] if not task.workload["nchw"] else 1
        widths = vectors(task.hardware.limits, task.workload.dtype, contiguous, 2)
        tensor_cores = on_tensor_cores(task.hardware.limits, task.workload.dtype)
        return (
            Knob("block_m", Family.TILE_SIZES, (32, 64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, (16, 32, 64, 128) if tensor_cores else (16, 32)),
            Knob("walk", Family.LOOP_ORDER, (*WALKS, "terms")),
            Knob("num_warps", Family.WARPS, (2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5)),
            Knob("store_vector", Family.VECTOR_WIDTH, widths),
            *order_knobs(),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of every convolution, and no more rows than pixels."""
        most = max(32, power_of_two(pixels(task)))
        made = Constraint("its tile has more rows than there are pixels", ("block_m",), lambda b: b <= most)
        return (made, *super().constraints(task))

    def shared_bytes(self, task: Task, knobs: Mapping[str, int]) -> int:
        """Shared memory for the tiles of X and F on their way, at least.

        Elements that lie apart in memory are loaded through registers: then no more than one copy is certain.
        """
        limits, dtype = task.hardware.limits, task.workload.dtype
        bm, bn, bk, warps, stages = knobs.values()
        alone = task.workload["nchw"] or task.workload["C"] * ITEMSIZE[dtype] % 16 != 0 or one_operand(limits, stages)
        copies = 1 if alone else buffers(limits, stages, warp_group_product(limits, dtype, bm, warps))
        return copies * min(bm, bn) * bk * ITEMSIZE[dtype] if alone else copies * (bm + bn) * bk * ITEMSIZE[dtype]

    def tiles(self, task: Task, *tall: int) -> int:
        """Tiles below each other."""
        return math.ceil(pixels(task) / tall[0])

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """As for a product of these sizes: 128x128x64, 4 warps, 3 stages; smaller tiles without tensor cores."""
        w = task.workload
        walk = "terms" if w["nchw"] or w["C"] < FEW_CHANNELS else "places"
        if not on_tensor_cores(task.hardware.limits, w.dtype):
            return {
                "block_m": 64,
                "block_n": 64,
                "block_k": 16,
                "walk": walk,
                "num_warps": 4,
                "num_stages": 3,
                "group": 8,
            }
        wanted: dict[str, Value] = {"block_m": 128, "block_n": 128, "block_k": 64, "walk": walk}
        return {**wanted, "num_warps": 4, "num_stages": 3, "group": 8}

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile of Y, and the strips of windows and filters that it needs."""
        knobs = {name: schedule.integer(name) for name in self.room_knobs}
        bm, bn, bk, warps, _ = knobs.values()
        return Footprint(
            programs=self.programs(task, schedule),
            warps=warps,
            shared_bytes=self.shared_bytes(task, knobs),
            registers=bm * bn / (warps * task.hardware.limits.warp),
            steps=steps(task, bk, str(schedule["walk"])),
            intensity=intensity(task, bm, bn),
            padding=padded((pixels(task), task.workload["K"], terms(task)), (bm, bn, bk)),
        )

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, the strides in elements, and the tile."""
        w, (p, q) = task.workload, output(task)
        c, k, h, size = (w[axis] for axis in "CKHR")
        made: dict[str, int | float | bool | str] = {"PIXELS": pixels(task), **{axis: w[axis] for axis in "CKHWR"}}
        made.update(P=p, Q=q, STRIDE=w["stride"], PAD=w["pad"])
        image = h * w["W"]
        if w["nchw"]:
            made.update(X_IMAGE=c * image, X_ROW=w["W"], X_COLUMN=1, X_CHANNEL=image)
            made.update(F_PLACE=1, F_CHANNEL=size * size, Y_IMAGE=k * p * q, Y_PIXEL=1, Y_FILTER=p * q)
        else:
            made.update(X_IMAGE=c * image, X_ROW=w["W"] * c, X_COLUMN=c, X_CHANNEL=1)
            made.update(F_PLACE=c, F_CHANNEL=1, Y_IMAGE=k * p * q, Y_PIXEL=k, Y_FILTER=1)
        made.update({name.upper(): schedule.integer(name) for name in ("block_m", "block_n", "block_k")})
        return {**made, "WALK": str(schedule["walk"]), "STORE_VECTOR": schedule.integer("store_vector")}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments={**{name.lower(): TensorArgument(name) for name in "XFY"}, **order(schedule)},
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
        )


def pixels(task: Task) -> int:
    """Pixels of the output, over all images."""
    p, q = output(task)
    return task.workload["N"] * p * q


SKETCH = Conv2dPixels()
