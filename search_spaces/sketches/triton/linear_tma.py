"""Linear layer in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tma import MatmulTma


class LinearTma(MatmulTma):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_tma"
    operator = "linear"


SKETCH = LinearTma()
