"""The CPU behind a TVM RPC server: checked here, run and timed there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from autotune.devices.base import DeviceInfo
from autotune.devices.cpu import Cpu
from autotune.generators.base import Artifact, BoundLaunch, Generator, Kernel
from autotune.tvm_rpc.server import Server
from autotune.tvm_rpc.tracker import Tracker
from search_spaces.schedule import Schedule
from search_spaces.task import Task

_GENERATOR = "tvm"
# TVM's runtime does not tell: what most CPUs have.
_CACHE_BYTES = 32 << 20


def remote_info(server: Server, tracker: Tracker) -> DeviceInfo:
    """What a server tells of its processor."""
    triple = str(server.told("target.llvm_get_system_triple") or "")
    return DeviceInfo(
        kind="llvm",
        name=f"{server.told('target.llvm_get_system_cpu') or 'CPU'} under TVM RPC key {tracker.key}",
        arch=triple.partition("-")[0] or "unknown",
        units=int(server.told("runtime.NumThreads") or 1),
        memory_bytes=0,
        cache_bytes=_CACHE_BYTES,
    )


class RemoteCpu(Cpu):
    """Arrays are numpy's here, with copies on the server; a launch sends them, runs there and brings them back.

    So all that checking does is done here. What a candidate does beside its launch is not seen: work that goes on
    after it, and writes before an argument.

    Args:
        tracker: Who lends the server.
        seconds: Time-out of an operation.
        wait: Seconds to wait at most for a free server.
        threads: Of parallel loops, 0 for as many as the server chooses.
    """

    def __init__(self, tracker: Tracker, seconds: float, wait: float, threads: int) -> None:
        # A session is replaced when a fifth of its time is over, and then has two operations' time and more left.
        self.server = Server(tracker, 2.5 * seconds, wait, threads)
        self._info = remote_info(self.server, tracker)
        self._flush = np.zeros(1, dtype=np.int8)

    def loaded(self, generator: Generator, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """The shared object, sent when it is first launched."""
        del task, schedule, folder
        if generator.name != _GENERATOR:
            raise ValueError(f"a kernel of {generator.name} does not run on a TVM RPC server")
        return RemoteKernel(self.server, artifact.path)

    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """None: the library here is on another device."""
        return {}

    def time(self, launches: Sequence[BoundLaunch], cold: bool, written: int = 0) -> list[float]:
        """By the server's clock, its caches flushed in its own way; equal launches in a row are one request."""
        del written
        self.server.renew()
        remote = [launch for launch in launches if isinstance(launch, RemoteLaunch)]
        assert len(remote) == len(launches), "only what this device loaded can be timed on it"
        copies = {id(c): c for launch in remote for c in self.server.copies(launch.arrays)}.values()
        for copy in copies:
            copy.push()
        seconds: list[float] = []
        for launch, run in groupby(remote):
            seconds += self.server.seconds(launch.path, launch.arrays, len(list(run)), cold=cold)
        for copy in copies:
            copy.pull()
        return seconds

    def synchronize(self) -> None:
        """A launch has ended when it returns; raises where the server is lost."""
        self.server.answers()

    def settle(self) -> None:
        """What goes on there is not seen here."""


class RemoteKernel(Kernel):
    """A shared object for a server.

    Args:
        server: Where it runs.
        path: The file here.
    """

    def __init__(self, server: Server, path: str) -> None:
        self._server = server
        self._path = path

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Arrays of this process."""
        return RemoteLaunch(self._server, self._path, (*inputs, *outputs))


@dataclass(frozen=True, eq=False)
class RemoteLaunch:
    """A launch with its arguments."""

    server: Server
    path: str
    arrays: tuple[Any, ...]

    def __call__(self) -> None:
        """Sends the arguments, runs, brings them back."""
        self.server.renew()
        copies = self.server.copies(self.arrays)
        for copy in copies:
            copy.push()
        self.server.run(self.path, self.arrays)
        for copy in copies:
            copy.pull()
