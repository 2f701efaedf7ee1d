"""Devices: where candidates are run. One file each; used inside the worker process only."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autotune.devices.telemetry import Conditions
from autotune.generators.base import Artifact, BoundLaunch, Generator, Kernel
from search_spaces.operator import TensorSpec
from search_spaces.schedule import Schedule
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


@dataclass(frozen=True)
class Place:
    """One of the devices of a kind that a machine has, as it is told to the process that is to have it.

    Attributes:
        name: What `--devices` calls it: its number among them.
        variables: Environment variables that leave this device alone to the process.
    """

    name: str = "0"
    variables: Mapping[str, str] = field(default_factory=dict)


class Device(ABC):
    """Memory, arithmetic and a stopwatch on one device."""

    @classmethod
    def places(cls) -> tuple[Place, ...]:
        """The devices of this kind that the user leaves to this process, found without touching one of them."""
        return (Place(),)

    @abstractmethod
    def info(self) -> DeviceInfo:
        """Its identity."""

    @property
    @abstractmethod
    def namespace(self) -> Any:
        """The array API namespace of its arrays."""

    @abstractmethod
    def normal(self, shape: Sequence[int], seed: int) -> Any:
        """Standard normal values in float32; equal seeds give equal values."""

    @abstractmethod
    def raw(self, size: int) -> Any:
        """A flat int8 array of uninitialised memory, aligned as compiled kernels assume."""

    @abstractmethod
    def typed(self, raw: Any, spec: TensorSpec) -> Any:
        """The same memory as an array of `spec`'s shape and dtype."""

    @abstractmethod
    def differ(self, pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        """Whether the bits of two arrays of one dtype differ anywhere, for each pair; waits for all work."""

    @abstractmethod
    def poison(self, tensors: Sequence[Any]) -> None:
        """Fills outputs with NaN, or what no operator writes, so that an element nobody wrote is seen."""

    @abstractmethod
    def widened(self, inputs: Sequence[Any]) -> list[Any]:
        """The inputs in float64."""

    @abstractmethod
    def reference(self, task: Task, wide: Sequence[Any]) -> tuple[Any, ...]:
        """The operator's outputs in float64 from inputs in float64, computed on the device."""

    @abstractmethod
    def allowance(self, reference: Any, relative: float, of_rms: float) -> Any:
        """Per element, in float32: relative |reference| + of_rms times the root mean square of its row."""

    @abstractmethod
    def deviation(self, output: Any, reference: Any, allowed: Any) -> float:
        """Largest |output - reference| over `allowed`, inf where an element of the output is not finite."""

    @abstractmethod
    def magnitude(self, array: Any) -> float:
        """Largest absolute value, NaN where there is one."""

    @abstractmethod
    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """The library calls that a user would make instead, those that work for this workload."""

    def loaded(self, generator: Generator, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """What `generator` built of `schedule`, ready to be launched on this device."""
        return generator.load(task, schedule, artifact, folder)

    @abstractmethod
    def time(self, launches: Sequence[BoundLaunch], cold: bool, written: int = 0) -> list[float]:
        """Seconds of each of `launches`, timed one by one in this order with no pause between.

        Caches are flushed before each, by reading, so that nothing of the flush waits to be written back in a sample.
        If not `cold`, an untimed launch of the same candidate follows the flush, so that they hold what it leaves
        itself and never what another candidate or an earlier sample left.

        Args:
            launches: What to time.
            cold: Whether caches hold nothing that a launch reads.
            written: Bytes of a launch's outputs. As much is left to be written back before it as it leaves itself, so
                that it takes as long as in a row of its like.
        """

    def conditions(self) -> Conditions | None:
        """State of the device during the last call of `time`; None where it does not tell."""
        return None

    def compact(self, launch: BoundLaunch) -> BoundLaunch:
        """`launch` at the least cost of enqueueing it, for launches so short that this cost would be timed."""
        return launch

    def uuid(self) -> str:
        """The device's own identifier, "" where it has none."""
        return ""

    def traits(self) -> Mapping[str, str]:
        """What beside `info` must be equal of devices that share a run: name -> value, as people read it."""
        return {}

    @abstractmethod
    def synchronize(self) -> None:
        """Waits for all work; raises where the device reports an error."""

    @abstractmethod
    def hold(self) -> None:
        """Keeps the stream of launches busy for a moment, so that what is queued next is queued before it runs."""

    @abstractmethod
    def settle(self) -> None:
        """Waits until work that a candidate left behind, on any stream or thread, has most likely ended."""

    @abstractmethod
    def stopwatch(self) -> Sequence[tuple[object, str]]:
        """Owner and name of the functions outside this package that timing and checking rest on."""
