"""Gated linear layer on Hopper with roles for groups of warps, in Gluon: one product has the columns of both."""

from __future__ import annotations

from dataclasses import replace

from search_spaces.sketches.triton.base import Argument, DescriptorArgument
from search_spaces.sketches.triton.matmul_warpgroups import MatmulWarpgroups
from search_spaces.space import Family, Knob, Schedule, Value
from search_spaces.task import Task


class GatedLinearWarpgroups(MatmulWarpgroups):
    """Tiles of B and of UP below each other in the ring are multiplied as one, then gate each other."""

    name = "triton.gated_linear_warpgroups"
    operator = "gated_linear"
    sides = 2

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of one product; tiles half as wide, steps within a slab, no clusters."""
        own = {
            "block_n": Knob("block_n", Family.TILE_SIZES, (64, 128)),
            "block_k": Knob("block_k", Family.TILE_SIZES, (self.slab(task) // 2, self.slab(task))),
            "cluster": Knob("cluster", Family.PARALLELISM, (1,)),
        }
        return tuple(own.get(knob.name, knob) for knob in super().knobs(task))

    def preferred(self, task: Task) -> dict[str, Value]:
        """As for one product of both columns."""
        return {**super().preferred(task), "block_n": 128}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of one product, and UP passed like B."""
        given = super().arguments(task, schedule)
        assert isinstance(given["b"], DescriptorArgument)
        return {**given, "up": replace(given["b"], tensor="UP")}


SKETCH = GatedLinearWarpgroups()
