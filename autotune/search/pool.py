"""Candidates for a model to choose among: around the fastest schedules, and drawn from everywhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from itertools import islice

import numpy as np

from search_spaces.listed import ListedSpace
from search_spaces.space import Schedule, ScheduleSpace, Value

# A space of at most so many schedules is listed, with at most so many combinations to look through for them.
_LISTED, _COMBINATIONS = 20_000, 100_000
# Of a listed space so many are candidates in a round, others in every one.
_CHUNK = 4096
# Of any other: random candidates that are kept, and how many of them are new in every round.
_KEPT, _RENEWED = 900, 48
# Fastest schedules whose whole neighbourhood is in every round, and what is bred from them besides.
INCUMBENTS = 8
_DOUBLE_MUTATIONS, _CROSSES = 8, 16
# A knob of many values offers only some of them, or it would drown the others.
_VALUES = 32
_NEIGHBOURHOODS = 64


class Neighbourhoods:
    """All schedules one change away from a schedule; those of the latest ones asked for are remembered.

    Args:
        space: The space.
        rng: The only source of randomness.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._known: dict[Schedule, list[Schedule]] = {}

    def __call__(self, schedule: Schedule) -> list[Schedule]:
        """Its neighbours in random order, of a knob of very many values a selection."""
        near = self._known.pop(schedule, None)
        if near is None:
            found = (self._space.changed(schedule, name, value) for name, value in self._moves(schedule))
            near = [s for s in found if s is not None and s != schedule]
        self._known[schedule] = near
        if len(self._known) > _NEIGHBOURHOODS:
            del self._known[next(iter(self._known))]
        return near

    def _moves(self, schedule: Schedule) -> list[tuple[str, Value]]:
        moves = [
            (knob.name, knob.values[i])
            for knob in self._space.sketch(schedule.sketch).knobs
            for i in self._rng.permutation(len(knob.values))[:_VALUES]
        ]
        return [moves[i] for i in self._rng.permutation(len(moves))]


class Pool:
    """Candidates that were never asked.

    Of a space that can be listed large parts are candidates in every round: where few schedules are fast, it is the
    model's view of the whole that finds them. Of any other random ones stay for many rounds, some of them replaced in
    each, so that it costs no more than a small one.

    Args:
        space: The space.
        rng: The only source of randomness.
        near: Neighbourhoods of the same space.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, near: Neighbourhoods) -> None:
        self._space = space
        self._rng = rng
        self._near = near
        self._random: list[Schedule] = []
        self._listed = False

    def round(self, incumbents: Sequence[Schedule], others: Sequence[Schedule], seen: Set[Schedule]) -> list[Schedule]:
        """Distinct candidates in random order, so that equal beliefs prefer none.

        Args:
            incumbents: The fastest schedules, to breed from.
            others: Further candidates.
            seen: What is not to be offered.
        """
        if not self._random and (listed := _listing(self._space)) is not None:
            self._random, self._listed = listed, True
        if self._listed:
            drawn = [self._random[i] for i in self._rng.permutation(len(self._random))[:_CHUNK]]
        else:
            self._renew(seen)
            drawn = self._random
        bred = (s for s in self._bred(incumbents) if s is not None)
        found = [s for s in dict.fromkeys((*drawn, *others, *bred)) if s not in seen]
        return [found[i] for i in self._rng.permutation(len(found))]

    def _renew(self, seen: Set[Schedule]) -> None:
        kept = [s for s in self._random if s not in seen]
        if len(kept) > _KEPT - _RENEWED:
            kept = [kept[i] for i in np.sort(self._rng.permutation(len(kept))[: _KEPT - _RENEWED])]
        wanted = max(_RENEWED, min(_KEPT, self._space.cartesian) - len(kept))
        drawn = (self._space.sample(self._rng) for _ in range(wanted))
        self._random = list(dict.fromkeys([*kept, *(s for s in drawn if s is not None)]))

    def _bred(self, incumbents: Sequence[Schedule]) -> Iterator[Schedule | None]:
        for incumbent in incumbents:
            near = self._near(incumbent)
            yield from near
            for _ in range(min(_DOUBLE_MUTATIONS, len(near))):
                yield self._space.mutate(near[int(self._rng.integers(len(near)))], self._rng)
        for _ in range(_CROSSES if len(incumbents) > 1 else 0):
            one, other = (incumbents[i] for i in self._rng.choice(len(incumbents), size=2, replace=False))
            if one.sketch == other.sketch:
                yield self._space.cross(one, other, self._rng)


def _listing(space: ScheduleSpace) -> list[Schedule] | None:
    """Every legal schedule, None where there are too many."""
    if isinstance(space, ListedSpace):
        return list(space.schedules) if len(space.schedules) <= _LISTED else None
    if space.cartesian > _COMBINATIONS:
        return None
    listed = list(islice(space, _LISTED + 1))
    return listed if len(listed) <= _LISTED else None
