"""Linear layer of int8 whose steps along K are shared evenly by all programs (stream-K), by TMA."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_shares import MatmulKShares


class Int8LinearKShares(MatmulKShares):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.int8_linear_k_shares"
    operator = "int8_linear"


SKETCH = Int8LinearKShares()
