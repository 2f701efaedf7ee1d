"""Softmax of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.sketches.rows import WholeRows


class SoftmaxRows(WholeRows):
    """Reads every row once: maximum, sum and quotient come from registers."""

    name = "triton.softmax_rows"
    operator = "softmax"
    kernel = "search_spaces.kernels.softmax:rows"


SKETCH = SoftmaxRows()
