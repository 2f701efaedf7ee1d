"""An elementwise chain over blocks of flat memory: some blocks a program."""

from __future__ import annotations

from search_spaces.sketches.flat import FlatBlocks


class ElementwiseBlocks(FlatBlocks):
    """Loads of all blocks of a program are under way at a time."""

    name = "triton.elementwise_blocks"
    operator = "elementwise"
    kernel = "search_spaces.kernels.elementwise:blocks"


SKETCH = ElementwiseBlocks()
