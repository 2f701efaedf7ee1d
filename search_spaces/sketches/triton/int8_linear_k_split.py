"""Linear layer of int8 whose sums are shared along K, through pointers, for few rows."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_split import MatmulKSplit


class Int8LinearKSplit(MatmulKSplit):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.int8_linear_k_split"
    operator = "int8_linear"


SKETCH = Int8LinearKSplit()
