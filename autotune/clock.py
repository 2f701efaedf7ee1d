"""The one place that reads a clock."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime


def monotonic() -> float:
    """Seconds on a clock that never goes back."""
    return time.monotonic()


# The awake clock is read so often, and a reading so late is no reading of a process that runs.
_BEAT, _LATEST = 0.5, 5.0


class _AwakeClock:
    """The monotonic clock less the stretches in which nobody could read it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._beating = False
        self._last = time.monotonic()
        self._asleep = 0.0

    def read(self) -> float:
        with self._lock:
            now = time.monotonic()
            if not self._beating:
                self._beating = True
                self._last = now
                threading.Thread(target=self._beat, name="awake", daemon=True).start()
            late = now - self._last - _BEAT
            self._asleep += late if late > _LATEST else 0.0
            self._last = now
            return now - self._asleep

    def _beat(self) -> None:
        while True:
            time.sleep(_BEAT)
            self.read()


_AWAKE = _AwakeClock()


def awake() -> float:
    """Seconds on a clock that stands still while this process does: stopped, or on a laptop that sleeps.

    For deadlines of other processes, which stood still as well. A stretch shorter than five seconds is not noticed.
    """
    return _AWAKE.read()


def nanoseconds() -> int:
    """The finest clock of the host, for timing CPU kernels."""
    return time.perf_counter_ns()


def cpu_seconds() -> float:
    """CPU seconds that this process has used, all threads together."""
    return time.process_time()


def now() -> datetime:
    """Date and time, UTC."""
    return datetime.now(UTC)
