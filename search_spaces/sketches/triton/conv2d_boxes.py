"""Convolution of images with channels last, moved by the bulk copy engine (TMA): boxes of pixels, from sm_90 on."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.convolutions import WALKS, Convolution, intensity, output, steps
from search_spaces.sketches.tiles import Footprint, buffers, needs_tma, padded, power_of_two, warp_group_product
from search_spaces.sketches.triton.base import Argument, DescriptorArgument, TritonLaunch
from search_spaces.sketches.triton.matmul_tiled import order, order_knobs
from search_spaces.sketches.triton.matmul_tma import TMA_ALIGNMENT
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Rows of a tile: a group of warps multiplies 64 at a time.
LEAST_PIXELS, MOST_PIXELS = 64, 256


class Conv2dBoxes(Convolution):
    """A box of images, rows and columns by filters; what lies outside of the image is read as zeros."""

    name = "triton.conv2d_boxes"
    kernel = "search_spaces.kernels.conv:boxes"
    summary = "implicit product moved by TMA (sm_90 and later), a box of pixels by filters a program"
    tall_knobs = ("images", "rows", "columns")
    room_knobs: tuple[str, ...] = (
        "images",
        "rows",
        "columns",
        "block_n",
        "block_k",
        "num_warps",
        "subtiles",
        "num_stages",
    )

    def refuses(self, task: Task) -> str | None:
        """Needs TMA, tensor cores, channels last in a multiple of 16 bytes, and images that strides divide."""
        if (reason := needs_tma(task, "triton.conv2d_pixels")) is not None:
            return reason
        w = task.workload
        if w["nchw"]:
            return "a box of pixels has its channels together only where they come last; triton.conv2d_pixels takes it"
        for axis in "CK":
            if w[axis] * ITEMSIZE[w.dtype] % TMA_ALIGNMENT:
                return f"{axis}={w[axis]} makes pixels that are no multiple of TMA's {TMA_ALIGNMENT} bytes"
        if w["H"] % w["stride"] or w["W"] % w["stride"]:
            return f"the stride {w['stride']} does not divide H={w['H']} and W={w['W']}"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The box, filters and channels of a step, warps, stages, pieces of the store and the order of tiles."""
        return (
            *self.box_knobs(task),
            Knob("block_n", Family.TILE_SIZES, (32, 64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, (32, 64, 128)),
            Knob("walk", Family.LOOP_ORDER, WALKS),
            Knob("num_warps", Family.WARPS, (4, 8)),
            Knob("subtiles", Family.SHARED_MEMORY, (1, 2)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6)),
            *order_knobs(),
        )

    def box_knobs(self, task: Task) -> tuple[Knob, ...]:
        """Images, rows and columns of the box."""
        n, p, q, _ = shape(task)
        return (
            Knob("images", Family.TILE_SIZES, tuple(v for v in (1, 2, 4) if v < 2 * n)),
            Knob("rows", Family.TILE_SIZES, tuple(v for v in (1, 2, 4, 8, 16) if v < 2 * p)),
            Knob("columns", Family.TILE_SIZES, tuple(v for v in (4, 8, 16, 32, 64, 128, 256) if v < max(8, 2 * q))),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of every convolution, and boxes of a size that a group of warps multiplies."""
        made = (
            Constraint(
                f"its box has fewer than {LEAST_PIXELS} or more than {MOST_PIXELS} pixels",
                self.tall_knobs,
                lambda *box: LEAST_PIXELS <= math.prod(box) <= MOST_PIXELS,
            ),
            self.whole_steps(task),
        )
        return (*made, *super().constraints(task))

    def whole_steps(self, task: Task) -> Constraint:
        """Where strides are an axis, channels end where those of the next pixel begin."""
        w = task.workload
        return Constraint(
            "its step reaches into the channels of the next pixel",
            ("block_k",),
            lambda b: w["stride"] == 1 or w["C"] % b == 0,
        )

    def shared_bytes(self, task: Task, knobs: Mapping[str, int]) -> int:
        """Shared memory of a program: the store comes after the loop and takes its room."""
        limits, dtype = task.hardware.limits, task.workload.dtype
        images, rows, columns, bn, bk, warps, pieces, stages = knobs.values()
        bm = images * rows * columns
        # A box goes through registers, as its shape is not the product's: its last copy is there.
        filters = buffers(limits, stages, warp_group_product(limits, dtype, bm, warps)) * bn
        strips = max(bm, bn) if stages == 1 else buffers(limits, stages, False) * bm + filters
        return max(strips * bk, bm * bn // pieces) * ITEMSIZE[dtype]

    def tiles(self, task: Task, *tall: int) -> int:
        """Boxes."""
        n, p, q, _ = shape(task)
        return math.prod(math.ceil(extent / b) for extent, b in zip((n, p, q), tall, strict=True))

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """128 pixels, 128 filters, 64 channels, 4 stages."""
        step: dict[str, Value] = {"block_n": 128, "block_k": 64, "walk": "places"}
        step.update(num_warps=4, subtiles=1, num_stages=4, group=8)
        return {**self.preferred_box(task, 128), **step}

    def preferred_box(self, task: Task, pixels: int) -> dict[str, Value]:
        """A box of so many pixels: up to 16 of a row, then of an image, then of several."""
        n, p, q, _ = shape(task)
        columns = max(4, min(power_of_two(q), pixels if p == 1 else 16))
        rows = min(power_of_two(p), pixels // columns)
        return {"images": min(power_of_two(n), pixels // (columns * rows)), "rows": rows, "columns": columns}

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A box of Y, and the strips of windows and filters that it needs."""
        knobs = {name: schedule.integer(name) for name in self.room_knobs}
        images, rows, columns, bn, bk, warps, _, _ = knobs.values()
        bm, (n, p, q, _) = images * rows * columns, shape(task)
        extents, box = (n, p, q, task.workload["K"], task.workload["C"]), (images, rows, columns, bn, bk)
        return Footprint(
            programs=self.programs(task, schedule),
            warps=warps,
            shared_bytes=self.shared_bytes(task, knobs),
            registers=bm * bn / (warps * task.hardware.limits.warp),
            steps=steps(task, bk, "places"),
            intensity=intensity(task, bm, bn),
            padding=padded(extents, box),
        )

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """X, seen so that a stride is an axis of its own, F and Y by descriptor, and the order of tiles."""
        w, (n, p, q, source) = task.workload, shape(task)
        images, rows, columns, bn, bk = map(schedule.integer, (*self.tall_knobs, "block_n", "block_k"))
        sums = w["R"] ** 2 * w["C"]
        return {
            "x": DescriptorArgument("X", source, (images, rows, 1, columns, bk)),
            "f": DescriptorArgument("F", (w["K"], sums), (bn, bk)),
            "y": DescriptorArgument(
                "Y", (n, p, q, w["K"]), (images, rows, columns, bn // schedule.integer("subtiles"))
            ),
            **order(schedule),
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape and the box."""
        made = self.shape_constants(task)
        made.update({name.upper(): schedule.integer(name) for name in (*self.tall_knobs, "block_n", "block_k")})
        return {**made, "WALK": str(schedule["walk"]), "SUBTILES": schedule.integer("subtiles")}

    def shape_constants(self, task: Task) -> dict[str, int | float | bool | str]:
        """The shape, as it is seen."""
        w, (n, p, q, _) = task.workload, shape(task)
        made: dict[str, int | float | bool | str] = {"N": n, "C": w["C"], "K": w["K"], "R": w["R"], "P": p, "Q": q}
        return {**made, "STRIDE": w["stride"], "PAD": w["pad"]}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
        )


def shape(task: Task) -> tuple[int, int, int, tuple[int, ...]]:
    """Images, height and width of the output, and X as it is seen; single pixels are all of one row of one image."""
    w, (p, q) = task.workload, output(task)
    n, c, h, width, stride = (w[axis] for axis in ("N", "C", "H", "W", "stride"))
    if w["R"] == 1 and stride == 1:
        return 1, 1, n * p * q, (1, 1, 1, n * h * width, c)
    return n, p, q, (n, h // stride, stride, width // stride, stride * c)


SKETCH = Conv2dBoxes()
