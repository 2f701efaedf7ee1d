"""What a search cost in time, energy and money, and after how many calls it has paid for itself."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

import numpy as np

from autotune.journal import RunLog
from autotune.records import RaceRecord

_MINUTE, _HOUR = 60.0, 3600.0


@dataclass(frozen=True)
class TuningCost:
    """What one task's search cost, all of its runs together.

    Attributes:
        search_seconds: From the start of each run to its last trial: how long the machine was kept.
        race_seconds: Timed launches of the final races, which the journal does not clock otherwise.
        build_seconds: Of building, summed over builders that worked at once.
        device_seconds: In which the device checked and timed, the races included.
        joules: Power while the device was timed, times `device_seconds`; None where the device told no power. What it
            drew while it waited for builders is not in it.
        saved_seconds: That one call of the winner saves against the untuned default, None where it is not shown to be
            faster.
        saved_interval: 95 % interval of the same.
    """

    search_seconds: float
    race_seconds: float
    build_seconds: float
    device_seconds: float
    joules: float | None
    saved_seconds: float | None
    saved_interval: tuple[float, float] | None

    @property
    def kept_seconds(self) -> float:
        """How long the machine was kept, search and races."""
        return self.search_seconds + self.race_seconds

    @property
    def break_even_calls(self) -> float | None:
        """Calls after which the time saved equals the time spent; the price of an hour cancels out."""
        return self.kept_seconds / self.saved_seconds if self.saved_seconds else None

    @property
    def break_even_interval(self) -> tuple[float, float] | None:
        """95 % interval of the same."""
        if self.saved_interval is None:
            return None
        low, high = self.saved_interval
        return self.kept_seconds / high, self.kept_seconds / low

    def money(self, price_per_hour: float) -> float:
        """What the machine cost.

        Args:
            price_per_hour: Of the machine, in any currency.
        """
        return price_per_hour * self.kept_seconds / _HOUR


def cost_of(log: RunLog) -> TuningCost:
    """The cost of one task's search.

    Args:
        log: Its trials and races.
    """
    race_seconds = sum(map(_timed_seconds, log.races))
    saved = _saved(log)
    return TuningCost(
        search_seconds=math.fsum(log.last_trial.values()),
        race_seconds=race_seconds,
        build_seconds=float(log.trials.build_seconds.sum()),
        device_seconds=float(log.trials.device_seconds.sum()) + race_seconds,
        joules=_joules(log),
        saved_seconds=None if saved is None else saved[0],
        saved_interval=None if saved is None else saved[1:],
    )


def _timed_seconds(race: RaceRecord) -> float:
    rows = [*race.samples, *race.library.values()]
    return math.fsum(second for row in rows for second in row)


def _joules(log: RunLog) -> float | None:
    """Seconds on the device times the power told of them; a trial that told none counts as the median one."""
    told = log.trials.watts
    if np.isnan(told).all():
        return None
    usual = float(np.nanmedian(told))
    searched = float(log.trials.device_seconds @ np.where(np.isnan(told), usual, told))
    raced = sum(
        _timed_seconds(race) * (statistics.mean(c.watts for c in race.conditions) if race.conditions else usual)
        for race in log.races
    )
    return searched + raced


def _saved(log: RunLog) -> tuple[float, float, float] | None:
    """Seconds saved a call with their interval, from the last race; None where the default was kept."""
    if not log.races or log.races[-1].run != log.runs[-1].run:
        return None
    race = log.races[-1]
    if race.over_default is None or race.over_default.low <= 1.0:
        return None
    winner = statistics.median(race.samples[race.schedules.index(race.winner)])
    times = race.over_default
    return winner * (times.times - 1.0), winner * (times.low - 1.0), winner * (times.high - 1.0)


def cost_line(cost: TuningCost, price_per_hour: float | None = None) -> str:
    """The cost in one line."""
    parts = [f"{span(cost.kept_seconds)} of the machine ({span(cost.device_seconds)} of its device)"]
    if cost.joules is not None:
        parts.append(energy(cost.joules))
    if price_per_hour is not None:
        parts.append(f"{cost.money(price_per_hour):.2f} at {price_per_hour:g} an hour")
    return f"{', '.join(parts)}; {break_even(cost)}"


def break_even(cost: TuningCost) -> str:
    """When the search has paid for itself, in words."""
    if cost.break_even_calls is None or cost.break_even_interval is None:
        return "no break-even, as nothing is shown to be faster than the default"
    low, high = cost.break_even_interval
    return f"paid back after {_count(cost.break_even_calls)} calls ({_count(low)} to {_count(high)})"


def span(seconds: float) -> str:
    """A stretch of work, in the unit that fits."""
    if seconds >= _HOUR:
        return f"{seconds / _HOUR:.2f} h"
    if seconds >= 10 * _MINUTE:
        return f"{seconds / _MINUTE:.0f} min"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def energy(joules: float) -> str:
    """Energy, in the unit that fits."""
    for unit, scale in (("kWh", 3.6e6), ("kJ", 1e3)):
        if joules >= scale:
            return f"{joules / scale:.3g} {unit}"
    return f"{joules:.3g} J"


def _count(calls: float) -> str:
    """Whole calls with three digits, thousands apart."""
    digits = max(0, len(str(math.ceil(calls))) - 3)
    return f"{math.ceil(calls / 10**digits) * 10**digits:,}"
