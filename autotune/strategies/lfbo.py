"""Likelihood-free Bayesian optimisation as Helion's default search has it, with asks of any size."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.search.ranked import RankedSearch
from search_spaces.space import Schedule

# Schedules searched around at a time.
COPIES = 5
NEIGHBOURS = 60
RADIUS = 2
RANDOM = 256


class LikelihoodFreeSearch(RankedSearch):
    """A random forest's belief of "among the fastest" ranks schedules near the fastest and random ones.

    After Helion's LFBO pattern search (pytorch/helion, 2025): five copies, neighbours within radius two. Without its
    generations: every ask has a forest that knows what was told by then.
    """

    model = "lfbo_forest"

    def candidates(self) -> Iterator[Schedule | None]:
        """Up to two changes from the fastest schedules, and random ones."""
        for centre in self.best(COPIES):
            yield from self.space.neighbours(centre, self.rng)
            for _ in range(NEIGHBOURS):
                near = centre
                for _ in range(RADIUS):
                    near = self.space.mutate(near, self.rng) or near
                yield near
        for _ in range(RANDOM):
            yield self.space.sample(self.rng)


STRATEGY = LikelihoodFreeSearch
