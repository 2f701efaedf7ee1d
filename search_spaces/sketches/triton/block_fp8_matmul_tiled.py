"""Product of fp8 matrices scaled by blocks, in tiles through pointers: one tile a program."""

from __future__ import annotations

from search_spaces.sketches.block_fp8 import BlockFp8Tiled


class BlockFp8MatmulTiled(BlockFp8Tiled):
    """The kernel of this project."""

    name = "triton.block_fp8_matmul_tiled"
    kernel = "search_spaces.kernels.block_fp8:tiled"
    summary = "one tile a program, sums scaled at each step"


SKETCH = BlockFp8MatmulTiled()
