"""Linear layer of fp8 by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_persistent import MatmulPersistent


class Fp8LinearPersistent(MatmulPersistent):
    """As the product's sketch, with scales, bias and activation before the store."""

    name = "triton.fp8_linear_persistent"
    operator = "fp8_linear"


SKETCH = Fp8LinearPersistent()
