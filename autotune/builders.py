"""A pool of builders: schedules in, artifacts or reasons out, on all cores at once."""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

from autotune.clock import awake
from autotune.generators.base import Artifact, BuildError, Generator
from autotune.measurement import Status
from autotune.process import Child, preload
from autotune.runner import Died, Failure, Runner
from search_spaces import registry
from search_spaces.errors import CannotWrite, InvalidSchedule
from search_spaces.space import Schedule
from search_spaces.task import Task

GENERATORS = "autotune.generators"
_POLL_SECONDS = 10.0


@dataclass(frozen=True)
class Built:
    """The end of one build: an artifact, or a status with its reason."""

    schedule: Schedule
    artifact: Artifact | None
    status: Status
    detail: str
    seconds: float


def find_generator(name: str) -> Generator:
    """The code generator called `name`."""
    found = registry.find(GENERATORS, name, "generator")
    assert isinstance(found, Generator)
    return found


@dataclass(frozen=True)
class NoRoom:
    """A builder's answer where it could not write: no fault of the schedule, and the next one would end likewise.

    Attributes:
        folder: Where there is no room.
    """

    folder: str


def setup_builder(task: Task, folder: Path) -> Callable[[Schedule], Artifact | NoRoom | str]:
    """Runs in a builder: answers a schedule with its artifact, or with the compiler's reason."""

    def build(schedule: Schedule) -> Artifact | NoRoom | str:
        generator = find_generator(task.sketch_of(schedule).generator)
        try:
            return generator.build(task, schedule, folder)
        except (BuildError, InvalidSchedule, OSError) as error:
            if os.strerror(errno.ENOSPC) in str(error):
                return NoRoom(str(folder))
            if isinstance(error, OSError):
                raise
            return " ".join(str(error).split())[:500] or "refused without a reason"

    return build


def local_builders(task: Task, folder: Path, count: int) -> list[Runner[Schedule]]:
    """Processes of this machine that build schedules of a task.

    Args:
        task: What is built.
        folder: Cache folder of the run; binaries and the builders' logs go there.
        count: Number of processes.
    """
    preload([m for g in {s.generator for s in task.sketches.values()} for m in find_generator(g).preload])
    return [Child(setup_builder, (task, folder), folder / f"builder-{i}.log") for i in range(count)]


class Builders:
    """Builds schedules of one task.

    Args:
        task: What is built.
        runners: Who build.
        timeout: Seconds that one build may take.
    """

    def __init__(self, task: Task, runners: Sequence[Runner[Schedule]], timeout: float) -> None:
        self._task = task
        self._timeout = timeout
        self._children = list(runners)
        self._queue: deque[Schedule] = deque()
        self._held: dict[object, list[Schedule]] = {}
        self.busy_seconds = 0.0

    def submit(self, schedule: Schedule) -> None:
        """Queues a schedule; one that shares a binary with a build under way waits for it and then finds it cached."""
        key = self._binary_key(schedule)
        if key in self._held:
            self._held[key].append(schedule)
        else:
            self._held[key] = []
            self._queue.append(schedule)

    def _binary_key(self, schedule: Schedule) -> object:
        knobs = {k.name for k in self._task.space.sketch(schedule.sketch).knobs if not k.runtime}
        return schedule.sketch, tuple(item for item in schedule.items if item[0] in knobs)

    @property
    def waiting(self) -> int:
        """Schedules not yet in a builder."""
        return len(self._queue) + sum(map(len, self._held.values()))

    @property
    def building(self) -> int:
        """Schedules in a builder."""
        return sum(c.job is not None for c in self._children)

    def dispatch(self) -> None:
        """Gives queued schedules to idle builders."""
        for child in self._children:
            if not self._queue:
                return
            if child.job is None:
                child.send(self._queue.popleft(), self._timeout)

    def connections(self) -> list[Connection]:
        """Pipes to wait on."""
        return [c.connection for c in self._children if c.job is not None]

    def next_deadline(self) -> float:
        """Seconds until the first build times out."""
        return min((c.remaining() for c in self._children if c.job is not None), default=float("inf"))

    def collect(self, ready: Sequence[object]) -> list[Built]:
        """Takes in finished, failed and timed-out builds."""
        busy = [child for child in self._children if child.job is not None]
        return [self._receive(c) for c in busy if c.connection in ready or c.remaining() <= 0]

    def _receive(self, child: Runner[Schedule]) -> Built:
        schedule = child.job
        assert schedule is not None
        artifact, status = None, Status.BUILD_ERROR
        try:
            answer = child.receive()
        except TimeoutError:
            status, detail = Status.TIMEOUT, f"the build took longer than {self._timeout:g} s"
        except Died as error:
            status, detail = Status.CRASHED, f"the compiler died: {error}"
        else:
            if isinstance(answer, NoRoom):
                raise CannotWrite(
                    f"{answer.folder}: no room for what is built", "make room or set TMPDIR, and --resume"
                )
            if isinstance(answer, Artifact):
                artifact, status, detail = answer, Status.OK, ""
            else:
                detail = answer.summary if isinstance(answer, Failure) else answer
        seconds = awake() - child.sent
        self.busy_seconds += seconds
        self._queue.extendleft(reversed(self._held.pop(self._binary_key(schedule), ())))
        return Built(schedule, artifact, status, detail, seconds)

    def build_all(self, schedules: Sequence[Schedule], done: Callable[[Built], None]) -> None:
        """Builds `schedules` and calls `done` for each as it ends; for work without a device."""
        for schedule in schedules:
            self.submit(schedule)
        while self.waiting or self.building:
            self.dispatch()
            ready = wait(self.connections(), timeout=max(0.0, min(_POLL_SECONDS, self.next_deadline())))
            for built in self.collect(ready):
                done(built)

    def close(self) -> None:
        """Kills the builders."""
        for child in self._children:
            child.kill()
