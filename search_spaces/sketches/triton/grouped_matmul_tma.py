"""Grouped matrix product in tiles that TMA moves: one tile a program, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.grouped import GroupedTma


class GroupedMatmulTma(GroupedTma):
    """Each program finds its group by the ends of all."""

    name = "triton.grouped_matmul_tma"
    kernel = "search_spaces.kernels.grouped:tma"


SKETCH = GroupedMatmulTma()
