"""What other values of a winner's knobs cost, as far as trials and race tell."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.journal import RunLog
from autotune.measurement import Measurement, Status
from search_spaces.schedule import Schedule, Value


@dataclass(frozen=True)
class Evidence:
    """What the trials say of one other value of a knob.

    Attributes:
        value: The value.
        percent: How much slower than the winner: the trial that differs in this knob alone where there is one, else
            the best trial with this value, which differs in other knobs too. None where every one failed.
        alone: Whether the trial differs from the winner in this knob alone.
        trials: Trials with this value.
        failed: Why the trial that differs in this knob alone failed, or every one with this value; "" otherwise.
    """

    value: Value
    percent: float | None
    alone: bool
    trials: int
    failed: str


@dataclass(frozen=True)
class KnobEffect:
    """A knob of the winner.

    Attributes:
        knob: Its name.
        value: The winner's value.
        cost: Median percent lost by another value that ran; None where no other value ran.
        others: Evidence for every other value tried, the cheapest first.
    """

    knob: str
    value: Value
    cost: float | None
    others: tuple[Evidence, ...]


@dataclass(frozen=True)
class SketchEffect:
    """A sketch: how many trials it had, and how much slower than the winner its best one is, None where all failed."""

    sketch: str
    trials: int
    failed: int
    percent: float | None


@dataclass(frozen=True)
class Trials:
    """The trials of a task with comparable times.

    Attributes:
        all: Every trial.
        seconds: Of each that ran: the last race's median where its binary raced, else the trial's own, times what the
            race's medians were to the trials' own of those that raced. A trial is short and runs by itself, so that
            its time alone is not to be held against a race's.
    """

    all: tuple[Measurement, ...]
    seconds: Mapping[Schedule, float]

    @staticmethod
    def of(log: RunLog) -> Trials:
        """The trials of a log."""
        every = dict(log.trials.items())
        own = {s: t.seconds for s, t in every.items() if t.status is Status.OK}
        raced: dict[str, float] = {}
        scale = 1.0
        if log.races and log.races[-1].run == log.runs[-1].run:
            race = log.races[-1]
            pairs = zip(map(Schedule.from_json, race.schedules), race.samples, strict=True)
            medians = {s: statistics.median(samples) for s, samples in pairs if s in own}
            raced = {_program(every[s]): seconds for s, seconds in medians.items()}
            scale = statistics.median(seconds / own[s] for s, seconds in medians.items())
        seconds = {s: raced.get(_program(every[s]), scale * t) for s, t in own.items()}
        return Trials(tuple(every.values()), seconds)

    def slower(self, trial: Measurement, winner: Schedule) -> float | None:
        """Percent by which a trial is slower than the winner, None where it failed."""
        if trial.schedule not in self.seconds:
            return None
        return 100.0 * (self.seconds[trial.schedule] / self.seconds[winner] - 1.0)


def _program(trial: Measurement) -> str:
    """What ran: equal for schedules with one binary."""
    return trial.binary or trial.schedule.key


def knob_effects(trials: Trials, winner: Schedule) -> tuple[KnobEffect, ...]:
    """The knobs of `winner`, the one whose other values cost most first.

    Args:
        trials: All trials of a run, the winner's among them.
        winner: The schedule explained.
    """
    mine = [t for t in trials.all if t.schedule.sketch == winner.sketch]
    effects = []
    for knob, value in winner.knobs.items():
        other_values = dict.fromkeys(t.schedule[knob] for t in mine if t.schedule[knob] != value)
        others = [_evidence(trials, mine, winner, knob, other) for other in other_values]
        others.sort(key=lambda e: float("inf") if e.percent is None else e.percent)
        known = [e.percent for e in others if e.percent is not None]
        effects.append(KnobEffect(knob, value, statistics.median(known) if known else None, tuple(others)))
    return tuple(sorted(effects, key=lambda e: float("inf") if e.cost is None else -e.cost))


def _evidence(trials: Trials, mine: Sequence[Measurement], winner: Schedule, knob: str, value: Value) -> Evidence:
    having = [t for t in mine if t.schedule[knob] == value]
    wanted = {**winner.knobs, knob: value}
    only = next((t for t in having if t.schedule.knobs == wanted), None)
    shown = only or min(having, key=lambda t: trials.seconds.get(t.schedule, float("inf")))
    failed = "" if shown.status is Status.OK else shown.status.replace("_", " ")
    return Evidence(value, trials.slower(shown, winner), only is not None, len(having), failed)


def sketch_effects(trials: Trials, winner: Schedule) -> tuple[SketchEffect, ...]:
    """Every sketch tried, the best first."""
    effects = []
    for sketch in dict.fromkeys(t.schedule.sketch for t in trials.all):
        mine = [t for t in trials.all if t.schedule.sketch == sketch]
        known = [p for t in mine if (p := trials.slower(t, winner)) is not None]
        effects.append(SketchEffect(sketch, len(mine), len(mine) - len(known), min(known, default=None)))
    return tuple(sorted(effects, key=lambda e: float("inf") if e.percent is None else e.percent))
