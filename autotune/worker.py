"""The device worker: the one process that touches the device. Loads, checks, times; answers over a pipe."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.builders import find_generator
from autotune.checking import Checker, Verdict
from autotune.clock import monotonic
from autotune.devices.base import Device, DeviceInfo
from autotune.devices.telemetry import Conditions
from autotune.generators.base import Artifact, BoundLaunch
from autotune.look import Look
from autotune.measurement import Phases, Policy, Status
from autotune.tampering import Seal
from autotune.timing import Timer
from search_spaces import registry
from search_spaces.space import Schedule
from search_spaces.task import Task

DEVICES = {"cuda": "cuda", "llvm": "cpu"}
# Share of the roofline's time. A GPU's peaks are published; a CPU's are measured, and too low on a busy machine.
_IMPLAUSIBLE_BELOW = {"cuda": 0.9, "llvm": 0.4}


# A right candidate whose runs take so long, and so many times the limit, is neither timed nor checked further.
_ENDLESS_SECONDS = 0.25
_ENDLESS_TIMES = 10.0


def _endless(seconds: float, limit: float) -> bool:
    return seconds > _ENDLESS_SECONDS and seconds > _ENDLESS_TIMES * limit


@dataclass(frozen=True)
class Identify:
    """Asks who the device is."""


@dataclass(frozen=True)
class Identified:
    """The worker's answer to Identify.

    Attributes:
        info: The device.
        uuid: Its own identifier, "" where it has none.
        traits: What else must be equal of devices that share a run.
    """

    info: DeviceInfo
    uuid: str
    traits: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Prepare:
    """Asks for inputs and references on the device, which must be this tuner's by then."""


@dataclass(frozen=True)
class Measure:
    """Asks for one candidate: check its output, then time it.

    Attributes:
        schedule: The candidate.
        artifact: Its binary.
        limit: Seconds above which its first two samples make it hopeless; inf where there is no best yet.
    """

    schedule: Schedule
    artifact: Artifact
    limit: float


@dataclass(frozen=True)
class Measured:
    """The worker's answer to Measure.

    Attributes:
        status: How it ended.
        samples: Seconds, if OK.
        conditions: State of the device while it was timed.
        detail: Why not, or a remark.
        error: Deviation in units of the tolerance.
        deterministic: Whether equal inputs gave equal bits.
        phases: Seconds of check and measure.
        poisoned: This process is not fit for another candidate.
    """

    status: Status
    samples: tuple[float, ...] = ()
    detail: str = ""
    error: float | None = None
    conditions: Conditions | None = None
    deterministic: bool | None = None
    phases: Phases = field(default_factory=Phases)
    poisoned: bool = False


@dataclass(frozen=True)
class Verify:
    """Asks whether finalists are right on inputs of other distributions, too; answered by a Measured for each.

    Attributes:
        entries: Candidates that passed Measure.
    """

    entries: tuple[tuple[Schedule, Artifact], ...]


@dataclass(frozen=True)
class VerifyEdge:
    """Asks whether schedules are right on another workload of the operator; answered by a Measured for each.

    Attributes:
        entries: Schedules built for that workload.
        task: The task with that workload.
        generators: Name of the code generator of each: its space, which may take long to make, is not needed then.
    """

    entries: tuple[tuple[Schedule, Artifact], ...]
    task: Task
    generators: Mapping[Schedule, str]


@dataclass(frozen=True)
class Rounds:
    """Asks for rounds of a race: in each, every contestant once, in random order; answered by a Look.

    Attributes:
        entries: Candidates.
        count: Rounds.
        seed: Of the order.
        library: Whether the library's calls take part.
        anchor: Who is first in the first round and last in the last.
    """

    entries: tuple[tuple[Schedule, Artifact], ...]
    count: int
    seed: int
    library: bool
    anchor: Schedule | None = None


def relocated(job: object, move: Callable[[Artifact], Artifact]) -> object:
    """A job whose binaries are where `move` says."""
    if isinstance(job, Measure):
        return replace(job, artifact=move(job.artifact))
    if isinstance(job, Verify | VerifyEdge | Rounds):
        return replace(job, entries=tuple((schedule, move(artifact)) for schedule, artifact in job.entries))
    return job


class Worker:
    """State of the worker process: device, inputs, reference, loaded candidates."""

    def __init__(self, task: Task, policy: Policy, folder: Path, device: str | Device = "") -> None:
        self._task = task
        self._policy = policy
        self._folder = folder
        kind = DEVICES[task.target.kind]
        self._device: Device = (
            device if isinstance(device, Device) else registry.find("autotune.devices", device or kind, "device")()
        )
        self._seal = Seal(self._device)
        self._timer = Timer(self._device, policy, task.written_bytes)
        self._loaded: dict[Schedule, BoundLaunch] = {}
        self._library: Mapping[str, BoundLaunch] | None = None

    @cached_property
    def _checker(self) -> Checker:
        """Inputs and references: made at the first job that needs them, not while another tuner has the device."""
        return Checker(self._device, self._task, self._policy)

    def handle(self, job: object) -> object:
        """Answers one job."""
        if isinstance(job, Identify):
            return Identified(self._device.info(), self._device.uuid(), self._device.traits())
        if isinstance(job, Prepare):
            return job if self._checker else None
        if isinstance(job, Measure):
            return self._measure(job)
        if isinstance(job, Verify):
            return self._verify(job)
        if isinstance(job, VerifyEdge):
            return self._verify_edge(job)
        assert isinstance(job, Rounds)
        return self._race(job)

    def _load(self, schedule: Schedule, artifact: Artifact) -> BoundLaunch:
        generator = find_generator(self._task.sketch_of(schedule).generator)
        return self._checker.bind(self._device.loaded(generator, self._task, schedule, artifact, self._folder))

    def _measure(self, job: Measure) -> Measured:
        started = monotonic()
        self._threads = threading.active_count()
        try:
            launch = self._load(job.schedule, job.artifact)
            verdict = self._checker.check(launch)
            checked = monotonic()
            if verdict.fault or self._seal.broken():
                return self._refused(verdict, Phases(check=checked - started))
            if _endless(verdict.seconds, job.limit) and _endless(alone := self._timer.single(launch), job.limit):
                return self._given_up(verdict, alone, Phases(check=checked - started, measure=monotonic() - checked))
            taken = self._timer.samples(launch, job.limit)
            timed = monotonic()
            again = self._checker.check_again(launch)
            errors = [v.error for v in (verdict, again) if v.error is not None]
            verdict = replace(again, error=max(errors, default=None))
        except Exception as problem:
            detail = f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:500]
            return Measured(Status.LAUNCH_ERROR, detail=detail, poisoned=self._is_poisoned())
        phases = Phases(check=checked - started + monotonic() - timed, measure=timed - checked)
        if verdict.fault or self._seal.broken():
            return self._refused(verdict, phases)
        floor = _IMPLAUSIBLE_BELOW[self._task.target.kind] * self._task.floor_seconds
        seconds = float(np.median(taken.seconds))
        if self._policy.cold and seconds < floor:
            detail = f"{seconds:.3g} s is faster than the roofline's {self._task.floor_seconds:.3g} s"
            return Measured(Status.IMPLAUSIBLE, detail=detail, error=verdict.error, phases=phases)
        return Measured(
            Status.OK,
            taken.seconds,
            error=verdict.error,
            conditions=taken.conditions,
            deterministic=verdict.deterministic,
            phases=phases,
        )

    def _given_up(self, verdict: Verdict, seconds: float, phases: Phases) -> Measured:
        """A candidate that would keep the device for seconds or minutes and cannot win."""
        detail = "too slow to be run more than twice"
        return Measured(Status.OK, (seconds,), detail, verdict.error, phases=phases)

    def _refused(self, verdict: Verdict, phases: Phases) -> Measured:
        """A candidate that is wrong, or that touched what judges it."""
        replaced = self._seal.broken()
        if replaced:
            return Measured(Status.IMPLAUSIBLE, detail=f"replaces {replaced}"[:500], phases=phases, poisoned=True)
        stays = verdict.late or threading.active_count() > self._threads
        return Measured(Status.WRONG_RESULT, (), verdict.fault, verdict.error, phases=phases, poisoned=stays)

    def _verify(self, job: Verify) -> tuple[Measured, ...]:
        return tuple(map(_judged, self._checker.check_distributions([self._load(*entry) for entry in job.entries])))

    def _verify_edge(self, job: VerifyEdge) -> tuple[Measured, ...]:
        checker = Checker(self._device, job.task, self._policy)
        kernels = [
            self._device.loaded(find_generator(job.generators[s]), job.task, s, a, self._folder) for s, a in job.entries
        ]
        launches = [checker.bind(kernel) for kernel in kernels]
        return tuple(_judged(checker.check_once(launch)) for launch in launches)

    def _is_poisoned(self) -> bool:
        try:
            self._device.synchronize()
        except Exception:
            return True
        return False

    def _race(self, job: Rounds) -> Look:
        """The rounds, and one run of every contestant more: one that turns wrong after many launches must not win."""
        self._checker.restore()
        if self._library is None:
            calls = self._device.library(self._task, self._checker.inputs, self._checker.outputs)
            self._library = {name: self._timer.ready(call) for name, call in calls.items()}
        for schedule, artifact in job.entries:
            if schedule not in self._loaded:
                self._loaded[schedule] = self._timer.ready(self._load(schedule, artifact))
        launches = {schedule: self._loaded[schedule] for schedule, _ in job.entries}
        calls = self._library if job.library else {}
        anchor = list(launches).index(job.anchor) if job.anchor in launches else None
        times = self._timer.rounds([*launches.values(), *calls.values()], job.count, job.seed, anchor)
        conditions = self._device.conditions()
        checks = {s: self._checker.check_once(launch, "in the race, ") for s, launch in launches.items()}
        return Look(
            times=dict(zip(launches, times, strict=False)),
            library=dict(zip(calls, times[len(launches) :], strict=True)),
            conditions=conditions,
            faults={s: verdict.fault for s, verdict in checks.items() if verdict.fault},
        )


def _judged(verdict: Verdict) -> Measured:
    """An answer that has no samples."""
    return Measured(Status.WRONG_RESULT if verdict.fault else Status.OK, (), verdict.fault, verdict.error)


def setup(task: Task, policy: Policy, folder: Path, device: str = "") -> Callable[[object], object]:
    """Runs in the worker process: makes the device ready, returns what answers a job."""
    worker = Worker(task, policy, folder, device)
    if task.target.cores:
        threadpool_limits(task.target.cores)
        # After the device was made, which counts the cores of the machine: only this process stays on the target's.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: task.target.cores])
    return worker.handle
