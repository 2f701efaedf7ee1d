"""Reinforcement learning on measured rewards alone: a policy over the decisions, trained as the results come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from autotune.policy.learning import Learning
from autotune.policy.policy import Policy
from autotune.policy.reward import rewards
from autotune.strategies.base import Aids, Result, Strategy
from search_spaces.space import Schedule, ScheduleSpace

WARM_UP = 16
# Earlier results that are learnt from again with the new ones.
REPLAY = 64
# Schedules drawn for every one asked, since some were seen before; so often, then fresh ones are asked.
DRAWN = 4
TRIES = 3
# Share of the draws that adjust one of the fastest, the chance that each of its decisions stays, and how much less
# likely each next one is to be adjusted.
NEAR = 0.5
KEEP = 0.7
INCUMBENTS = 8
LESS = 0.8
# Share of the decisions that are taken whatever the policy prefers.
UNIFORM = 0.1
FILE = "policy.npz"
LEARNING = Learning(rate=0.01, epochs=5, entropy=0.05, floor=0.2, rescue=0.2)


class ReinforcementLearning(Strategy):
    """A policy trained by PPO on what was measured; it uses no cost model.

    Its actions are whole schedules, decision by decision, and adjustments of the fastest ones. The reward is half the
    relative speed, half the rank, so that neither units nor one slow schedule decide; failures get nothing. Each
    update sees the new results and some of the earlier ones. Where the policy only repeats what was tried, fresh
    random schedules are asked, so it goes on until the space is exhausted.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._policy = Policy(int(rng.integers(2**31)))
        self._news: dict[Schedule, None] = {}

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in; they are learnt from at the next ask."""
        super().tell(results)
        self._news.update({r.schedule: None for r in results if r.schedule in self.told})

    def ask(self, count: int) -> list[Schedule]:
        """Random schedules at first, then what the policy draws."""
        asked: list[Schedule] = []
        if len(self.told) >= WARM_UP and count:
            self._learn()
            for schedule in islice(self._drawn(DRAWN * count), count):
                self.seen.add(schedule)
                asked.append(schedule)
        return asked + self.fresh_many(count - len(asked))

    def save(self, folder: Path) -> None:
        """Writes the policy, for `Policy.load`."""
        self._policy.save(folder / FILE)

    def _learn(self) -> None:
        """One update on the new results and a random share of the earlier ones."""
        if not self._news:
            return
        earlier = [s for s in self.told if s not in self._news]
        replayed = self.rng.permutation(len(earlier))[:REPLAY].tolist()
        batch = [*self._news, *(earlier[i] for i in replayed)]
        self._news = {}
        gained = rewards(np.array([self.told[s] for s in batch]), np.array(list(self.told.values())))
        self._policy.update(self.space, self.aids.context, batch, gained, LEARNING)

    def _drawn(self, count: int) -> Iterator[Schedule]:
        """New schedules, of each draw in random order."""
        for _ in range(TRIES):
            adjusted = int(self.rng.binomial(count, NEAR)) if self.best(1) else 0
            drawn = self._policy.sample(self.space, self.aids.context, self.rng, count - adjusted, UNIFORM)
            drawn += self._adjusted(adjusted) if adjusted else []
            for index in self.rng.permutation(len(drawn)):
                if drawn[index] not in self.seen:
                    yield drawn[index]

    def _adjusted(self, count: int) -> list[Schedule]:
        incumbents = self.best(INCUMBENTS)
        weights = LESS ** np.arange(len(incumbents))
        picks = self.rng.choice(len(incumbents), size=count, p=weights / weights.sum())
        starts = [incumbents[i] for i in picks]
        return self._policy.adjust(self.space, self.aids.context, starts, self.rng, KEEP, UNIFORM)


STRATEGY = ReinforcementLearning
