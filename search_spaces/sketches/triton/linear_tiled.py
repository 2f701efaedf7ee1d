"""Linear layer in tiles, through pointers: one tile a program, for every architecture."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tiled import MatmulTiled


class LinearTiled(MatmulTiled):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_tiled"
    operator = "linear"


SKETCH = LinearTiled()
