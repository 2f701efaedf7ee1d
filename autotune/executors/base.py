"""Executors: who builds and who measures, on this machine or on others. One file each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from autotune.devices.base import Place
from autotune.devices.lock import Queue
from autotune.measurement import Policy
from autotune.runner import Runner
from autotune.worker import Identified
from search_spaces import registry
from search_spaces.space import Schedule
from search_spaces.task import Task

EXECUTORS = "autotune.executors"
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Site:
    """Where builders and devices are, as the user says it.

    Attributes:
        executor: A name of this folder, or a user's own.
        address: Where its machines are found, "" where it needs none or finds them itself.
        devices: Which of the devices measure: numbers as "0,1", "all", or "" for those that are alike and free.
        key: Under which the address has them, "" where it asks for none.
    """

    executor: str = "local"
    address: str = ""
    devices: str = ""
    key: str = ""

    @property
    def kind(self) -> type[Executor]:
        """The executor.

        Raises:
            UnknownName: There is none of that name.
        """
        found: type[Executor] = registry.find(EXECUTORS, self.executor.replace("-", "_"), "executor")
        return found

    def ask(self, kind: str, function: Callable[..., Answer], *arguments: object) -> Answer:
        """What `function`, which is picklable, returns on a machine that has a device for targets of `kind`.

        Raises:
            NoDevice: There is none.
        """
        return self.kind.ask(self, kind, function, *arguments)


HERE = Site()


@dataclass(frozen=True)
class Seat:
    """A device, and who answers jobs of `autotune.worker` on it."""

    place: Place
    runner: Runner[object]


@dataclass(frozen=True)
class Measuring:
    """What is measured on devices.

    Attributes:
        task: What is measured.
        policy: How.
        device: A device class by name or file, "" for the one of the target's kind.
    """

    task: Task
    policy: Policy
    device: str = ""


class Executor(ABC):
    """Starts builders and device workers; a file of this folder with a class named EXECUTOR.

    Args:
        site: What the user says of it.
        folder: Cache folder of the run on this machine.
    """

    # Whether devices may come while a run goes on, and whether they are this machine's.
    grows = False
    here = False

    @staticmethod
    @abstractmethod
    def ask(site: Site, kind: str, function: Callable[..., Answer], *arguments: object) -> Answer:
        """See `Site.ask`."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site = site
        self.folder = folder

    @abstractmethod
    def builders(self, task: Task, count: int) -> Sequence[Runner[Schedule]]:
        """`count` runners that answer a schedule of `task` with its artifact, or with the compiler's reason.

        The artifact's path is one of this machine, be it that another one built it.
        """

    @abstractmethod
    def slots(self) -> int:
        """Builds that there are cores for at a time."""

    @abstractmethod
    def seats(self, measuring: Measuring) -> Sequence[Seat]:
        """The devices that are to measure, in order; nothing is started.

        Raises:
            NoDevice: There is none.
            AutotuneError: The site names one that is not there.
        """

    def newcomers(self) -> Sequence[Seat]:
        """Devices that came since `seats` or this was asked."""
        return ()

    @abstractmethod
    def hold(self, found: Identified, queue: Queue) -> AbstractContextManager[None]:
        """Keeps other tuners off a device, see `device_lock`."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of what was started, runners apart."""
