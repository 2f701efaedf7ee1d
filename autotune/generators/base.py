"""Code generators: a schedule becomes a binary in a builder process and a launchable kernel in a worker."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_spaces.space import Schedule
from search_spaces.task import Task

BoundLaunch = Callable[[], object]


class BuildError(Exception):
    """A schedule that the compiler refuses; its text becomes the record's detail."""


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel uses, as the compiler reports it; None where it does not say.

    Attributes:
        registers: Registers per thread.
        shared_bytes: Shared memory of a block, static and dynamic.
        spill_bytes: Local memory per thread used for spilled registers.
        threads: Threads of a block.
    """

    registers: int | None = None
    shared_bytes: int | None = None
    spill_bytes: int | None = None
    threads: int | None = None


@dataclass(frozen=True)
class Artifact:
    """A built schedule, plain data that travels between processes.

    Attributes:
        path: File or folder of the binary, readable by the worker.
        sha256: Of the device code and of what it is launched with; equal hashes are equal programs.
        resources: What the kernel uses.
    """

    path: str
    sha256: str
    resources: Resources


class Kernel(ABC):
    """A loaded binary."""

    @abstractmethod
    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Fixes the arguments, so that a launch costs as little as it can.

        Args:
            inputs: Arrays in the operator's order: torch CUDA tensors on a GPU, numpy arrays on a CPU.
            outputs: Likewise.

        Returns:
            A function that enqueues one launch (torch's current stream on a GPU; done on return on a CPU).
        """


class Generator(ABC):
    """One code generator: a file of this folder with an instance named GENERATOR."""

    name: str
    # Modules that a builder needs; the process server imports them once, before it forks builders.
    preload: tuple[str, ...] = ()

    @abstractmethod
    def missing(self) -> str | None:
        """Why it cannot be used on this machine, naming the remedy; None where it can. Imports nothing heavy."""

    @abstractmethod
    def build(self, task: Task, schedule: Schedule, folder: Path) -> Artifact:
        """Compiles `schedule` for `task.target`, with or without a device of that target present.

        Args:
            task: The task.
            schedule: A legal schedule of its space.
            folder: Cache folder of the run, shared by all builders; files are named by content.

        Raises:
            BuildError: The compiler refuses the schedule.
        """

    @abstractmethod
    def load(self, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """Loads in the worker what `build` made; raises any exception where the device refuses it."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Versions of its compiler packages, for the environment record."""
