"""RMS norm of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.operators.rms_norm import EPS
from search_spaces.sketches.norms import NormRows


class RmsNormRows(NormRows):
    """Reads every row once: mean square and quotient come from registers."""

    name = "triton.rms_norm_rows"
    operator = "rms_norm"
    kernel = "search_spaces.kernels.norms:rows"
    eps = EPS


SKETCH = RmsNormRows()
