"""Product of fp8 matrices scaled by blocks with vLLM's Triton kernel."""

from __future__ import annotations

from search_spaces.sketches.block_fp8 import EngineBlockFp8


class BlockFp8MatmulVllm(EngineBlockFp8):
    """`_w8a8_triton_block_scaled_mm`, as `w8a8_triton_block_scaled_mm` launches it."""

    name = "triton.block_fp8_matmul_vllm"
    kernel = "search_spaces.kernels.vllm:block_fp8"
    summary = "vLLM's own kernel, for its configuration files"
    package = "vllm"
    file = "model_executor/layers/quantization/utils/fp8_utils.py"


SKETCH = BlockFp8MatmulVllm()
