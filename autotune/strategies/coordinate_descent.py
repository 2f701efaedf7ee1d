"""Coordinate descent: one knob after the other is set to its best value, the others staying as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces.space import Schedule, ScheduleSpace

WARM_UP = 16
# A knob of many values offers only some of them in one pass.
VALUES_PER_KNOB = 12
# Random schedules of which the best is where the next descent starts.
STARTS = 8


class CoordinateDescent(SteppingStrategy):
    """Scans one knob at a time around the fastest schedule of this descent.

    A faster value is taken as soon as it is told, and the scan goes on with the next knob. A descent ends when all
    knobs were scanned since the last gain; the next one starts from the best of a few random schedules.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._here: Schedule | None = None
        self._seconds = math.inf
        self._to_draw = WARM_UP
        self._scan: Iterator[Schedule] = iter(())

    def step(self) -> Schedule | None:
        """The next value of the knob being scanned, None where a start must be drawn."""
        if self._here is not None and self._to_draw <= 0:
            found = next((s for s in self._scan if s not in self.seen), None)
            if found is not None:
                return found
            self._here, self._seconds, self._to_draw = None, math.inf, STARTS
        self._to_draw -= 1
        return None

    def tell(self, results: Sequence[Result]) -> None:
        """Goes on from what is faster."""
        super().tell(results)
        for result in results:
            if result.schedule in self.told and result.seconds < self._seconds:
                changed = self._changed_knob(result.schedule)
                self._here, self._seconds = result.schedule, result.seconds
                self._scan = self._scanned(result.schedule, changed)

    def _changed_knob(self, schedule: Schedule) -> str:
        """The knob in which it differs from where the descent stands, "" where that is not one alone."""
        if self._here is None or self._here.sketch != schedule.sketch:
            return ""
        differing = [k for (k, v), (_, w) in zip(schedule.items, self._here.items, strict=True) if v != w]
        return differing[0] if len(differing) == 1 else ""

    def _scanned(self, schedule: Schedule, last: str) -> Iterator[Schedule]:
        """Neighbours knob by knob, that of the last gain at the end."""
        knobs = self.space.sketch(schedule.sketch).knobs
        order = [knobs[i] for i in self.rng.permutation(len(knobs))]
        for knob in sorted(order, key=lambda k: k.name == last):
            for index in self.rng.permutation(len(knob.values))[:VALUES_PER_KNOB]:
                found = self.space.changed(schedule, knob.name, knob.values[index])
                if found is not None:
                    yield found


STRATEGY = CoordinateDescent
