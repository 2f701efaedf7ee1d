"""The search loop: ask, measure, record, tell, refit, until the budget ends; then the race."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.budget import Budget
from autotune.edges import EdgeReport
from autotune.journal import Journal, RunLog
from autotune.measurement import Measurement, Status
from autotune.measurer import Measurer
from autotune.proposals import Proposal, Proposals
from autotune.race import NoContestant, RaceResult, finalists, run_race
from autotune.records import DeviceRecord, EdgeRecord, RaceRecord, TrialRecord
from autotune.sanitizer import Sanitizer
from autotune.strategies.base import Aids, Result, Strategy, TaskPrior
from cost_models.model import CostModel
from search_spaces.errors import NothingValid
from search_spaces.space import Schedule

# What is written down as the chooser of a schedule that another tuner's file proposed.
WARM_START = "warm_start"
_POLL_SECONDS = 0.25
# While a strategy is being asked.
_ASKING_SECONDS = 0.01
# The model is fitted anew when it has so much more to learn from.
_NEWS = 0.02


class Tracker(Protocol):
    """Watches a run; the progress display and MLflow are trackers."""

    def measured(self, measurement: Measurement, done: int, budget: Budget) -> None:
        """One trial ended."""

    def waiting(self, done: int, budget: Budget) -> None:
        """Nothing ended for a moment; a chance to redraw."""

    def notice(self, line: str) -> None:
        """Something the user should know at once."""


class Learner:
    """Keeps the cost model fitted and gives strategies its score and its choices.

    Args:
        model: Fitted whenever it is asked and there is enough news.

    Attributes:
        heads: Names of the model's opinions, for `choose`.
    """

    def __init__(self, model: CostModel) -> None:
        self._model = model
        self.heads = model.heads
        # The latest time of each schedule: one that was measured again is not learnt from twice.
        self._seconds: dict[Schedule, float] = {}
        self._news = 0

    def score(self, schedules: Sequence[Schedule]) -> NDArray[np.float64]:
        """Predicted order, lower is faster; all equal while too little is known."""
        self._refit()
        return self._model.predict(schedules)

    def choose(
        self, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule] = (), head: str = ""
    ) -> list[int]:
        """What the model would measure next, see `CostModel.choose`."""
        self._refit()
        return self._model.choose(schedules, count, pending, head)

    def expected_seconds(self, schedules: Sequence[Schedule]) -> list[float | None]:
        """The times that the model as it is expects, None where it does not tell."""
        return [float(s) if np.isfinite(s) else None for s in self._model.expected_seconds(schedules)]

    def aids(self, context: Mapping[str, float], prior: TaskPrior | None = None) -> Aids:
        """What a strategy may lean on that has this model."""
        return Aids(self.score, context, prior, self.choose, self.heads)

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in."""
        self._seconds.update((r.schedule, r.seconds) for r in results)
        self._news += len(results)

    def _refit(self) -> None:
        """Fits the model when enough was told since."""
        known = len(self._seconds)
        if self._news > _NEWS * (known - self._news):
            self._model.fit(list(self._seconds), np.fromiter(self._seconds.values(), np.float64, known))
            self._news = 0


@dataclass(frozen=True)
class Search:
    """What a search is made of.

    Attributes:
        measurer: Builds and measures.
        strategy: Proposes.
        learner: Fits the cost model whose score the strategy has, None where it uses none.
        journal: Takes every trial.
        run: Name of the run in the journal.
        budget: When to stop.
        batch: Schedules asked for at a time.
        window: Schedules kept in flight.
        waves: Whether a window is asked for only when the one before has ended. Then what is asked depends on the
            seed and the measured times alone, not on when they came.
        trackers: Who watches.
        stop: Whether the user asked to stop.
        sanitizer: Runs finalists under compute-sanitizer, None where the user did not ask for it.
    """

    measurer: Measurer
    strategy: Strategy
    learner: Learner | None
    journal: Journal
    run: str
    budget: Budget
    batch: int
    window: int
    waves: bool
    trackers: Sequence[Tracker]
    stop: Callable[[], bool]
    sanitizer: Sanitizer | None = None

    def notice(self, line: str) -> None:
        """Tells all who watch."""
        for tracker in self.trackers:
            tracker.notice(line)


class SearchLoop:
    """One search: `begin` fills the builders, `run` goes on to the end.

    A search in waves is continued by repeating it: the strategy is asked and told from the start, and what was
    measured before is answered from the journal. So it ends as if it had never been stopped. One whose results come
    in any order (a GPU's) cannot be repeated: its strategy is told at once all that is known. It is asked in the
    background, since a device would wait for it otherwise.

    Args:
        plan: Parts of the search.
        defaults: Of the sketches: measured before all others, the one to beat first.
        known: Trials of earlier runs of the same task; none of them is measured again, new ones are added.
        warm: Schedules measured right after the defaults, whatever the strategy asks for.
    """

    def __init__(
        self, plan: Search, defaults: Sequence[Schedule], known: RunLog, warm: Sequence[Schedule] = ()
    ) -> None:
        self._plan = plan
        self._warm = frozenset(warm).difference(defaults)
        self._first = list(dict.fromkeys((*defaults, *warm)))
        self._known = known
        self._asked = 0
        self._done = 0
        self._earlier: dict[Schedule, Measurement] = dict(known.trials.items())
        self._wave: dict[Schedule, Result | None] = {}
        # What the model expected of those in flight.
        self._expected: dict[Schedule, float | None] = {}
        self._proposals = Proposals(self._tell, self._propose)
        self._exhausted = False

    def begin(self) -> None:
        """Tells what is known and submits the defaults, the warm starts and the first schedules."""
        plan, known = self._plan, self._known
        plan.strategy.seen.update(self._first)
        plan.measurer.recall(known.trials.values())
        if plan.waves:
            self._start_wave(Proposal(self._first, [None] * len(self._first)))
        else:
            self._proposals.tell([Result(m.schedule, m.seconds) for m in known.trials.values()])
            self._submit([s for s in self._first if s not in known.trials])
        self._refill()
        # The builders are to be busy while the device starts.
        self._take(wait=True)

    def run(self) -> None:
        """Asks, measures, records and tells until the budget ends, the space is exhausted or the user stops."""
        plan = self._plan
        while (plan.measurer.in_flight or self._proposals.awaited) and not plan.stop():
            ended = plan.measurer.completed(_ASKING_SECONDS if self._proposals.awaited else _POLL_SECONDS)
            self._record_devices()
            results = [self._record(m) for m in ended]
            if plan.waves:
                self._wave |= {r.schedule: r for r in results}
            else:
                self._proposals.tell(results)
            if not results:
                for tracker in plan.trackers:
                    tracker.waiting(self._done, plan.budget)
            self._refill()
        self._proposals.close()

    def _record_devices(self) -> None:
        """What became of devices: before the trials whose times it explains."""
        plan = self._plan
        for news in plan.measurer.news():
            record = DeviceRecord(plan.run, news.device, news.samples, news.factor, news.left_out)
            plan.journal.append(record)
            self._known.devices.append(record)
            if news.notice:
                plan.notice(news.notice)

    def _record(self, measurement: Measurement) -> Result:
        plan, known = self._plan, self._known
        known.trials[measurement.schedule] = measurement
        warm = WARM_START if measurement.schedule in self._warm else ""
        chooser = plan.strategy.chooser_of(measurement.schedule) or warm
        trial = len(known.trials) - 1
        expected = self._expected.pop(measurement.schedule, None)
        at = known.last_trial[plan.run] = plan.budget.elapsed
        plan.journal.append(TrialRecord.of(plan.run, trial, at, measurement, chooser, expected))
        self._done += 1
        for tracker in plan.trackers:
            tracker.measured(measurement, self._done, plan.budget)
        return Result(measurement.schedule, measurement.seconds)

    def _tell(self, results: Sequence[Result]) -> None:
        if results:
            self._plan.strategy.tell(results)
            if self._plan.learner is not None:
                self._plan.learner.tell(results)

    def _refill(self) -> None:
        """Asks for more when a batch fits into the window."""
        plan = self._plan
        while plan.waves and not plan.measurer.in_flight and plan.budget.left(self._asked) and not plan.stop():
            self._tell([r for r in self._wave.values() if r is not None])
            wave = self._propose(plan.window)
            if not wave.schedules:
                return
            self._start_wave(wave)
        if not plan.waves:
            self._refill_in_background()

    def _refill_in_background(self) -> None:
        """Submits what was proposed; starts an ask where none is under way."""
        plan = self._plan
        self._take()
        free = plan.window - plan.measurer.in_flight
        wanted = min(free, plan.budget.left(self._asked))
        if wanted <= 0 or self._proposals.awaited or self._exhausted:
            return
        if free >= plan.batch or not plan.measurer.in_flight:
            self._proposals.ask(wanted)

    def _take(self, *, wait: bool = False) -> None:
        if (proposal := self._proposals.take(wait=wait)) is not None:
            self._exhausted = not proposal.schedules and not self._plan.measurer.in_flight
            self._submit(proposal.schedules, proposal.expected)

    def _propose(self, count: int) -> Proposal:
        asked = self._plan.strategy.ask(count)
        learner = self._plan.learner
        return Proposal(asked, learner.expected_seconds(asked) if learner is not None else [None] * len(asked))

    def _submit(self, schedules: Sequence[Schedule], expected: Sequence[float | None] = ()) -> None:
        """Has schedules measured, as many as the budget has left."""
        allowed = schedules[: self._plan.budget.left(self._asked)]
        self._expected.update(zip(allowed, expected, strict=False))
        self._plan.measurer.submit(allowed)
        self._asked += len(allowed)

    def _start_wave(self, wave: Proposal) -> None:
        """Answers from the journal what was measured before, and has the rest measured."""
        self._wave = dict.fromkeys(wave.schedules)
        known = [s for s in wave.schedules if s in self._earlier]
        self._wave |= {s: Result(s, self._earlier.pop(s).seconds) for s in known}
        if len(known) < len(wave.schedules):
            # Where the path of the earlier run ends. What it measured off this path (with other options, say) counts.
            self._wave |= {s: Result(s, m.seconds) for s, m in self._earlier.items()}
            self._earlier.clear()
        expected = dict(zip(wave.schedules, wave.expected, strict=True))
        new = [s for s, result in self._wave.items() if result is None]
        self._submit(new, [expected[s] for s in new])


def race(plan: Search, known: RunLog, default: Schedule, seed: int) -> RaceResult:
    """The final race over what was found, recorded in the journal.

    Raises:
        NothingValid: No trial was verified, or none survived the race.
    """
    result = None
    while result is None:
        _verify_finalists(plan, known, default)
        if known.best is None:
            raise NothingValid(
                f"none of {len(known.trials)} schedules could be built, run and verified", _main_reason(known)
            )
        edges = plan.measurer.finals.check_edges(finalists(list(known.trials.values()), default))
        try:
            result = run_race(plan.measurer.finals.race, list(known.trials.values()), default, seed)
            dropped = result.dropped
        except NoContestant as error:
            dropped = error.dropped
        for schedule, end in dropped.items():
            _refute(plan, known, schedule, end.status, end.why)
    record = _record(plan, result, edges)
    plan.journal.append(record)
    known.races.append(record)
    return result


def _record(plan: Search, result: RaceResult, edges: EdgeReport) -> RaceRecord:
    return RaceRecord(
        run=plan.run,
        winner=dict(result.winner.items),
        default=dict(result.default.items),
        schedules=tuple(dict(s.items) for s in result.samples),
        samples=tuple(tuple(t) for t in result.samples.values()),
        library={name: tuple(times) for name, times in result.library.items()},
        over_default=result.over_default,
        over_library=result.over_library,
        tied=result.tied,
        voided=result.voided,
        dropped=tuple((dict(s.items), end.why) for s, end in result.dropped.items()),
        conditions=tuple(result.conditions),
        edges_checked=edges.checked,
        edge_faults=tuple(EdgeRecord(f.workload, dict(f.schedule.items), f.status, str(f)) for f in edges.faults),
        sanitized=plan.sanitizer.tools if plan.sanitizer is not None else (),
    )


def _verify_finalists(plan: Search, known: RunLog, default: Schedule) -> None:
    """Has those who would race checked more closely; who fails is recorded anew, with its binary's other schedules."""
    cleared: set[Schedule] = set()
    while asked := [s for s in finalists(list(known.trials.values()), default) if s not in cleared]:
        failed = plan.measurer.finals.verify(asked)
        if plan.sanitizer is not None:
            failed |= plan.measurer.finals.sanitize(plan.sanitizer, [s for s in asked if s not in failed], plan.notice)
        cleared.update(asked)
        for schedule, answer in failed.items():
            _refute(plan, known, schedule, answer.status, answer.detail)


def _refute(plan: Search, known: RunLog, schedule: Schedule, status: Status, detail: str) -> None:
    """Records anew, as failed, a trial that was taken for good and all others of its binary."""
    binary = known.trials[schedule].binary
    for trial, (twin, measured) in enumerate(known.trials.items()):
        if measured.status is Status.OK and (twin == schedule or (binary and measured.binary == binary)):
            refuted = replace(measured, status=status, samples=(), detail=detail)
            known.trials[twin] = refuted
            at = known.last_trial[plan.run] = plan.budget.elapsed
            plan.journal.append(TrialRecord.of(plan.run, trial, at, refuted))


def _main_reason(known: RunLog) -> str:
    """The commonest failure, as a hint."""
    reasons = Counter(f"{m.status}: {m.detail}" for m in known.trials.values())
    return f"most often {reasons.most_common(1)[0][0]}" if reasons else "give it more trials or time"
