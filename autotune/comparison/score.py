"""What each search was worth: Willemsen's score, shares of the optimum, where the final gap came from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from autotune.comparison.baseline import expected_best, median_best, own_budget, values_by_look
from autotune.comparison.replay import race_seconds
from autotune.comparison.trace import Floats, Trace, slowest
from autotune.recordings.recording import Recording

# A search has arrived when it holds a schedule this near to the optimum.
NEAR = 0.95
# Points in time at which the score on the replay clock is taken.
_TICKS = 200
# Random orders of a space's schedules from which the baseline on that clock is taken.
_ORDERS = 256
# Repeats of one measurement, as `Recording.measure` draws them.
_REPEATS = 7


@dataclass(frozen=True)
class Yardstick:
    """What the searches of one space are held against.

    Attributes:
        recording: The space.
        baseline: Expected seconds of what random search holds after k measurements, k = 1 .. trials, shape (trials,).
        median: The median of the same.
        unmisled: As `baseline`, of a random search that no noise misleads, as is one that ends with a race.
        own_budget: Willemsen's budget in measurements, which may be more than the trials.
        noise_floor: Relative standard deviation of one measurement, median over the schedules.
    """

    recording: Recording
    baseline: Floats
    median: Floats
    unmisled: Floats
    own_budget: int
    noise_floor: float

    @staticmethod
    def of(recording: Recording, noise: Sequence[Floats], trials: int) -> Yardstick:
        """The yardstick of a space.

        Args:
            recording: The space.
            noise: What measuring each schedule gave, for each seed of the comparison; random search is calculated
                under the same.
            trials: Measurements of each search.
        """
        worst = slowest(recording)
        by_look = np.mean([values_by_look(recording, observed, worst) for observed in noise], axis=0)
        ok = np.isfinite(recording.seconds)
        return Yardstick(
            recording=recording,
            baseline=expected_best(by_look, trials),
            median=median_best(by_look, trials),
            unmisled=expected_best(values_by_look(recording, recording.seconds, worst), trials),
            own_budget=own_budget(recording.seconds),
            noise_floor=float(np.median(recording.deviation[ok] / recording.seconds[ok]) / math.sqrt(_REPEATS)),
        )

    def score(self, values: Floats) -> float:
        """Willemsen's P over the measurements of `values`: 0 as random search, 1 the optimum from the start."""
        return _score(values, self.baseline[: len(values)], self.recording.optimum)

    def raced_score(self, values: Floats) -> float:
        """As `score`, against a random search that no noise misleads."""
        return _score(values, self.unmisled[: len(values)], self.recording.optimum)

    @cached_property
    def ticks(self) -> Floats:
        """Equidistant times up to where random search has spent the space's own budget or its trials on average."""
        end = min(self.own_budget, len(self.baseline)) * float(self.recording.cost.mean())
        return np.linspace(0.0, end, _TICKS + 1)[1:]

    @cached_property
    def baseline_on_clock(self) -> Floats:
        """Expected seconds of what random search holds at each tick, over simulated orders of what draws cost."""
        rng = np.random.default_rng(0)
        most = len(self.baseline)
        cost = self.recording.cost
        orders = (rng.choice(cost, min(most, len(cost)), replace=False) for _ in range(_ORDERS))
        values = np.concatenate([[slowest(self.recording)], self.baseline])
        return np.asarray(np.mean([values[_done(np.cumsum(order), self.ticks)] for order in orders], axis=0))

    def score_on_clock(self, values: Floats, clock: Floats) -> float:
        """P over the ticks; NaN where the recording knows no costs.

        Args:
            values: What the search holds after each measurement.
            clock: Seconds after each measurement made.
        """
        if self.ticks[-1] <= 0:
            return math.nan
        held = np.concatenate([[slowest(self.recording)], values])[_done(clock, self.ticks)]
        return _score(held, self.baseline_on_clock, self.recording.optimum)


def _done(clock: Floats, ticks: Floats) -> NDArray[np.intp]:
    """Measurements that had ended at each tick."""
    return np.searchsorted(clock, ticks, side="right")


def _score(values: Floats, baseline: Floats, optimum: float) -> float:
    ahead = baseline - optimum
    return float(np.mean(np.where(ahead > 0, (baseline - values) / np.where(ahead > 0, ahead, 1.0), 0.0)))


def score_of(trace: Trace, yardstick: Yardstick, budgets: Sequence[int]) -> dict[str, object]:
    """One search as a row of the table of runs.

    Args:
        trace: The search.
        yardstick: Of its space.
        budgets: Numbers of measurements at which it is looked at.

    Returns:
        score_K: P over the first K measurements; fraction_K: optimum over what it holds after K; within_K: whether
        that is 0.95 or more; raced_score_K, raced_within_K: the same had it ended there with a final race; score_own:
        P over the space's own budget, as far as the search went; score_clock: the same on the replay clock;
        to_within: measurements until it was within 5 %, NaN where it never was; overhead: seconds of the tuner for
        one suggestion; gap, exploration_gap, selection_gap: how much slower than the optimum it ended, since nothing
        better was tried, and since what looked best was not; misled: whether the latter is more than the noise floor.
    """
    recording = yardstick.recording
    values = trace.values(recording)
    fraction = recording.optimum / values
    raced = trace.raced_values(recording, lambda place: race_seconds(recording, trace.seed, place))
    row: dict[str, object] = {"strategy": trace.strategy, "space": trace.space, "seed": trace.seed}
    for budget in budgets:
        row[f"score_{budget}"] = yardstick.score(values[:budget])
        row[f"fraction_{budget}"] = float(fraction[budget - 1])
        row[f"within_{budget}"] = bool(fraction[budget - 1] >= NEAR)
        row[f"raced_score_{budget}"] = yardstick.raced_score(raced[:budget])
        row[f"raced_within_{budget}"] = bool(recording.optimum / raced[budget - 1] >= NEAR)
    arrived = np.flatnonzero(fraction >= NEAR)
    tried = recording.seconds[list(trace.places)]
    best_tried = float(tried.min(initial=slowest(recording)))
    selection = float(values[-1]) / best_tried - 1.0
    return row | {
        "score_own": yardstick.score(values[: yardstick.own_budget]),
        "score_clock": yardstick.score_on_clock(values, trace.clock(recording)),
        "to_within": float(arrived[0] + 1) if len(arrived) else math.nan,
        "measurements": len(trace.places),
        "failures": int(np.isinf(tried).sum()),
        "overhead": float(np.mean(trace.overhead)) if trace.overhead else math.nan,
        "gap": 1.0 / float(fraction[-1]) - 1.0,
        "exploration_gap": best_tried / recording.optimum - 1.0,
        "selection_gap": selection,
        "misled": selection > yardstick.noise_floor,
    }


def runs_table(traces: Sequence[Trace], yardsticks: Mapping[str, Yardstick], budgets: Sequence[int]) -> pd.DataFrame:
    """A row a search; those that crashed are left out."""
    return pd.DataFrame([score_of(t, yardsticks[t.space], budgets) for t in traces if not t.error])


def spaces_table(runs: pd.DataFrame, trials: int) -> pd.DataFrame:
    """A row a strategy and space: means over the runs, of the fractions the medians, of `to_within` Kaplan-Meier's."""
    groups = runs.drop(columns=["seed"]).groupby(["strategy", "space"], sort=False)
    table = groups.mean(numeric_only=True)
    fractions = [c for c in runs.columns if c.startswith("fraction_")]
    table[fractions] = groups[fractions].median()
    table["to_within"] = groups["to_within"].apply(lambda known: median_to(known.to_numpy(), trials))
    table["runs"] = groups.size()
    return table.reset_index()


def median_to(known: Floats, trials: int) -> float:
    """Median of how many measurements it took, by Kaplan and Meier's estimate of the survival.

    NaN where over half of the searches had not arrived when they ended.

    Args:
        known: Measurements, NaN where the search ended first.
        trials: How many it had.
    """
    arrived = ~np.isnan(known)
    survival = stats.ecdf(stats.CensoredData.right_censored(np.where(arrived, known, trials), ~arrived)).sf
    below = np.flatnonzero(survival.probabilities <= 0.5)
    return float(survival.quantiles[below[0]]) if len(below) else math.nan
