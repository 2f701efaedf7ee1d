"""What trials cost, from recordings and journals: the next search is assumed to pay as recorded ones did."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from autotune.recordings.recording import Recording
from search_spaces.errors import BadLog
from search_spaces.target import parse_target
from search_spaces.task import Task

Floats = NDArray[np.float64]
_PHASES = ("build", "check", "measure")


@dataclass(frozen=True)
class TrialCosts:
    """Trials as they were recorded, failed ones included.

    Attributes:
        source: Name of the recording.
        build: Seconds in a builder, shape (n,).
        device: Seconds in which the device checked and timed, shape (n,), 0 where the build failed.
    """

    source: str
    build: Floats = field(repr=False)
    device: Floats = field(repr=False)

    def __post_init__(self) -> None:
        if not len(self.build) == len(self.device) > 0:
            raise ValueError(f"{self.source}: {len(self.build)} builds of {len(self.device)} trials")
        if not (np.isfinite(self.build).all() and np.isfinite(self.device).all()):
            raise ValueError(f"{self.source}: a trial without end")

    def drawn(self, count: int, rng: np.random.Generator) -> tuple[list[float], list[float]]:
        """Seconds of build and of device for `count` trials, each as one that was recorded."""
        places = rng.integers(len(self.build), size=count)
        return self.build[places].tolist(), self.device[places].tolist()


class CostBook:
    """Recorded costs of several workloads, looked up for others.

    Args:
        recordings: With the phases of every trial; those that have none, or no workload, are passed over.

    Raises:
        BadLog: None of them has.
    """

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._known = [r for r in recordings if r.target and set(_PHASES) <= set(r.phases) and "bytes" in r.context]
        if not self._known:
            raise BadLog("no recording tells what building, checking and timing cost", "name others with --costs")

    def costs_for(self, task: Task) -> TrialCosts:
        """The costs of the recorded workload that is most like `task`.

        One of the same operator is taken where there is any, else the nearest in operations and bytes.

        Raises:
            BadLog: Nothing was recorded for targets of its kind.
        """
        alike = [r for r in self._known if parse_target(r.target).kind == task.target.kind]
        if not alike:
            raise BadLog(f"no costs were recorded for target {task.target.kind}", "name others with --costs")
        own = [r for r in alike if r.kernel == task.workload.operator]
        cost = task.operator.cost(task.workload)
        here = np.log2([cost.operations, cost.bytes])

        def distance(recording: Recording) -> float:
            return math.dist(here, (recording.context["operations"], recording.context["bytes"]))

        nearest = min(own or alike, key=distance)
        phases = nearest.phases
        return TrialCosts(nearest.name, phases["build"], phases["check"] + phases["measure"])
