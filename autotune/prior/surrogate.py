"""Gradient-boosted trees that fill in what was not recorded of a task."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import xgboost
from numpy.typing import NDArray

from autotune.prior.experience import Floats

ROUNDS = 80
PARAMETERS = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_depth": 7,
    "eta": 0.12,
    "min_child_weight": 2,
    "subsample": 0.8,
    "colsample_bynode": 0.8,
    "nthread": 1,
    "verbosity": 0,
    "seed": 0,
}


def fit(rows: NDArray[np.float32], slowdown: Floats) -> Callable[[NDArray[np.float32]], Floats]:
    """Learns slowdowns, shape (n,), from encoded schedules, shape (n, columns), and returns what predicts them."""
    data = xgboost.DMatrix(rows, label=slowdown, nthread=1)
    booster = xgboost.train(PARAMETERS, data, num_boost_round=ROUNDS)
    return lambda asked: np.asarray(booster.inplace_predict(asked), np.float64)


SURROGATE = fit
