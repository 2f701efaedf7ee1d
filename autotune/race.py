"""The final race: default, finalists and the library interleaved until their intervals separate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from autotune.measurement import Measurement, Status
from autotune.records import Ratio
from search_spaces.space import Schedule

Times = tuple[dict[Schedule, list[float]], dict[str, list[float]]]
FINALISTS = 5
# Looks at the data before the race ends; each is judged at a level that keeps all of them together at 95 %.
LOOKS = 6
LEAST_ROUNDS, MOST_ROUNDS = 10, 100
# A look is long enough for clocks and power to settle under load.
_LOOK_SECONDS = 0.2
_LEVEL = 1.0 - 0.05 / LOOKS


@dataclass(frozen=True)
class RaceResult:
    """How a race ended.

    Attributes:
        winner: The schedule taken; the default where nothing is shown to be faster.
        default: Candidate 0.
        samples: Seconds per round of each schedule.
        library: Seconds per round of each library call.
        over_default: Winner against the default; None where the default itself failed.
        over_library: Winner against the fastest library call.
        tied: Finalists not told apart from the winner.
    """

    winner: Schedule
    default: Schedule
    samples: Mapping[Schedule, Sequence[float]]
    library: Mapping[str, Sequence[float]]
    over_default: Ratio | None
    over_library: Ratio | None
    tied: int

    @property
    def seconds(self) -> float:
        """The winner's median."""
        return float(np.median(self.samples[self.winner]))

    @property
    def best_library(self) -> tuple[str, float] | None:
        """Name and median seconds of the fastest library call."""
        medians = {name: float(np.median(times)) for name, times in self.library.items()}
        return min(medians.items(), key=lambda item: item[1], default=None)


def finalists(trials: Sequence[Measurement], default: Schedule, count: int = FINALISTS) -> list[Schedule]:
    """The fastest verified schedules with distinct binaries, fastest first, and the default."""
    chosen: list[Schedule] = []
    binaries: set[str] = set()
    for trial in sorted((t for t in trials if t.status is Status.OK), key=lambda t: t.seconds):
        if len(chosen) < count and trial.binary not in binaries:
            binaries.add(trial.binary)
            chosen.append(trial.schedule)
    verified = {t.schedule for t in trials if t.status is Status.OK}
    return chosen if default in chosen or default not in verified else [*chosen, default]


def ratio(slow: Sequence[float], fast: Sequence[float], level: float = _LEVEL) -> Ratio:
    """How many times faster `fast` is, from paired rounds: median of the ratios with a bootstrap interval."""
    pairs: NDArray[np.float64] = np.log(np.asarray(slow)) - np.log(np.asarray(fast))
    middle = float(np.median(pairs))
    if np.ptp(pairs) == 0.0:
        return Ratio(float(np.exp(middle)), float(np.exp(middle)), float(np.exp(middle)))
    interval = stats.bootstrap(
        (pairs,), np.median, confidence_level=level, n_resamples=2000, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return Ratio(float(np.exp(middle)), float(np.exp(interval.low)), float(np.exp(interval.high)))


def run_race(
    measure: Callable[[Sequence[Schedule], int, int, bool], Times],
    trials: Sequence[Measurement],
    default: Schedule,
    seed: int,
    looks: int = LOOKS,
) -> RaceResult:
    """Races until the winner is separated from the default and the runner-up, or `looks` looks are used up.

    Args:
        measure: Takes schedules, rounds, seed and whether the library takes part; gives seconds per round.
        trials: All trials of the run, at least one verified.
        default: Candidate 0.
        seed: Of the order within the rounds.
        looks: How often the intervals are looked at, at most.
    """
    racing = finalists(trials, default)
    samples: dict[Schedule, list[float]] = {s: [] for s in racing}
    library: dict[str, list[float]] = {}
    one_round = sum(t.seconds for t in trials if t.schedule in samples)
    rounds = int(np.clip(_LOOK_SECONDS / one_round, LEAST_ROUNDS, MOST_ROUNDS))
    for look in range(looks):
        times, calls = measure(racing, rounds, seed + look, True)
        for schedule, seconds in times.items():
            samples[schedule] += seconds
        for name, seconds in calls.items():
            library.setdefault(name, []).extend(seconds)
        order = sorted(racing, key=lambda s: float(np.median(samples[s])))
        apart = all(ratio(samples[s], samples[order[0]]).low > 1.0 for s in order[1:])
        if apart:
            break
    return _decide(samples, library, default)


def _decide(
    samples: Mapping[Schedule, Sequence[float]], library: Mapping[str, Sequence[float]], default: Schedule
) -> RaceResult:
    """The fastest by median, unless it is not shown to beat the default: then the default, the simplest."""
    order = sorted(samples, key=lambda s: float(np.median(samples[s])))
    winner, over_default = order[0], None
    if default in samples:
        over_default = ratio(samples[default], samples[winner])
        if over_default.low <= 1.0:
            winner, over_default = default, Ratio(1.0, 1.0, 1.0)
    tied = sum(ratio(samples[s], samples[winner]).low <= 1.0 for s in order if s != winner)
    fastest = min(library, key=lambda name: float(np.median(library[name])), default=None)
    over_library = ratio(library[fastest], samples[winner]) if fastest else None
    return RaceResult(winner, default, samples, library, over_default, over_library, tied)
