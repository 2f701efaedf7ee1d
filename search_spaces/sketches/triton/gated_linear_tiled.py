"""Gated linear layer in tiles, through pointers: one tile a program, for every architecture."""

from __future__ import annotations

from search_spaces.sketches.gated import Gated


class GatedTiled(Gated):
    """As the product's sketch, with both products of a tile in one program."""

    name = "triton.gated_linear_tiled"
    kernel = "search_spaces.kernels.gated:tiled"


SKETCH = GatedTiled()
