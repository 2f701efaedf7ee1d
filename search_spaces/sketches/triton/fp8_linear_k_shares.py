"""Linear layer of fp8 whose steps along K are shared evenly by all programs (stream-K), moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_shares import MatmulKShares


class Fp8LinearKShares(MatmulKShares):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.fp8_linear_k_shares"
    operator = "fp8_linear"


SKETCH = Fp8LinearKShares()
