"""Which differences between strategies are more than chance: intervals, ranks over spaces, pairwise tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats

from autotune.comparison.trace import Floats

LEVEL = 0.95
_RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean over spaces of means over runs.

    Attributes:
        value: The estimate.
        over_repeats: 95 % interval of what other seeds would give on these spaces.
        over_spaces: 95 % interval of what other spaces of the kind would give; NaN with one space.
    """

    value: float
    over_repeats: tuple[float, float]
    over_spaces: tuple[float, float]


def estimate(samples: Sequence[Floats], seed: int) -> Estimate:
    """The mean over spaces, with bootstrapped percentile intervals.

    Args:
        samples: A value a run, one array a space.
        seed: Of the resampling.
    """
    means = np.array([s.mean() for s in samples])
    rng = np.random.default_rng(seed)
    return Estimate(
        value=float(means.mean()),
        over_repeats=_interval(samples, rng) if min(map(len, samples)) > 1 else (math.nan, math.nan),
        over_spaces=_interval([means], rng) if len(means) > 1 else (math.nan, math.nan),
    )


def _interval(samples: Sequence[Floats], rng: np.random.Generator) -> tuple[float, float]:
    """Percentile interval of the mean of the samples' means; each sample is resampled by itself."""

    def mean_of_means(*resampled: Floats, axis: int) -> Floats:
        return np.asarray(np.mean([r.mean(axis=axis) for r in resampled], axis=0))

    found = stats.bootstrap(
        samples, mean_of_means, n_resamples=_RESAMPLES, confidence_level=LEVEL, method="percentile", rng=rng
    ).confidence_interval
    return float(found.low), float(found.high)


@dataclass(frozen=True)
class Ranks:
    """Friedman's test over spaces and Nemenyi's critical difference.

    Attributes:
        mean: Strategy -> mean rank over the spaces, 1 the best.
        p: Friedman's p: the chance of such ranks if all strategies were alike; NaN with under three strategies.
        critical: Mean ranks that differ by more are told apart at 5 % by Nemenyi's test.
    """

    mean: dict[str, float]
    p: float
    critical: float


def ranks(means: pd.DataFrame) -> Ranks:
    """Ranks of strategies.

    Args:
        means: A row a space, a column a strategy, larger is better.
    """
    table = means.to_numpy()
    spaces, strategies = table.shape
    by_space = stats.rankdata(-table, axis=1)
    quantile = float(stats.studentized_range.ppf(LEVEL, strategies, np.inf)) / math.sqrt(2) if strategies > 1 else 0.0
    p = float(stats.friedmanchisquare(*table.T).pvalue) if strategies > 2 and spaces > 1 else math.nan
    return Ranks(
        mean=dict(zip(means.columns, map(float, by_space.mean(axis=0)), strict=True)),
        p=p,
        critical=quantile * math.sqrt(strategies * (strategies + 1) / (6.0 * spaces)),
    )


@dataclass(frozen=True)
class Pair:
    """Two strategies against each other.

    Attributes:
        one: A strategy.
        other: Another.
        difference: Mean over spaces of how much higher `one` scores.
        p: Wilcoxon's signed-rank test on the means of the spaces, corrected by Holm for the number of pairs.
        a12: Vargha and Delaney's chance that a run of `one` scores higher than one of `other`, mean over spaces.
        better: Spaces on which `one` is better by Mann and Whitney's test, corrected by Holm for the spaces.
        worse: Spaces on which it is worse by the same.
    """

    one: str
    other: str
    difference: float
    p: float
    a12: float
    better: int
    worse: int


def pairs(runs: pd.DataFrame, metric: str) -> list[Pair]:
    """Every two strategies, in the order of the table.

    Args:
        runs: A row a run with `strategy`, `space` and `metric`, larger is better.
        metric: Name of the column.
    """
    means = runs.pivot_table(index="space", columns="strategy", values=metric, sort=False)
    groups = {key: group.to_numpy(np.float64) for key, group in runs.groupby(["strategy", "space"])[metric]}
    found, chances = [], []
    for one, other in combinations(means.columns, 2):
        both = means[[one, other]].dropna()
        chances.append(_signed_rank(both[one].to_numpy(), both[other].to_numpy()))
        tests = [_rank_sum(groups[one, space], groups[other, space]) for space in both.index]
        significant = np.array(holm([p for p, _ in tests])) < 1.0 - LEVEL
        larger = np.array([a12 for _, a12 in tests])
        found.append(
            Pair(
                one=one,
                other=other,
                difference=float((both[one] - both[other]).mean()),
                p=math.nan,
                a12=float(larger.mean()) if len(larger) else math.nan,
                better=int((significant & (larger > 0.5)).sum()),
                worse=int((significant & (larger < 0.5)).sum()),
            )
        )
    return [Pair(**{**vars(pair), "p": p}) for pair, p in zip(found, holm(chances), strict=True)]


def holm(chances: Sequence[float]) -> list[float]:
    """P values corrected for their number by Holm's step-down method."""
    order = np.argsort(chances)
    count = len(chances)
    stepped = np.maximum.accumulate([min(1.0, (count - i) * chances[j]) for i, j in enumerate(order)])
    corrected = np.empty(count)
    corrected[order] = stepped
    return [float(p) for p in corrected]


def _signed_rank(one: Floats, other: Floats) -> float:
    """Wilcoxon's p; 1 where nothing differs."""
    return float(stats.wilcoxon(one, other).pvalue) if (one != other).any() else 1.0


def _rank_sum(one: Floats, other: Floats) -> tuple[float, float]:
    """Mann and Whitney's p and Vargha and Delaney's A12."""
    found = stats.mannwhitneyu(one, other, alternative="two-sided")
    return float(found.pvalue), float(found.statistic) / (len(one) * len(other))
