"""What each knob is worth to a cost model of a run's trials, and how well that model predicts trials kept from it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xgboost
from numpy.typing import NDArray
from scipy import stats

from cost_models.features import Features
from search_spaces.listed import ListedSpace
from search_spaces.space import Schedule

Floats = NDArray[np.float64]
# Trials that ran with which a model is fitted, at least; parts of the cross-validation; trials that are attributed.
LEAST, FOLDS, MOST_ATTRIBUTED = 32, 5, 2000
_ROUNDS = 120
_PARAMETERS: Mapping[str, object] = {
    "objective": "reg:squarederror",
    "tree_method": "hist",
    "max_depth": 5,
    "eta": 0.12,
    "subsample": 0.7,
    "colsample_bynode": 0.7,
    "nthread": 1,
    "verbosity": 0,
}
# A column belongs to the knob whose name it starts with: `tile[0]`, `order=rows`, `order#`.
_KNOB = re.compile(r"[\[=#]")


@dataclass(frozen=True)
class Attribution:
    """A model of the time of the trials that ran, of their knobs alone, and what it makes of each knob.

    Contributions are SHAP values of the model's log time (Lundberg and Lee, "A Unified Approach to Interpreting Model
    Predictions", 2017; for trees exact, Lundberg et al. 2020), summed over the columns of a knob: they add up to the
    prediction, so each is a factor of the time.

    Attributes:
        schedules: The trials that ran.
        measured: Their seconds, shape (n,).
        predicted: What a model says of each that learnt from the other parts, shape (n,).
        percent: Knob -> by how much it moves the time, up or down, on average over the trials; the most first.
        winner: Knob -> percent that the winner's value adds to the average time, negative where it saves.
        attributed: Trials over which `percent` is the average.
    """

    schedules: tuple[Schedule, ...]
    measured: Floats
    predicted: Floats
    percent: Mapping[str, float]
    winner: Mapping[str, float]
    attributed: int

    @property
    def rank_correlation(self) -> float:
        """Spearman's, of predicted and measured."""
        return float(stats.spearmanr(self.predicted, self.measured).statistic)

    @property
    def typical_error(self) -> float:
        """Median of how far off a prediction is, as a share of the measured time."""
        return float(np.median(np.abs(self.predicted / self.measured - 1.0)))


def attribute(seconds: Mapping[Schedule, float], winner: Schedule | None) -> Attribution | None:
    """Fits the model and takes it apart; None where too few trials ran or all took the same time.

    Args:
        seconds: Of each trial that ran.
        winner: The schedule explained, None for none.
    """
    schedules = list(seconds)
    measured = np.array(list(seconds.values()), np.float64)
    if len(schedules) < LEAST or np.ptp(measured) == 0:
        return None
    features = Features(ListedSpace.of(schedules))
    rows = np.asarray(features(schedules))
    booster = _fit(rows, np.log(measured))
    chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST_ATTRIBUTED])
    knobs = [_KNOB.split(column)[0] for column in features.columns]
    by_knob = _by_knob(_contributions(booster, rows[chosen]), knobs)
    percent = {knob: 100.0 * float(np.expm1(np.abs(phi).mean())) for knob, phi in by_knob.items()}
    mine: dict[str, Floats] = {}
    if winner is not None and winner in seconds:
        mine = _by_knob(_contributions(booster, rows[[schedules.index(winner)]]), knobs)
    return Attribution(
        schedules=tuple(schedules),
        measured=measured,
        predicted=_cross_validated(rows, measured),
        percent=dict(sorted(percent.items(), key=lambda item: -item[1])),
        winner={knob: 100.0 * float(np.expm1(phi[0])) for knob, phi in mine.items()},
        attributed=len(chosen),
    )


def _fit(rows: NDArray[np.float32], target: Floats) -> Any:
    data = xgboost.DMatrix(rows, label=target, nthread=1)
    return xgboost.train({**_PARAMETERS, "seed": 0}, data, num_boost_round=_ROUNDS)


def _cross_validated(rows: NDArray[np.float32], measured: Floats) -> Floats:
    parts = np.random.default_rng(0).permutation(len(rows)) % FOLDS
    predicted = np.empty(len(rows))
    for part in range(FOLDS):
        booster = _fit(rows[parts != part], np.log(measured[parts != part]))
        predicted[parts == part] = np.exp(booster.inplace_predict(rows[parts == part]))
    return predicted


def _contributions(booster: Any, rows: NDArray[np.float32]) -> Floats:
    """SHAP values, shape (rows, columns); the last column of xgboost's, the average prediction, is left out."""
    return np.asarray(booster.predict(xgboost.DMatrix(rows, nthread=1), pred_contribs=True), np.float64)[:, :-1]


def _by_knob(contributions: Floats, knobs: Sequence[str]) -> dict[str, Floats]:
    names = np.array(knobs)
    return {knob: contributions[:, names == knob].sum(axis=1) for knob in dict.fromkeys(knobs)}
