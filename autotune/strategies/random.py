"""Random search without repetition: the control that every other strategy must beat."""

from __future__ import annotations

from autotune.strategies.base import Strategy
from search_spaces.space import Schedule


class RandomSearch(Strategy):
    """Legal schedules at random, each once, until the space is exhausted."""

    def ask(self, count: int) -> list[Schedule]:
        """The next random schedules."""
        return self.fresh_many(count)


STRATEGY = RandomSearch
