"""Product of fp8 matrices scaled by blocks with SGLang's Triton kernel."""

from __future__ import annotations

from search_spaces.schedule import Schedule
from search_spaces.sketches.block_fp8 import EngineBlockFp8
from search_spaces.task import Task


class BlockFp8MatmulSglang(EngineBlockFp8):
    """`_w8a8_block_fp8_matmul`, as `w8a8_block_fp8_matmul_triton` launches it on NVIDIA GPUs."""

    name = "triton.block_fp8_matmul_sglang"
    kernel = "search_spaces.kernels.sglang:block_fp8"
    summary = "SGLang's own kernel, for its configuration files"
    package = "sglang"
    file = "kernels/ops/gemm/fp8_kernel.py"

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The tile, and whether the last step of K is short."""
        ragged = task.workload["K"] % schedule.integer("block_k") != 0
        return {**super().constants(task, schedule), "needs_masking": ragged}


SKETCH = BlockFp8MatmulSglang()
