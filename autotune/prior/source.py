"""A task learnt from, as seen from another task's space: how slow it believes each schedule there to be."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.prior.encoding import Encoding
from autotune.prior.experience import FLOOR, Experience, Floats, SketchTable
from search_spaces import registry
from search_spaces.schedule import Schedule, Value
from search_spaces.space import ScheduleSpace, SketchSpace

Predict = Callable[[NDArray[np.float32]], Floats]
# Two sketches of different names are taken for the same where they share so much of their knobs.
ALIKE = 0.75
# Rows that the surrogate is fitted to.
ROWS = 4000


def matches(space: ScheduleSpace, experience: Experience) -> dict[str, SketchTable]:
    """For each sketch of `space` that the experience knows, by its name or by its knobs, the table that tells of it."""
    found = {}
    for sketch in space.sketches:
        known = [(_likeness(sketch, table), table) for table in experience.tables]
        likeness, table = max(known, key=lambda pair: pair[0])
        if likeness >= ALIKE:
            found[sketch.sketch] = table
    return found


def _likeness(sketch: SketchSpace, table: SketchTable) -> float:
    """Share of the knobs of both that both have, and more where the names of the sketches are equal."""
    ours, theirs = {k.name for k in sketch.knobs}, set(table.knobs)
    shared = len(ours & theirs) / max(1, len(ours | theirs))
    return 1.0 + shared if sketch.sketch == table.sketch and shared >= 0.5 else shared


class Source:
    """One experience, bound to the space of a task.

    What was recorded is looked up by the knobs that both have; where the experience has a knob more, by the best of its
    values. What was not recorded is predicted by gradient-boosted trees, fitted when first needed.

    Args:
        experience: What was measured there.
        tables: For sketches of the space the table that tells of them, one at least.
        encoding: Of the space's schedules.
    """

    def __init__(self, experience: Experience, tables: Mapping[str, SketchTable], encoding: Encoding) -> None:
        self.experience = experience
        self.tables = tables
        self._encoding = encoding
        self._shared = {name: _shared(name, table, encoding) for name, table in tables.items()}
        self._known = {name: _lookup(table, self._shared[name]) for name, table in tables.items()}
        self._surrogate: Predict | None = None

    def slowdown(self, schedules: Sequence[Schedule], rows: NDArray[np.float32]) -> Floats:
        """Believed logarithms to base 2 of time over the best, cut at FLOOR; NaN where it knows no such sketch.

        Args:
            schedules: Of the space.
            rows: Their encoding.
        """
        found = np.full(len(schedules), np.nan)
        missing = []
        for index, schedule in enumerate(schedules):
            known = self._known.get(schedule.sketch)
            if known is None:
                continue
            knobs = schedule.knobs
            slowdown = known.get(tuple(knobs[name] for name in self._shared[schedule.sketch]))
            if slowdown is None:
                missing.append(index)
            else:
                found[index] = slowdown
        if missing:
            surrogate = self._surrogate = self._surrogate or self._fitted()
            found[missing] = np.clip(surrogate(rows[missing]), 0.0, FLOOR)
        return found

    def fastest(self, sketch: str, count: int) -> list[dict[str, Value]]:
        """The values of the shared knobs of its fastest schedules of a sketch, fastest first."""
        table, shared = self.tables[sketch], self._shared[sketch]
        rows = table.fastest[:count].tolist()
        return [{k: v for k, v in table.schedule(row).items[1:] if k in shared} for row in rows]

    def _fitted(self) -> Predict:
        rows, labels = [], []
        for name, table in self.tables.items():
            chosen = _chosen(table, ROWS // len(self.tables))
            rows.append(self._encoding.table_rows(name, table, chosen))
            labels.append(np.minimum(table.slowdown[chosen], FLOOR))
        # Found by name, so that nothing here needs xgboost to be imported.
        fit = registry.find("autotune.prior", "surrogate", "surrogate")
        fitted: Predict = fit(np.concatenate(rows), np.concatenate(labels))
        return fitted


def _shared(sketch: str, table: SketchTable, encoding: Encoding) -> tuple[str, ...]:
    ours = encoding.knobs[sketch]
    return tuple(name for name in ours if name in table.knobs)


def _lookup(table: SketchTable, shared: Sequence[str]) -> dict[tuple[Value, ...], float]:
    columns = [table.knobs.index(name) for name in shared]
    cut = np.minimum(table.slowdown, FLOOR).tolist()
    found: dict[tuple[Value, ...], float] = {}
    for picks, slowdown in zip(table.picks[:, columns].tolist(), cut, strict=True):
        key = tuple(table.values[column][pick] for column, pick in zip(columns, picks, strict=True))
        found[key] = min(slowdown, found.get(key, math.inf))
    return found


def _chosen(table: SketchTable, most: int) -> NDArray[np.intp]:
    """All rows, or half the fastest and the others evenly from the rest."""
    order = np.argsort(table.slowdown, kind="stable")
    if len(order) <= most:
        return order
    half = most // 2
    return np.concatenate([order[:half], order[np.linspace(half, len(order) - 1, most - half).astype(np.intp)]])
