"""RMS norm of rows too long for registers: in pieces, in two passes."""

from __future__ import annotations

from search_spaces.operators.rms_norm import EPS
from search_spaces.sketches.norms import NormPieces


class RmsNormPieces(NormPieces):
    """The first pass finds a row's mean square, the second writes the quotients."""

    name = "triton.rms_norm_pieces"
    operator = "rms_norm"
    kernel = "search_spaces.kernels.norms:pieces"
    eps = EPS


SKETCH = RmsNormPieces()
