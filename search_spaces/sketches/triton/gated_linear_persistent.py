"""Gated linear layer by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.gated import Gated
from search_spaces.sketches.triton.matmul_persistent import MatmulPersistent


class GatedPersistent(Gated, MatmulPersistent):
    """As the product's sketch, with both products of a tile in one program."""

    name = "triton.gated_linear_persistent"
    kernel = "search_spaces.kernels.gated:persistent"


SKETCH = GatedPersistent()
