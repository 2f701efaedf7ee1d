"""Linear layer on Hopper with roles for groups of warps, in Gluon."""

from __future__ import annotations

from search_spaces.sketches.triton.matmul_warpgroups import MatmulWarpgroups


class LinearWarpgroups(MatmulWarpgroups):
    """As the product's sketch, with bias, activation and residual before the store."""

    name = "triton.linear_warpgroups"
    operator = "linear"


SKETCH = LinearWarpgroups()
