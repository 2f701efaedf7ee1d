"""Random search, calculated: what the best of k random draws is worth, and how long Willemsen's budget is.

The score is that of Willemsen et al., "A Methodology for Comparing Auto-Tuning Optimization Algorithms" (FGCS 2024),
with the exact expectation in place of the rounded index of an expected rank, with failed schedules among the draws as
among a strategy's own, and with the noise of measuring, which misleads random search as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from autotune.comparison.trace import Floats
from autotune.recordings.recording import Recording


def expected_best(values: Floats, most: int) -> Floats:
    """Expected value of the first in rank of k draws without replacement, for k = 1 .. `most`.

    With values in rising order it is E[min of k] = sum_i values_(i) C(N-i, k-1) / C(N, k).

    Args:
        values: By rank, shape (N,); the rank may be another one than theirs, as where noise decides who looks best.
        most: Up to how many draws; from N draws on nothing changes.

    Returns:
        Shape (most,).
    """
    steps = np.diff(values)
    best = [float(values[0] + steps @ beyond[1:]) for beyond in _beyond(len(values), min(most, len(values)))]
    return np.array(best + best[-1:] * (most - len(best)))


def median_best(values: Floats, most: int) -> Floats:
    """As `expected_best`, the median instead of the mean."""
    ranks = [int(np.count_nonzero(beyond > 0.5)) - 1 for beyond in _beyond(len(values), min(most, len(values)))]
    return values[ranks + ranks[-1:] * (most - len(ranks))]


def _beyond(count: int, most: int) -> Iterator[Floats]:
    """For k = 1 .. `most`: the chance that none of k draws has a rank under i, for i = 0 .. count - 1."""
    ranks = np.arange(count)
    chance = np.ones(count)
    for drawn in range(most):
        chance = chance * np.clip(count - ranks - drawn, 0, None) / (count - drawn)
        yield chance


def values_by_look(recording: Recording, observed: Floats, slowest: float) -> Floats:
    """True seconds in the order in which schedules look fast, failures last and worth as much as the slowest."""
    order = np.argsort(observed, kind="stable")
    return np.where(np.isfinite(recording.seconds), recording.seconds, slowest)[order]


def own_budget(seconds: Floats, share: float = 0.95) -> int:
    """Willemsen's budget of a space: measurements in which random search covers `share` of median to optimum.

    Args:
        seconds: Of the schedules of the space; failures are left out, as in the method.
        share: His cutoff percentile p.
    """
    valid = np.sort(seconds[np.isfinite(seconds)])[::-1]
    target = valid[-1] + (np.median(valid) - valid[-1]) * (1.0 - share)
    reached = int(np.argmax(valid <= target))
    if valid[reached] == valid[-1]:
        # Nothing lies between: his package then goes one rank back, too.
        reached = max(0, reached - 1)
    return max(1, math.ceil(reached / (len(valid) + 1 - reached)))
