"""Schedules of one space in another: as near as its values and limits allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from search_spaces.schedule import SKETCH, Schedule, Value
from search_spaces.space import ScheduleSpace


def nearest(space: ScheduleSpace, sketch: str, wanted: Mapping[str, Value]) -> Schedule | None:
    """The schedule of a sketch whose knobs, decided in order, stay nearest to the values wanted.

    None where the sketch has no legal schedule. A knob of which nothing is wanted takes its first legal value.
    """

    def order(prefix: Schedule, options: tuple[Value, ...]) -> Sequence[Value]:
        knob = space.next_knob(prefix)
        if knob is None or knob not in wanted:
            return options
        return sorted(options, key=lambda value: distance(value, wanted[knob]))

    return space.complete(Schedule(((SKETCH, sketch),)), order)


def distance(one: Value, other: Value) -> float:
    """How far apart two values of a knob are: doublings between whole numbers, or between factors of tiles."""
    if one == other and type(one) is type(other):
        return 0.0
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return sum(map(distance, one, other))
    if isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool) and not isinstance(other, bool):
        return abs(_log(one) - _log(other))
    return 1.0


def _log(number: int) -> float:
    return math.log2(number) if number > 0 else float(number) - 1
