"""What is known of one tried schedule, and under which rules it was measured."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import StrEnum

from autotune.devices.telemetry import Conditions
from autotune.generators.base import Resources
from search_spaces.space import Schedule


class Status(StrEnum):
    """How a trial ended. Samples are there if and only if it is OK."""

    OK = "ok"
    BUILD_ERROR = "build_error"
    LAUNCH_ERROR = "launch_error"
    WRONG_RESULT = "wrong_result"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    IMPLAUSIBLE = "implausible"


@dataclass(frozen=True)
class Policy:
    """How candidates are measured.

    Attributes:
        samples: Timed launches of a candidate that is not dropped early.
        drop_rate: Probability, at most, that a run gives up timing its truly fastest schedule; see `early_stop`.
            At 0 every candidate is timed in full.
        cold: Whether caches are flushed before every sample.
        build_seconds: Time-out of one build.
        run_seconds: Time-out of checking and timing one candidate.
        input_seed: Seed of the random inputs.
    """

    samples: int = 7
    drop_rate: float = 0.01
    cold: bool = True
    build_seconds: float = 60.0
    run_seconds: float = 60.0
    input_seed: int = 0


@dataclass(frozen=True)
class Phases:
    """Seconds that a trial cost, by phase."""

    build: float = 0.0
    check: float = 0.0
    measure: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """One trial.

    Attributes:
        schedule: What was tried.
        status: How it ended.
        samples: Seconds of each timed launch, in order; empty unless OK.
        detail: Why it failed, or a remark.
        error: Largest deviation from the reference in units of the tolerance; None where it was not checked.
        deterministic: Whether runs on the same inputs gave the same bits; None where that was not seen.
        resources: As the compiler reports them.
        binary: Hash of the program; "" where it was not built.
        phases: What it cost.
        conditions: State of the device while it was timed, None where the device does not tell.
        device: Which device measured it, by its identifier, or by its number where it has none; "" where none did.
    """

    schedule: Schedule
    status: Status
    samples: tuple[float, ...] = ()
    detail: str = ""
    error: float | None = None
    resources: Resources = field(default_factory=Resources)
    binary: str = ""
    phases: Phases = field(default_factory=Phases)
    deterministic: bool | None = None
    conditions: Conditions | None = None
    device: str = ""

    def __post_init__(self) -> None:
        if (self.status is Status.OK) != bool(self.samples):
            raise ValueError(f"{self.status} with {len(self.samples)} samples")
        if any(not s > 0 for s in self.samples):
            raise ValueError(f"samples must be positive seconds: {self.samples}")

    @property
    def seconds(self) -> float:
        """Median of the samples, inf unless OK."""
        return statistics.median(self.samples) if self.samples else float("inf")
