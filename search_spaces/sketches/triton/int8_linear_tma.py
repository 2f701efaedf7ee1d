"""Linear layer of int8 in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tma import MatmulTma


class Int8LinearTma(MatmulTma):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.int8_linear_tma"
    operator = "int8_linear"


SKETCH = Int8LinearTma()
