"""A contest: a tuned kernel and library calls on the same inputs, checked alike and timed in turns; runs in a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from autotune.benchmark.libraries.base import Library
from autotune.builders import find_generator
from autotune.checking import Checker
from autotune.devices.base import Device
from autotune.devices.telemetry import Conditions
from autotune.environment import own_compiler_cache
from autotune.generators.base import Artifact, BoundLaunch
from autotune.measurement import Policy
from autotune.timing import Timer
from autotune.worker import DEVICES, Identified, Identify
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.schedule import Schedule
from search_spaces.task import Task

LIBRARIES = "autotune.benchmark.libraries"
LEAST_ROUNDS, MOST_ROUNDS = 20, 200
# A library may round more than a tuned kernel may. So many times the tolerance is no rounding.
_NO_ROUNDING = 64.0


@dataclass(frozen=True)
class Admit:
    """Asks for a library's calls: each is run and checked once; answered by an Admitted."""

    library: str


@dataclass(frozen=True)
class Admitted:
    """What became of a library's calls.

    Attributes:
        errors: Call -> largest deviation from the reference, in units of the tolerance that binds tuned kernels.
        refused: Call -> why it takes no part.
    """

    errors: Mapping[str, float]
    refused: Mapping[str, str]


@dataclass(frozen=True)
class Compete:
    """Asks for the rounds; answered by a Contested.

    Attributes:
        schedule: The tuned schedule.
        artifact: Its binary.
        libraries: Who was admitted; admitted again by a child that was started anew.
        seconds: How long the rounds shall take, about.
        seed: Of the order within the rounds.
        copies: Sizes in bytes of copies in the device's memory that take part.
    """

    schedule: Schedule
    artifact: Artifact
    libraries: tuple[str, ...]
    seconds: float
    seed: int
    copies: tuple[int, ...]


@dataclass(frozen=True)
class Contested:
    """Seconds per round of everyone, paired by round.

    Attributes:
        tuned: Of the tuned kernel.
        library: Of each library call.
        copies: Of each copy, by its size in bytes.
        error: The tuned kernel's deviation, in units of the tolerance.
        fault: What is wrong with the tuned kernel, "" where nothing is.
        conditions: State of the device meanwhile.
    """

    tuned: tuple[float, ...]
    library: Mapping[str, tuple[float, ...]]
    copies: Mapping[int, tuple[float, ...]]
    error: float | None
    fault: str
    conditions: Conditions | None


class Contest:
    """State of the child: device, inputs, references, library calls that work."""

    def __init__(self, task: Task, policy: Policy, folder: Path, device: str = "") -> None:
        self._task = task
        self._policy = policy
        self._folder = folder
        found = registry.find("autotune.devices", device or DEVICES[task.target.kind], "device")
        self._device: Device = found()
        self._timer = Timer(self._device, policy, task.written_bytes)
        self._calls: dict[str, dict[str, Launch]] = {}

    @cached_property
    def _checker(self) -> Checker:
        """Made at the first job that needs it, when the device is this process's alone."""
        return Checker(self._device, self._task, self._policy)

    def handle(self, job: object) -> object:
        """Answers one job."""
        if isinstance(job, Identify):
            return Identified(self._device.info(), self._device.uuid())
        if isinstance(job, Admit):
            return self._admit(job.library)
        assert isinstance(job, Compete)
        return self._compete(job)

    def _admit(self, name: str) -> Admitted:
        library: Library = registry.find(LIBRARIES, name, "library")
        errors, refused, working = {}, {}, {}
        try:
            offered = library.calls(self._task, self._checker.inputs, self._checker.outputs)
        except Exception as problem:
            offered, refused = {}, {name: _said(problem)}
        for title, call in offered.items():
            try:
                verdict = self._checker.check_once(self._writing(call))
            except Exception as problem:
                refused[title] = _said(problem)
                continue
            if verdict.error is None or not verdict.error <= _NO_ROUNDING:
                refused[title] = verdict.fault
                continue
            errors[title], working[title] = verdict.error, call
        self._calls[name] = working
        return Admitted(errors, refused)

    def _writing(self, call: Launch) -> BoundLaunch:
        """The call with what it returns copied into the outputs, where they are checked."""

        def run() -> None:
            returned = call()
            results = () if returned is None else returned if isinstance(returned, tuple) else (returned,)
            for result, output in zip(results, self._checker.outputs, strict=False):
                if result is not output:
                    output[...] = result

        return run

    def _compete(self, job: Compete) -> Contested:
        for name in job.libraries:
            if name not in self._calls:
                self._admit(name)
        calls = {title: call for name in job.libraries for title, call in self._calls[name].items()}
        generator = find_generator(self._task.sketch_of(job.schedule).generator)
        loaded = generator.load(self._task, job.schedule, job.artifact, self._folder)
        tuned = self._checker.bind(loaded)
        before = self._checker.check_once(tuned)
        if before.fault:
            return Contested((), {}, {}, before.error, before.fault, None)
        copies = [self._copy(size) for size in job.copies]
        ready = [self._timer.ready(launch) for launch in (tuned, *calls.values(), *copies)]
        once = sum(self._timer.single(launch) for launch in ready)
        count = int(np.clip(job.seconds / once, LEAST_ROUNDS, MOST_ROUNDS))
        times = [tuple(seconds) for seconds in self._timer.rounds(ready, count, job.seed)]
        conditions = self._device.conditions()
        self._checker.restore()
        after = self._checker.check_once(tuned, "after the rounds, ")
        return Contested(
            tuned=times[0],
            library=dict(zip(calls, times[1 : 1 + len(calls)], strict=True)),
            copies=dict(zip(job.copies, times[1 + len(calls) :], strict=True)),
            error=after.error if after.error is not None else before.error,
            fault=after.fault,
            conditions=conditions,
        )

    def _copy(self, size: int) -> BoundLaunch:
        source, target = (self._device.raw(size) for _ in range(2))

        def copy() -> None:
            target[...] = source

        return copy


def _said(problem: Exception) -> str:
    """An exception in a line."""
    return f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:300]


def setup(task: Task, policy: Policy, folder: Path, device: str = "") -> Callable[[object], object]:
    """Runs in the child: makes the device ready, returns what answers a job."""
    own_compiler_cache(folder)
    return Contest(task, policy, folder, device).handle


def library_names(kind: str, *, slow: bool) -> tuple[list[str], dict[str, str]]:
    """Libraries for targets of `kind` that are here, and why others are not.

    Args:
        kind: "cuda" or "llvm".
        slow: Whether those take part, too, that take minutes to be ready.
    """
    here: list[str] = []
    absent: dict[str, str] = {}
    for name in registry.names(LIBRARIES):
        library: Library = registry.find(LIBRARIES, name, "library")
        if kind not in library.kinds or (library.slow and not slow):
            continue
        if (why := library.missing()) is not None:
            absent[name] = why
        else:
            here.append(name)
    return here, absent
