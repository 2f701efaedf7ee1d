"""Layer norm of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.operators.layer_norm import EPS
from search_spaces.sketches.norms import NormRows


class LayerNormRows(NormRows):
    """Reads every row once: mean, variance and quotient come from registers."""

    name = "triton.layer_norm_rows"
    operator = "layer_norm"
    kernel = "search_spaces.kernels.norms:rows"
    eps = EPS


SKETCH = LayerNormRows()
