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
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess, SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from autotune.environment import candidates_variables, set_variables
from autotune.limits import limit_this_process
from autotune.runner import Died, Failure, Runner
from search_spaces.errors import CannotWrite

_SERVER = multiprocessing.get_context("forkserver")
_FRESH = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG = 1
# Bytes of the name of a temporary folder with which a socket in a folder of it still has a name that can be bound:
# Linux takes 107, and multiprocessing adds two random names.
_MOST_BYTES = 70
# A folder is made there with a name that nobody can foretell.
_SHORT_FOLDER = "/tmp"

Job = TypeVar("Job")


def preload(modules: Sequence[str]) -> None:
    """Names what the process server imports once, so that children start without importing it again.

    Takes effect only before the first child starts.
    """
    _SERVER.set_forkserver_preload(["autotune.process", *modules])


def _make_sockets_bindable() -> None:
    """Has multiprocessing make its folder of sockets where their names are short enough, whatever TMPDIR says."""
    usual = tempfile.gettempdir()
    if len(os.fsencode(usual)) <= _MOST_BYTES:
        return
    tempfile.tempdir = _SHORT_FOLDER
    try:
        # Made once and then kept.
        util.get_temp_dir()
    except OSError as error:
        raise CannotWrite(f"TMPDIR is too long for sockets: {usual}", "set it to a shorter one") from error
    finally:
        tempfile.tempdir = usual


def _serve(
    connection: Connection,
    setup: Callable[..., Callable[[Any], Any]],
    arguments: tuple[Any, ...],
    log: str,
    gpu: bool,
    variables: Mapping[str, str],
) -> None:
    """The child's main loop: set up once, then one answer per job until the pipe closes."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _let_the_server_end()
    # A job may start processes, as rival tuners do; they are of this one's group, which is killed as a whole.
    multiprocessing.current_process().daemon = False
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    limit_this_process(gpu=gpu)
    set_variables(variables)
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


def _let_the_server_end() -> None:
    """Closes what keeps the process server alive while this child is, which may hang in a candidate for ever.

    So the server ends with the run, be it by SIGKILL, and the system then kills this child.
    """
    server = vars(forkserver._forkserver)
    kept = server.get("_forkserver_alive_fd")
    if kept is not None:
        os.close(kept)
        server["_forkserver_alive_fd"] = None


def _failure(error: Exception) -> Failure:
    text = " ".join(str(error).split())
    return Failure(f"{type(error).__name__}: {text}"[:500], traceback.format_exc())


class Child(Runner[Job]):
    """A child process with at most one job in it.

    Args:
        setup: Picklable function run once in the child; returns the function that answers a job.
        arguments: Its arguments.
        log: File that takes the child's standard output and error.
        fresh: Start a new interpreter rather than fork the process server: for CUDA, which does not survive a fork
            once any library has touched it.
        variables: Environment variables that the child has beside this process's.
    """

    def __init__(
        self,
        setup: Callable[..., Callable[[Any], Any]],
        arguments: tuple[Any, ...],
        log: Path,
        *,
        fresh: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._setup = setup
        self._arguments = arguments
        self._log = log
        self._fresh = fresh
        self._process: ForkServerProcess | SpawnProcess | None = None
        self._connection: Connection | None = None
        self._variables = dict(variables or {})

    @property
    def connection(self) -> Connection:
        """The pipe to wait on while a job is in the child."""
        assert self._connection is not None, "no job was sent"
        return self._connection

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._process is not None and self._process.is_alive()

    def _submit(self, job: Job, seconds: float) -> None:
        del seconds  # kept by this process
        if not self.alive:
            self._start()
        with contextlib.suppress(BrokenPipeError):  # a child that died in set-up: `receive` tells
            self.connection.send(job)

    def _start(self) -> None:
        self.kill()
        context = _FRESH if self._fresh else _SERVER
        ours, theirs = context.Pipe()
        arguments = (theirs, self._setup, self._arguments, str(self._log), self._fresh, self._variables)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        _make_sockets_bindable()
        with candidates_variables():
            self._process.start()
        theirs.close()
        self._connection = ours

    def receive(self) -> Any:
        """See Runner; at a time-out the child's whole group is killed."""
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
