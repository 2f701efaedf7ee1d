"""Likelihood-free Bayesian optimisation with a random forest, as in Helion's default search.

The forest tells the fastest from the rest; a fast one weighs as much as it is faster than the threshold, so
that the believed probability follows the expected improvement (Song et al., "A General Recipe for Likelihood-free
Bayesian Optimization", ICML 2022).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from cost_models.features import Features, Matrix
from cost_models.model import CostModel, Floats
from search_spaces.space import Schedule

LEAST = 16
# Helion takes a tenth, of hundreds; of a few dozen measurements that is too little to learn from.
FAST = 0.15
TREES = 50
# Weight of a fast one that is no faster than the threshold, relative to the mean of the fast ones.
FLOOR = 0.05


class LfboForest(CostModel):
    """The negative belief that a schedule is among the fastest."""

    def __init__(self, features: Features, seed: int) -> None:
        super().__init__(features, seed)
        self._forest: RandomForestClassifier | None = None

    @property
    def ready(self) -> bool:
        """Whether it was fitted to sixteen measurements or more, not all of them failures."""
        return self._forest is not None

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Grows the forest from scratch, since what counts as fast changes with every measurement."""
        if len(schedules) < LEAST or not np.isfinite(seconds).any():
            return
        weight = _weights(seconds)
        label = weight > 0
        self._forest = RandomForestClassifier(TREES, criterion="log_loss", random_state=self.seed)
        self._forest.fit(self._rows(schedules), label, sample_weight=np.where(label, weight, 1.0))

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """Zeros before it is ready."""
        if self._forest is None or not schedules:
            return np.zeros(len(schedules))
        belief = self._forest.predict_proba(self._rows(schedules))
        return -np.asarray(belief, np.float64)[:, list(self._forest.classes_).index(True)]

    def _rows(self, schedules: Sequence[Schedule]) -> Matrix:
        return np.nan_to_num(self.features(schedules), nan=-1.0)


def _weights(seconds: Floats) -> Floats:
    """Of the fastest by how much faster than the slowest of them they are, on average 1; 0 of the others."""
    # Where fewer were verified, those are the fast ones.
    threshold = np.quantile(np.where(np.isfinite(seconds), seconds, np.finfo(np.float64).max), FAST, method="higher")
    fast = (seconds <= threshold) & np.isfinite(seconds)
    gain = np.where(fast, seconds[fast].max() - seconds, 0.0)
    mean = gain[fast].mean()
    return np.where(fast, np.maximum(FLOOR, gain / mean) if mean > 0 else 1.0, 0.0)


MODEL = LfboForest
