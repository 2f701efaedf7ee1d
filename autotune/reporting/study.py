"""Everything that a report says of one task of a run, worked out once."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.cost import TuningCost, cost_of
from autotune.explanation import Explanation, explain
from autotune.journal import RunLog, load_runs, read_journal
from autotune.knob_effects import Trials
from autotune.measurement import Measurement
from autotune.model_quality import quality_of
from autotune.records import RaceRecord, RunRecord, TrialRecord
from autotune.reporting.attribution import Attribution, attribute
from cost_models.ranking import Quality
from search_spaces.space import Schedule


@dataclass(frozen=True)
class Study:
    """One task of a run.

    Attributes:
        path: The run's folder or journal, as the user named it.
        log: Its trials and races.
        trials: The same with comparable times.
        explanation: Why the best won, None where nothing was verified.
        cost: Of the search.
        attribution: The knobs as a cost model sees them, None where too few trials ran.
        expected: Seconds that the cost model expected of a trial before it was measured, where the journal has them.
        quality: Name of the strategy's own model, how it ranks trials kept from it, and on how many that was judged.
    """

    path: Path
    log: RunLog
    trials: Trials
    explanation: Explanation | None
    cost: TuningCost
    attribution: Attribution | None
    expected: Mapping[Schedule, float]
    quality: tuple[str, Quality, int] | None

    @property
    def run(self) -> RunRecord:
        """The latest run record."""
        return self.log.runs[-1]

    @property
    def race(self) -> RaceRecord | None:
        """The final race of the latest run, None where it had none."""
        if self.log.races and self.log.races[-1].run == self.run.run:
            return self.log.races[-1]
        return None

    @property
    def winner(self) -> Schedule | None:
        """The best schedule."""
        return None if self.explanation is None else Schedule.from_json(self.explanation.entry.schedule)

    @property
    def default_seconds(self) -> float | None:
        """Of the untuned default: in the race, None where it did not race."""
        race = self.race
        if race is None or race.default not in race.schedules:
            return None
        return statistics.median(race.samples[race.schedules.index(race.default)])

    @property
    def library(self) -> tuple[str, float] | None:
        """The fastest library call of the race and its median seconds."""
        race = self.race
        medians = {name: statistics.median(times) for name, times in race.library.items()} if race else {}
        return min(medians.items(), key=lambda item: item[1], default=None)

    @property
    def measured(self) -> list[tuple[int, Measurement]]:
        """The trials that ran with their numbers, in order."""
        return [(i, t) for i, t in enumerate(self.trials.all) if t.schedule in self.trials.seconds]


def studies(path: Path) -> list[Study]:
    """A study of every task in a journal.

    Args:
        path: A run's folder or its journal.

    Raises:
        BadLog: It cannot be read.
    """
    return studies_of(path, load_runs(path))


def studies_of(path: Path, logs: Sequence[RunLog]) -> list[Study]:
    """A study of each of some tasks of a journal.

    Args:
        path: A run's folder or its journal.
        logs: Those of the tasks.

    Raises:
        BadLog: It cannot be read.
    """
    expected = _expected(path) if logs else {}
    return [_study(path, log, expected.get(log.runs[-1].task.key, {})) for log in logs]


def _expected(path: Path) -> dict[str, dict[Schedule, float]]:
    """Task key -> schedule -> seconds that were expected of it."""
    found: dict[str, dict[Schedule, float]] = {}
    task_of: dict[str, str] = {}
    for record in read_journal(path):
        if isinstance(record, RunRecord):
            task_of[record.run] = record.task.key
        elif isinstance(record, TrialRecord) and record.predicted is not None:
            found.setdefault(task_of[record.run], {})[Schedule.from_json(record.schedule)] = record.predicted
    return found


def _study(path: Path, log: RunLog, expected: Mapping[Schedule, float]) -> Study:
    trials, explanation = Trials.of(log), explain(log)
    winner = None if explanation is None else Schedule.from_json(explanation.entry.schedule)
    return Study(
        path=path,
        log=log,
        trials=trials,
        explanation=explanation,
        cost=cost_of(log),
        attribution=attribute(trials.seconds, winner),
        expected=expected,
        quality=quality_of(log),
    )
