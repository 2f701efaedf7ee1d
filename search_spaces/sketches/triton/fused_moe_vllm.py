"""A mixture of experts with vLLM's Triton kernel."""

from __future__ import annotations

from search_spaces.sketches.engine_moe import EngineMoe
from search_spaces.sketches.experts import choices
from search_spaces.task import Task


class FusedMoeVllm(EngineMoe):
    """`fused_moe_kernel`, as `invoke_fused_moe_triton_kernel` launches it without quantisation."""

    name = "triton.fused_moe_vllm"
    kernel = "search_spaces.kernels.vllm:fused_moe"
    summary = "vLLM's own kernel for both products, for its configuration files"
    package = "vllm"
    file = "model_executor/layers/fused_moe/fused_moe.py"

    def unsorted(self, task: Task) -> bool:
        """Where a quarter of the experts is more than the choices, as `_prepare_expert_assignment` has it."""
        return 4 * choices(task) <= task.workload["E"]


SKETCH = FusedMoeVllm()
