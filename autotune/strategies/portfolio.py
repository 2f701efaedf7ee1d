"""A portfolio: several strategies share what is measured, and a bandit gives the next asks to those that pay."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.strategies.annealing import Annealing
from autotune.strategies.base import Aids, Result, Strategy
from autotune.strategies.coordinate_descent import CoordinateDescent
from autotune.strategies.evolutionary import EvolutionarySearch
from autotune.strategies.xgb import ModelGuidedSearch
from search_spaces.space import Schedule, ScheduleSpace

MEMBERS: tuple[type[Strategy], ...] = (ModelGuidedSearch, EvolutionarySearch, Annealing, CoordinateDescent)
# Random schedules before any member is asked.
WARM_UP = 16
# Results that a member's record goes back, and results that a new one is compared with.
WINDOW, RIVALS = 40, 64
# So that the fast end counts: beating all of the rivals pays 1, beating half of them next to nothing.
POWER = 16
# Credit that every member has besides, so that one that failed early is heard again.
FLOOR = 0.015


class Portfolio(Strategy):
    """Draws for every schedule the member that proposes it, in proportion to what its last proposals were worth.

    All members have one memory and are told everything. A result is credited to who proposed it by the share of the
    latest results that it beats.
    """

    model = ModelGuidedSearch.model

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._members = [
            make(space, own, self.aids) for make, own in zip(MEMBERS, rng.spawn(len(MEMBERS)), strict=True)
        ]
        for member in self._members:
            member.memory = self.memory
        self._credits: list[deque[float]] = [deque([1.0], maxlen=WINDOW) for _ in MEMBERS]
        self._proposer: dict[Schedule, int] = {}
        self._latest: deque[float] = deque(maxlen=RIVALS)

    def ask(self, count: int) -> list[Schedule]:
        """What the members drawn propose."""
        asked = self.fresh_many(min(count, WARM_UP - len(self.seen)))
        drawn = self.rng.multinomial(count - len(asked), self._shares())
        for index, (member, share) in enumerate(zip(self._members, drawn.tolist(), strict=True)):
            proposed = member.ask(share) if share else []
            self._proposer |= dict.fromkeys(proposed, index)
            asked += proposed
        return asked + self.fresh_many(count - len(asked))

    def tell(self, results: Sequence[Result]) -> None:
        """Credits those who proposed them, and tells all members."""
        for result in results:
            proposer = self._proposer.pop(result.schedule, None)
            if proposer is not None and self._latest:
                beaten = sum(result.seconds < t for t in self._latest) / len(self._latest)
                self._credits[proposer].append(beaten**POWER)
            self._latest.append(result.seconds)
        super().tell(results)
        for member in self._members:
            member.tell(results)

    def _shares(self) -> NDArray[np.float64]:
        credit = [FLOOR + float(np.mean(c)) for c in self._credits]
        return np.array(credit) / sum(credit)


STRATEGY = Portfolio
