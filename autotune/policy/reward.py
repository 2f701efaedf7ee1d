"""Rewards from times: relative and by rank, so that neither the unit nor one slow schedule decides what is learnt."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def rewards(seconds: Floats, known: Floats | None = None) -> Floats:
    """Half the share of the best speed, half the share of the known times that are not faster; 0 where it failed.

    Args:
        seconds: Times to reward, shape (n,), `inf` where it failed.
        known: All times to compare with, shape (m,); the times themselves where left out.

    Returns:
        Shape (n,), from 0 to 1; 1 for the fastest known.
    """
    everything = np.sort(seconds if known is None else np.concatenate([known, seconds]))
    fine = np.isfinite(seconds)
    if not fine.any():
        return np.zeros(len(seconds))
    share = everything[0] / seconds
    rank = 1.0 - np.searchsorted(everything, seconds, side="left") / len(everything)
    return np.where(fine, 0.5 * share + 0.5 * rank, 0.0)
