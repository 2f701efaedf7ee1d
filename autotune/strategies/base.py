"""Strategies: what to try next. One file each; the file's name is the name on the command line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from search_spaces.space import Schedule, ScheduleSpace

Score = Callable[[Sequence[Schedule]], NDArray[np.float64]]


@dataclass(frozen=True)
class Result:
    """What came of one schedule.

    Attributes:
        schedule: As asked.
        seconds: Its time, `inf` where it failed to build, run or verify.
    """

    schedule: Schedule
    seconds: float


class Strategy(ABC):
    """Proposes schedules and learns from results.

    Asks are asynchronous: schedules asked may not yet be told when the next ask comes, results come in any order,
    and what was told may never have been asked (a resumed run). A strategy sees no device, clock, file or model.

    Args:
        space: The space to search.
        rng: The only source of randomness.
        score: A cost model's belief of many schedules at once: lower is faster; None until it has learnt enough.
            Called as often as needed; the model behind it is refitted between calls.
    """

    # True where the tuner should fit a cost model and pass its score.
    uses_model = False

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, score: Score | None = None) -> None:
        self.space = space
        self.rng = rng
        self.score = score

    @abstractmethod
    def ask(self, count: int) -> list[Schedule]:
        """At most `count` new legal schedules, none of which was asked or told before; [] where there is no more."""

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in, also of schedules it never asked for."""
        return None
