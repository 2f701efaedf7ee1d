"""Devices: where candidates are run. One file each; used inside the worker process only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.generators.base import BoundLaunch
from search_spaces.operator import TensorSpec
from search_spaces.task import Task


@dataclass(frozen=True)
class DeviceInfo:
    """What was measured on, never confused with the target.

    Attributes:
        kind: "cuda" or "llvm": the target kind that it runs.
        name: The driver's or the processor's own name.
        arch: `sm_90`; for a CPU its LLVM name.
        units: Multiprocessors or cores.
        memory_bytes: Device memory.
        driver: Driver version, "" for a CPU.
        cache_bytes: Last-level cache.
    """

    kind: str
    name: str
    arch: str
    units: int
    memory_bytes: int
    driver: str = ""
    cache_bytes: int = 0


class Device(ABC):
    """Memory, arithmetic and a stopwatch on one device."""

    @abstractmethod
    def info(self) -> DeviceInfo:
        """Its identity."""

    @abstractmethod
    def random(self, spec: TensorSpec, seed: int) -> Any:
        """A tensor of standard normal values of `spec`'s shape and dtype; equal seeds give equal values."""

    @abstractmethod
    def empty(self, spec: TensorSpec) -> Any:
        """An uninitialised tensor."""

    @abstractmethod
    def poison(self, tensors: Sequence[Any]) -> None:
        """Fills outputs with NaN, so that an element nobody wrote is seen."""

    @abstractmethod
    def reference(self, task: Task, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The operator's outputs in float64, computed on the device."""

    @abstractmethod
    def deviation(self, output: Any, reference: Any, relative: float, of_rms: float) -> float:
        """Largest |output - reference| over relative |reference| + of_rms times its row's root mean square.

        Returns:
            inf where an element is not finite.
        """

    @abstractmethod
    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """The library calls that a user would make instead, those that work for this workload."""

    @abstractmethod
    def time(self, launches: Sequence[BoundLaunch], cold: bool) -> list[float]:
        """Seconds of each of `launches`, timed one by one in this order with no pause between; cache-cold if `cold`."""

    @abstractmethod
    def synchronize(self) -> None:
        """Waits for all work; raises where the device reports an error."""
