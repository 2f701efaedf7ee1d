"""Linear layer of int8 in tiles, through pointers: one tile a program."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tiled import MatmulTiled


class Int8LinearTiled(MatmulTiled):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.int8_linear_tiled"
    operator = "int8_linear"


SKETCH = Int8LinearTiled()
