"""A comparison as a whole: runs, spaces, strategies, tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from autotune.comparison import statistics
from autotune.comparison.grid import Cell
from autotune.comparison.score import Yardstick, median_to, runs_table, spaces_table
from autotune.comparison.spaces import noise_of, recording_of
from autotune.comparison.statistics import Estimate, Pair, Ranks, estimate
from autotune.comparison.trace import Trace
from search_spaces.errors import NothingValid

# What a summary gives an interval for, besides what is counted at each budget.
_ESTIMATED = ("score_own", "score_clock", "overhead", "gap", "exploration_gap", "selection_gap", "misled")


@dataclass(frozen=True)
class Comparison:
    """Everything that a comparison found.

    Attributes:
        strategies: Names, in the order asked for.
        budgets: Numbers of measurements, rising.
        yardsticks: Space -> what its searches are held against.
        traces: Every search.
        runs: A row a search that did not crash; see `score.score_of`.
        spaces: A row a strategy and space.
        summary: Strategy -> metric -> estimate over all spaces; `fraction_K` are means of the spaces' medians.
        to_within: Strategy -> median measurements until within 5 %, over all runs; NaN where under half arrived.
        ranks: By the score over the largest budget.
        pairs: Tests of the same.
    """

    strategies: tuple[str, ...]
    budgets: tuple[int, ...]
    yardsticks: dict[str, Yardstick]
    traces: tuple[Trace, ...]
    runs: pd.DataFrame
    spaces: pd.DataFrame
    summary: dict[str, dict[str, Estimate]]
    to_within: dict[str, float]
    ranks: Ranks
    pairs: list[Pair]

    @property
    def trials(self) -> int:
        """Measurements of each search."""
        return self.budgets[-1]

    @property
    def errors(self) -> list[Trace]:
        """Searches that crashed."""
        return [t for t in self.traces if t.error]


def compare(cells: Sequence[Cell], traces: Sequence[Trace], budgets: Sequence[int]) -> Comparison:
    """Scores and tests what was searched.

    Args:
        cells: What was to be done.
        traces: What came of each.
        budgets: Numbers of measurements to look at; the largest is that of the cells.

    Raises:
        NothingValid: Every search crashed.
    """
    if all(t.error for t in traces):
        raise NothingValid(f"every search failed: {traces[0].strategy}: {traces[0].error}", "mend the strategy")
    seeds = list(dict.fromkeys(c.seed for c in cells))
    yardsticks = {}
    for space in dict.fromkeys(c.space for c in cells):
        noise = [noise_of(space.path, seed) for seed in seeds]
        yardsticks[space.name] = Yardstick.of(recording_of(space.path), noise, max(budgets))
    rising = tuple(sorted(budgets))
    runs = runs_table(traces, yardsticks, rising)
    metric = f"score_{rising[-1]}"
    means = runs.pivot_table(index="space", columns="strategy", values=metric, sort=False).dropna(axis=1)
    present = [name for name in dict.fromkeys(c.strategy for c in cells) if name in set(runs["strategy"])]
    return Comparison(
        strategies=tuple(present),
        budgets=rising,
        yardsticks=yardsticks,
        traces=tuple(traces),
        runs=runs,
        spaces=spaces_table(runs, rising[-1]),
        summary={name: _summary(runs[runs["strategy"] == name], rising) for name in present},
        to_within={
            name: median_to(runs.loc[runs["strategy"] == name, "to_within"].to_numpy(np.float64), rising[-1])
            for name in present
        },
        ranks=statistics.ranks(means),
        pairs=statistics.pairs(runs, metric),
    )


def _summary(runs: pd.DataFrame, budgets: Sequence[int]) -> dict[str, Estimate]:
    """The estimates of one strategy."""
    names = [f"{what}_{k}" for what in ("score", "within", "raced_score", "raced_within", "fraction") for k in budgets]
    summary = {}
    for name in (*names, *_ESTIMATED):
        samples = [group.to_numpy(np.float64) for _, group in runs.groupby("space", sort=False)[name]]
        if name.startswith("fraction_"):
            samples = [np.array([np.median(s)]) for s in samples]
        summary[name] = estimate(samples, seed=0)
    return summary
