"""Whether an output is right: tolerance from dtype and reduction length, against a float64 reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from search_spaces.operator import EPSILON


@dataclass(frozen=True)
class Tolerance:
    """An output element may deviate by `relative` of itself plus `of_rms` of the root mean square of its row."""

    relative: float
    of_rms: float


def tolerance(dtype: str, reduction_length: int) -> Tolerance:
    """What correct rounding may cost.

    The output's own rounding and that of narrow intermediates are a few units of `dtype`. Summing n terms in float32
    errs like a random walk, sqrt(n) units of float32; the factor 4 leaves room for its tail. A product in tf32 where
    float32 was asked for (relative error near 2**-11) is refused by this, as it should be.

    Args:
        dtype: Of inputs and outputs.
        reduction_length: Terms summed into one element.
    """
    unit = EPSILON[dtype]
    return Tolerance(4.0 * unit, 3.0 * unit + 4.0 * EPSILON["float32"] * math.sqrt(reduction_length))
