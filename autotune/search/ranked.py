"""Strategies that let a cost model choose from a pool of candidates."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, Strategy
from search_spaces.space import Schedule, ScheduleSpace

WARM_UP = 16
# Share of an ask that is drawn at random whatever the model believes.
EXPLORE = 0.1


class RankedSearch(Strategy):
    """Random at first; then what the model chooses of `candidates`, and some at random."""

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._pending: dict[Schedule, None] = {}

    @abstractmethod
    def candidates(self) -> Iterator[Schedule | None]:
        """Legal schedules to choose among, with repetitions, seen ones and None where one could not be made."""

    def ask(self, count: int) -> list[Schedule]:
        """The most promising candidates."""
        asked = self.fresh_many(min(count, WARM_UP - len(self.seen)))
        wanted = count - len(asked)
        # Rounded at random, so that a small ask explores at times instead of never.
        exploring = min(wanted, math.floor(wanted * EXPLORE + self.rng.random()))
        if wanted > exploring:
            chosen = self._chosen(wanted - exploring)
            self.seen.update(chosen)
            asked += chosen
        asked += self.fresh_many(count - len(asked))
        self._pending |= dict.fromkeys(asked)
        return asked

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in."""
        super().tell(results)
        for result in results:
            self._pending.pop(result.schedule, None)

    def _chosen(self, count: int) -> list[Schedule]:
        """Distinct candidates never seen, at random where there is no model."""
        found = [s for s in dict.fromkeys(self.candidates()) if s is not None and s not in self.seen]
        pool = [found[i] for i in self.rng.permutation(len(found))]
        if self.aids.choose is None:
            scores = np.zeros(len(pool)) if self.aids.score is None else self.aids.score(pool)
            return [pool[i] for i in np.argsort(scores, kind="stable")[:count]]
        return [pool[i] for i in self.aids.choose(pool, count, list(self._pending), "")]
