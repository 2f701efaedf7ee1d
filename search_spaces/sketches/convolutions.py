"""What the sketches of convolution share: it is a product of pixels by filters, summed over places and channels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.operators.conv2d import Conv2d
from search_spaces.sketches.tiles import (
    TiledSketch,
    busy_warps,
    fits_registers,
    fits_shared,
    on_tensor_cores,
    power_of_two,
    short_unrolled,
    useful_stages,
)
from search_spaces.space import Constraint, Knob, Schedule
from search_spaces.task import Task

# Multiply-adds of a thread in a step.
UNROLLED_LIMIT = 512
WALKS = ("places", "channels")


class Convolution(TiledSketch):
    """A tile of pixels by filters a program."""

    operator = "conv2d"
    # Knobs whose product is the number of pixels of a tile, and those that shared memory depends on.
    tall_knobs: tuple[str, ...]
    room_knobs: tuple[str, ...]

    @abstractmethod
    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """The decisions, those that need a new binary first."""

    @abstractmethod
    def shared_bytes(self, task: Task, knobs: Mapping[str, int]) -> int:
        """Shared memory of a program, at least, from the values of `room_knobs`."""

    @abstractmethod
    def tiles(self, task: Task, *tall: int) -> int:
        """Tiles below each other, from the values of `tall_knobs`."""

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and tiles that the shape or the warps leave idle."""
        limits, w, tall = task.hardware.limits, task.workload, self.tall_knobs
        made = [
            Constraint(
                "its tile has more columns than there are filters",
                ("block_n",),
                lambda b: b <= max(16, power_of_two(w["K"])),
            ),
            fits_registers(
                limits,
                (*tall, "block_n", "num_warps"),
                lambda *values: math.prod(values[:-1]) / (values[-1] * limits.warp),
                "num_warps",
            ),
            busy_warps(*tall, "block_n", "num_warps"),
            fits_shared(
                limits,
                self.room_knobs,
                lambda *values: self.shared_bytes(task, dict(zip(self.room_knobs, values, strict=True))),
            ),
            useful_stages(limits, ("block_k", "walk", "num_stages"), lambda b, walk: steps(task, b, walk)),
            *self.order_of_steps(task),
            self.order_of_tiles(task),
        ]
        if not on_tensor_cores(limits, w.dtype):
            made.append(short_unrolled(limits, UNROLLED_LIMIT, (*tall, "block_n", "block_k", "num_warps")))
        return tuple(made)

    def order_of_steps(self, task: Task) -> tuple[Constraint, ...]:
        """Limits on what a step takes."""
        w = task.workload
        return (
            Constraint(
                "its step is longer than the sum",
                ("block_k", "walk"),
                lambda b, walk: b <= max(16, power_of_two(terms(task) if walk == "terms" else w["C"])),
            ),
            Constraint(
                "takes the places of a filter in an order where there is one",
                ("walk",),
                lambda walk: walk != "channels" or w["R"] > 1,
            ),
        )

    def order_of_tiles(self, task: Task) -> Constraint:
        """The limit on the bands of tiles."""
        filters, tall = task.workload["K"], self.tall_knobs
        return Constraint(
            "groups more tiles than Y has",
            (*tall, "block_n", "order", "group"),
            lambda *values: (
                values[-1] < 2 * (self.tiles(task, *values[:-3]) if values[-2] == "rows" else filters / values[-3])
            ),
        )

    def programs(self, task: Task, schedule: Schedule) -> int:
        """Programs of the grid: one a tile."""
        across = math.ceil(task.workload["K"] / schedule.integer("block_n"))
        return self.tiles(task, *map(schedule.integer, self.tall_knobs)) * across


def output(task: Task) -> tuple[int, int]:
    """Height and width of the output."""
    operator = task.operator
    assert isinstance(operator, Conv2d), f"{operator.name} is no conv2d"
    return operator.extents(task.workload)


def terms(task: Task) -> int:
    """Terms of an output's sum."""
    return task.operator.reduction_length(task.workload)


def steps(task: Task, block_k: int, walk: str) -> int:
    """Steps of the main loop."""
    if walk == "terms":
        return math.ceil(terms(task) / block_k)
    return task.workload["R"] ** 2 * math.ceil(task.workload["C"] / block_k)


def intensity(task: Task, pixels: int, filters: int) -> float:
    """Operations of a tile per byte that it reads."""
    return 2.0 * pixels * filters / ((pixels + filters) * ITEMSIZE[task.workload.dtype])
