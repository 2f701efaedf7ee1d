"""Evolutionary search: tournaments, crossover within a sketch and mutation of one or two knobs; no model."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.strategies.base import Strategy
from search_spaces.space import Schedule

POPULATION = 20
TOURNAMENT = 3
CROSSOVER = 0.5
RANDOM = 0.15
TRIES = 8


class EvolutionarySearch(Strategy):
    """Children of the fastest schedules told so far, mixed with fresh random ones.

    There are no generations: every ask breeds from what has been told by then, so nothing waits for a slow result.
    """

    def ask(self, count: int) -> list[Schedule]:
        """Children of the population, random schedules until there is one."""
        population = self.best(POPULATION)
        asked: list[Schedule] = []
        while len(asked) < count:
            child = None
            if len(self.told) >= POPULATION and population and self.rng.random() >= RANDOM:
                child = self._child(population)
            child = child or self.fresh()
            if child is None:
                break
            self.seen.add(child)
            asked.append(child)
        return asked

    def _child(self, population: Sequence[Schedule]) -> Schedule | None:
        """A new schedule bred from the population, None where none was found soon."""
        for _ in range(TRIES):
            child = self._chosen(population)
            mates = [s for s in population if s.sketch == child.sketch and s != child]
            crossed = bool(mates) and self.rng.random() < CROSSOVER
            if crossed:
                child = self.space.cross(child, self._chosen(mates), self.rng) or child
            for _ in range(int(self.rng.integers(0 if crossed else 1, 3))):
                child = self.space.mutate(child, self.rng) or child
            if child not in self.seen:
                return child
        return None

    def _chosen(self, population: Sequence[Schedule]) -> Schedule:
        """The fastest of a few drawn at random; the population is ordered."""
        return population[int(self.rng.integers(len(population), size=TOURNAMENT).min())]


STRATEGY = EvolutionarySearch
