"""Linear layer by a fixed number of programs that share all tiles, moved by TMA, from sm_90 on."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_persistent import MatmulPersistent


class LinearPersistent(MatmulPersistent):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_persistent"
    operator = "linear"


SKETCH = LinearPersistent()
