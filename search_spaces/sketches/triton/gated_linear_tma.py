"""Gated linear layer in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.gated import Gated
from search_spaces.sketches.triton.matmul_tma import MatmulTma


class GatedTma(Gated, MatmulTma):
    """As the product's sketch, with both products of a tile in one program."""

    name = "triton.gated_linear_tma"
    kernel = "search_spaces.kernels.gated:tma"


SKETCH = GatedTma()
