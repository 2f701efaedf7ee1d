"""One look of the race: what the device told of its contestants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from autotune.devices.telemetry import Conditions
from search_spaces.space import Schedule


@dataclass(frozen=True)
class Look:
    """Rounds of a race, and how each contestant did after them.

    Attributes:
        times: Seconds per round of each schedule.
        library: Seconds per round of each library call.
        conditions: State of the device while they were taken, None where it does not tell.
        faults: What is wrong with the output of a schedule when it is run once more after its last round.
    """

    times: Mapping[Schedule, Sequence[float]]
    library: Mapping[str, Sequence[float]]
    conditions: Conditions | None = None
    faults: Mapping[Schedule, str] = field(default_factory=dict)
