"""Beam search over actions, as tinygrad's: the few fastest schedules are carried on, each by all single actions.

An action sets one knob of a schedule to another legal value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces.space import Schedule, ScheduleSpace

WIDTH = 4
# Schedules drawn at random, the fastest of which are the first beam.
START = 16
# A beam is replaced by the best of it and of what it led to after so many actions of each member.
ACTIONS = 6


class BeamSearch(SteppingStrategy):
    """Carries on the `WIDTH` fastest schedules of this beam.

    A level tries a few actions of every member, in turn and in random order, and keeps the fastest of members and
    results. A member that stays goes on with the actions not yet tried. Where no member has any left nothing is
    gained any more, and a beam begins from new random schedules.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._level: dict[Schedule, float] = {}
        self._actions: dict[Schedule, Iterator[Schedule]] = {}
        self._to_draw = START
        self._left = 0

    def step(self) -> Schedule | None:
        """The next action of the beam, None while its first members are drawn."""
        if self._to_draw > 0:
            self._to_draw -= 1
            return None
        if self._left <= 0:
            self._next_level()
        for member in list(self._actions):
            found = next((s for s in self._actions[member] if s not in self.seen), None)
            if found is not None:
                self._left -= 1
                # Members take turns.
                self._actions[member] = self._actions.pop(member)
                return found
        self._end()
        return None

    def tell(self, results: Sequence[Result]) -> None:
        """Those that did not fail stand for the next level."""
        super().tell(results)
        told = {r.schedule: r.seconds for r in results if r.seconds < math.inf and r.schedule in self.told}
        self._level |= told

    def _next_level(self) -> None:
        members = sorted(self._level, key=lambda s: (self._level[s], s.key))[:WIDTH]
        self._level = {s: self._level[s] for s in members}
        self._actions = {s: self._actions.get(s) or self.space.neighbours(s, self.rng) for s in members}
        self._left = ACTIONS * len(members)

    def _end(self) -> None:
        """No action is left: what is told by now may have some, else everything begins anew."""
        if set(sorted(self._level, key=lambda s: (self._level[s], s.key))[:WIDTH]) == set(self._actions):
            self._level, self._actions, self._to_draw = {}, {}, START - 1
        self._left = 0


STRATEGY = BeamSearch
