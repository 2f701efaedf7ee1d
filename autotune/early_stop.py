"""When a candidate is hopeless: a limit for its first two samples, from the noise that the run itself has shown.

A candidate is dropped where both of its first two samples lie above `limit(best)`. The limit is the best so far times
two quantiles of the noise: how far above its median a candidate's faster of two samples comes (exceeded once in
1 / rate times: a conformal bound, whatever the noise's shape, as long as candidates are alike in it), and how far
below its true time the best so far may lie, having been chosen for being low. So the truly fastest schedule of a run
is dropped with a probability of at most `rate`. What the spread within candidates cannot show is how the device drifts
from one candidate to the next: the limit is never nearer than DRIFT, which is assumed, not measured.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

# While there is too little noise to bound that probability, only what is so many times slower is dropped.
CAREFUL = 3.0
DRIFT = 1.05
# Ratios kept: the latest, so that the noise is that of now.
_KEPT = 1500


class EarlyStop:
    """The noise of a run, candidate by candidate.

    Args:
        rate: Probability, at most, that the truly fastest schedule is dropped; at 0 none is ever dropped.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._pairs: deque[float] = deque(maxlen=_KEPT)
        self._singles: deque[float] = deque(maxlen=_KEPT)
        self._factor: float | None = None

    def observe(self, samples: Sequence[float]) -> None:
        """Takes in a candidate that was timed in full."""
        middle = median(samples)
        self._pairs.extend(min(pair) / middle for pair in pairwise(samples))
        self._singles.extend(sample / middle for sample in samples)
        self._factor = None

    @property
    def factor(self) -> float:
        """How many times slower than the best so far is hopeless."""
        if int(self._rate * (len(self._pairs) + 1)) < 1:
            return CAREFUL
        if self._factor is None:
            pairs, singles = sorted(self._pairs), sorted(self._singles)
            above = pairs[len(pairs) - int(self._rate * (len(pairs) + 1))]
            below = singles[int(self._rate * (len(singles) + 1)) - 1]
            self._factor = min(CAREFUL, max(DRIFT, above / below))
        return self._factor

    def limit(self, best: float) -> float:
        """Seconds above which both of the first two samples must lie for a candidate to be dropped."""
        return self.factor * best if self._rate > 0 else math.inf
