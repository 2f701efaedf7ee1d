"""Transposes tile by tile, by a fixed number of programs that share the tiles."""

from __future__ import annotations

from search_spaces.sketches.turned import TurnedLooped


class TransposeLooped(TurnedLooped):
    """Each program walks over tiles, so that loading the next ones overlaps with writing these."""

    name = "triton.transpose_looped"
    operator = "transpose"
    kernel = "search_spaces.kernels.transpose:looped"


SKETCH = TransposeLooped()
