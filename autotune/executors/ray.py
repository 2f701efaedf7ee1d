"""A Ray cluster: builders are tasks that take a core each, devices are actors that take a GPU each, or a CPU host."""

from __future__ import annotations

import contextlib
import pickle
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar, cast

import autotune
import cost_models
import search_spaces
from autotune.clock import monotonic
from autotune.devices.base import Place
from autotune.devices.lock import Queue
from autotune.executors.base import Answer, Executor, Measuring, Seat, Site
from autotune.generators.base import Artifact
from autotune.ray_host import Answered, DeviceHost, Ended, Luggage, Packed, build, clear
from autotune.runner import Died, Failure, Lost, Runner
from autotune.worker import Identified, relocated
from search_spaces import registry
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.space import Schedule
from search_spaces.task import Task

EXTRA = "ray"
Job = TypeVar("Job")
_CODE = (autotune, cost_models, search_spaces)
_LEFT_BEHIND = ["**/__pycache__/**", "**/*.pyc"]
# A Ray task is tried again so often where its machine was lost.
_RETRIES = 3
_LOOK_SECONDS = 2.0
_CLEAR_SECONDS = 5.0
_SILENT_SECONDS = 20.0
_CONNECT_SECONDS = 2.0
_START = "start one with 'ray start --head'"
# Of a GPU, so that a question needs not wait for a device that measures.
_PEEK = 0.01


class RayRunner(Runner[Job]):
    """Has jobs answered somewhere in the cluster, where their deadlines are kept: Ray tells when a machine is lost.

    Args:
        ray: The module.
        submit: Hands a job and its seconds to Ray.
        end: Kills what answers, None where Ray starts that anew for each job.
        name: Of the machine, for messages.
    """

    def __init__(
        self,
        ray: Any,
        submit: Callable[[Job, float], Any],
        end: Callable[[], object] | None = None,
        name: str = "a machine of the cluster",
    ) -> None:
        super().__init__()
        self._ray = ray
        self._hand_over = submit
        self._end = end
        self._name = name
        self._alive = False
        self._reference: Any = None
        self._pipe: Connection | None = None

    @property
    def connection(self) -> Connection:
        """Ready when Ray has the answer."""
        assert self._pipe is not None, "no job was sent"
        return self._pipe

    @property
    def alive(self) -> bool:
        """Whether what answered last lives, as far as it is known here."""
        return self._alive

    def _submit(self, job: Job, seconds: float) -> None:
        self._pipe, bell = Pipe(duplex=False)
        self._reference = self._hand_over(job, seconds)
        self._reference.future().add_done_callback(lambda _: _ring(bell))
        self._alive = True

    def remaining(self) -> float:
        """Inf."""
        return float("inf")

    def receive(self) -> Any:
        """See Runner."""
        assert self._pipe is not None
        self.job = None
        self._pipe.close()
        errors = self._ray.exceptions
        try:
            answered: Answered = self._ray.get(self._reference)
        except errors.RayTaskError as error:
            return Failure(" ".join(str(error.cause).split())[:500], str(error))
        except errors.RuntimeEnvSetupError as error:
            why = f"{self._name} does not take this code: {_line(error)}"
            raise AutotuneError(why, "see Ray's logs there") from error
        except errors.RayError as error:
            self._alive = False
            raise Lost(f"{self._name} is gone: {_line(error)}") from error
        if isinstance(answered.answer, Ended):
            self._alive = False
            if not answered.answer.why:
                raise TimeoutError
            raise Died(answered.answer.why)
        return answered.answer

    def kill(self) -> None:
        """Ends what answers, not the actor round it."""
        if self._alive and self._end is not None:
            self._end()
        if self.job is not None and self._pipe is not None:
            self._pipe.close()
        self._alive = False
        self.job = None


class RayBuilder(RayRunner[Schedule]):
    """Builds; keeps what comes back in Ray's store, from where machines fetch it.

    Args:
        ray: The module.
        submit: Hands a schedule to Ray.
        binaries: Takes a reference to each archive, by hash.
    """

    def __init__(self, ray: Any, submit: Callable[[Schedule, float], Any], binaries: dict[str, Any]) -> None:
        super().__init__(ray, submit)
        self._binaries = binaries

    def receive(self) -> Any:
        """See Runner."""
        answer = super().receive()
        if not isinstance(answer, Packed):
            return answer
        if answer.artifact.sha256 not in self._binaries:
            self._binaries[answer.artifact.sha256] = self._ray.put(answer)
        return answer.artifact


class Ray(Executor):
    """Runs of this process on a cluster that is there already.

    The packages and the plug-in files of this process travel to the machines, which need the same Python and what the
    packages import. Binaries travel by their hash, each once to a machine.
    """

    grows = True

    def __init__(self, site: Site, folder: Path) -> None:
        super().__init__(site, folder)
        if site.devices:
            raise AutotuneError("--devices chooses among this machine's", "leave it out with --executor ray")
        self._ray = connected(site)
        files = {str(path): path.read_text() for path in registry.loaded_files()}
        self._luggage = Luggage(f"ray-{uuid.uuid4().hex[:12]}", files)
        self._packed_luggage = self._ray.put(self._luggage)
        self._binaries: dict[str, Any] = {}
        self._actors: list[Any] = []
        self._seen: set[str] = set()
        self._looked = 0.0
        self._head: str = self._ray.get_runtime_context().gcs_address
        self._heard = monotonic()
        self._measuring: Measuring | None = None

    @staticmethod
    def ask(site: Site, kind: str, function: Callable[..., Answer], *arguments: object) -> Answer:
        """As a Ray task beside a device."""
        ray = connected(site)
        if not any(_devices(node, kind) for node in _nodes(ray)):
            raise NoDevice(f"the cluster has no device for {kind}", "start a node that has one")
        asked = ray.remote(num_gpus=_PEEK if kind == "cuda" else 0)(function)
        return cast(Answer, ray.get(asked.remote(*arguments)))

    def slots(self) -> int:
        """One for each core of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def builders(self, task: Task, count: int) -> Sequence[Runner[Schedule]]:
        """Ray tasks, so many at a time; Ray tries them again where a machine is lost."""
        remote = self._ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(build)
        pickled, stored = pickle.dumps(task), self._ray.put(task)

        def submit(schedule: Schedule, seconds: float) -> Any:
            return remote.remote(self._packed_luggage, pickled, stored, schedule, seconds)

        return [RayBuilder(self._ray, submit, self._binaries) for _ in range(count)]

    def seats(self, measuring: Measuring) -> Sequence[Seat]:
        """An actor for each GPU of the cluster; for a CPU target one for each machine."""
        self._measuring = measuring
        seats = self._new_seats()
        if not seats:
            raise NoDevice(f"the cluster has no device for {measuring.task.target.kind}", "start a node that has one")
        return seats

    def newcomers(self) -> Sequence[Seat]:
        """Those of machines that joined, looked for every few seconds.

        Raises:
            NoDevice: The head is gone. Ray itself would end this process, a minute after.
        """
        if monotonic() - self._looked < _LOOK_SECONDS:
            return ()
        if _answers(self._head):
            self._heard = monotonic()
            return self._new_seats()
        self._looked = monotonic()
        if monotonic() - self._heard > _SILENT_SECONDS:
            raise NoDevice(f"the head of the cluster at {self._head} is gone", "start it anew, then --resume the run")
        return ()

    def _new_seats(self) -> list[Seat]:
        assert self._measuring is not None
        self._looked = monotonic()
        seats = []
        for node in _nodes(self._ray):
            if node["NodeID"] not in self._seen:
                self._seen.add(node["NodeID"])
                names = [node["NodeManagerAddress"], *(f"{node['NodeManagerAddress']}-{i}" for i in range(1, 99))]
                seats += [self._seat(node, name) for name in names[: _devices(node, self._measuring.task.target.kind)]]
        return seats

    def _seat(self, node: Mapping[str, Any], name: str) -> Seat:
        assert self._measuring is not None
        asked = self._measuring
        gpus = 1 if asked.task.target.kind == "cuda" else 0
        made = self._ray.remote(num_cpus=0, num_gpus=gpus, scheduling_strategy=_only_on(node))(DeviceHost)
        actor = made.remote(self._packed_luggage, asked.task, asked.policy, asked.device)
        self._actors.append(actor)

        def submit(job: object, seconds: float) -> Any:
            needed: dict[str, Any] = {}

            def note(artifact: Artifact) -> Artifact:
                needed[artifact.sha256] = self._binaries[artifact.sha256]
                return artifact

            relocated(job, note)
            return actor.answer.remote(job, seconds, needed)

        return Seat(Place(name), RayRunner(self._ray, submit, actor.end.remote, name))

    def hold(self, found: Identified, queue: Queue) -> AbstractContextManager[None]:
        """Ray gives a GPU to one actor, and the actor takes the lock of its machine."""
        return nullcontext()

    def close(self) -> None:
        """Ends the actors and removes the run's folders from the machines."""
        if not _answers(self._head):
            return
        for actor in self._actors:
            self._ray.kill(actor)
        waits = []
        for node in _nodes(self._ray):
            cleared = self._ray.remote(num_cpus=0, max_retries=0, scheduling_strategy=_only_on(node))(clear)
            waits.append(cleared.remote(self._packed_luggage))
        self._ray.wait(waits, num_returns=len(waits), timeout=_CLEAR_SECONDS)


def connected(site: Site) -> Any:
    """Ray, connected to the site's cluster; the code of this process goes there.

    Raises:
        MissingDependency: Ray is not installed.
        NoDevice: There is no such cluster.
    """
    ray = registry.optional("ray", EXTRA)
    if ray.is_initialized():
        return ray
    if site.address and not _answers(site.address):
        # Ray would try for minutes.
        raise NoDevice(f"no Ray cluster at {site.address}", f"{_START}, or mend --address")
    code = {"py_modules": [str(Path(module.__path__[0])) for module in _CODE], "excludes": _LEFT_BEHIND}
    try:
        with _signals_kept():
            ray.init(address=site.address or "auto", runtime_env=code, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise NoDevice(f"no Ray cluster was found: {_line(error)}", f"{_START}, or give --address") from error
    return ray


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray would end the process at a SIGTERM, which may be a run's to handle."""
    handler = signal.getsignal(signal.SIGTERM)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _answers(address: str) -> bool:
    """Whether something listens at HOST:PORT; true for an address of another form, which is Ray's to judge."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or "/" in host:
        return True
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _nodes(ray: Any) -> list[Mapping[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _only_on(node: Mapping[str, Any]) -> Any:
    strategies = registry.optional("ray.util.scheduling_strategies", EXTRA)
    return strategies.NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)


def _devices(node: Mapping[str, Any], kind: str) -> int:
    return int(node["Resources"].get("GPU", 0)) if kind == "cuda" else 1


def _ring(bell: Connection) -> None:
    """Called in a thread of Ray's."""
    with contextlib.suppress(OSError):  # nobody waits any more
        bell.send_bytes(b"1")
    bell.close()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


EXECUTOR = Ray
