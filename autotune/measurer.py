"""Builds in parallel while the device measures: schedules go in, measurements come out as they end."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path
from typing import cast

from autotune.builders import Builders, Built
from autotune.clock import monotonic
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue, device_lock
from autotune.early_stop import EarlyStop
from autotune.edges import EdgeFault, EdgeReport, edge_cases
from autotune.generators.base import Artifact
from autotune.look import Look
from autotune.measurement import Measurement, Phases, Policy, Status
from autotune.process import Child, Died, Failure
from autotune.sanitizer import Sanitizer, SanitizerJob
from autotune.worker import Identified, Identify, Measure, Measured, Prepare, Rounds, Verify, VerifyEdge, setup
from search_spaces.errors import NoDevice
from search_spaces.space import Schedule
from search_spaces.task import Task

_START_SECONDS = 300.0
_Entries = tuple[tuple[Schedule, Artifact], ...]


@dataclass
class Occupation:
    """Seconds in which the builders and the device were at work, summed over processes, or waited for.

    Attributes:
        build: Of building.
        device: Of checking and timing.
        waited: Until another tuner had left the device.
    """

    build: float = 0.0
    device: float = 0.0
    waited: float = 0.0


class Measurer:
    """One device and its builders, for one task.

    On a CPU target builders and candidates would disturb each other on the same cores, so a wave of builds and a wave
    of measurements alternate; on a GPU they overlap.

    Args:
        task: What is measured.
        policy: How.
        folder: Cache folder of the run.
        jobs: Builder processes.
        queue: How to wait for a device that another tuner uses.
        device: A device class by name or file, "" for the one of the target's kind.
    """

    def __init__(
        self, task: Task, policy: Policy, folder: Path, jobs: int, queue: Queue | None = None, device: str = ""
    ) -> None:
        self._queue = queue or Queue()
        self._held = ExitStack()
        self._noise = EarlyStop(policy.drop_rate)
        self._task = task
        self._policy = policy
        self._folder = folder
        self._jobs = jobs
        self._device_name = device
        self.builders = Builders(task, folder, jobs, policy.build_seconds)
        self._worker: Child[object] = Child(
            setup, (task, policy, folder, device), folder / "worker.log", fresh=task.target.kind == "cuda"
        )
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
        """Waits for the worker to know its device, and for the device to be this tuner's alone; then it is prepared.

        Raises:
            NoDevice: It could not start on the device, or another tuner keeps the device.
            KeyboardInterrupt: The user stopped the wait for another tuner.
        """
        answer = self._started()
        assert isinstance(answer, Identified)
        started = monotonic()
        self._held.enter_context(device_lock(answer.info, answer.uuid, self._queue))
        self.occupation.waited = monotonic() - started
        self._worker.send(Prepare(), _START_SECONDS)
        return answer.info

    def _started(self) -> object:
        """The answer of a worker that starts."""
        try:
            answer = self._worker.answer()
        except (TimeoutError, Died) as error:
            raise NoDevice(f"the device worker did not start: {error or 'time-out'}", "see worker.log") from error
        if isinstance(answer, Failure):
            raise NoDevice(f"the device worker did not start: {answer.summary}", "run 'autotune doctor'")
        return cast(object, answer)

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
                self._started()
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
            self._worker.send(Prepare(), _START_SECONDS)
            return
        self._current = self._ready.popleft()
        assert self._current.artifact is not None
        limit = self._noise.limit(self._best)
        job = Measure(self._current.schedule, self._current.artifact, limit)
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
            deterministic=answer.deterministic,
            conditions=answer.conditions,
            resources=built.artifact.resources,
            binary=built.artifact.sha256,
            phases=replace(answer.phases, build=built.seconds),
        )
        self.occupation.device += answer.phases.check + answer.phases.measure
        self._by_binary[built.artifact.sha256] = measurement
        self._learn(measurement)
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

    def recall(self, trials: Iterable[Measurement]) -> None:
        """Takes in what earlier runs of the task measured: the best, the noise, the binaries."""
        for trial in trials:
            if trial.binary:
                self._by_binary.setdefault(trial.binary, trial)
            self._learn(trial)

    def _learn(self, trial: Measurement) -> None:
        if len(trial.samples) >= self._policy.samples:
            self._best = min(self._best, trial.seconds)
            self._noise.observe(trial.samples)

    def verify(self, schedules: Sequence[Schedule]) -> dict[Schedule, Measured]:
        """Checks finalists on inputs of other distributions; call when nothing is in flight.

        Returns:
            How each ended that failed.
        """
        answers = self._answers(self._built(schedules), Verify, "on inputs of another distribution, ")
        return {s: a for s, a in answers.items() if a.status is not Status.OK}

    def sanitize(
        self, sanitizer: Sanitizer, schedules: Sequence[Schedule], notice: Callable[[str], object]
    ) -> dict[Schedule, Measured]:
        """Runs finalists under compute-sanitizer; call when nothing is in flight.

        Args:
            sanitizer: Which tools.
            schedules: Who.
            notice: Told where a tool gives no answer, which is no fault of the schedule.

        Returns:
            How each ended in which something was found.
        """
        failed = {}
        for schedule, artifact in self._built(schedules):
            job = SanitizerJob(self._task, schedule, artifact, self._folder, self._device_name, self._policy.input_seed)
            answer = sanitizer.check(job)
            if answer.unanswered:
                notice(f"not checked, {answer.unanswered}: {schedule}")
            if answer.finding:
                failed[schedule] = Measured(Status.WRONG_RESULT, detail=answer.finding)
        return failed

    def check_edges(self, schedules: Sequence[Schedule]) -> EdgeReport:
        """Checks the sketches of finalists on small odd workloads; call when nothing is in flight.

        What cannot be built for such a workload is passed over.
        """
        checked, faults = 0, []
        for case in edge_cases(self._task, schedules):
            artifacts: dict[Schedule, Artifact] = {}

            def keep(built: Built, artifacts: dict[Schedule, Artifact] = artifacts) -> None:
                if built.artifact is not None:
                    artifacts[built.schedule] = built.artifact

            # Each builder makes the workload's space anew, which on a CPU takes longer than a build.
            jobs = 1 if self._alternate else min(self._jobs, len(case.schedules))
            with closing(Builders(case.task, self._folder, jobs, self._policy.build_seconds)) as builders:
                builders.build_all(list(case.schedules), keep)
            generators = {s: case.task.sketch_of(s).generator for s in artifacts}
            ask = partial(VerifyEdge, task=case.task, generators=generators)
            answers = self._answers(tuple(artifacts.items()), ask, "")
            checked += len(answers)
            faults += [
                EdgeFault(case.task.workload, s, case.schedules[s], a.status, a.detail)
                for s, a in answers.items()
                if a.status is not Status.OK
            ]
        return EdgeReport(checked, tuple(faults))

    def _built(self, schedules: Sequence[Schedule]) -> _Entries:
        """Those of `schedules` that can be built, with their binaries."""
        self.builders.build_all([s for s in schedules if s not in self._artifacts], self._keep)
        return tuple((s, self._artifacts[s]) for s in schedules if s in self._artifacts)

    def _answers(self, entries: _Entries, ask: Callable[[_Entries], object], where: str) -> dict[Schedule, Measured]:
        """The worker's answer for each; a fault says `where`."""
        if not entries:
            return {}
        answers = self._asked(entries, ask, where)
        if isinstance(answers, Measured):
            # One of them ended the worker, or poisoned the device: one by one, so that it is known which.
            alone = [self._asked((entry,), ask, where) for entry in entries]
            answers = [a if isinstance(a, Measured) else a[0] for a in alone]
        return {s: a for (s, _), a in zip(entries, answers, strict=True)}

    def _asked(self, entries: _Entries, ask: Callable[[_Entries], object], where: str) -> Sequence[Measured] | Measured:
        """The worker's answers; how the worker ended where it did not live to give them."""
        self._settle()
        seconds = self._policy.run_seconds * (1 + len(entries)) + (0 if self._worker.alive else _START_SECONDS)
        self._worker.send(ask(entries), seconds)
        try:
            answer = self._worker.answer()
        except TimeoutError:
            return Measured(Status.TIMEOUT, detail=f"{where}ran longer than {seconds:g} s")
        except Died as error:
            return Measured(Status.CRASHED, detail=f"{where}{error}")
        if isinstance(answer, Failure):
            self._worker.kill()
            return Measured(Status.LAUNCH_ERROR, detail=f"{where}{answer.summary}")
        return cast(tuple[Measured, ...], answer)

    def race(
        self, schedules: Sequence[Schedule], rounds: int, seed: int, library: bool, anchor: Schedule | None = None
    ) -> Look:
        """Times `schedules` and the library's calls interleaved; call when nothing is in flight.

        Args:
            schedules: Who races.
            rounds: How often.
            seed: Of the order.
            library: Whether the library's calls take part.
            anchor: Who is timed first and last.

        Raises:
            Died: The worker ended in the race.
            TimeoutError: It took too long.
        """
        job = Rounds(self._built(schedules), rounds, seed, library, anchor)
        self._settle()
        self._worker.send(
            job, self._policy.run_seconds * len(schedules) + (0 if self._worker.alive else _START_SECONDS)
        )
        answer = self._worker.answer()
        if isinstance(answer, Failure):
            self._worker.kill()
            raise Died(answer.summary)
        assert isinstance(answer, Look)
        return answer

    def _settle(self) -> None:
        """Lets a worker that still prepares end that."""
        if self._worker.job is not None:
            self._started()

    def _keep(self, built: Built) -> None:
        if built.artifact is not None:
            self._artifacts[built.schedule] = built.artifact

    def close(self) -> None:
        """Kills worker and builders, then lets the next tuner have the device."""
        self._worker.kill()
        self.builders.close()
        self._held.close()
