"""Row-wise sum or maximum of rows too long for registers, or too few for the device: in pieces."""

from __future__ import annotations

from search_spaces.sketches.reductions import ReducedPieces


class ReducePieces(ReducedPieces):
    """Each program reduces a share of a row's pieces; the last of the row's programs joins their results."""

    name = "triton.reduce_pieces"
    operator = "reduce"
    kernel = "search_spaces.kernels.reduce:pieces"


SKETCH = ReducePieces()
