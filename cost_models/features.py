"""Schedules as rows of numbers: the sketch, its knobs and what the sketch derives from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from search_spaces.space import SKETCH, Knob, Schedule, ScheduleSpace, Value
from search_spaces.task import Task

Derived = Callable[[Schedule], Mapping[str, float]]
Matrix = NDArray[np.float32]
# A word with at most this many values is one-hot, a longer list is numbered.
_ONE_HOT = 8
_CACHED_ROWS = 50_000


class Features:
    """Turns schedules of one space into rows with the same columns; NaN where a sketch has no such knob.

    Knobs of the same name, kind and width in several sketches share their columns, so that what is learnt of one
    sketch serves the others.

    Args:
        space: Determines the columns, so they do not depend on what was measured.
        derived: Further numbers of a schedule, the same names for every schedule of a sketch.

    Attributes:
        columns: Names, in order.
    """

    def __init__(self, space: ScheduleSpace, derived: Derived | None = None) -> None:
        self._derived = derived
        self._start: dict[str, int] = {}
        self._codes: dict[tuple[str, str], tuple[int, Mapping[Value, tuple[float, ...]]]] = {}
        columns: list[str] = []
        if len(space.sketches) > 1:
            columns += [f"{SKETCH}={s.sketch}" for s in space.sketches]
        self._sketch_column = {s.sketch: i for i, s in enumerate(space.sketches)} if columns else {}
        for sketch in space.sketches:
            for knob in sketch.knobs:
                names, codes = _encoding(knob)
                shared = " ".join(names)
                if shared not in self._start:
                    self._start[shared] = len(columns)
                    columns += names
                self._codes[sketch.sketch, knob.name] = (self._start[shared], codes)
        for name in self._derived_names(space):
            self._start[name] = len(columns)
            columns.append(name)
        self.columns = tuple(columns)
        self._rows: dict[Schedule, Matrix] = {}

    @classmethod
    def of_task(cls, task: Task) -> Features:
        """The features of a task's schedules, with what each sketch derives."""
        return cls(task.space, lambda schedule: task.sketch_of(schedule).derived(task, schedule))

    def __call__(self, schedules: Sequence[Schedule]) -> Matrix:
        """The rows of `schedules`, shape (n, columns)."""
        if len(self._rows) > _CACHED_ROWS:
            self._rows.clear()
        out = np.empty((len(schedules), len(self.columns)), np.float32)
        for index, schedule in enumerate(schedules):
            row = self._rows.get(schedule)
            if row is None:
                row = self._rows[schedule] = self._row(schedule)
            out[index] = row
        return out

    def _row(self, schedule: Schedule) -> Matrix:
        row = [math.nan] * len(self.columns)
        sketch = schedule.sketch
        if self._sketch_column:
            row[: len(self._sketch_column)] = [0.0] * len(self._sketch_column)
            row[self._sketch_column[sketch]] = 1.0
        for name, value in schedule.items[1:]:
            start, codes = self._codes[sketch, name]
            code = codes[value]
            row[start : start + len(code)] = code
        if self._derived is not None:
            for name, number in self._derived(schedule).items():
                row[self._start[f"derived {name}"]] = number
        return np.array(row, np.float32)

    def _derived_names(self, space: ScheduleSpace) -> list[str]:
        """Names that the sketches derive, from one schedule of each."""
        names: dict[str, None] = {}
        if self._derived is not None:
            for sketch in space.sketches:
                example = space.sample(np.random.default_rng(0), Schedule(((SKETCH, sketch.sketch),)))
                if example is not None:
                    names.update(dict.fromkeys(f"derived {name}" for name in self._derived(example)))
        return list(names)


def _encoding(knob: Knob) -> tuple[list[str], Mapping[Value, tuple[float, ...]]]:
    """Column names of a knob and the numbers of each of its values."""
    if all(isinstance(v, tuple) for v in knob.values):
        return _tuple_encoding(knob)
    if all(isinstance(v, int) for v in knob.values):
        return [knob.name], dict(zip(knob.values, zip(_logs(knob.values), strict=True), strict=True))
    if len(knob.values) <= _ONE_HOT:
        codes = {v: tuple(float(v == w) for w in knob.values) for v in knob.values}
        return [f"{knob.name}={w}" for w in knob.values], codes
    return [f"{knob.name}#"], {v: (float(i),) for i, v in enumerate(knob.values)}


def _tuple_encoding(knob: Knob) -> tuple[list[str], Mapping[Value, tuple[float, ...]]]:
    """Each factor and, of positive factors, the products of the innermost ones: the tile sizes of every level."""
    tuples = [v for v in knob.values if isinstance(v, tuple)]
    width = max(map(len, tuples))
    positive = all(f > 0 for t in tuples for f in t)
    names = [f"{knob.name}[{i}]" for i in range(width)]
    if positive:
        names += [f"{knob.name}[{i}:]" for i in range(1, width - 1)]
    codes: dict[Value, tuple[float, ...]] = {}
    for value in tuples:
        factors = [math.log2(f) if positive else float(f) for f in value]
        factors += [math.nan] * (width - len(value))
        tails = [sum(factors[i:]) for i in range(1, width - 1)] if positive else []
        codes[value] = (*factors, *tails)
    return names, codes


def _logs(values: Sequence[Value]) -> list[float]:
    """Positive integers by their logarithm, others as they are."""
    numbers = [v for v in values if isinstance(v, int)]
    return [math.log2(n) for n in numbers] if min(numbers) > 0 else [float(n) for n in numbers]
