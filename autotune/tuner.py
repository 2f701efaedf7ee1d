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
        """Predicted order, lower is faster; all equal while too little is known. Refits when there is news."""
        if len(self._schedules) > self._fitted:
            self._model.fit(self._schedules, np.array(self._seconds))
            self._fitted = len(self._schedules)
        return self._model.predict(schedules)

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in."""
        self._schedules += [r.schedule for r in results]
        self._seconds += [r.seconds for r in results]


class SearchLoop:
    """One search: `begin` fills the builders while the device still starts, `run` goes on to the end.

    Args:
        plan: Parts of the search.
        default: Candidate 0, measured first.
        known: Trials of earlier runs of the same task; none of them is measured again, new ones are added.
    """

    def __init__(self, plan: Search, default: Schedule, known: RunLog) -> None:
        self._plan = plan
        self._default = default
        self._known = known
        self._learner = Learner(plan.model) if plan.model is not None else None
        self._asked = 0
        self._done = 0

    def begin(self) -> None:
        """Tells what is known and submits the default and the first schedules."""
        plan, known = self._plan, self._known
        plan.strategy.score = self._learner.score if self._learner is not None else None
        plan.strategy.seen.add(self._default)
        if known.best is not None:
            plan.measurer.expect(known.best.seconds)
        if known.trials:
            self._tell([Result(m.schedule, m.seconds) for m in known.trials.values()])
        if self._default not in known.trials and plan.budget.left(0):
            plan.measurer.submit([self._default])
            self._asked += 1
        self._refill()

    def run(self) -> None:
        """Asks, measures, records and tells until the budget ends, the space is exhausted or the user stops."""
        plan = self._plan
        while plan.measurer.in_flight and not plan.stop():
            results = [self._record(m) for m in plan.measurer.completed(_POLL_SECONDS)]
            self._tell(results)
            if not results:
                for tracker in plan.trackers:
                    tracker.waiting(self._done, plan.budget)
            self._refill()

    def _record(self, measurement: Measurement) -> Result:
        plan, known = self._plan, self._known
        known.trials[measurement.schedule] = measurement
        plan.journal.append(TrialRecord.of(plan.run, len(known.trials) - 1, plan.budget.elapsed, measurement))
        self._done += 1
        for tracker in plan.trackers:
            tracker.measured(measurement, self._done, plan.budget)
        return Result(measurement.schedule, measurement.seconds)

    def _tell(self, results: Sequence[Result]) -> None:
        if results:
            self._plan.strategy.tell(results)
            if self._learner is not None:
                self._learner.tell(results)

    def _refill(self) -> None:
        """Asks for more when a batch fits into the window."""
        plan = self._plan
        free = plan.window - plan.measurer.in_flight
        wanted = min(free, plan.budget.left(self._asked))
        if wanted <= 0 or (free < plan.batch and plan.measurer.in_flight):
            return
        schedules = plan.strategy.ask(wanted)
        plan.measurer.submit(schedules)
        self._asked += len(schedules)


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
