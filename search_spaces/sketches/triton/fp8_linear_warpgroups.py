"""Linear layer of fp8 on Hopper with roles for groups of warps, in Gluon: sums leave the tensor cores on the way."""

from __future__ import annotations

import math

from search_spaces.sketches.promotion import LONGEST, NAME, long_sums_leave, promoted_terms
from search_spaces.sketches.triton.matmul_warpgroups import MOST_SUMS, MULTIPLYING, MatmulWarpgroups
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Terms of K after which sums leave the tensor cores, which lose some of their bits; 0 for never.
TERMS = (0, 128, 256, 512, 1024)


class Fp8LinearWarpgroups(MatmulWarpgroups):
    """As the product's sketch, with scales before what follows it, and sums of few terms on the tensor cores alone."""

    name = "triton.fp8_linear_warpgroups"
    operator = "fp8_linear"

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the product, steps of whole and half slabs, and when the sums leave the tensor cores."""
        slab = self.slab(task)
        steps = Knob("block_k", Family.TILE_SIZES, (slab // 2, slab, 2 * slab))
        return (
            *(steps if k.name == "block_k" else k for k in super().knobs(task)),
            Knob(NAME, Family.REGISTERS, TERMS),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the product; registers for the sums that left, and no chain that is too long or no whole steps."""
        k, limits = task.workload["K"], task.hardware.limits
        return (
            *super().constraints(task),
            Constraint(
                "holds more sums than a thread has registers, where they leave the tensor cores",
                ("block_m", "block_n", NAME),
                lambda bm, bn, terms: terms == 0 or 2 * bm * bn <= MOST_SUMS * MULTIPLYING * 4 * limits.warp,
            ),
            Constraint(
                "has sums leave the tensor cores within a step, or not before the last one",
                ("block_k", NAME),
                lambda bk, terms: terms == 0 or bk <= terms < k,
            ),
            long_sums_leave(task),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """Room for both kinds of sums, and as many stages as fit beside."""
        terms = 0 if task.workload["K"] <= LONGEST else LONGEST // 2
        own: dict[str, Value] = {"block_n": 128, "block_k": self.slab(task), "num_stages": 6, NAME: terms}
        return {**super().preferred(task), **own}

    def chain(self, task: Task, schedule: Schedule) -> int:
        """As many steps as the knob has terms."""
        steps = math.ceil(task.workload["K"] / schedule.integer("block_k"))
        return min(steps, promoted_terms(schedule) // schedule.integer("block_k") or steps)


SKETCH = Fp8LinearWarpgroups()
