"""Kernels of vLLM, from the text of the package that is installed."""

import triton
import triton.language as tl

from search_spaces.installed_text import function_of

block_fp8 = function_of(
    "vllm",
    "model_executor/layers/quantization/utils/fp8_utils.py",
    ("_w8a8_triton_block_scaled_mm",),
    {"triton": triton, "tl": tl},
)
fused_moe = function_of(
    "vllm",
    "model_executor/layers/fused_moe/fused_moe.py",
    ("write_zeros_to_output", "fused_moe_kernel"),
    {"triton": triton, "tl": tl},
)
