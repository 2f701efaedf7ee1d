"""Softmax of whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

from search_spaces.sketches.rows import LoopedRows


class SoftmaxLooped(LoopedRows):
    """Each program walks over rows, so that loading the next ones overlaps with computing these."""

    name = "triton.softmax_looped"
    operator = "softmax"
    kernel = "search_spaces.kernels.softmax:looped"


SKETCH = SoftmaxLooped()
