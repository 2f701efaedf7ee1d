"""Bayesian optimisation: a Gaussian process over the logarithm of time, asked for the expected improvement."""

from __future__ import annotations

from collections.abc import Iterator

from autotune.search.ranked import RankedSearch
from search_spaces.space import Schedule

INCUMBENTS = 5
RANDOM = 256


class GaussianProcessSearch(RankedSearch):
    """Ranks the neighbours of the fastest schedules and random ones by expected improvement."""

    model = "gaussian_process"

    def candidates(self) -> Iterator[Schedule | None]:
        """One change from the fastest schedules, and random ones."""
        for incumbent in self.best(INCUMBENTS):
            yield from self.space.neighbours(incumbent, self.rng)
        for _ in range(RANDOM):
            yield self.space.sample(self.rng)


STRATEGY = GaussianProcessSearch
