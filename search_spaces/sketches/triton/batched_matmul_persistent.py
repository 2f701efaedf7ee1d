"""Matrix products of one shape by a fixed number of programs that share all tiles, moved by TMA."""

from __future__ import annotations

from search_spaces.sketches.batched import Batched
from search_spaces.sketches.triton.matmul_persistent import MatmulPersistent


class BatchedMatmulPersistent(Batched, MatmulPersistent):
    """As the sketch of one product, over the tiles of all."""

    name = "triton.batched_matmul_persistent"


SKETCH = BatchedMatmulPersistent()
