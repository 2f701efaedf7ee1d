"""Grouped matrix product in tiles, through pointers: one tile a program."""

from __future__ import annotations

from search_spaces.sketches.grouped import Grouped


class GroupedMatmulTiled(Grouped):
    """Each program finds its group by the ends of all."""

    name = "triton.grouped_matmul_tiled"
    kernel = "search_spaces.kernels.grouped:tiled"


SKETCH = GroupedMatmulTiled()
