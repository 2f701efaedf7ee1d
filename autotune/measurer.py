"""Builds in parallel while devices measure: schedules go in, measurements come out as they end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import wait

from autotune.builders import Builders, Built
from autotune.device_comparison import DeviceNews
from autotune.device_pool import DevicePool
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue
from autotune.early_stop import EarlyStop
from autotune.executors.base import Executor, Measuring
from autotune.finals import Entries, Finals
from autotune.generators.base import Artifact
from autotune.measurement import Measurement, Phases
from search_spaces.space import Schedule


@dataclass
class Occupation:
    """Seconds in which builders and devices were at work, summed over processes, or waited for.

    Attributes:
        build: Of building.
        device: Of checking and timing.
        waited: Until other tuners had left the devices.
    """

    build: float = 0.0
    device: float = 0.0
    waited: float = 0.0


class Measurer:
    """Devices and builders for one task.

    On a CPU target builders and candidates would disturb each other on the same cores, so a wave of builds and a wave
    of measurements alternate; on a GPU they overlap.

    Args:
        executor: Where builders and devices are.
        measuring: What is measured, how and on what.
        jobs: Builds at a time.
        queue: How to wait for a device that another tuner uses.

    Attributes:
        finals: What finalists go through; only while `in_flight` is 0.
        in_flight: Schedules submitted and not yet back from `completed`.
        occupation: What it cost so far.
    """

    def __init__(self, executor: Executor, measuring: Measuring, jobs: int, queue: Queue | None = None) -> None:
        task, policy = measuring.task, measuring.policy
        self._noise = EarlyStop(policy.drop_rate)
        self._task = task
        self._full = policy.samples
        self._builders = Builders(task, executor.builders(task, jobs), policy.build_seconds)
        self._pool = DevicePool(executor, measuring, queue or Queue())
        self.finals = Finals(self._pool, executor, measuring, jobs, self._built)
        self._by_binary: dict[str, Measurement] = {}
        self._artifacts: dict[Schedule, Artifact] = {}
        # Built for the comparison of devices alone.
        self._unasked: set[Schedule] = set()
        self._default_comes = False
        self._alternate = task.target.kind == "llvm"
        self._measuring_wave = False
        self._best = float("inf")
        self.occupation = Occupation()
        self.in_flight = 0

    def device(self) -> DeviceInfo:
        """Waits for the devices, see `DevicePool.open`; who they are."""
        found = self._pool.open()
        self.occupation.waited = self._pool.waited
        return found

    @property
    def devices(self) -> int:
        """Devices that measure."""
        return len(self._pool.workers)

    def news(self) -> list[DeviceNews]:
        """What became of devices, where there are several, since this was asked."""
        return self._pool.news()

    def submit(self, schedules: Sequence[Schedule]) -> None:
        """Takes schedules in; each comes back exactly once from `completed`."""
        self._default_comes |= self._task.default in schedules
        for schedule in schedules:
            self.in_flight += 1
            self._builders.submit(schedule)
        self._dispatch()

    def completed(self, timeout: float) -> list[Measurement]:
        """Measurements that ended, after waiting at most `timeout` seconds for the first.

        Raises:
            NoDevice: No device is left.
        """
        self._pool.grow()
        self._have_default_built()
        self._dispatch()
        pipes = [*self._builders.connections(), *self._pool.connections]
        until = min(timeout, self._builders.next_deadline(), self._pool.next_deadline())
        ready = wait(pipes, timeout=max(0.0, until))
        done = [m for built in self._builders.collect(ready) if (m := self._after_build(built)) is not None]
        for measurement in self._pool.collect(ready):
            self.occupation.device += measurement.phases.check + measurement.phases.measure
            if measurement.binary:
                self._by_binary[measurement.binary] = measurement
            self._learn(measurement)
            done.append(measurement)
        self._dispatch()
        self.in_flight -= len(done)
        self.occupation.build = self._builders.busy_seconds
        return done

    def _have_default_built(self) -> None:
        """Devices are compared by the default, be it that an earlier run has measured it."""
        default = self._task.default
        if not self._pool.wants_default or self._default_comes:
            return
        if default in self._artifacts:
            self._pool.compare_by(default, self._artifacts[default])
        elif default not in self._unasked:
            self._unasked.add(default)
            self._builders.submit(default)

    def _dispatch(self) -> None:
        """Starts what may start now."""
        if self._alternate:
            if self._measuring_wave:
                self._measuring_wave = bool(self._pool.ready) or self._pool.measuring
            elif not self._builders.waiting and not self._builders.building:
                self._measuring_wave = bool(self._pool.ready)
            if not self._measuring_wave:
                self._builders.dispatch()
                return
        else:
            self._builders.dispatch()
        self._pool.dispatch(self._noise.limit(self._best))

    def _after_build(self, built: Built) -> Measurement | None:
        """A failed build ends here, and so does one whose binary was measured before."""
        if built.schedule == self._task.default and self._pool.wants_default:
            self._pool.compare_by(built.schedule, built.artifact)
            self._default_comes = False
        if built.artifact is not None:
            self._artifacts[built.schedule] = built.artifact
        if built.schedule in self._unasked:
            self._unasked.remove(built.schedule)
            return None
        if built.artifact is None:
            return Measurement(built.schedule, built.status, detail=built.detail, phases=Phases(build=built.seconds))
        twin = self._by_binary.get(built.artifact.sha256)
        if twin is not None:
            return replace(
                twin,
                schedule=built.schedule,
                detail=twin.detail or "same binary as an earlier trial",
                phases=Phases(build=built.seconds),
            )
        self._pool.ready.append(built)
        return None

    def recall(self, trials: Iterable[Measurement]) -> None:
        """Takes in what earlier runs of the task measured: the best, the noise, the binaries."""
        for trial in trials:
            if trial.binary:
                self._by_binary.setdefault(trial.binary, trial)
            self._learn(trial)

    def _learn(self, trial: Measurement) -> None:
        if len(trial.samples) >= self._full:
            self._best = min(self._best, trial.seconds)
            self._noise.observe(trial.samples)

    def _built(self, schedules: Sequence[Schedule]) -> Entries:
        """Those of `schedules` that can be built, with their binaries."""
        self._builders.build_all([s for s in schedules if s not in self._artifacts], self._keep)
        return tuple((s, self._artifacts[s]) for s in schedules if s in self._artifacts)

    def _keep(self, built: Built) -> None:
        if built.artifact is not None:
            self._artifacts[built.schedule] = built.artifact

    def close(self) -> None:
        """Kills workers and builders, then lets the next tuner have the devices."""
        self._pool.close()
        self._builders.close()
