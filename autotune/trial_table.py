"""A journal as a table: one row a trial, one column a fact."""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from autotune.columns import Column, Flags, Knobs, Numbers, Places, Words
from autotune.devices.telemetry import Conditions
from autotune.journal import read_journal
from autotune.measurement import Status
from autotune.records import RaceRecord, RunRecord, ScheduleData, TrialRecord
from autotune.trial_index import equal_groups
from search_spaces.schedule import SKETCH

# Trials put into the columns at a time.
_AT_ONCE = 4096
_NOTHING_TOLD = SimpleNamespace(**{field.name: None for field in fields(Conditions)})
# What a schedule that is recorded again keeps of its first record.
_ASKED = ("run", "trial", "at", "chooser", "predicted_seconds")


def frame(run: Path | str) -> pd.DataFrame:
    """The trials of a journal as a tidy table, in their order.

    A schedule that was recorded again (a finalist that failed a closer check) has one row, with what was last said.

    Args:
        run: A run's folder or its journal.

    Returns:
        A row a trial. `run`, `operator`, `axis.NAME`, `dtype`, `target`, `device`, `arch`, `strategy` and `seed` say
        what was tuned where; `trial`, `at` (seconds since the run's start) and `chooser` when and why it was tried;
        `predicted_seconds` what the cost model then expected;
        `sketch` and `knob.NAME` the schedule, missing where a sketch has no such knob; `status` and `detail` how it
        ended; `seconds` the median of `samples` timed launches, NaN unless ok; `best_seconds` the best so far;
        `roofline_share`; `race_seconds` the median of the final race; `default` and `winner` that race's roles;
        `deviation` from the reference in units of the tolerance; `deterministic`; `registers`, `shared_bytes`,
        `spill_bytes`, `threads` and `binary`; `build_seconds`, `check_seconds` and `measure_seconds`; and the state of
        the device while it was timed: `sm_mhz`, `memory_mhz`, `watts`, `celsius`, `throttled`, `slowed`, `retaken`.

    Raises:
        BadLog: Not there, not a journal, damaged, or of a newer schema.
    """
    table = _Table()
    for record in read_journal(Path(run)):
        if isinstance(record, RunRecord):
            table.begin(record)
        elif isinstance(record, RaceRecord):
            table.race(record)
        elif isinstance(record, TrialRecord):
            table.add(record)
    return table.frame()


@dataclass(frozen=True)
class _Fact:
    """A column, and how its cell follows from a part of what is known of a row.

    Attributes:
        column: The column.
        part: The part: "run", "trial", or "told", what the device told of itself.
        of: The cell. Attributes are got by `attrgetter`, which a table of a million rows is quicker with.
    """

    column: Column
    part: str
    of: Callable[[Any], Any]


def _run(name: str, column: Column) -> _Fact:
    return _Fact(column, "run", attrgetter(name))


def _trial(name: str, column: Column) -> _Fact:
    return _Fact(column, "trial", attrgetter(name))


def _told(name: str, column: Column) -> _Fact:
    return _Fact(column, "told", attrgetter(name))


def _facts() -> dict[str, _Fact]:
    """The columns in their order, without axes, knobs and what follows from several rows or parts."""
    return {
        "run": _run("run", Words(free=True)),
        "operator": _run("task.workload.operator", Words()),
        "dtype": _run("task.workload.dtype", Words()),
        "target": _run("task.target", Words()),
        "device": _run("device.name", Words()),
        "arch": _run("device.arch", Words()),
        "strategy": _run("strategy", Words()),
        "seed": _run("seed", Numbers(whole=True)),
        "trial": _trial("trial", Numbers(whole=True)),
        "at": _trial("at", Numbers()),
        "chooser": _Fact(Words(), "trial", lambda trial: trial.chooser or None),
        "predicted_seconds": _trial("predicted", Numbers()),
        "sketch": _Fact(Words(), "trial", lambda trial: str(trial.schedule[SKETCH])),
        "status": _trial("status.value", Words([str(s) for s in Status])),
        "detail": _trial("detail", Words(free=True)),
        "seconds": _Fact(Numbers(), "trial", lambda trial: statistics.median(trial.samples) if trial.samples else None),
        "samples": _Fact(Numbers(whole=True), "trial", lambda trial: len(trial.samples)),
        "deviation": _trial("error", Numbers()),
        "deterministic": _trial("deterministic", Flags()),
        "registers": _trial("resources.registers", Numbers(whole=True)),
        "shared_bytes": _trial("resources.shared_bytes", Numbers(whole=True)),
        "spill_bytes": _trial("resources.spill_bytes", Numbers(whole=True)),
        "threads": _trial("resources.threads", Numbers(whole=True)),
        "binary": _trial("binary", Words(free=True)),
        "build_seconds": _trial("phases.build", Numbers()),
        "check_seconds": _trial("phases.check", Numbers()),
        "measure_seconds": _trial("phases.measure", Numbers()),
        "sm_mhz": _told("sm_mhz", Numbers(whole=True)),
        "memory_mhz": _told("memory_mhz", Numbers(whole=True)),
        "watts": _told("watts", Numbers()),
        "celsius": _told("celsius", Numbers(whole=True)),
        "throttled": _told("reasons", Words()),
        "slowed": _told("slowed", Flags()),
        "retaken": _told("retaken", Flags()),
    }


class _Table:
    """The table while it is filled."""

    def __init__(self) -> None:
        self._facts = _facts()
        self._axes: dict[str, Column] = {}
        self._knobs: dict[str, Column] = {}
        self._tasks: dict[str, int] = {}
        self._of_task = array("i")
        self._hashes = array("q")
        self._runs: dict[str, RunRecord] = {}
        self._races: dict[str, RaceRecord] = {}
        self._floors = array("d")
        self._waiting: list[TrialRecord] = []

    def begin(self, run: RunRecord) -> None:
        """A run, whose trials follow."""
        self._runs[run.run] = run
        self._tasks.setdefault(run.task.key, len(self._tasks))
        for name, _ in run.task.workload.axes:
            self._axes.setdefault(name, Numbers(whole=True))

    def race(self, race: RaceRecord) -> None:
        """A final race; the last one of a task counts."""
        self._races[self._runs[race.run].task.key] = race

    def add(self, trial: TrialRecord) -> None:
        """One trial."""
        self._waiting.append(trial)
        if len(self._waiting) == _AT_ONCE:
            self._fill()

    def _fill(self) -> None:
        """Puts the trials that wait into the columns."""
        rows, runs = len(self._hashes), [self._runs[trial.run] for trial in self._waiting]
        told = [_NOTHING_TOLD if trial.conditions is None else trial.conditions for trial in self._waiting]
        parts: dict[str, Sequence[object]] = {"run": runs, "trial": self._waiting, "told": told}
        for fact in self._facts.values():
            fact.column.extend(list(map(fact.of, parts[fact.part])))
        axes = [dict(run.task.workload.axes) for run in runs]
        knobs = [trial.schedule for trial in self._waiting]
        for name in dict.fromkeys(name for schedule in knobs for name in schedule if name != SKETCH):
            self._knobs.setdefault(name, Knobs()).fill(rows)
        for columns, known in ((self._axes, axes), (self._knobs, knobs)):
            for name, column in columns.items():
                column.fill(rows)
                column.extend([values.get(name) for values in known])
        self._floors.extend([run.floor_seconds for run in runs])
        self._of_task.extend([self._tasks[run.task.key] for run in runs])
        self._hashes.extend([_hashed(run.task.key, s) for run, s in zip(runs, knobs, strict=True)])
        self._waiting = []

    def frame(self) -> pd.DataFrame:
        """The table with every column there, in its place and of its type, however few rows know it."""
        self._fill()
        places = self._places()
        known = {name: fact.column.series(places) for name, fact in self._facts.items()}
        after = {
            "operator": {f"axis.{name}": column.series(places) for name, column in self._axes.items()},
            "sketch": {f"knob.{name}": column.series(places) for name, column in self._knobs.items()},
            "samples": {
                "best_seconds": self._best(places, known["seconds"]),
                "roofline_share": pd.Series(np.array(self._floors)[places] / known["seconds"]),
                **self._raced(places),
            },
        }
        ordered: dict[str, pd.Series[Any]] = {}
        for name, series in known.items():
            ordered |= {name: series, **after.get(name, {})}
        return pd.DataFrame(ordered)

    def _places(self) -> Places:
        """The rows that stay: of a schedule recorded again the first, which takes over what was said last."""
        dropped: list[int] = []
        for group in equal_groups(np.array(self._hashes)):
            first: dict[tuple[object, ...], int] = {}
            for row in group:
                kept = first.setdefault(self._identity(row), row)
                if kept != row:
                    dropped.append(row)
                    self._take_over(kept, row)
        return np.setdiff1d(np.arange(len(self._hashes)), dropped)

    def _identity(self, row: int) -> tuple[object, ...]:
        """The same for rows of one schedule of one task."""
        columns = (self._facts["sketch"].column, *self._knobs.values())
        return (self._of_task[row], *(column.cells[row] for column in columns))

    def _take_over(self, row: int, later: int) -> None:
        for name, fact in self._facts.items():
            if name not in _ASKED:
                fact.column.cells[row] = fact.column.cells[later]

    def _best(self, places: Places, seconds: pd.Series[Any]) -> pd.Series[Any]:
        """The best so far of each row's task."""
        best, tasks = seconds.to_numpy(copy=True), np.array(self._of_task)[places]
        for task in np.unique(tasks):
            best[tasks == task] = np.fmin.accumulate(best[tasks == task])
        return pd.Series(best, dtype="float64")

    def _raced(self, places: Places) -> dict[str, pd.Series[Any]]:
        """Who raced, in the last race of a task."""
        seconds, default, winner = Numbers(), Flags(), Flags()
        tasks, hashes = np.array(self._of_task)[places], np.array(self._hashes)[places]
        found: NDArray[np.float64] = np.full((3, len(places)), np.nan)
        for key, race in self._races.items():
            found[1:, tasks == self._tasks.get(key, -1)] = 0.0
            for schedule, samples in zip(race.schedules, race.samples, strict=True):
                found[0, hashes == _hashed(key, schedule)] = statistics.median(samples)
            for row, schedule in ((1, race.default), (2, race.winner)):
                found[row, hashes == _hashed(key, schedule)] = 1.0
        seconds.extend(found[0].tolist())
        for column, marks in ((default, found[1]), (winner, found[2])):
            column.extend([None if np.isnan(mark) else mark == 1.0 for mark in marks.tolist()])
        all_rows = np.arange(len(places))
        names = ("race_seconds", "default", "winner")
        return {n: c.series(all_rows) for n, c in zip(names, (seconds, default, winner), strict=True)}


def _hashed(key: str, schedule: ScheduleData) -> int:
    return hash((key, tuple(schedule.items())))
