"""The device worker: the one process that touches the device. Loads, checks, times; answers over a pipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.builders import find_generator
from autotune.checking import Checker
from autotune.clock import monotonic
from autotune.devices.base import Device, DeviceInfo
from autotune.generators.base import Artifact, BoundLaunch
from autotune.measurement import Phases, Policy, Status
from autotune.timing import Timer
from search_spaces import registry
from search_spaces.space import Schedule
from search_spaces.task import Task

DEVICES = {"cuda": "cuda", "llvm": "cpu"}
# Share of the roofline's time. A GPU's peaks are published; a CPU's are measured, and too low on a busy machine.
_IMPLAUSIBLE_BELOW = {"cuda": 0.9, "llvm": 0.4}


@dataclass(frozen=True)
class Identify:
    """Asks who the device is; also makes it ready."""


@dataclass(frozen=True)
class Measure:
    """Asks for one candidate: check its output, then time it.

    Attributes:
        schedule: The candidate.
        artifact: Its binary.
        best: Seconds of the best so far; inf where there is none.
    """

    schedule: Schedule
    artifact: Artifact
    best: float


@dataclass(frozen=True)
class Measured:
    """The worker's answer to Measure.

    Attributes:
        status: How it ended.
        samples: Seconds, if OK.
        detail: Why not, or a remark.
        error: Deviation in units of the tolerance.
        phases: Seconds of check and measure.
        poisoned: The device can no longer be used by this process.
    """

    status: Status
    samples: tuple[float, ...] = ()
    detail: str = ""
    error: float | None = None
    phases: Phases = field(default_factory=Phases)
    poisoned: bool = False


@dataclass(frozen=True)
class Rounds:
    """Asks for rounds of a race: in each, every contestant once, in random order.

    Attributes:
        entries: Candidates.
        count: Rounds.
        seed: Of the order.
        library: Whether the library's calls take part.
    """

    entries: tuple[tuple[Schedule, Artifact], ...]
    count: int
    seed: int
    library: bool


class Worker:
    """State of the worker process: device, inputs, reference, loaded candidates."""

    def __init__(self, task: Task, policy: Policy, folder: Path) -> None:
        self._task = task
        self._policy = policy
        self._folder = folder
        self._device: Device = registry.find("autotune.devices", DEVICES[task.target.kind], "device")()
        self._checker = Checker(self._device, task, policy)
        self._timer = Timer(self._device, policy)
        self._loaded: dict[Schedule, BoundLaunch] = {}
        self._library: Mapping[str, BoundLaunch] | None = None

    def handle(self, job: object) -> object:
        """Answers one job."""
        if isinstance(job, Identify):
            return self._device.info()
        if isinstance(job, Measure):
            return self._measure(job)
        assert isinstance(job, Rounds)
        return self._race(job)

    def _load(self, schedule: Schedule, artifact: Artifact) -> BoundLaunch:
        generator = find_generator(self._task.sketch_of(schedule).generator)
        return self._checker.bind(generator.load(self._task, schedule, artifact, self._folder))

    def _measure(self, job: Measure) -> Measured:
        started = monotonic()
        try:
            launch = self._load(job.schedule, job.artifact)
            verdict = self._checker.check(launch)
            checked = monotonic()
            if verdict.fault:
                phases = Phases(check=checked - started)
                return Measured(Status.WRONG_RESULT, detail=verdict.fault, error=verdict.error, phases=phases)
            samples = self._timer.samples(launch, job.best)
        except Exception as problem:
            detail = f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:500]
            return Measured(Status.LAUNCH_ERROR, detail=detail, poisoned=self._is_poisoned())
        phases = Phases(check=checked - started, measure=monotonic() - checked)
        floor = _IMPLAUSIBLE_BELOW[self._task.target.kind] * self._task.floor_seconds
        if self._policy.cold and float(np.median(samples)) < floor:
            detail = f"{np.median(samples):.3g} s is faster than the roofline's {self._task.floor_seconds:.3g} s"
            return Measured(Status.IMPLAUSIBLE, detail=detail, error=verdict.error, phases=phases)
        return Measured(Status.OK, tuple(samples), error=verdict.error, phases=phases)

    def _is_poisoned(self) -> bool:
        try:
            self._device.synchronize()
        except Exception:
            return True
        return False

    def _race(self, job: Rounds) -> tuple[dict[Schedule, list[float]], dict[str, list[float]]]:
        if self._library is None:
            self._library = self._device.library(self._task, self._checker.inputs, self._checker.outputs)
        for schedule, artifact in job.entries:
            if schedule not in self._loaded:
                self._loaded[schedule] = self._load(schedule, artifact)
        launches = {schedule: self._loaded[schedule] for schedule, _ in job.entries}
        calls = self._library if job.library else {}
        times = self._timer.rounds([*launches.values(), *calls.values()], job.count, job.seed)
        return dict(zip(launches, times, strict=False)), dict(zip(calls, times[len(launches) :], strict=True))


def setup(task: Task, policy: Policy, folder: Path) -> Callable[[object], object]:
    """Runs in the worker process: makes the device ready, returns what answers a job."""
    if task.target.cores:
        threadpool_limits(task.target.cores)
    return Worker(task, policy, folder).handle


Answer = DeviceInfo | Measured | tuple[dict[Schedule, list[float]], dict[str, list[float]]]
