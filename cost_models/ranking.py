"""How good a cost model is: what matters is the order of its predictions, most of all at the fast end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cost_models.model import CostModel, Floats
from search_spaces.space import Schedule

# Measurements with which a model is judged, at least; parts they are divided into; how many predicted fastest count.
LEAST, FOLDS, TOP = 32, 4, 8


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


@dataclass(frozen=True)
class Quality:
    """How a model ranked measurements that were kept from it, mean over the parts.

    Attributes:
        top_recall: Share of the `TOP` fastest of a part that it has among its own `TOP`.
        pair_accuracy: Share of pairs in the right order, 0.5 by chance.
        regret: How much slower than the fastest of a part the best of its `TOP` is; `inf` where all of those failed.
    """

    top_recall: float
    pair_accuracy: float
    regret: float


def held_out(make: Callable[[], CostModel], schedules: Sequence[Schedule], seconds: Floats) -> Quality | None:
    """Quality of a model on every part of the measurements after learning from the others.

    Args:
        make: Gives a model that has learnt nothing.
        schedules: What was measured.
        seconds: Its times, shape (n,), `inf` where it failed.

    Returns:
        None for fewer than `LEAST` measurements, or where a part has nothing that was verified.
    """
    parts = [np.arange(len(schedules)) % FOLDS == i for i in range(FOLDS)]
    if len(schedules) < LEAST or not all(np.isfinite(seconds[part]).any() for part in parts):
        return None
    found = []
    for part in parts:
        model = make()
        model.fit([s for s, kept in zip(schedules, part, strict=True) if not kept], seconds[~part])
        predicted = model.predict([s for s, kept in zip(schedules, part, strict=True) if kept])
        truth = seconds[part]
        figures = top_recall(predicted, truth, TOP), pair_accuracy(predicted, truth), regret(predicted, truth, TOP)
        found.append(figures)
    return Quality(*(float(v) for v in np.mean(found, axis=0)))
