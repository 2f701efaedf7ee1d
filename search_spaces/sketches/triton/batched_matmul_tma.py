"""Matrix products of one shape in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.batched import Batched


class BatchedMatmulTma(Batched):
    """As the sketch of one product, over the tiles of all."""

    name = "triton.batched_matmul_tma"


SKETCH = BatchedMatmulTma()
