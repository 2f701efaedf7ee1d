"""How many schedules a search asks for at a time, and how many it keeps on their way."""

from __future__ import annotations

# Where builds and measurements overlap: schedules asked for at a time.
_BATCH = 8
# Where results are waited for: schedules asked for at a time. Small waves keep the model close to what was measured.
WAVE = 4


def asked_at_a_time(builders: int) -> int:
    """Schedules that are asked for once so many are free, where builds and measurements overlap."""
    return min(_BATCH, builders)


def kept_in_flight(builders: int, devices: int) -> int:
    """Schedules being built, measured or waiting for it: enough that neither builders nor devices run out."""
    return 3 * builders + _BATCH * devices
