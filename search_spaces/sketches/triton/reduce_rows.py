"""Row-wise sum or maximum of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.sketches.reductions import ReducedRows


class ReduceRows(ReducedRows):
    """Reads every row once and reduces it in registers."""

    name = "triton.reduce_rows"
    operator = "reduce"
    kernel = "search_spaces.kernels.reduce:rows"


SKETCH = ReduceRows()
