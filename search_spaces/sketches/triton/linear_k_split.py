"""Linear layer whose sums are shared along K, through pointers, for few rows."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_k_split import MatmulKSplit


class LinearKSplit(MatmulKSplit):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_k_split"
    operator = "linear"


SKETCH = LinearKSplit()
