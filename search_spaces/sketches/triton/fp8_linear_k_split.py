"""Linear layer of fp8 whose sums are shared along K, through pointers, for few rows."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_split import MatmulKSplit


class Fp8LinearKSplit(MatmulKSplit):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.fp8_linear_k_split"
    operator = "fp8_linear"


SKETCH = Fp8LinearKSplit()
