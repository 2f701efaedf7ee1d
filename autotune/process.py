"""One killable child process that takes jobs over a pipe; builders and the device worker are both made of it.

A job that hangs, aborts or poisons the device ends with the child, never with the run: the child leads a process
group of its own, is killed as a group when its deadline passes, and is started again for the next job.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path
from typing import Any, Generic, TypeVar

from autotune.clock import monotonic

_SERVER = multiprocessing.get_context("forkserver")
_FRESH = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG = 1

Job = TypeVar("Job")


class Died(Exception):
    """The child ended without an answer; the text says how."""


@dataclass(frozen=True)
class Failure:
    """An exception in the child, as text."""

    summary: str
    trace: str


def preload(modules: Sequence[str]) -> None:
    """Names what the process server imports once, so that children start without importing it again.

    Takes effect only before the first child starts.
    """
    _SERVER.set_forkserver_preload(["autotune.process", *modules])


def _serve(
    connection: Connection, setup: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], log: str
) -> None:
    """The child's main loop: set up once, then one answer per job until the pipe closes."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        handle = setup(*arguments)
    except Exception as error:
        connection.send(_failure(error))
        return
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        try:
            answer = handle(job)
        except Exception as error:
            answer = _failure(error)
        connection.send(answer)


def _failure(error: Exception) -> Failure:
    text = " ".join(str(error).split())
    return Failure(f"{type(error).__name__}: {text}"[:500], traceback.format_exc())


class Child(Generic[Job]):
    """A child process with at most one job in it.

    Args:
        setup: Picklable function run once in the child; returns the function that answers a job.
        arguments: Its arguments.
        log: File that takes the child's standard output and error.
        fresh: Start a new interpreter rather than fork the process server: for CUDA, which does not survive a fork
            once any library has touched it.
    """

    def __init__(
        self, setup: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...], log: Path, *, fresh: bool = False
    ) -> None:
        self._setup = setup
        self._arguments = arguments
        self._log = log
        self._fresh = fresh
        self._process: ForkServerProcess | SpawnProcess | None = None
        self._connection: Connection | None = None
        self.job: Job | None = None
        self._deadline = float("inf")
        self.sent = 0.0

    @property
    def connection(self) -> Connection:
        """The pipe to wait on while a job is in the child."""
        assert self._connection is not None, "no job was sent"
        return self._connection

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._process is not None and self._process.is_alive()

    def send(self, job: Job, seconds: float) -> None:
        """Gives the child a job that it must answer within `seconds`, starting the child where it is not alive."""
        assert self.job is None, "one job at a time"
        if not self.alive:
            self._start()
        self.job = job
        self.sent = monotonic()
        self._deadline = self.sent + seconds
        with contextlib.suppress(BrokenPipeError):  # a child that died in set-up: `receive` tells
            self.connection.send(job)

    def _start(self) -> None:
        self.kill()
        context = _FRESH if self._fresh else _SERVER
        ours, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._setup, self._arguments, str(self._log)), daemon=True
        )
        self._process.start()
        theirs.close()
        self._connection = ours

    def remaining(self) -> float:
        """Seconds until the deadline of the job in the child."""
        return self._deadline - monotonic()

    def answer(self) -> Any:
        """Waits for the answer of the job, until its deadline; ends as `receive` does."""
        wait([self.connection], timeout=max(0.0, self.remaining()))
        return self.receive()

    def receive(self) -> Any:
        """The answer of the job; call when the connection is ready or the deadline has passed.

        Returns:
            What the handler returned, or a Failure where it raised.

        Raises:
            TimeoutError: The deadline passed; the child's group was killed.
            Died: The child ended by itself (crash, exit, abort).
        """
        self.job = None
        if not self.connection.poll(0) and self.remaining() <= 0:
            self.kill()
            raise TimeoutError
        try:
            return self.connection.recv()
        except (EOFError, ConnectionResetError) as error:
            code = self._exit_code()
            self.kill()
            raise Died(_how(code)) from error

    def _exit_code(self) -> int | None:
        assert self._process is not None
        self._process.join(timeout=5)
        return self._process.exitcode

    def kill(self) -> None:
        """Kills the child's whole process group; harmless where there is none."""
        if self._process is not None and self._process.pid is not None and self._process.is_alive():
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self._process.kill()
            self._process.join()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None
        self.job = None


def _how(code: int | None) -> str:
    if code is None:
        return "the process closed its pipe"
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process exited with code {code}"
