"""Greedy iterated local search: downhill at the first gain; from a local optimum, kicked a few knobs away."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces.space import Schedule, ScheduleSpace

WARM_UP = 16
KICK = 2
# Kicks from one local optimum that led to nothing better; then it starts from somewhere else.
KICKS = 5


class GreedyIteratedLocalSearch(SteppingStrategy):
    """Tries the neighbours of where it stands in random order and moves as soon as one is faster.

    When all of them were tried it stands at a local optimum. It kicks the best of these and descends from where that
    lands; the new local optimum is kept where it is better. Kicks are asked while neighbours are still in flight.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._here: Schedule | None = None
        self._seconds = math.inf
        self._untried: Iterator[Schedule] = iter(())
        self._home: Schedule | None = None
        self._kicked: set[Schedule] = set()
        self._kicks = 0

    def step(self) -> Schedule | None:
        """The next neighbour, or a kick."""
        if self._here is None or len(self.seen) < WARM_UP:
            return None
        fresh = next((s for s in self._untried if s not in self.seen), None)
        return fresh if fresh is not None else self._kick()

    def tell(self, results: Sequence[Result]) -> None:
        """Moves to what is faster, or to where a kick landed."""
        super().tell(results)
        for result in results:
            if result.schedule in self.told and result.seconds < math.inf:
                landed = result.schedule in self._kicked
                if result.seconds < self._seconds or landed:
                    self._move(result)
            self._kicked.discard(result.schedule)

    def _move(self, result: Result) -> None:
        self._here, self._seconds = result.schedule, result.seconds
        self._untried = self.space.neighbours(result.schedule, self.rng)

    def _kick(self) -> Schedule | None:
        """From the better of this local optimum and the one before."""
        if self._home is None or self._seconds < self.told[self._home]:
            self._home, self._kicks = self._here, 0
        self._kicks += 1
        if self._home is None or self._kicks > KICKS:
            # Whatever random schedule is asked instead is landed on as well.
            kicked = self.fresh()
            self._home, self._kicks = None, 0
        else:
            kicked = self.unseen_mutant(self._home, KICK)
        if kicked is not None:
            self._kicked.add(kicked)
        return kicked


STRATEGY = GreedyIteratedLocalSearch
