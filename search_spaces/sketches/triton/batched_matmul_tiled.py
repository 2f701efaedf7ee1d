"""Matrix products of one shape in tiles, through pointers: one tile a program, for every architecture."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_tiled import MatmulTiled


class BatchedMatmulTiled(MatmulTiled):
    """As the sketch of one product, with a grid for each of the batch."""

    name = "triton.batched_matmul_tiled"
    operator = "batched_matmul"


SKETCH = BatchedMatmulTiled()
