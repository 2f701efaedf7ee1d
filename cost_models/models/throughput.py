"""Gradient-boosted trees that expect the throughput of a schedule, relative to the best measured.

The target of TVM's MetaSchedule (Shao et al., 2022), without its hundred measurements of warm-up. A failure has no
throughput at all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xgboost

from cost_models.features import Features
from cost_models.model import CostModel, Floats
from search_spaces.space import Schedule

LEAST = 4
ROUNDS = 80
PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_depth": 5,
    "eta": 0.12,
    "subsample": 0.7,
    "colsample_bynode": 0.7,
    "lambda": 0.3,
    "nthread": 1,
    "verbosity": 0,
}


class ThroughputModel(CostModel):
    """The negative throughput expected, in standard deviations."""

    def __init__(self, features: Features, seed: int) -> None:
        super().__init__(features, seed)
        self._booster: xgboost.Booster | None = None

    @property
    def ready(self) -> bool:
        """Whether it was fitted to a few measurements, not all of them failures."""
        return self._booster is not None

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Trains from scratch."""
        throughput = 1.0 / seconds
        if len(schedules) < LEAST or not throughput.any():
            return
        deviation = float(throughput.std())
        target = (throughput - throughput.mean()) / (deviation if deviation > 0 else 1.0)
        data = xgboost.DMatrix(self.features(schedules), label=target, nthread=1)
        self._booster = xgboost.train({**PARAMETERS, "seed": self.seed + len(schedules)}, data, num_boost_round=ROUNDS)

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """Zeros before it is ready."""
        if self._booster is None or not schedules:
            return np.zeros(len(schedules))
        return -np.asarray(self._booster.inplace_predict(self.features(schedules)), np.float64)


MODEL = ThroughputModel
