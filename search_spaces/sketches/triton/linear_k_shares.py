"""Linear layer whose steps along K are shared evenly by all programs (stream-K), moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_shares import MatmulKShares


class LinearKShares(MatmulKShares):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_k_shares"
    operator = "linear"


SKETCH = LinearKShares()
