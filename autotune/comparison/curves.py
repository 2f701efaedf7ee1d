"""What the pictures of a comparison are drawn from: shares of the optimum, and strategies that are not told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from autotune.comparison.result import Comparison
from autotune.comparison.trace import Floats

# Share of the runs within a band.
BAND = (0.25, 0.75)


def fractions(found: Comparison) -> Mapping[str, Mapping[str, Floats]]:
    """Strategy -> space -> optimum over what a run holds after each measurement, shape (runs, trials)."""
    rows: dict[str, dict[str, list[Floats]]] = {name: {} for name in found.strategies}
    for trace in found.traces:
        if not trace.error:
            recording = found.yardsticks[trace.space].recording
            rows[trace.strategy].setdefault(trace.space, []).append(recording.optimum / trace.values(recording))
    return {name: {space: np.array(runs) for space, runs in spaces.items()} for name, spaces in rows.items()}


def quantiles(spaces: Sequence[Floats]) -> tuple[Floats, Floats, Floats]:
    """The median run and the quartiles after each measurement, mean over spaces, each of shape (trials,).

    Args:
        spaces: What the runs of each space hold, shape (runs, trials) each.
    """
    middle, low, high = (np.mean([np.quantile(runs, q, axis=0) for runs in spaces], axis=0) for q in (0.5, *BAND))
    return middle, low, high


def alike(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Largest groups of neighbours within the critical difference, as first and last places; rising ranks."""
    groups: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if other - rank <= critical)
        if last > first and (not groups or last > groups[-1][1]):
            groups.append((first, last))
    return groups
