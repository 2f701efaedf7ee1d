"""RMS norm of whole rows in registers by a fixed number of programs that share the rows."""

from __future__ import annotations

from search_spaces.operators.rms_norm import EPS
from search_spaces.sketches.norms import NormLooped


class RmsNormLooped(NormLooped):
    """Each program walks over rows, so that loading the next ones overlaps with computing these."""

    name = "triton.rms_norm_looped"
    operator = "rms_norm"
    kernel = "search_spaces.kernels.norms:looped"
    eps = EPS


SKETCH = RmsNormLooped()
