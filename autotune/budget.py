"""When a search ends: after so many trials or so many seconds, whichever comes first."""

from __future__ import annotations

from dataclasses import dataclass, field

from autotune.clock import monotonic

# Trials of a search by the kind of its target, where the user names no number.
TRIALS = {"llvm": 64, "cuda": 512, "hip": 512}


@dataclass
class Budget:
    """Asked by the search loop only.

    Attributes:
        trials: New trials at most.
        seconds: Seconds at most, counted from `start`; inf for no limit.
    """

    trials: int
    seconds: float = float("inf")
    _started: float = field(default_factory=monotonic)

    def start(self) -> None:
        """Starts the clock anew."""
        self._started = monotonic()

    def extend(self, seconds: float) -> None:
        """Leaves out seconds that were spent waiting."""
        self._started += seconds

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._started

    def left(self, asked: int) -> int:
        """Trials that may still be asked for."""
        return 0 if self.elapsed >= self.seconds else max(0, self.trials - asked)

    def remaining(self, done: int) -> float:
        """Estimate of the seconds that are left, from the pace so far; inf before the first trial."""
        if not done:
            return float("inf")
        pace = self.elapsed / done
        return max(0.0, min(pace * (self.trials - done), self.seconds - self.elapsed))
