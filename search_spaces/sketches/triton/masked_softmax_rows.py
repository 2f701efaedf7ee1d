"""Softmax of scaled and masked scores: whole rows in registers: some rows a program, one program after another."""

from __future__ import annotations

from search_spaces.sketches.masked import MaskedRows


class MaskedSoftmaxRows(MaskedRows):
    """Reads what is seen of every row once: maximum, sum and quotient come from registers."""

    name = "triton.masked_softmax_rows"
    kernel = "search_spaces.kernels.masked_softmax:rows"


SKETCH = MaskedSoftmaxRows()
