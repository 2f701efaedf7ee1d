"""Cost models: what is believed of a schedule before it is run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cost_models.features import Features
from search_spaces.space import Schedule

Floats = NDArray[np.float64]
# The folder of cost models; a file's name is the model's.
MODELS = "cost_models.models"


class CostModel(ABC):
    """Predicts which schedules of a task are fast.

    Args:
        features: Of the task's schedules; `Features.of_task(task)` builds them.
        seed: For whatever is random in fitting.

    Attributes:
        heads: Names of its opinions on what to measure next, the first one that of `predict`; others may disagree.
    """

    heads: tuple[str, ...] = ("order",)

    def __init__(self, features: Features, seed: int) -> None:
        self.features = features
        self.seed = seed

    @abstractmethod
    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Learns from all measurements so far.

        Args:
            schedules: What was measured.
            seconds: Its times, shape (n,), `inf` where it failed.
        """

    @property
    @abstractmethod
    def ready(self) -> bool:
        """Whether it has learnt enough to be asked."""

    @abstractmethod
    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """Scores of shape (n,), lower is faster; only their order matters. Zeros while it is not ready."""

    def expected_seconds(self, schedules: Sequence[Schedule]) -> Floats:
        """Times of shape (n,) in seconds, of a model that predicts more than an order; NaN where it does not tell."""
        return np.full(len(schedules), np.nan)

    def choose(
        self, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule] = (), head: str = ""
    ) -> list[int]:
        """What to measure next, by one opinion.

        Args:
            schedules: To choose among.
            count: At most so many are chosen.
            pending: Being measured; a model that knows how unsure it is looks elsewhere.
            head: One of `heads`, "" for the first.

        Returns:
            Places in `schedules`, most promising first; of equal ones the earlier.
        """
        return [int(i) for i in np.argsort(self.predict(schedules), kind="stable")[:count]]
