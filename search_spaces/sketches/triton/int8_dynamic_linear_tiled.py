"""Linear layer of int8 that quantises its activations, in tiles, through pointers: one tile a program."""

from __future__ import annotations

from search_spaces.sketches.dynamic import Dynamic


class Int8DynamicLinearTiled(Dynamic):
    """Each program finds the scales of its rows before it multiplies."""

    name = "triton.int8_dynamic_linear_tiled"
    kernel = "search_spaces.kernels.dynamic:tiled"


SKETCH = Int8DynamicLinearTiled()
