"""A recording: the schedules of a space with what measuring them gave, as a stand-in for the device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.measurement import Status
from search_spaces.listed import ListedSpace
from search_spaces.operator import Workload
from search_spaces.space import Schedule

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Recording:
    """Measured schedules of one task on one device; all arrays are in the order of `space.schedules`.

    Attributes:
        name: `kernel__device`, as in file names.
        kernel: What was tuned: recordings of the same kernel have the same knobs.
        device: The device's name as its driver gives it.
        space: The schedules.
        seconds: Mean of the repeats, shape (n,), `inf` where it failed.
        deviation: Standard deviation of one repeat in seconds, shape (n,), 0 where it failed.
        cost: Seconds that a tuner spends on the schedule (compiling, checking, timing), shape (n,).
        status: How each ended.
        samples: Raw repeats in seconds where they are at hand, one array a schedule; () where not.
        context: The task as numbers, see `cost_models.context`.
        provenance: Source, licence, citation, date: whatever a reader should know, as words.
        repeats: Repeats behind each time, 0 where that is not known.
        phases: Parts of the cost by name, seconds, shape (n,) each; none where only their sum is known.
        workload: Shape and dtype where an operator of this project was measured.
        target: What was compiled for, "" where that is not known.
        environment: Software that the times depend on -> version.
    """

    name: str
    kernel: str
    device: str
    space: ListedSpace
    seconds: Floats = field(repr=False)
    deviation: Floats = field(repr=False)
    cost: Floats = field(repr=False)
    status: tuple[Status, ...] = field(repr=False)
    samples: tuple[Floats, ...] = field(default=(), repr=False)
    context: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, str] = field(default_factory=dict)
    repeats: int = 0
    phases: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    workload: Workload | None = None
    target: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.space.schedules)
        if any(len(a) != count for a in (self.seconds, self.deviation, self.cost, self.status)):
            raise ValueError(f"{self.name}: every schedule needs its time, deviation, cost and status")
        if self.samples and len(self.samples) != count:
            raise ValueError(f"{self.name}: raw repeats of {len(self.samples)} of {count} schedules")
        if any(len(part) != count for part in self.phases.values()):
            raise ValueError(f"{self.name}: every schedule needs every part of its cost")
        if not np.isfinite(self.seconds).any():
            raise ValueError(f"{self.name}: every schedule failed")
        if (self.seconds <= 0).any():
            raise ValueError(f"{self.name}: times must be positive seconds")
        if any(math.isfinite(t) != (s is Status.OK) for t, s in zip(self.seconds, self.status, strict=True)):
            raise ValueError(f"{self.name}: a schedule has a time if and only if it is ok")

    @cached_property
    def index(self) -> Mapping[Schedule, int]:
        """The place of each schedule."""
        return {s: i for i, s in enumerate(self.space.schedules)}

    @cached_property
    def optimum(self) -> float:
        """Seconds of the fastest schedule."""
        return float(self.seconds.min())

    def true_seconds(self, schedules: Sequence[Schedule]) -> Floats:
        """The recorded times, shape (n,), `inf` where it failed."""
        return self.seconds[[self.index[s] for s in schedules]]

    def measure(self, schedule: Schedule, rng: np.random.Generator, repeats: int = 7) -> float:
        """What a tuner would measure: the mean of `repeats` noisy samples in seconds, `inf` where it failed.

        Drawn from the raw repeats where they are at hand, else normal with the recorded deviation and never below
        half the recorded time.
        """
        place = self.index[schedule]
        truth = float(self.seconds[place])
        if not math.isfinite(truth):
            return truth
        if self.samples:
            return float(rng.choice(self.samples[place], size=repeats).mean())
        noise = float(self.deviation[place]) / math.sqrt(repeats) * rng.standard_normal()
        return max(truth + noise, 0.5 * truth)
