"""What was learnt of other tasks leads, and hands over to a search guided by this task's own measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, Strategy
from autotune.strategies.xgb import ModelGuidedSearch
from search_spaces.space import Schedule, ScheduleSpace

# The prior proposes all until so much was asked; its share then falls with the measurements, to none at all.
LEAD = 24
HALF_LIFE = 24
LAST = 128


class PriorGuidedSearch(Strategy):
    """Measures what the prior expects most of, which follows the results; later more and more what the model prefers.

    Without a prior it is the model-guided search.
    """

    model = ModelGuidedSearch.model
    uses_prior = True

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._successor = ModelGuidedSearch(space, rng, self.aids)
        self._successor.memory = self.memory

    def ask(self, count: int) -> list[Schedule]:
        """The prior's share, then the model's."""
        asked: list[Schedule] = []
        if self.aids.prior is not None:
            # Rounded at random, so that a small ask is at times the prior's and at times the model's.
            wanted = min(count, math.floor(count * self._share() + self.rng.random()))
            if wanted:
                asked = self.aids.prior.propose(self.rng, wanted, self.seen)
            self.seen.update(asked)
        return asked + self._successor.ask(count - len(asked)) if len(asked) < count else asked

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in, the prior too."""
        super().tell(results)
        if self.aids.prior is not None:
            self.aids.prior.tell(results)

    def _share(self) -> float:
        """Of an ask, what the prior proposes."""
        asked = len(self.seen)
        if asked < LEAD:
            return 1.0
        return 0.0 if asked >= LAST else 0.5 ** ((asked - LEAD) / HALF_LIFE)


STRATEGY = PriorGuidedSearch
