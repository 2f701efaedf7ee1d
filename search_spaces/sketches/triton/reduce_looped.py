"""Row-wise sum or maximum of whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

from search_spaces.sketches.reductions import ReducedLooped


class ReduceLooped(ReducedLooped):
    """Each program walks over rows, so that loading the next ones overlaps with reducing these."""

    name = "triton.reduce_looped"
    operator = "reduce"
    kernel = "search_spaces.kernels.reduce:looped"


SKETCH = ReduceLooped()
