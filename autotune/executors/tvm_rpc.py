"""Devices behind TVM's RPC tracker: candidates are built here and run on the servers that it lends."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import cast

from autotune.builders import local_builders
from autotune.devices.base import DeviceInfo, Place
from autotune.devices.choice import chosen_places
from autotune.devices.cpu import cpu_info, usable_cores
from autotune.devices.lock import Queue
from autotune.executors.base import Answer, Executor, Measuring, Seat, Site
from autotune.measurement import Policy
from autotune.process import Child
from autotune.runner import Runner, started
from autotune.scratch import scratch_folder
from autotune.task_options import cpu_target_hardware
from autotune.tvm_rpc.device import RemoteCpu, remote_info
from autotune.tvm_rpc.server import Server
from autotune.tvm_rpc.tracker import Tracker
from autotune.worker import Identified, Identify, Worker
from search_spaces import registry
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.hardware import Hardware, cpu_hardware
from search_spaces.sketches.tvm.base import EXTRA
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task

_ASK_SECONDS = 60.0
# The shortest time after which a server ends what is hanging in it; see `RemoteCpu`.
_LEAST_SECONDS = 4.0


class TvmRpc(Executor):
    """Builders are processes here; each server under the key is a device, which a process here talks to."""

    @staticmethod
    def ask(site: Site, kind: str, function: Callable[..., Answer], *arguments: object) -> Answer:
        """A server runs no Python: who it is, and what hardware that is, it is asked in TVM's own way."""
        if kind != "llvm":
            raise AutotuneError("--executor tvm-rpc reaches CPUs", "leave --target at llvm")
        if function is cpu_info:
            return cast(Answer, _info(site))
        if function is cpu_target_hardware:
            return cast(Answer, _hardware(site, cast(Target, arguments[0])))
        return function(*arguments)

    def builders(self, task: Task, count: int) -> Sequence[Runner[Schedule]]:
        """Processes that share the folder."""
        return local_builders(task, self.folder, count)

    def slots(self) -> int:
        """One a core of this machine."""
        return usable_cores()

    def seats(self, measuring: Measuring) -> Sequence[Seat]:
        """One for each server under the key, be it free or not."""
        tracker = _tracker(self.site)
        places = chosen_places([Place(str(n)) for n in range(tracker.servers())], self.site.devices)
        arguments = (measuring.task, measuring.policy, self.folder, tracker)
        return [Seat(p, Child(setup, arguments, self.folder / f"worker-{p.name}.log")) for p in places]

    def hold(self, found: Identified, queue: Queue) -> AbstractContextManager[None]:
        """The tracker lends a server to one at a time."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Servers go back with the runners."""


def setup(task: Task, policy: Policy, folder: Path, tracker: Tracker) -> Callable[[object], object]:
    """Runs in the worker process.

    Raises:
        NoDevice: No server was lent, or it cannot run what is built for the target as the policy asks.
    """
    seconds = max(_LEAST_SECONDS, policy.run_seconds)
    device = RemoteCpu(tracker, seconds, 3.0 * seconds, task.target.cores)
    require_fit(device.server, task.target, cold=policy.cold)
    return Worker(task, policy, folder, device).handle


def require_fit(server: Server, target: Target, *, cold: bool) -> None:
    """Asks whether a server can run what is built here for `target`.

    Raises:
        NoDevice: It cannot, or cannot be timed with cold caches where that is asked.
    """
    if cold and not server.flushes:
        raise NoDevice("the server has no function that flushes its caches", "give --l2 hot")
    ask_here = registry.optional("tvm", EXTRA).get_global_func
    triples = [server.told("target.llvm_get_system_triple"), ask_here("target.llvm_get_system_triple")()]
    kinds = [str(triple or "").partition("-")[0] for triple in triples]
    if kinds[0] and kinds[0] != kinds[1]:
        raise NoDevice(f"the server is {kinds[0]}, this machine {kinds[1]}", "run on a machine of the server's kind")
    there, here = server.told("target.llvm_get_system_cpu"), ask_here("target.llvm_get_system_cpu")()
    if not target.arch and there not in (None, here):
        raise NoDevice(f"the server's CPU is {there}, this machine's {here}", f"give --target 'llvm -mcpu={there}'")


def _tracker(site: Site) -> Tracker:
    return Tracker.at(site.address, site.key)


@lru_cache(maxsize=4)
def _info(site: Site) -> DeviceInfo:
    """Who the servers are, asked of one of them by a process that may be killed: TVM waits for ever.

    Raises:
        NoDevice: The tracker or its servers are not there, or none answers.
    """
    tracker = _tracker(site)
    tracker.servers()
    with scratch_folder() as folder:
        child: Child[Identify] = Child(_identifying, (tracker,), folder / "device.log")
        try:
            child.send(Identify(), 2 * _ASK_SECONDS)
            answer = started(child, "the server did not answer", "see its log", "see its log")
        finally:
            child.kill()
    assert isinstance(answer, DeviceInfo)
    return answer


def _identifying(tracker: Tracker) -> Callable[[Identify], DeviceInfo]:
    """Runs in that process."""
    server = Server(tracker, _ASK_SECONDS, _ASK_SECONDS, 0)

    def identify(_: Identify) -> DeviceInfo:
        with contextlib.closing(server):
            return remote_info(server, tracker)

    return identify


def _hardware(site: Site, target: Target) -> Hardware:
    """The server's, of no roofline."""
    info = _info(site)
    endless = float("inf")
    return cpu_hardware(info.name, target.cores or info.units, info.cache_bytes, endless, {"float32": endless})


EXECUTOR = TvmRpc
