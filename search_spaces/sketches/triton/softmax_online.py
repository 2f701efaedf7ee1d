"""Softmax of rows too long for registers: in pieces, in two passes."""

from __future__ import annotations

from search_spaces.sketches.rows import RowPieces


class SoftmaxOnline(RowPieces):
    """The first pass finds a row's maximum and sum together, the second writes the quotients."""

    name = "triton.softmax_online"
    operator = "softmax"
    kernel = "search_spaces.kernels.softmax:online"


SKETCH = SoftmaxOnline()
