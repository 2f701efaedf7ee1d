"""Schedules as rows of numbers: the sketch, its knobs and what the sketch derives from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from search_spaces.space import SKETCH, Knob, Schedule, ScheduleSpace, Value
from search_spaces.task import Task

Derived = Callable[[Schedule], Mapping[str, float]]
Matrix = NDArray[np.float32]
# A word with at most this many values is one-hot, a longer list is numbered.
_ONE_HOT = 8
_CACHED_ROWS = 50_000
# Schedules of each sketch from which the range of what it derives is taken.
_EXAMPLES = 32


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
        self._space = space
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
        for name in self._derived_names():
            self._start[name] = len(columns)
            columns.append(name)
        self.columns = tuple(columns)
        # Rows already made, and the place of each schedule's.
        self._table = np.empty((0, len(columns)), np.float32)
        self._places: dict[Schedule, int] = {}
        self._latest: tuple[Schedule, ...] = ()
        self._latest_rows = self._table

    @classmethod
    def of_task(cls, task: Task) -> Features:
        """The features of a task's schedules, with what each sketch derives."""
        return cls(task.space, lambda schedule: task.sketch_of(schedule).derived(task, schedule))

    def __call__(self, schedules: Sequence[Schedule]) -> Matrix:
        """The rows of `schedules`, shape (n, columns), read-only; a tuple's are kept until the next one's."""
        if schedules is self._latest:
            return self._latest_rows
        rows = self._rows(schedules)
        if isinstance(schedules, tuple):
            self._latest, self._latest_rows = schedules, rows
        return rows

    def _rows(self, schedules: Sequence[Schedule]) -> Matrix:
        if len(self._places) + len(schedules) > _CACHED_ROWS:
            self._places.clear()
        known = self._places
        unknown = [s for s in schedules if s not in known]
        if unknown:
            self._remember(dict.fromkeys(unknown))
        return self._table[[known[s] for s in schedules]]

    def _remember(self, schedules: Collection[Schedule]) -> None:
        """Makes the rows of new schedules and keeps them."""
        first = len(self._places)
        if (needed := first + len(schedules)) > len(self._table):
            table = np.empty((max(needed, 2 * len(self._table)), len(self.columns)), np.float32)
            table[:first] = self._table[:first]
            self._table = table
        for place, schedule in enumerate(schedules, start=first):
            self._table[place] = self._row(schedule)
            self._places[schedule] = place

    def _row(self, schedule: Schedule) -> list[float]:
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
        return row

    def unit(self, schedules: Sequence[Schedule]) -> NDArray[np.float64]:
        """The rows with every column scaled to about [0, 1] over the space, shape (n, columns); 0.5 where it is NaN.

        So distances mean the same in all columns. Columns that are the same everywhere are 0.
        """
        low, width = self._ranges
        return np.asarray(np.nan_to_num((self(schedules) - low) / width, nan=0.5), np.float64)

    @cached_property
    def _ranges(self) -> tuple[Matrix, Matrix]:
        """Lowest value and spread of each column, over some schedules of each sketch and all values of its knobs."""
        rows = [self(self._examples)]
        for start, codes in self._codes.values():
            known = np.array(list(codes.values()), np.float32)
            extremes = np.full((len(known), len(self.columns)), math.nan, np.float32)
            extremes[:, start : start + known.shape[1]] = known
            rows.append(extremes)
        table = np.concatenate(rows)
        low = np.where(np.isnan(table), np.inf, table).min(axis=0)
        high = np.where(np.isnan(table), -np.inf, table).max(axis=0)
        return low, np.where(high > low, high - low, np.float32(1.0))

    @cached_property
    def _examples(self) -> list[Schedule]:
        """Some schedules of each sketch, always the same."""
        rng = np.random.default_rng(0)
        found: list[Schedule] = []
        for sketch in self._space.sketches:
            prefix = Schedule(((SKETCH, sketch.sketch),))
            drawn = (self._space.sample(rng, prefix) for _ in range(_EXAMPLES))
            found += [s for s in takewhile(lambda s: s is not None, drawn) if s is not None]
        return found

    def _derived_names(self) -> list[str]:
        """Names that the sketches derive, from one schedule of each."""
        names: dict[str, None] = {}
        if self._derived is not None:
            examples = {s.sketch: s for s in reversed(self._examples)}
            for example in reversed(examples.values()):
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
