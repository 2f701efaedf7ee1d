"""A space given by the list of its schedules, as recordings of measured spaces are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from search_spaces.knob import Constraint, Family, Knob
from search_spaces.schedule import Schedule, Value
from search_spaces.space import ScheduleSpace, SketchSpace

REASON = "is not in the list"


@dataclass(frozen=True)
class ListedSpace(ScheduleSpace):
    """A space whose legal schedules are those listed, however sparse; drawn uniformly from the list.

    Attributes:
        schedules: Every legal schedule, at least one, each once.
    """

    schedules: tuple[Schedule, ...] = ()

    @staticmethod
    def of(schedules: Sequence[Schedule], families: dict[str, Family] | None = None, identity: str = "") -> ListedSpace:
        """The space of `schedules`.

        Args:
            schedules: Complete, distinct; all of one sketch have the same knobs in the same order.
            families: What each knob decides, tile sizes where it does not say.
            identity: Hash of what else tells this space from others.

        Raises:
            ValueError: There is none, one is there twice, or two of one sketch differ in their knobs.
        """
        groups: dict[str, list[Schedule]] = defaultdict(list)
        for schedule in schedules:
            groups[schedule.sketch].append(schedule)
        if not groups or len(set(schedules)) != len(schedules):
            raise ValueError("a listed space needs schedules, each of them once")
        sketches = tuple(_sketch_space(name, group, families or {}) for name, group in groups.items())
        return ListedSpace(sketches, identity, tuple(schedules))

    @cached_property
    def members(self) -> frozenset[Schedule]:
        """The schedules, for fast membership."""
        return frozenset(self.schedules)

    def sample(self, rng: np.random.Generator, prefix: Schedule | None = None) -> Schedule | None:
        """A schedule of the list that starts with `prefix`, each as likely; None where there is none."""
        pool = self._starting_with(prefix.items) if prefix is not None and prefix.items else self.schedules
        return pool[int(rng.integers(len(pool)))] if pool else None

    def changed(self, schedule: Schedule, knob: str, value: Value) -> Schedule | None:
        """The schedule with another value of one knob, None where the list lacks it."""
        changed = Schedule(tuple((k, value if k == knob else v) for k, v in schedule.items))
        return changed if changed in self.members else None

    def _starting_with(self, items: tuple[tuple[str, Value], ...]) -> tuple[Schedule, ...]:
        if len(items) == 1:
            return self._by_sketch.get(str(items[0][1]), ())
        return tuple(s for s in self._by_sketch.get(str(items[0][1]), ()) if s.items[: len(items)] == items)

    @cached_property
    def _by_sketch(self) -> dict[str, tuple[Schedule, ...]]:
        groups: dict[str, list[Schedule]] = defaultdict(list)
        for schedule in self.schedules:
            groups[schedule.sketch].append(schedule)
        return {name: tuple(group) for name, group in groups.items()}


def _sketch_space(name: str, group: Sequence[Schedule], families: dict[str, Family]) -> SketchSpace:
    """Knobs with the values that occur, and for each depth the limit that the prefix must occur."""
    names = [k for k, _ in group[0].items[1:]]
    if any([k for k, _ in s.items[1:]] != names for s in group):
        raise ValueError(f"the schedules of {name} differ in their knobs")
    rows = [tuple(v for _, v in s.items[1:]) for s in group]
    knobs = tuple(
        Knob(knob, families.get(knob, Family.TILE_SIZES), _ordered({row[depth] for row in rows}))
        for depth, knob in enumerate(names)
    )
    constraints = tuple(
        Constraint(REASON, tuple(names[:depth]), _Among({row[:depth] for row in rows}))
        for depth in range(2, len(names) + 1)
    )
    return SketchSpace(name, knobs, constraints)


class _Among:
    """Whether values are a tuple of the set; a class, so that a space can travel to other processes."""

    def __init__(self, known: set[tuple[Value, ...]]) -> None:
        self._known = known

    def __call__(self, *values: Value) -> bool:
        return values in self._known


def _ordered(values: set[Value]) -> tuple[Value, ...]:
    """Numbers by size, words by the alphabet."""
    return tuple(sorted(values, key=lambda v: (str(type(v)), v)))
