"""Row-wise argmax of whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.sketches.indices import IndexedRows


class ArgmaxRows(IndexedRows):
    """Reads every row once and finds its largest value in registers."""

    name = "triton.argmax_rows"
    kernel = "search_spaces.kernels.argmax:rows"


SKETCH = ArgmaxRows()
