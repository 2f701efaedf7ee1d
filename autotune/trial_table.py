"""A journal as a table: one row a trial, one column a fact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from autotune.journal import read_journal
from autotune.measurement import Status
from autotune.records import RaceRecord, RunRecord, TrialRecord
from search_spaces.schedule import SKETCH, Schedule, Value, text

_USED = ("registers", "shared_bytes", "spill_bytes", "threads")
_WHOLE = ("seed", "trial", "samples", *_USED, "sm_mhz", "memory_mhz", "celsius")
# What a schedule that is recorded again keeps of its first record.
_ASKED = ("run", "trial", "at", "chooser", "predicted_seconds")
_FLAGS = ("deterministic", "slowed", "retaken", "default", "winner")
_WORDS = ("operator", "dtype", "target", "device", "arch", "strategy", "sketch", "chooser", "throttled")


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
    runs: dict[str, RunRecord] = {}
    rows: dict[tuple[str, Schedule], dict[str, Any]] = {}
    races: dict[str, RaceRecord] = {}
    knobs: dict[str, None] = {}
    for record in read_journal(Path(run)):
        if isinstance(record, RunRecord):
            runs[record.run] = record
        elif isinstance(record, RaceRecord):
            races[runs[record.run].task.key] = record
        elif isinstance(record, TrialRecord):
            owner = runs[record.run]
            place = (owner.task.key, Schedule.from_json(record.schedule))
            earlier = rows.get(place)
            rows[place] = _row(owner, record)
            if earlier is not None:
                rows[place] |= {name: earlier[name] for name in _ASKED}
            knobs.update(dict.fromkeys(name for name in record.schedule if name != SKETCH))
    for key, race in races.items():
        _add_race(rows, key, race)
    _add_best(rows)
    axes = list(dict.fromkeys(name for r in runs.values() for name, _ in r.task.workload.axes))
    return _typed(list(rows.values()), axes, list(knobs))


def _row(run: RunRecord, record: TrialRecord) -> dict[str, Any]:
    workload, trial = run.task.workload, record.measurement()
    ran = trial.status is Status.OK
    conditions = asdict(record.conditions) if record.conditions is not None else {}
    return {
        "run": record.run,
        "operator": workload.operator,
        **{f"axis.{name}": value for name, value in workload.axes},
        "dtype": workload.dtype,
        "target": run.task.target,
        "device": run.device.name,
        "arch": run.device.arch,
        "strategy": run.strategy,
        "seed": run.seed,
        "trial": record.trial,
        "at": record.at,
        "chooser": record.chooser or None,
        "predicted_seconds": record.predicted,
        "sketch": trial.schedule.sketch,
        **{f"knob.{name}": value for name, value in trial.schedule.items[1:]},
        "status": str(record.status),
        "detail": record.detail,
        "seconds": trial.seconds if ran else np.nan,
        "samples": len(record.samples),
        "roofline_share": run.floor_seconds / trial.seconds if ran else np.nan,
        "default": None,
        "winner": None,
        "deviation": record.error,
        "deterministic": record.deterministic,
        **asdict(record.resources),
        "binary": record.binary,
        **{f"{phase}_seconds": seconds for phase, seconds in asdict(record.phases).items()},
        **conditions,
        "throttled": conditions.get("reasons"),
    }


def _add_race(rows: Mapping[tuple[str, Schedule], dict[str, Any]], key: str, race: RaceRecord) -> None:
    """Marks who raced, in the last race of a task."""
    pairs = zip(race.schedules, race.samples, strict=True)
    medians = {Schedule.from_json(schedule): float(np.median(samples)) for schedule, samples in pairs}
    default, winner = Schedule.from_json(race.default), Schedule.from_json(race.winner)
    for (task, schedule), row in rows.items():
        if task == key:
            row |= {"race_seconds": medians.get(schedule), "default": schedule == default, "winner": schedule == winner}


def _add_best(rows: Mapping[tuple[str, Schedule], dict[str, Any]]) -> None:
    best: dict[str, float] = {}
    for (task, _), row in rows.items():
        best[task] = float(np.fmin(best.get(task, np.nan), row["seconds"]))
        row["best_seconds"] = best[task]


def _typed(rows: Sequence[Mapping[str, Any]], axes: Sequence[str], knobs: Sequence[str]) -> pd.DataFrame:
    """The rows with every column there, in its place and of its type, however few of them know it."""
    schedule = [f"knob.{name}" for name in knobs]
    task = ["run", "operator", *(f"axis.{name}" for name in axes), "dtype", "target", "device", "arch", "strategy"]
    order = [*task, "seed", "trial", "at", "chooser", "predicted_seconds", "sketch", *schedule, "status", "detail"]
    order += [
        "seconds",
        "samples",
        "best_seconds",
        "roofline_share",
        "race_seconds",
        "default",
        "winner",
        "deviation",
        "deterministic",
    ]
    order += [*_USED, "binary", "build_seconds", "check_seconds", "measure_seconds"]
    order += ["sm_mhz", "memory_mhz", "watts", "celsius", "throttled", "slowed", "retaken"]
    columns: dict[str, pd.Series[Any]] = {}
    for name in order:
        values = [row.get(name) for row in rows]
        if name in schedule:
            columns[name] = _knob(values)
        elif name in _WHOLE or name.startswith("axis."):
            columns[name] = pd.Series(values, dtype="Int64")
        elif name in _FLAGS:
            columns[name] = pd.Series(values, dtype="boolean")
        elif name in _WORDS:
            columns[name] = pd.Series(values, dtype="category")
        elif name == "status":
            columns[name] = pd.Series(pd.Categorical(values, [str(s) for s in Status]))
        elif name in ("run", "detail", "binary"):
            columns[name] = pd.Series(values, dtype="string")
        else:
            columns[name] = pd.Series(values, dtype="float64")
    return pd.DataFrame(columns)


def _knob(values: Iterable[Value | None]) -> pd.Series[Any]:
    """Whole numbers and flags as such, words and tuples as they are shown."""
    listed = list(values)
    known = [v for v in listed if v is not None]
    if all(isinstance(v, bool) for v in known):
        return pd.Series(listed, dtype="boolean")
    if all(isinstance(v, int) and not isinstance(v, bool) for v in known):
        return pd.Series(listed, dtype="Int64")
    return pd.Series([None if v is None else text(v) for v in listed], dtype="category")
