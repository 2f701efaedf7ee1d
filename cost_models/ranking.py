"""How good a cost model is: what matters is the order of its predictions, most of all at the fast end."""

from __future__ import annotations

import numpy as np

from cost_models.model import Floats


def top_recall(predicted: Floats, seconds: Floats, count: int) -> float:
    """Share of the `count` fastest that are among the `count` predicted fastest.

    Args:
        predicted: Scores, lower is faster.
        seconds: Measured times, `inf` where it failed.
        count: How many to compare, at most all.
    """
    count = min(count, len(seconds))
    best, chosen = (set(np.argsort(a, kind="stable")[:count].tolist()) for a in (seconds, predicted))
    return len(best & chosen) / count


def pair_accuracy(predicted: Floats, seconds: Floats) -> float:
    """Share of pairs with different times that are predicted in the right order; ties count half, 0.5 is chance."""
    one, other = np.triu_indices(len(seconds), 1)
    # Compared rather than subtracted: the difference of two failures is not a number.
    faster = (seconds[one] < seconds[other]).astype(float) - (seconds[one] > seconds[other])
    believed = np.sign(predicted[other] - predicted[one])
    differing = faster != 0
    if not differing.any():
        return 0.5
    return float((1 + (faster * believed)[differing]).mean() / 2)


def regret(predicted: Floats, seconds: Floats, count: int) -> float:
    """How much slower than the optimum the best of the `count` predicted fastest is: 0 where the optimum is among them.

    Infinite where all of those failed.
    """
    chosen = np.argsort(predicted, kind="stable")[:count]
    return float(seconds[chosen].min() / seconds.min() - 1)
