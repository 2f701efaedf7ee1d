"""Builds in parallel while the device measures: schedules go in, measurements come out as they end."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from pathlib import Path

from autotune.builders import Builders, Built, find_generator
from autotune.devices.base import DeviceInfo
from autotune.generators.base import Artifact
from autotune.measurement import Measurement, Phases, Policy, Status
from autotune.process import Child, Died, Failure, preload
from autotune.worker import Identify, Measure, Measured, Rounds, setup
from search_spaces.errors import NoDevice
from search_spaces.space import Schedule
from search_spaces.task import Task

_START_SECONDS = 300.0


@dataclass
class Occupation:
    """Seconds in which the builders and the device were at work, summed over processes."""

    build: float = 0.0
    device: float = 0.0


class Measurer:
    """One device and its builders, for one task.

    On a CPU target builders and candidates would disturb each other on the same cores, so a wave of builds and a wave
    of measurements alternate; on a GPU they overlap.

    Args:
        task: What is measured.
        policy: How.
        folder: Cache folder of the run.
        jobs: Builder processes.
    """

    def __init__(self, task: Task, policy: Policy, folder: Path, jobs: int) -> None:
        self._task = task
        self._policy = policy
        preload([m for g in {s.generator for s in task.sketches.values()} for m in find_generator(g).preload])
        self.builders = Builders(task, folder, jobs, policy.build_seconds)
        self._worker: Child[object] = Child(setup, (task, policy, folder), folder / "worker.log")
        self._ready: deque[Built] = deque()
        self._by_binary: dict[str, Measurement] = {}
        self._artifacts: dict[Schedule, Artifact] = {}
        self._current: Built | None = None
        self._alternate = task.target.kind == "llvm"
        self._measuring_wave = False
        self._best = float("inf")
        self.occupation = Occupation()
        self.in_flight = 0
        self._worker.send(Identify(), _START_SECONDS)

    def device(self) -> DeviceInfo:
        """Waits for the worker to be ready.

        Raises:
            NoDevice: It could not start on the device.
        """
        wait([self._worker.connection], timeout=max(0.0, self._worker.remaining()))
        try:
            answer = self._worker.receive()
        except (TimeoutError, Died) as error:
            raise NoDevice(f"the device worker did not start: {error or 'time-out'}", "see worker.log") from error
        if isinstance(answer, Failure):
            raise NoDevice(f"the device worker did not start: {answer.summary}", "run 'autotune doctor'")
        assert isinstance(answer, DeviceInfo)
        return answer

    def submit(self, schedules: Sequence[Schedule]) -> None:
        """Takes schedules in; each comes back exactly once from `completed`."""
        for schedule in schedules:
            self.in_flight += 1
            self.builders.submit(schedule)
        self._dispatch()

    def completed(self, timeout: float) -> list[Measurement]:
        """Measurements that ended, after waiting at most `timeout` seconds for the first."""
        self._dispatch()
        pipes = self.builders.connections()
        until = min(timeout, self.builders.next_deadline())
        if self._worker.job is not None:
            pipes.append(self._worker.connection)
            until = min(until, self._worker.remaining())
        ready = wait(pipes, timeout=max(0.0, until))
        done = [m for built in self.builders.collect(ready) if (m := self._after_build(built)) is not None]
        if self._worker.job is not None and (self._worker.connection in ready or self._worker.remaining() <= 0):
            if self._current is None:
                self.device()
            else:
                done.append(self._after_measure())
        self._dispatch()
        self.in_flight -= len(done)
        self.occupation.build = self.builders.busy_seconds
        return done

    def _dispatch(self) -> None:
        """Starts what may start now."""
        if self._alternate:
            if self._measuring_wave:
                self._measuring_wave = bool(self._ready) or self._current is not None
            elif not self.builders.waiting and not self.builders.building:
                self._measuring_wave = bool(self._ready)
            if not self._measuring_wave:
                self.builders.dispatch()
                return
        else:
            self.builders.dispatch()
        if self._worker.job is None and self._ready:
            self._give_worker_a_job()

    def _give_worker_a_job(self) -> None:
        """A worker that died is started first, on its own time and not on the next candidate's."""
        if not self._worker.alive:
            self._worker.send(Identify(), _START_SECONDS)
            return
        self._current = self._ready.popleft()
        assert self._current.artifact is not None
        job = Measure(self._current.schedule, self._current.artifact, self._best)
        self._worker.send(job, self._policy.run_seconds)

    def _after_build(self, built: Built) -> Measurement | None:
        """A failed build ends here, and so does one whose binary was measured before."""
        if built.artifact is None:
            return Measurement(built.schedule, built.status, detail=built.detail, phases=Phases(build=built.seconds))
        self._artifacts[built.schedule] = built.artifact
        twin = self._by_binary.get(built.artifact.sha256)
        if twin is not None:
            return replace(
                twin,
                schedule=built.schedule,
                detail=twin.detail or "same binary as an earlier trial",
                phases=Phases(build=built.seconds),
            )
        self._ready.append(built)
        return None

    def _after_measure(self) -> Measurement:
        built, self._current = self._current, None
        assert built is not None
        assert built.artifact is not None
        answer = self._receive()
        if answer.poisoned:
            self._worker.kill()
        measurement = Measurement(
            schedule=built.schedule,
            status=answer.status,
            samples=answer.samples,
            detail=answer.detail,
            error=answer.error,
            resources=built.artifact.resources,
            binary=built.artifact.sha256,
            phases=replace(answer.phases, build=built.seconds),
        )
        self.occupation.device += answer.phases.check + answer.phases.measure
        self._by_binary[built.artifact.sha256] = measurement
        if len(measurement.samples) >= self._policy.samples:
            self._best = min(self._best, measurement.seconds)
        return measurement

    def _receive(self) -> Measured:
        try:
            answer = self._worker.receive()
        except TimeoutError:
            return Measured(Status.TIMEOUT, detail=f"ran longer than {self._policy.run_seconds:g} s")
        except Died as error:
            return Measured(Status.CRASHED, detail=str(error))
        if isinstance(answer, Failure):
            return Measured(Status.LAUNCH_ERROR, detail=answer.summary, poisoned=True)
        assert isinstance(answer, Measured)
        return answer

    def expect(self, best: float) -> None:
        """Tells the measurer of a best time known from an earlier run, for early stopping."""
        self._best = min(self._best, best)

    def race(
        self, schedules: Sequence[Schedule], rounds: int, seed: int, library: bool
    ) -> tuple[dict[Schedule, list[float]], dict[str, list[float]]]:
        """Times `schedules` and the library's calls interleaved; call when nothing is in flight.

        Returns:
            Seconds per round of each schedule, and of each library call by name.

        Raises:
            Died: The worker ended in the race.
            TimeoutError: It took too long.
        """
        missing = [s for s in schedules if s not in self._artifacts]
        self.builders.build_all(missing, self._keep)
        entries = tuple((s, self._artifacts[s]) for s in schedules if s in self._artifacts)
        job = Rounds(entries, rounds, seed, library)
        self._worker.send(
            job, self._policy.run_seconds * len(schedules) + (0 if self._worker.alive else _START_SECONDS)
        )
        wait([self._worker.connection], timeout=max(0.0, self._worker.remaining()))
        answer = self._worker.receive()
        if isinstance(answer, Failure):
            raise Died(answer.summary)
        times: tuple[dict[Schedule, list[float]], dict[str, list[float]]] = answer
        return times

    def _keep(self, built: Built) -> None:
        if built.artifact is not None:
            self._artifacts[built.schedule] = built.artifact

    def close(self) -> None:
        """Kills worker and builders."""
        self._worker.kill()
        self.builders.close()
