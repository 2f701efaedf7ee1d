"""Simulated annealing: from where it stands to a neighbour, uphill too while it is hot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces.space import Schedule, ScheduleSpace

WARM_UP = 16
# In units of the logarithm of time: when hot, 1.2 times slower is accepted one time in three.
HOT, COLD = 0.18, 0.005
COOLING = 0.97
# Results in a row without a step; then it goes on from the best, hot again.
PATIENCE = 30
# Share of steps that leave for anywhere, so that no sketch is closed to it.
FAR = 0.08


class Annealing(SteppingStrategy):
    """One walker. Several of its steps are in flight at a time; each is accepted or not when its result comes.

    Times are compared as ratios, so the temperature needs no knowledge of the kernel.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._here: Schedule | None = None
        self._seconds = math.inf
        self._temperature = HOT
        self._refused = 0

    def step(self) -> Schedule | None:
        """A neighbour of where the walker stands."""
        if self._here is None or len(self.seen) < WARM_UP or self.rng.random() < FAR:
            return None
        return self.unseen_mutant(self._here, 1)

    def tell(self, results: Sequence[Result]) -> None:
        """Walks to the results that are accepted."""
        super().tell(results)
        for result in results:
            if result.schedule in self.told:
                self._consider(result)

    def _consider(self, result: Result) -> None:
        warm = len(self.told) >= WARM_UP
        if result.seconds < math.inf and self._accepts(result.seconds, self._temperature if warm else 0.0):
            self._here, self._seconds = result.schedule, result.seconds
            self._refused = 0
        else:
            self._refused += 1
        if warm:
            self._temperature = max(COLD, self._temperature * COOLING)
        if self._refused >= PATIENCE:
            self._reheat()

    def _accepts(self, seconds: float, temperature: float) -> bool:
        """Metropolis' rule on the ratio of times."""
        if seconds < self._seconds:
            return True
        return temperature > 0 and self.rng.random() < (self._seconds / seconds) ** (1 / temperature)

    def _reheat(self) -> None:
        best = self.best(1)
        if best:
            self._here, self._seconds = best[0], self.told[best[0]]
        self._temperature, self._refused = HOT, 0


STRATEGY = Annealing
