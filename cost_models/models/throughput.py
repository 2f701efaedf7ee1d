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
    """The negative throughput expected, in standard deviations.

    Attributes:
        booster: The trees, None before it is ready.
        scale: Mean and deviation of the throughput that it was fitted to, per second.
    """

    def __init__(self, features: Features, seed: int) -> None:
        super().__init__(features, seed)
        self.booster: xgboost.Booster | None = None
        self.scale = 0.0, 1.0

    @property
    def ready(self) -> bool:
        """Whether it was fitted to a few measurements, not all of them failures."""
        return self.booster is not None

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Trains from scratch."""
        throughput = 1.0 / seconds
        if len(schedules) < LEAST or not throughput.any():
            return
        mean, deviation = self.scale = float(throughput.mean()), float(throughput.std()) or 1.0
        target = (throughput - mean) / deviation
        data = xgboost.DMatrix(self.features(schedules), label=target, nthread=1)
        self.booster = xgboost.train({**PARAMETERS, "seed": self.seed + len(schedules)}, data, num_boost_round=ROUNDS)

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """Zeros before it is ready."""
        if self.booster is None or not schedules:
            return np.zeros(len(schedules))
        return -np.asarray(self.booster.inplace_predict(self.features(schedules)), np.float64)

    def expected_seconds(self, schedules: Sequence[Schedule]) -> Floats:
        """The inverse of the throughput expected; NaN where it expects none, a failure."""
        if self.booster is None or not schedules:
            return super().expected_seconds(schedules)
        mean, deviation = self.scale
        throughput = mean - deviation * self.predict(schedules)
        return np.where(throughput > 0.0, 1.0 / np.maximum(throughput, np.finfo(np.float64).tiny), np.nan)


MODEL = ThroughputModel
