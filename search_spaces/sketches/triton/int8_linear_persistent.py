"""Linear layer of int8 by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_persistent import MatmulPersistent


class Int8LinearPersistent(MatmulPersistent):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.int8_linear_persistent"
    operator = "int8_linear"


SKETCH = Int8LinearPersistent()
