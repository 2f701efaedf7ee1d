"""Transposes tile by tile, a tile a program."""

from __future__ import annotations

from search_spaces.sketches.turned import TurnedTiles


class TransposeTiles(TurnedTiles):
    """Reads rows of X and writes rows of Y, both in whole vectors."""

    name = "triton.transpose_tiles"
    operator = "transpose"
    kernel = "search_spaces.kernels.transpose:tiles"


SKETCH = TransposeTiles()
