"""The search loop: ask, measure, record, tell, refit, until the budget ends; then the race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.budget import Budget
from autotune.journal import Journal, RunLog
from autotune.measurement import Measurement
from autotune.measurer import Measurer
from autotune.race import RaceResult, run_race
from autotune.records import RaceRecord, TrialRecord
from autotune.strategies.base import Result, Strategy
from cost_models.model import CostModel
from search_spaces.errors import NothingValid
from search_spaces.space import Schedule

_POLL_SECONDS = 0.25


class Tracker(Protocol):
    """Watches a run; the progress display and MLflow are trackers."""

    def measured(self, measurement: Measurement, done: int, budget: Budget) -> None:
        """One trial ended."""

    def waiting(self, done: int, budget: Budget) -> None:
        """Nothing ended for a moment; a chance to redraw."""


@dataclass(frozen=True)
class Search:
    """What a search is made of.

    Attributes:
        measurer: Builds and measures.
        strategy: Proposes.
        model: Scores for the strategy, None where it uses none.
        journal: Takes every trial.
        run: Name of the run in the journal.
        budget: When to stop.
        batch: Schedules asked for at a time.
        window: Schedules kept in flight.
        trackers: Who watches.
        stop: Whether the user asked to stop.
    """

    measurer: Measurer
    strategy: Strategy
    model: CostModel | None
    journal: Journal
    run: str
    budget: Budget
    batch: int
    window: int
    trackers: Sequence[Tracker]
    stop: Callable[[], bool]


class Learner:
    """Keeps the cost model fitted and gives strategies its score."""

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self._schedules: list[Schedule] = []
        self._seconds: list[float] = []
        self._fitted = 0

    def score(self, schedules: Sequence[Schedule]) -> NDArray[np.float64]:
        """Predicted order, lower is faster; all equal while too little is known."""
        if not self._model.ready:
            return np.zeros(len(schedules))
        return self._model.predict(schedules)

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in and refits when they have grown by an eighth."""
        self._schedules += [r.schedule for r in results]
        self._seconds += [r.seconds for r in results]
        if len(self._schedules) - self._fitted >= max(4, self._fitted // 8):
            self._model.fit(self._schedules, np.array(self._seconds))
            self._fitted = len(self._schedules)


def search(plan: Search, default: Schedule, known: RunLog) -> RunLog:
    """Runs the search loop and returns all trials, those of earlier runs included.

    Args:
        plan: Parts of the search.
        default: Candidate 0, measured first.
        known: Trials of earlier runs of the same task; none of them is measured again.
    """
    learner = Learner(plan.model) if plan.model is not None else None
    plan.strategy.score = learner.score if learner is not None else None
    earlier = [Result(m.schedule, m.seconds) for m in known.trials.values()]
    asked = done = 0
    if known.best is not None:
        plan.measurer.expect(known.best.seconds)
    if earlier:
        plan.strategy.tell(earlier)
        if learner is not None:
            learner.tell(earlier)
    if default not in known.trials and plan.budget.left(0):
        plan.measurer.submit([default])
        asked += 1
    while not plan.stop():
        asked += _refill(plan, asked, default)
        if not plan.measurer.in_flight:
            break
        results = []
        for measurement in plan.measurer.completed(_POLL_SECONDS):
            known.trials[measurement.schedule] = measurement
            record = TrialRecord.of(plan.run, len(known.trials) - 1, plan.budget.elapsed, measurement)
            plan.journal.append(record)
            results.append(Result(measurement.schedule, measurement.seconds))
            done += 1
            for tracker in plan.trackers:
                tracker.measured(measurement, done, plan.budget)
        if results:
            plan.strategy.tell(results)
            if learner is not None:
                learner.tell(results)
        else:
            for tracker in plan.trackers:
                tracker.waiting(done, plan.budget)
    return known


def _refill(plan: Search, asked: int, default: Schedule) -> int:
    """Asks for more when a batch fits in the window; returns how many were asked for."""
    free = plan.window - plan.measurer.in_flight
    wanted = min(free, plan.budget.left(asked))
    if wanted <= 0 or (free < plan.batch and plan.measurer.in_flight):
        return 0
    schedules = [s for s in plan.strategy.ask(wanted) if s != default]
    plan.measurer.submit(schedules)
    return len(schedules)


def race(plan: Search, known: RunLog, default: Schedule, seed: int) -> RaceResult:
    """The final race over what was found, recorded in the journal.

    Raises:
        NothingValid: No trial was verified.
    """
    if known.best is None:
        raise NothingValid(
            f"none of {len(known.trials)} schedules could be built, run and verified", _main_reason(known)
        )
    result = run_race(plan.measurer.race, list(known.trials.values()), default, seed)
    record = RaceRecord(
        run=plan.run,
        winner=dict(result.winner.items),
        default=dict(default.items),
        schedules=tuple(dict(s.items) for s in result.samples),
        samples=tuple(tuple(t) for t in result.samples.values()),
        library={name: tuple(times) for name, times in result.library.items()},
        over_default=result.over_default,
        over_library=result.over_library,
        tied=result.tied,
    )
    plan.journal.append(record)
    known.races.append(record)
    return result


def _main_reason(known: RunLog) -> str:
    """The commonest failure, as a hint."""
    reasons = [f"{m.status}: {m.detail}" for m in known.trials.values()]
    return f"most often {max(set(reasons), key=reasons.count)}" if reasons else "give it more trials or time"
