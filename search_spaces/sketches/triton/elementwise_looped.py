"""An elementwise chain over blocks of flat memory by a fixed number of programs that share the blocks."""

from __future__ import annotations

from search_spaces.sketches.flat import FlatLooped


class ElementwiseLooped(FlatLooped):
    """Each program walks over blocks, so that loading the next ones overlaps with computing these."""

    name = "triton.elementwise_looped"
    operator = "elementwise"
    kernel = "search_spaces.kernels.elementwise:looped"


SKETCH = ElementwiseLooped()
