"""Reinforcement learning on the cost model: a policy that climbs the model's belief where no space can be listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from autotune.policy.learning import Learning
from autotune.policy.policy import Policy
from autotune.search.pool import Neighbourhoods
from autotune.search.ranked import RankedSearch
from autotune.strategies.base import Aids
from search_spaces.space import Schedule, ScheduleSpace

# Rounds of drawing, scoring and learning in one ask, and schedules drawn in each.
ROUNDS = 5
DRAWN = 64
# Share of the draws that adjust what is believed fastest so far, and the chance that each of its decisions stays.
NEAR = 0.5
KEEP = 0.7
LEADERS = 16
# Share of the decisions that are taken whatever the policy prefers.
UNIFORM = 0.1
# Fastest schedules measured whose neighbours are candidates too.
INCUMBENTS = 8
LEARNING = Learning(rate=0.02, epochs=4, entropy=0.05, floor=0.3, rescue=0.2)


class ModelTrainedPolicy(RankedSearch):
    """A policy made anew for every ask and trained by PPO on the ranks of the cost model's scores.

    It forgets what earlier models believed: one kept from ask to ask is drawn to their errors. What it drew is joined
    by the neighbours of the fastest schedules measured, and the model chooses among them.
    """

    model = "hybrid"

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._near = Neighbourhoods(space, rng)

    def candidates(self) -> Iterator[Schedule | None]:
        """Everything that the policy drew while it was trained, and the incumbents' neighbours."""
        incumbents = self.best(INCUMBENTS)
        yield from self._climb(incumbents)
        for incumbent in incumbents:
            yield from self._near(incumbent)

    def _climb(self, incumbents: Iterable[Schedule]) -> dict[Schedule, float]:
        """Schedules that a new policy drew, with their scores; it begins with what was measured."""
        believed: dict[Schedule, float] = {}
        if self.aids.score is None:
            return believed
        policy = Policy(int(self.rng.integers(2**31)))
        self._believe(incumbents, believed)
        for _ in range(ROUNDS):
            drawn = list(dict.fromkeys(self._drawn(policy, believed)))
            self._believe(drawn, believed)
            ranks = _ranks(np.array([believed[s] for s in drawn]))
            policy.update(self.space, self.aids.context, drawn, ranks, LEARNING)
        return believed

    def _drawn(self, policy: Policy, believed: dict[Schedule, float]) -> list[Schedule]:
        leaders = sorted(believed, key=believed.__getitem__)[:LEADERS]
        near = int(NEAR * DRAWN) if leaders else 0
        drawn = policy.sample(self.space, self.aids.context, self.rng, DRAWN - near, UNIFORM)
        if not near:
            return drawn
        starts = [leaders[i] for i in self.rng.integers(len(leaders), size=near)]
        return drawn + policy.adjust(self.space, self.aids.context, starts, self.rng, KEEP, UNIFORM)

    def _believe(self, schedules: Iterable[Schedule], believed: dict[Schedule, float]) -> None:
        new = [s for s in schedules if s not in believed]
        if new and self.aids.score is not None:
            believed.update(zip(new, self.aids.score(new).tolist(), strict=True))


def _ranks(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of the scores that are not better, shape (n,)."""
    return 1.0 - np.searchsorted(np.sort(scores), scores, side="left") / len(scores)


STRATEGY = ModelTrainedPolicy
