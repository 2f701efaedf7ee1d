"""Exhaustive search: every schedule, in the order of the space."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from autotune.strategies.base import Aids, Strategy
from search_spaces.space import Schedule, ScheduleSpace


class ExhaustiveSearch(Strategy):
    """Every legal schedule once; for spaces small enough to be measured whole."""

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._unasked = self._in_order()

    def ask(self, count: int) -> list[Schedule]:
        """The next schedules in order."""
        asked = list(islice(self._unasked, count))
        self.seen.update(asked)
        return asked

    def _in_order(self) -> Iterator[Schedule]:
        yield from (s for s in self.space if s not in self.seen)


STRATEGY = ExhaustiveSearch
