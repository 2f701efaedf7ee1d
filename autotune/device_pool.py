"""The devices of a run: each takes the next candidate when it is free, so that a slow or dead one slows only itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from multiprocessing.connection import Connection, wait

from autotune.builders import Built
from autotune.clock import monotonic
from autotune.device_comparison import Comparison, DeviceNews, difference
from autotune.device_worker import START_SECONDS, DeviceWorker, lost_with
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue
from autotune.executors.base import Executor, Measuring
from autotune.generators.base import Artifact
from autotune.measurement import Measurement, Status
from autotune.runner import Lost
from autotune.worker import Identified, Identify, Measure, Prepare
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.space import Schedule

_POLL_SECONDS = 1.0


class DevicePool:
    """Measures what was built on all devices of a run.

    Devices that share a run must be alike, and are compared by the untuned default before their first candidate: the
    middle one is the reference, the times of one that differs are corrected, one that is far off is left out. A
    candidate that ended its device's process is recorded when the device works again; if it does not, the candidate
    is measured on another one.

    Args:
        executor: Where the devices are.
        measuring: What they measure.
        queue: How to wait for a device that another tuner uses.

    Attributes:
        workers: Devices at work, the one that finalists are raced on first.
        ready: Candidates that wait for a device.
        waited: Seconds until other tuners had left the devices.
    """

    def __init__(self, executor: Executor, measuring: Measuring, queue: Queue) -> None:
        self._executor = executor
        self._queue = queue
        self._strict = bool(executor.site.devices)
        self._run_seconds = measuring.policy.run_seconds
        self.workers = [DeviceWorker(seat, self._run_seconds) for seat in executor.seats(measuring)]
        self._joining: list[DeviceWorker] = []
        self._came: list[DeviceWorker] = []
        self._identity: Identified | None = None
        self._held = ExitStack()
        self.ready: deque[Built] = deque()
        self._moved: set[Schedule] = set()
        self._comparison = Comparison()
        self._news: list[DeviceNews] = []
        self._empty_since: float | None = None
        self.waited = 0.0
        for worker in self.workers:
            worker.identify()

    def open(self) -> DeviceInfo:
        """Waits until the devices are known and this tuner's alone; then they are prepared.

        Raises:
            NoDevice: None of them starts, or another tuner keeps them; where they were named, one of them.
            AutotuneError: Some that were named are not alike.
            KeyboardInterrupt: The user stopped the wait for another tuner.
        """
        self._identify()
        started = monotonic()
        self._hold()
        self.waited = monotonic() - started
        for worker in self.workers:
            worker.prepare()
        assert self._identity is not None
        return self._identity.info

    def _identify(self) -> None:
        for worker in list(self.workers):
            try:
                found = worker.identified()
            except NoDevice as error:
                self._refuse(worker, error)
                continue
            self._identity = self._identity or found
            differing = difference(self._identity, found)
            if differing:
                first = self.workers[0].place.name
                self._refuse(
                    worker,
                    AutotuneError(
                        f"devices {first} and {worker.place.name} are not alike: {differing}",
                        f"choose among them, for example --devices {first}",
                    ),
                )

    def _refuse(self, worker: DeviceWorker, error: AutotuneError) -> None:
        """Leaves a device out before the start; where it was named, or is the last one, that is an error."""
        if self._strict or len(self.workers) == 1:
            raise error
        self._leave_out(worker, error.message)

    def _hold(self) -> None:
        """Takes the devices from other tuners; those that were not named and are in use are left to them."""
        if self._strict or len(self.workers) == 1:
            for worker in self.workers:
                self._take(worker, self._queue)
            return
        busy = [(worker, why) for worker in self.workers if (why := self._in_use(worker))]
        if len(busy) == len(self.workers):
            self._take(busy.pop(0)[0], self._queue)
        for worker, why in busy:
            self._leave_out(worker, why)

    def _take(self, worker: DeviceWorker, queue: Queue) -> None:
        assert worker.found is not None
        self._held.enter_context(self._executor.hold(worker.found, queue))

    def _in_use(self, worker: DeviceWorker) -> str:
        """Takes a device that is free; else by whom it is used."""
        try:
            self._take(worker, Queue(0.0, stop=self._queue.stop))
        except NoDevice as error:
            return error.message
        return ""

    @property
    def wants_default(self) -> bool:
        """Whether devices wait to be compared by the default."""
        return self._comparison.wants_default(self.workers)

    def compare_by(self, schedule: Schedule, artifact: Artifact | None) -> None:
        """Has devices compared by this schedule, which is the default; by none where it could not be built."""
        if artifact is None:
            self._comparison.give_up(self.workers)
        else:
            self._comparison.default = schedule, artifact

    @property
    def connections(self) -> list[Connection]:
        """Pipes to wait on."""
        return [w.runner.connection for w in (*self.workers, *self._joining) if w.busy]

    def next_deadline(self) -> float:
        """Seconds until the first job times out."""
        return min((w.runner.remaining() for w in (*self.workers, *self._joining) if w.busy), default=float("inf"))

    @property
    def measuring(self) -> bool:
        """Whether a device is at work on a candidate, or on the default."""
        return any(w.suspect or isinstance(w.runner.job, Measure) for w in self.workers)

    def dispatch(self, limit: float) -> None:
        """Gives free devices what waits; candidates slower than `limit` seconds are hopeless."""
        self._compare()
        for worker in self.workers:
            if worker.busy:
                continue
            if not worker.runner.alive:
                # On its own time and not on the next candidate's.
                worker.prepare()
            elif self._comparison.is_due(worker, self.workers):
                if self._comparison.default is not None:
                    worker.calibrate(*self._comparison.default)
            elif worker.factor is not None and self.ready:
                worker.measure(self.ready.popleft(), limit)

    def grow(self) -> None:
        """Takes in devices that came.

        Raises:
            NoDevice: None is left, and none came for long.
        """
        for seat in self._executor.newcomers():
            worker = DeviceWorker(seat, self._run_seconds)
            self._joining.append(worker)
            worker.identify()
        if self.workers or self._joining:
            self._empty_since = None
            return
        self._empty_since = self._empty_since or monotonic()
        if monotonic() - self._empty_since > START_SECONDS:
            raise NoDevice("no device is left, and none came", "resume the run when there is one")

    def collect(self, ready: Sequence[object]) -> list[Measurement]:
        """Takes in what ended: measurements, and on their own account devices that started or were compared.

        Raises:
            NoDevice: The last device is lost.
        """
        done: list[Measurement] = []
        for worker in [*self.workers, *self._joining]:
            if worker.busy and (worker.runner.connection in ready or worker.runner.remaining() <= 0):
                done += self._ended(worker)
        return done

    def _ended(self, worker: DeviceWorker) -> list[Measurement]:
        if isinstance(worker.runner.job, Identify):
            self._join(worker)
            return []
        if isinstance(worker.runner.job, Prepare):
            return self._started(worker)
        try:
            answer = worker.received()
        except Lost as error:
            return self._lost(worker, str(error))
        built, worker.candidate = worker.candidate, None
        if built is None:
            worker.default_samples = answer.samples if answer.status is Status.OK else ()
            return []
        if len(self.workers) > 1 and not worker.runner.alive:
            worker.suspect = built, answer
            return []
        return [worker.recorded(built, answer)]

    def _started(self, worker: DeviceWorker) -> list[Measurement]:
        try:
            works = worker.prepared()
        except NoDevice as error:
            if len(self.workers) == 1 and not self._executor.grows:
                raise
            return self._lost(worker, error.message)
        suspect = worker.suspect if works else None
        if suspect is None:
            return []
        worker.suspect = None
        return [worker.recorded(*suspect)]

    def _lost(self, worker: DeviceWorker, why: str) -> list[Measurement]:
        """Has the candidate of a device that is gone measured on another one; not a third time."""
        built = worker.suspect[0] if worker.suspect is not None else worker.candidate
        self._leave_out(worker, why)
        if built is None:
            return []
        if built.schedule in self._moved:
            return [lost_with(built, worker.label)]
        self._moved.add(built.schedule)
        self.ready.appendleft(built)
        return []

    def _leave_out(self, worker: DeviceWorker, why: str) -> None:
        worker.runner.kill()
        for workers in (self.workers, self._joining):
            if worker in workers:
                workers.remove(worker)
        self._news.append(DeviceNews(worker.label, worker.default_samples or (), left_out=why))

    def _join(self, worker: DeviceWorker) -> None:
        """A device that came while the run went on: it must be like the others, and free."""
        try:
            found = worker.identified()
        except NoDevice as error:
            self._leave_out(worker, error.message)
            return
        assert self._identity is not None
        why = difference(self._identity, found) or self._in_use(worker)
        if why:
            self._leave_out(worker, why)
            return
        self._joining.remove(worker)
        self._came.append(worker)
        self.workers.append(worker)
        worker.prepare()

    def _compare(self) -> None:
        by_label = {w.label: w for w in self.workers}
        for news in self._comparison.settle(self.workers):
            worker = by_label[news.device]
            if news.left_out:
                self._leave_out(worker, news.left_out)
            else:
                self._news.append(replace(news, came=worker in self._came))

    def news(self) -> list[DeviceNews]:
        """What became of devices since this was asked."""
        news, self._news = self._news, []
        return news

    def first(self) -> DeviceWorker:
        """The device for finalists, the reference if it still works; call when no candidate is in flight.

        Raises:
            NoDevice: None is left.
        """
        while True:
            self.grow()
            chosen = self._comparison.first if self._comparison.first in self.workers else None
            worker = chosen or next(iter(self.workers), None)
            if worker is None or worker.busy:
                ready = wait(self.connections, timeout=min(_POLL_SECONDS, max(0.0, self.next_deadline())))
                self.collect(ready)
            elif not worker.runner.alive:
                worker.prepare()
            else:
                return worker

    def close(self) -> None:
        """Kills the workers, then lets the next tuner have the devices."""
        for worker in (*self.workers, *self._joining):
            worker.runner.kill()
        self._held.close()
