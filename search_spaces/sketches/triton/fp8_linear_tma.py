"""Linear layer of fp8 in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tma import MatmulTma


class Fp8LinearTma(MatmulTma):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.fp8_linear_tma"
    operator = "fp8_linear"


SKETCH = Fp8LinearTma()
