"""Row-wise argmax of rows too long for registers, or too few for the device: in pieces."""

from __future__ import annotations

from search_spaces.sketches.indices import IndexedPieces


class ArgmaxPieces(IndexedPieces):
    """Each program searches a share of a row's pieces; the last of the row's programs joins their results."""

    name = "triton.argmax_pieces"
    kernel = "search_spaces.kernels.argmax:pieces"


SKETCH = ArgmaxPieces()
