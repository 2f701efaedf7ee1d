"""The control: a model that has learnt nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cost_models.model import CostModel, Floats
from search_spaces.space import Schedule


class RandomModel(CostModel):
    """Scores at random, the same schedule always alike; any other model must beat it."""

    @property
    def ready(self) -> bool:
        """Always."""
        return True

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Learns nothing."""

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """A number in [0, 1) from the hash of each schedule and the seed."""
        seeds = (np.random.SeedSequence([self.seed, int(s.key, 16)]) for s in schedules)
        return np.array([s.generate_state(1)[0] / 2.0**32 for s in seeds], np.float64)


MODEL = RandomModel
