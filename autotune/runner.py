"""Whoever takes one job at a time and answers it or dies over it: a process here, or one on another host."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, TypeVar

from autotune.clock import awake
from search_spaces.errors import NoDevice

Job = TypeVar("Job")


class Died(Exception):
    """The runner ended without an answer; the text says how."""


class Lost(Died):
    """The runner is gone for good, and its job is not to blame: its host was lost, say."""


@dataclass(frozen=True)
class Failure:
    """An exception over a job, as text."""

    summary: str
    trace: str


class Runner(ABC, Generic[Job]):
    """Answers jobs, one at a time; a job that ends it does not end the run, and it starts anew for the next one.

    Attributes:
        job: What is being answered, None where nothing is.
        sent: When that was sent, on `clock.awake`.
    """

    def __init__(self) -> None:
        self.job: Job | None = None
        self.sent = 0.0
        self._deadline = float("inf")

    @property
    @abstractmethod
    def connection(self) -> Connection:
        """What is ready to be read when the answer, or the end, has come; only while a job is being answered."""

    @property
    @abstractmethod
    def alive(self) -> bool:
        """Whether it has been started and runs."""

    def send(self, job: Job, seconds: float) -> None:
        """Gives it a job that it must answer within `seconds`; it is started first where it is not alive."""
        assert self.job is None, "one job at a time"
        self._submit(job, seconds)
        self.job = job
        self.sent = awake()
        self._deadline = self.sent + seconds

    @abstractmethod
    def _submit(self, job: Job, seconds: float) -> None:
        """Starts the answering of `job`, which must not take longer."""

    def remaining(self) -> float:
        """Seconds until the deadline of the job; inf where the runner itself keeps it."""
        return self._deadline - awake()

    def answer(self) -> Any:
        """Waits for the answer of the job, until its deadline; ends as `receive` does."""
        # More than once where this process was stopped meanwhile: then the deadline has moved.
        while (left := self.remaining()) > 0 and not wait([self.connection], left if left < float("inf") else None):
            pass
        return self.receive()

    @abstractmethod
    def receive(self) -> Any:
        """The answer of the job; call when the connection is ready or the deadline has passed.

        Returns:
            What the handler returned, or a Failure where it raised.

        Raises:
            TimeoutError: The deadline passed; it was killed.
            Died: It ended by itself (crash, exit, abort).
            Lost: Likewise, and it cannot be started again.
        """

    @abstractmethod
    def kill(self) -> None:
        """Ends it at once; harmless where it is not alive."""


def started(runner: Runner[Any], trouble: str, unanswered: str, failed: str) -> Any:
    """The answer to the first job of a runner, which starts with it.

    Args:
        runner: Was sent the job.
        trouble: What it means if there is no answer, for the message.
        unanswered: The remedy where it ended or took too long.
        failed: The remedy where it raised.

    Raises:
        NoDevice: It gave none.
    """
    try:
        answer = runner.answer()
    except (TimeoutError, Died) as error:
        raise NoDevice(f"{trouble}: {error or 'time-out'}", unanswered) from error
    if isinstance(answer, Failure):
        raise NoDevice(f"{trouble}: {answer.summary}", failed)
    return answer
