"""The final race: default, finalists and the library interleaved until their intervals separate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from autotune.devices.telemetry import Conditions
from autotune.look import Look
from autotune.measurement import Measurement, Status
from autotune.records import Ratio
from autotune.runner import Died
from search_spaces.space import Schedule

# Takes schedules, rounds, seed, whether the library takes part, and who is first and last.
Measure = Callable[[Sequence[Schedule], int, int, bool, Schedule | None], Look]
FINALISTS = 5
# Looks at the data before the race ends. A false win needs one of FINALISTS to look better in one of LOOKS looks, on
# one side: each interval has the level that keeps all of that under 5 %.
LOOKS = 6
LEAST_ROUNDS, MOST_ROUNDS = 16, 100
# A look is long enough for clocks and power to settle under load.
_LOOK_SECONDS = 0.2
_LEVEL = 1.0 - 2 * 0.05 / (LOOKS * FINALISTS)
# A look in which the default's halves differ by more than this, and significantly so, is void.
_DRIFT = 0.02
_DRIFT_P = 0.01
# Finalists not separated from the fastest are equals only if their medians are as near as this, too.
_EQUAL = 0.01


@dataclass(frozen=True)
class Dropped:
    """Why a contestant left the race: a status that is not OK, and the reason in words."""

    status: Status
    why: str

    def __str__(self) -> str:
        return self.why


class NoContestant(Exception):
    """All who raced were dropped.

    Args:
        dropped: Who, and why.
    """

    def __init__(self, dropped: Mapping[Schedule, Dropped]) -> None:
        super().__init__("; ".join(sorted({d.why for d in dropped.values()})))
        self.dropped = dropped


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
        voided: Looks not counted, because the default drifted within them.
        dropped: Who ended the device's worker in the race, or turned wrong in it.
        conditions: State of the device in each look, void ones included; () where it does not tell.
    """

    winner: Schedule
    default: Schedule
    samples: Mapping[Schedule, Sequence[float]]
    library: Mapping[str, Sequence[float]]
    over_default: Ratio | None
    over_library: Ratio | None
    tied: int
    voided: int = 0
    dropped: Mapping[Schedule, Dropped] = field(default_factory=dict)
    conditions: Sequence[Conditions] = ()

    @property
    def seconds(self) -> float:
        """The winner's median."""
        return float(np.median(self.samples[self.winner]))


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
    """How many times faster `fast` is, from paired rounds: median of the ratios with an exact interval.

    The interval lies between order statistics, as of a sign test: it holds for any distribution of the noise, and
    needs no resampling.
    """
    pairs: NDArray[np.float64] = np.sort(np.log(np.asarray(slow)) - np.log(np.asarray(fast)))
    rank = int(stats.binom.ppf((1.0 - level) / 2, len(pairs), 0.5))
    low, high = (pairs[rank - 1], pairs[-rank]) if rank else (-np.inf, np.inf)
    return Ratio(*(float(np.exp(x)) for x in (np.median(pairs), low, high)))


def drifted(times: Sequence[float]) -> bool:
    """Whether the same thing, timed over and over, took another time at the end than at the start."""
    early, late = np.array_split(np.log(np.asarray(times)), 2)
    if abs(np.median(late) - np.median(early)) <= _DRIFT:
        return False
    return bool(stats.mannwhitneyu(early, late).pvalue < _DRIFT_P)


def complexity(schedule: Schedule, default: Schedule, trial: Measurement | None) -> tuple[float, ...]:
    """What makes a schedule less simple, the most important first.

    Another sketch than the default's; knobs that differ from the default's; bytes of shared memory; registers.
    """
    other = dict(default.items)
    deviations = sum(value != other.get(name) for name, value in schedule.items)
    used = trial.resources if trial is not None else None
    shared, registers = (used.shared_bytes or 0, used.registers or 0) if used is not None else (0, 0)
    return float(schedule.sketch != default.sketch), deviations, shared, registers


class Race:
    """A race under way.

    Args:
        measure: Times who races.
        trials: All trials of the run, at least one verified.
        default: Candidate 0.
        seed: Of the order within the rounds.
    """

    def __init__(self, measure: Measure, trials: Sequence[Measurement], default: Schedule, seed: int) -> None:
        self._measure = measure
        self._default = default
        self._seed = seed
        self._trials = {t.schedule: t for t in trials}
        self._racing = finalists(trials, default)
        one_round = sum(self._trials[s].seconds for s in self._racing)
        self._rounds = int(np.clip(_LOOK_SECONDS / one_round, LEAST_ROUNDS, MOST_ROUNDS))
        self._with_library = True
        self._taken = 0
        self._voided = 0
        self._samples: dict[Schedule, list[float]] = {s: [] for s in self._racing}
        self._library: dict[str, list[float]] = {}
        self._dropped: dict[Schedule, Dropped] = {}
        self._conditions: list[Conditions] = []

    def run(self, looks: int) -> RaceResult:
        """Looks until all are separated, or `looks` looks are used up or void."""
        counted = 0
        while counted < looks and self._voided < looks:
            look = self._look()
            self._drop({s: Dropped(Status.WRONG_RESULT, why) for s, why in look.faults.items()})
            times = {s: look.times[s] for s in self._racing}
            if self._default in times and drifted(times[self._default]):
                self._voided += 1
                continue
            counted += 1
            for schedule, seconds in times.items():
                self._samples[schedule] += seconds
            for name, seconds in look.library.items():
                self._library.setdefault(name, []).extend(seconds)
            if self._separated():
                break
        if not counted:
            self._samples = {s: list(seconds) for s, seconds in times.items()}
            self._library = {name: list(seconds) for name, seconds in look.library.items()}
        return self._decide(calm=counted > 0)

    def _drop(self, culprits: Mapping[Schedule, Dropped]) -> None:
        """Takes contestants and their times out of the race.

        Raises:
            NoContestant: No one is left.
        """
        self._dropped |= culprits
        self._racing = [s for s in self._racing if s not in culprits]
        for schedule in culprits:
            del self._samples[schedule]
        if not self._racing:
            raise NoContestant(self._dropped)

    def _look(self) -> Look:
        """One look; who ends the worker is found out, dropped, and the look taken again without it.

        Raises:
            Died: The worker ends, with everyone or with no one alone: the device itself may have failed.
            TimeoutError: Likewise.
        """
        try:
            return self._timed(self._racing, self._rounds, self._with_library)
        except (Died, TimeoutError):
            culprits = {s: why for s in self._racing if (why := self._fatal([s], library=False))}
            if not culprits and self._with_library:
                self._with_library = self._fatal(self._racing[:1], library=True) is None
                self._library = self._library if self._with_library else {}
            if len(culprits) == len(self._racing):
                raise
            self._drop(culprits)
        return self._timed(self._racing, self._rounds, self._with_library)

    def _fatal(self, alone: Sequence[Schedule], *, library: bool) -> Dropped | None:
        """How `alone` ends the worker; None where it does not."""
        try:
            self._timed(alone, self._rounds, library)
        except Died as error:
            return Dropped(Status.CRASHED, str(error))
        except TimeoutError:
            return Dropped(Status.TIMEOUT, "it hung")
        return None

    def _timed(self, racing: Sequence[Schedule], rounds: int, library: bool) -> Look:
        self._taken += 1
        anchor = self._default if self._default in racing else None
        look = self._measure(racing, rounds, self._seed + self._taken - 1, library, anchor)
        if look.conditions is not None:
            self._conditions.append(look.conditions)
        return look

    def _separated(self) -> bool:
        order = self._by_median()
        return all(ratio(self._samples[s], self._samples[order[0]]).low > 1.0 for s in order[1:])

    def _by_median(self) -> list[Schedule]:
        return sorted(self._samples, key=lambda s: float(np.median(self._samples[s])))

    def _decide(self, *, calm: bool) -> RaceResult:
        """The simplest of those equal to the fastest and shown to beat the default; else the default."""
        samples, default = self._samples, self._default
        order = self._by_median()
        equals = [s for s in order if self._equal(s, order[0])]
        over_default = None
        if default in samples:
            gains = {s: ratio(samples[default], samples[s]) for s in equals if s != default}
            equals = [s for s in gains if gains[s].low > 1.0] if calm and default not in equals else []
        winner = min(equals, key=lambda s: complexity(s, default, self._trials.get(s)), default=default)
        if default in samples:
            over_default = gains[winner] if winner != default else Ratio(1.0, 1.0, 1.0)
        tied = sum(ratio(samples[s], samples[winner]).low <= 1.0 for s in order if s != winner)
        fastest = min(self._library, key=lambda name: float(np.median(self._library[name])), default=None)
        over_library = ratio(self._library[fastest], samples[winner]) if fastest else None
        return RaceResult(
            winner=winner,
            default=default,
            samples=samples,
            library=self._library,
            over_default=over_default,
            over_library=over_library,
            tied=tied,
            voided=self._voided,
            dropped=self._dropped,
            conditions=tuple(self._conditions),
        )

    def _equal(self, schedule: Schedule, fastest: Schedule) -> bool:
        """Not separated from the fastest, and for any but the default no further behind than a hundredth."""
        if schedule == fastest:
            return True
        behind = ratio(self._samples[schedule], self._samples[fastest])
        return behind.low <= 1.0 and (schedule == self._default or behind.times <= 1.0 + _EQUAL)


def run_race(
    measure: Measure, trials: Sequence[Measurement], default: Schedule, seed: int, looks: int = LOOKS
) -> RaceResult:
    """Races until the winner is separated from the default and the runner-up, or `looks` looks are used up.

    Args:
        measure: Takes a look at schedules and library calls.
        trials: All trials of the run, at least one verified.
        default: Candidate 0.
        seed: Of the order within the rounds.
        looks: How often the intervals are looked at, at most.

    Raises:
        Died: The worker ends again and again, and no one contestant is to blame.
        TimeoutError: It hangs likewise.
        NoContestant: Every contestant was dropped.
    """
    return Race(measure, trials, default, seed).run(looks)
