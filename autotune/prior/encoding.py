"""Schedules of a space, and of other tasks' spaces like it, as rows of numbers with the same columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.prior.experience import SketchTable
from search_spaces.schedule import SKETCH, Schedule, Value
from search_spaces.space import ScheduleSpace

Matrix = NDArray[np.float32]
# Schedules drawn to see how far each column spreads.
_SAMPLE = 256


class Encoding:
    """Numbers of each knob by its value, known or not; NaN where a sketch or a table has no such knob.

    Whole numbers enter by their logarithm, since tile sizes double; factors of a tile by theirs, each level's product
    too; words one column each.

    Args:
        space: Determines the columns.

    Attributes:
        knobs: Names of the knobs of each sketch.
    """

    def __init__(self, space: ScheduleSpace) -> None:
        self.knobs = {s.sketch: tuple(k.name for k in s.knobs) for s in space.sketches}
        self._places: dict[str, int] = {}
        for sketch in space.sketches:
            if len(space.sketches) > 1:
                self._place(f"{SKETCH}={sketch.sketch}")
            for knob in sketch.knobs:
                for value in knob.values:
                    for name, _ in _numbers(knob.name, value):
                        self._place(name)
        self._blank = {sketch: self._blank_of(sketch) for sketch in self.knobs}
        rng = np.random.default_rng(0)
        drawn = [s for s in (space.sample(rng) for _ in range(_SAMPLE)) if s is not None]
        rows = self(drawn)
        there = ~np.isnan(rows)
        counts = np.maximum(1, there.sum(axis=0))
        self._shift = np.where(there, rows, 0.0).sum(axis=0) / counts
        spread = np.sqrt((np.where(there, rows - self._shift, 0.0) ** 2).sum(axis=0) / counts)
        self._spread = np.where(spread > 0, spread, 1.0)

    @property
    def columns(self) -> int:
        """How many there are."""
        return len(self._places)

    def standard(self, rows: Matrix) -> NDArray[np.float64]:
        """Rows in which every column counts the same and the mean squared norm is about 1; 0 where there is no knob."""
        return np.asarray(np.nan_to_num((rows - self._shift) / self._spread) / math.sqrt(max(1, self.columns)))

    def __call__(self, schedules: Sequence[Schedule]) -> Matrix:
        """Rows of schedules of the space, shape (n, columns)."""
        return self._rows((schedule.sketch, schedule.items[1:]) for schedule in schedules)

    def table_rows(self, sketch: str, table: SketchTable, rows: NDArray[np.intp]) -> Matrix:
        """Rows of another task's schedules, taken for ones of `sketch`."""
        return self._rows((sketch, table.schedule(row).items[1:]) for row in rows.tolist())

    def _place(self, name: str) -> None:
        self._places.setdefault(name, len(self._places))

    def _rows(self, schedules: Iterable[tuple[str, Sequence[tuple[str, Value]]]]) -> Matrix:
        cells: dict[tuple[str, Value], list[tuple[int, float]]] = {}
        rows = []
        for sketch, knobs in schedules:
            row = self._blank[sketch].copy()
            for knob, value in knobs:
                # True and 1 are equal, but one is a word.
                key = (knob, repr(value) if isinstance(value, bool) else value)
                if key not in cells:
                    found = ((self._places.get(name), number) for name, number in _numbers(knob, value))
                    cells[key] = [(place, number) for place, number in found if place is not None]
                for place, number in cells[key]:
                    row[place] = number
            rows.append(row)
        return np.array(rows, np.float32).reshape(len(rows), len(self._places))

    def _blank_of(self, sketch: str) -> Matrix:
        row = np.full(len(self._places), np.nan, np.float32)
        for name, place in self._places.items():
            knob, equals, _ = name.partition("=")
            if equals and (knob == SKETCH or knob in self.knobs[sketch]):
                row[place] = float(name == f"{SKETCH}={sketch}")
        return row


def _numbers(knob: str, value: Value) -> list[tuple[str, float]]:
    """Columns that a value fills, with its numbers."""
    if isinstance(value, tuple):
        logs = [math.log2(f) if f > 0 else float(f) - 1 for f in value]
        tails = [(f"{knob}[{i}:]", sum(logs[i:])) for i in range(1, len(value) - 1)]
        return [*((f"{knob}[{i}]", number) for i, number in enumerate(logs)), *tails]
    if isinstance(value, bool) or not isinstance(value, int):
        return [(f"{knob}={value}", 1.0)]
    return [(knob, math.log2(value) if value > 0 else float(value) - 1)]
