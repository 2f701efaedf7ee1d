"""Linear layer of fp8 in tiles, through pointers: one tile a program."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tiled import MatmulTiled


class Fp8LinearTiled(MatmulTiled):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.fp8_linear_tiled"
    operator = "fp8_linear"


SKETCH = Fp8LinearTiled()
