"""Layer norm of rows too long for registers: in pieces, in two passes."""

from __future__ import annotations

from search_spaces.operators.layer_norm import EPS
from search_spaces.sketches.norms import NormPieces


class LayerNormPieces(NormPieces):
    """The first pass finds a row's mean and variance together, the second writes the quotients."""

    name = "triton.layer_norm_pieces"
    operator = "layer_norm"
    kernel = "search_spaces.kernels.norms:pieces"
    eps = EPS


SKETCH = LayerNormPieces()
