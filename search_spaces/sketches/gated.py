"""What the sketches of gated products add to those of one product: a second matrix beside B, and sums for both."""

from __future__ import annotations

from dataclasses import replace

from search_spaces.sketches.tiles import on_tensor_cores, warp_group_product
from search_spaces.sketches.triton.base import Argument, ScalarArgument, WorkspaceArgument
from search_spaces.sketches.triton.matmul_tiled import MatmulTiled
from search_spaces.space import Schedule, Value
from search_spaces.task import Task


class Gated(MatmulTiled):
    """A tile of both products a program."""

    operator = "gated_linear"
    followed = ("ACTIVATION",)
    sides = 2

    def preferred(self, task: Task) -> dict[str, Value]:
        """The tutorial's, narrower where tensor cores hold sums for both products."""
        wanted, limits, dtype = dict(super().preferred(task)), task.hardware.limits, task.workload.dtype
        if not on_tensor_cores(limits, dtype):
            return wanted
        # Where operands pass through registers, there is less room for sums.
        return {**wanted, "block_n": 128 if warp_group_product(limits, dtype, 128, 8) else 64}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of one product, UP after B and passed like it; nothing else follows."""
        made: dict[str, Argument] = {}
        for name, argument in super().arguments(task, schedule).items():
            if name not in ("bias", "residual", "row_scale", "column_scale"):
                made[name] = argument
            if name == "b" and not isinstance(argument, ScalarArgument | WorkspaceArgument):
                made["up"] = replace(argument, tensor="UP")
        return made
