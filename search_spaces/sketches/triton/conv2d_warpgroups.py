"""Convolution on Hopper with roles for groups of warps, written in Gluon: copying ahead, multiplying, storing."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.convolutions import WALKS, intensity, steps
from search_spaces.sketches.gluon import needs_wgmma
from search_spaces.sketches.tiles import Footprint, fits_shared, padded, power_of_two
from search_spaces.sketches.triton.base import TritonLaunch
from search_spaces.sketches.triton.conv2d_boxes import Conv2dBoxes, shape
from search_spaces.sketches.triton.matmul_tiled import order_knobs
from search_spaces.sketches.triton.matmul_tma import BARRIER_BYTES
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Groups of four warps that multiply, each its own box; one more copies.
MULTIPLYING = 2
WARPS = 4 * (MULTIPLYING + 1)
# Sums that a thread can hold beside what it needs to store them.
MOST_SUMS = 128
# Pixels of a box: a group of warps multiplies 64 at a time.
BOX = (64, 128)


class Conv2dWarpgroups(Conv2dBoxes):
    """Programs of three groups of warps; a tile is two boxes, which lie beside, below or behind each other."""

    name = "triton.conv2d_warpgroups"
    kernel = "search_spaces.kernels.conv_warpgroups:warpgroups"
    summary = "implicit product, groups of warps with roles, in Gluon (sm_90), two boxes of pixels a tile"
    room_knobs = ("images", "rows", "columns", "block_n", "block_k", "subtiles", "num_stages")

    def refuses(self, task: Task) -> str | None:
        """Needs wgmma, which only sm_90 has, besides what boxes need, and a Triton with Gluon."""
        return super().refuses(task) or needs_wgmma(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The box, filters and channels of a step, shared memory, whether programs stay, and the order of tiles."""
        return (
            *self.box_knobs(task),
            Knob("block_n", Family.TILE_SIZES, (64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, (32, 64, 128)),
            Knob("walk", Family.LOOP_ORDER, WALKS),
            Knob("subtiles", Family.SHARED_MEMORY, (1, 2)),
            Knob("num_stages", Family.SHARED_MEMORY, (2, 3, 4, 5, 6, 8)),
            Knob("persistent", Family.PERSISTENCE, (False, True), runtime=True),
            *order_knobs(),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and boxes that the shape leaves idle."""
        w, limits = task.workload, task.hardware.limits
        return (
            Constraint(
                f"its box has neither {BOX[0]} nor {BOX[1]} pixels", self.tall_knobs, lambda *box: math.prod(box) in BOX
            ),
            Constraint(
                "its tile has more columns than there are filters",
                ("block_n",),
                lambda b: b <= max(64, power_of_two(w["K"])),
            ),
            Constraint(
                "holds more sums than a thread has registers",
                (*self.tall_knobs, "block_n"),
                lambda *tile: math.prod(tile) <= MOST_SUMS * 4 * limits.warp,
            ),
            self.whole_steps(task),
            *self.order_of_steps(task),
            fits_shared(
                limits,
                self.room_knobs,
                lambda *values: self.shared_bytes(task, dict(zip(self.room_knobs, values, strict=True))),
            ),
            Constraint(
                "has more stages than its main loop can fill",
                ("block_k", "num_stages"),
                lambda b, stages: stages <= max(2, steps(task, b, "places")),
            ),
            self.order_of_tiles(task),
        )

    def shared_bytes(self, task: Task, knobs: Mapping[str, int]) -> int:
        """Shared memory of a program: what is copied ahead, two barriers a stage, and a piece of Y a group."""
        images, rows, columns, bn, bk, pieces, stages = knobs.values()
        size, pixels = ITEMSIZE[task.workload.dtype], MULTIPLYING * images * rows * columns
        return stages * ((pixels + bn) * bk * size + 2 * BARRIER_BYTES) + pixels * bn // pieces * size

    def tiles(self, task: Task, *tall: int) -> int:
        """Pairs of boxes."""
        return math.ceil(super().tiles(task, *tall) / MULTIPLYING)

    def preferred(self, task: Task) -> Mapping[str, Value]:
        """Boxes of 64 pixels, 128 filters, 64 channels, four stages."""
        kept = {k: v for k, v in super().preferred(task).items() if k != "num_warps"}
        return {**kept, **self.preferred_box(task, BOX[0]), "num_stages": 4, "persistent": True}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """One a tile, or one a multiprocessor where they stay."""
        tiles = super().programs(task, schedule)
        return min(tiles, task.hardware.model.sms) if schedule["persistent"] else tiles

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """Two boxes of Y, and the strips of windows and filters that they need."""
        knobs = {name: schedule.integer(name) for name in self.room_knobs}
        images, rows, columns, bn, bk, _, _ = knobs.values()
        box, (n, p, q, _) = images * rows * columns, shape(task)
        return Footprint(
            programs=self.programs(task, schedule),
            warps=WARPS,
            shared_bytes=self.shared_bytes(task, knobs),
            registers=box * bn / (4 * task.hardware.limits.warp),
            steps=steps(task, bk, "places"),
            intensity=intensity(task, MULTIPLYING * box, bn),
            padding=padded(
                (n, p, q, task.workload["K"], task.workload["C"]),
                (images, rows, columns, bn, bk),
            ),
        )

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, and what the descriptors do not say of the tile."""
        made = self.shape_constants(task)
        return {**made, "PLACES": schedule["walk"] == "places", "STAGES": schedule.integer("num_stages")}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid; the compiler counts the warps of one role and adds the others'."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=4,
            num_stages=1,
        )


SKETCH = Conv2dWarpgroups()
