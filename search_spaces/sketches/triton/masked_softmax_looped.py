"""Softmax of scaled and masked scores: whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

from search_spaces.sketches.masked import MaskedLooped


class MaskedSoftmaxLooped(MaskedLooped):
    """Reads what is seen of every row once: maximum, sum and quotient come from registers."""

    name = "triton.masked_softmax_looped"
    kernel = "search_spaces.kernels.masked_softmax:looped"


SKETCH = MaskedSoftmaxLooped()
