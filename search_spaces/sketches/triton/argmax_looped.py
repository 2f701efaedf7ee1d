"""Row-wise argmax of whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

from search_spaces.sketches.indices import IndexedRows
from search_spaces.sketches.reductions import ReducedLooped


class ArgmaxLooped(IndexedRows, ReducedLooped):
    """Each program walks over rows, so that loading the next ones overlaps with searching these."""

    name = "triton.argmax_looped"
    kernel = "search_spaces.kernels.argmax:looped"


SKETCH = ArgmaxLooped()
