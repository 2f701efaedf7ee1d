"""The CPU at hand: numpy arrays, all cores, a cache flush before each sample."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np
import psutil

from autotune.clock import nanoseconds
from autotune.devices.base import Device, DeviceInfo
from autotune.generators.base import BoundLaunch
from search_spaces.operator import TensorSpec
from search_spaces.task import Task

_ALIGNMENT = 64
_SETTLE_SECONDS = 0.1


def processor_name() -> str:
    """The processor's own name, as the kernel gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Cores that this process may use."""
    process = psutil.Process()
    return len(process.cpu_affinity()) if hasattr(process, "cpu_affinity") else psutil.cpu_count() or 1


def cache_bytes() -> int:
    """The last-level cache as Linux reports it, 32 MiB where it does not."""
    sizes = [32 << 20]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        sizes.append(int(text[:-1]) << {"K": 10, "M": 20}[text[-1]])
    return max(sizes)


def cpu_info() -> DeviceInfo:
    """Identity of this machine's CPU."""
    return DeviceInfo(
        kind="llvm",
        name=processor_name(),
        arch=platform.machine(),
        units=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        cache_bytes=cache_bytes(),
    )


class Cpu(Device):
    """Runs candidates on this machine's cores."""

    def __init__(self) -> None:
        self._info = cpu_info()
        self._flush = np.zeros(2 * self._info.cache_bytes, dtype=np.int8)

    def info(self) -> DeviceInfo:
        """Identity of this machine's CPU."""
        return self._info

    @property
    def namespace(self) -> Any:
        """The arrays are numpy's."""
        return array_api_compat.array_namespace(self._flush)

    def raw(self, size: int) -> Any:
        """Aligned to a cache line."""
        memory = np.empty(size + _ALIGNMENT, dtype=np.int8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + size]

    def typed(self, raw: Any, spec: TensorSpec) -> Any:
        """A view."""
        return raw.view(spec.dtype).reshape(spec.shape)

    def normal(self, shape: Sequence[int], seed: int) -> Any:
        """Drawn by numpy."""
        return np.random.default_rng(seed).standard_normal(tuple(shape), dtype=np.float32)

    def differ(self, pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        """Compares bytes."""
        return [not np.array_equal(_bits(a), _bits(b)) for a, b in pairs]

    def poison(self, tensors: Sequence[Any]) -> None:
        """Fills with NaN, whole numbers with -1."""
        for tensor in tensors:
            tensor.fill(-1 if tensor.dtype.kind == "i" else np.nan)

    def widened(self, inputs: Sequence[Any]) -> list[Any]:
        """Copies."""
        return [i.astype(np.float64) for i in inputs]

    def reference(self, task: Task, wide: Sequence[Any]) -> tuple[Any, ...]:
        """The operator's reference over numpy."""
        return task.operator.reference(task.workload, np, *wide)

    def allowance(self, reference: Any, relative: float, of_rms: float) -> Any:
        """See Device."""
        rms = np.sqrt(np.mean(np.square(reference), axis=-1, keepdims=True))
        allowed = relative * np.abs(reference) + of_rms * rms
        return allowed.astype(np.float32) + np.finfo(np.float32).tiny

    def deviation(self, output: Any, reference: Any, allowed: Any) -> float:
        """See Device."""
        if not np.isfinite(output).all():
            return float("inf")
        return float(np.max(np.abs(output.astype(np.float64) - reference) / allowed))

    def magnitude(self, array: Any) -> float:
        """See Device."""
        return float(np.max(np.abs(array)))

    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """What numpy offers."""
        return task.operator.numpy_library(task.workload, np, inputs, outputs)

    def time(self, launches: Sequence[BoundLaunch], cold: bool, written: int = 0) -> list[float]:
        """Wall time of each launch on an otherwise idle machine."""
        seconds = []
        unwritten = self._flush[: min(written, self._info.cache_bytes)]
        for launch in launches:
            self._flush.max()
            if cold:
                unwritten.fill(0)
            else:
                launch()
            start = nanoseconds()
            launch()
            seconds.append(max(1, nanoseconds() - start) * 1e-9)
        return seconds

    def synchronize(self) -> None:
        """Nothing to wait for: a launch returns when it is done."""

    def hold(self) -> None:
        """Nothing is queued on a CPU."""

    def settle(self) -> None:
        """Leaves a thread that still works the time to end."""
        time.sleep(_SETTLE_SECONDS)

    def stopwatch(self) -> Sequence[tuple[object, str]]:
        """The clock, and what compares arrays."""
        compared = [(np, name) for name in ("abs", "add", "array_equal", "isfinite", "max", "median")]
        return [(time, "perf_counter_ns"), (time, "monotonic"), *compared]


def _bits(array: Any) -> Any:
    return array.reshape(-1).view(np.uint8)


DEVICE = Cpu
