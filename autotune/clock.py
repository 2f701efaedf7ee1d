"""The one place that reads a clock."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def monotonic() -> float:
    """Seconds on a clock that never goes back."""
    return time.monotonic()


def nanoseconds() -> int:
    """The finest clock of the host, for timing CPU kernels."""
    return time.perf_counter_ns()


def cpu_seconds() -> float:
    """CPU seconds that this process has used, all threads together."""
    return time.process_time()


def now() -> datetime:
    """Date and time, UTC."""
    return datetime.now(UTC)
