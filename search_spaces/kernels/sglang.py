"""Kernels of SGLang, from the text of the package that is installed."""

import triton
import triton.language as tl

from search_spaces.installed_text import function_of

block_fp8 = function_of(
    "sglang", "kernels/ops/gemm/fp8_kernel.py", ("_w8a8_block_fp8_matmul",), {"triton": triton, "tl": tl}
)
fused_moe = function_of(
    "sglang",
    "kernels/ops/moe/fused_moe_triton_kernels.py",
    ("write_zeros_to_output", "fused_moe_kernel"),
    {"triton": triton, "tl": tl},
)
