"""A mixture of experts with SGLang's Triton kernel."""

from __future__ import annotations

from search_spaces.sketches.engine_moe import EngineMoe


class FusedMoeSglang(EngineMoe):
    """`fused_moe_kernel`, as `invoke_fused_moe_kernel` launches it without quantisation."""

    name = "triton.fused_moe_sglang"
    kernel = "search_spaces.kernels.sglang:fused_moe"
    summary = "SGLang's own kernel for both products, for its configuration files"
    package = "sglang"
    file = "kernels/ops/moe/fused_moe_triton_kernels.py"


SKETCH = FusedMoeSglang()
