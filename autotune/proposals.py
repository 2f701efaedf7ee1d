"""Proposals asked for in a thread of their own: builders and devices are kept busy while a strategy thinks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from autotune.strategies.base import Result
from search_spaces.space import Schedule

# Seconds after which a thinking strategy lets the loop that feeds devices go on, which needs moments only, but many.
_TURN_SECONDS = 5e-4


@dataclass(frozen=True)
class Proposal:
    """What a strategy asks to have measured.

    Attributes:
        schedules: In order; none where it has no more.
        expected: Seconds that its model expects of each, None where it does not tell.
    """

    schedules: Sequence[Schedule]
    expected: Sequence[float | None]


class Proposals:
    """One ask at a time, each after all was told that had come by then; only its thread touches the strategy.

    Args:
        tell: Takes results in.
        ask: Proposes at most so many.
    """

    def __init__(self, tell: Callable[[Sequence[Result]], None], ask: Callable[[int], Proposal]) -> None:
        self._tell, self._ask = tell, ask
        self._thread = ThreadPoolExecutor(1, "strategy")
        self._untold: list[Result] = []
        self._coming: Future[Proposal] | None = None
        self._turn = sys.getswitchinterval()

    @property
    def awaited(self) -> bool:
        """Whether an ask is under way, or its answer was not taken."""
        return self._coming is not None

    def tell(self, results: Sequence[Result]) -> None:
        """To be told before the next ask."""
        self._untold += results

    def ask(self, count: int) -> None:
        """Starts an ask; call when none is awaited."""
        assert self._coming is None, "one ask at a time"
        told, self._untold = self._untold, []
        sys.setswitchinterval(min(self._turn, _TURN_SECONDS))
        self._coming = self._thread.submit(self._next, told, count)

    def _next(self, told: Sequence[Result], count: int) -> Proposal:
        self._tell(told)
        return self._ask(count)

    def take(self, *, wait: bool = False) -> Proposal | None:
        """The answer, None while there is none; raises what the strategy raised."""
        if self._coming is None or not (wait or self._coming.done()):
            return None
        answer, self._coming = self._coming.result(), None
        return answer

    def close(self) -> None:
        """Waits for what is under way, whose answer is dropped, and tells the rest."""
        self._thread.shutdown()
        sys.setswitchinterval(self._turn)
        self._tell(self._untold)
        self._untold = []
