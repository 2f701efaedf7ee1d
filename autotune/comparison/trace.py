"""What one search over a recorded space did, and what it had found after every measurement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.race import FINALISTS
from autotune.recordings.recording import Recording

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Trace:
    """One search.

    Attributes:
        strategy: Its name as on the command line.
        space: Name of the recording.
        seed: Of the strategy, its model and the noise.
        trials: Measurements allowed.
        places: What was asked, in order, as places in the recording.
        observed: Seconds that the strategy was told, None where it failed.
        overhead: Seconds that the tuner itself took for each (asking, telling and fitting).
        error: How the strategy crashed; "" where it did not.
    """

    strategy: str
    space: str
    seed: int
    trials: int
    places: tuple[int, ...] = ()
    observed: tuple[float | None, ...] = ()
    overhead: tuple[float, ...] = ()
    error: str = ""

    def values(self, recording: Recording) -> Floats:
        """What the search holds after each measurement: the true seconds of the schedule that looked fastest.

        Returns:
            Shape (trials,). Before anything ran it is the slowest of the space; after an early end (the space was
            exhausted) it stays.
        """
        observed = np.array([np.inf if t is None else t for t in self.observed])
        held = held_values(np.array(self.places, np.intp), observed, recording)
        return np.concatenate([held, np.full(self.trials - len(held), held[-1] if len(held) else slowest(recording))])

    def raced_values(self, recording: Recording, race: Callable[[int], float]) -> Floats:
        """As `values`, had the search ended there with the race that every tuning run ends with.

        Args:
            recording: The space.
            race: Gives the seconds that a finalist, by its place, is timed at in the race.
        """
        held, best = [], slowest(recording)
        leaders: list[tuple[float, int]] = []
        for place, observed in zip(self.places, self.observed, strict=True):
            if observed is not None:
                leaders = sorted([*leaders, (observed, place)])[:FINALISTS]
                best = float(recording.seconds[min((race(p), p) for _, p in leaders)[1]])
            held.append(best)
        return np.array(held + [best] * (self.trials - len(held)))

    def clock(self, recording: Recording) -> Floats:
        """Seconds on the replay clock after each measurement made, shape (measurements,).

        Each measurement costs what the recording says, and what the tuner took to propose it.
        """
        cost = recording.cost[list(self.places)] if self.places else np.zeros(0)
        return np.cumsum(cost + np.array(self.overhead))


def slowest(recording: Recording) -> float:
    """Seconds of the slowest schedule that ran: where a search stands that has found nothing."""
    return float(recording.seconds[np.isfinite(recording.seconds)].max())


def held_values(places: NDArray[np.intp], observed: Floats, recording: Recording) -> Floats:
    """True seconds of what looked fastest after each of some measurements; the slowest before anything ran."""
    if not len(places):
        return np.zeros(0)
    leaders = np.minimum.accumulate(observed)
    improved = np.concatenate([[True], leaders[1:] < leaders[:-1]])
    holder = np.maximum.accumulate(np.where(improved, np.arange(len(observed)), 0))
    held = recording.seconds[places[holder]]
    return np.where(np.isfinite(leaders), held, slowest(recording))
