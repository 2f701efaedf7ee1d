"""A CUDA GPU through torch: events, cold L2, float64 references on the device itself."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import array_api_compat

from autotune.devices.base import Device, DeviceInfo
from autotune.generators.base import BoundLaunch
from search_spaces import registry
from search_spaces.operator import TensorSpec
from search_spaces.task import Task

# As large as in Triton's do_bench, several times any L2 of today.
_FLUSH_BYTES = 256 << 20


class Cuda(Device):
    """Runs candidates on the first CUDA device that this process sees."""

    def __init__(self) -> None:
        self._torch = registry.optional("torch", "cuda")
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._device = self._torch.device("cuda", 0)
        self._flush = self._torch.empty(_FLUSH_BYTES // 4, dtype=self._torch.int32, device=self._device)

    def info(self) -> DeviceInfo:
        """Identity as the driver gives it."""
        found = self._torch.cuda.get_device_properties(self._device)
        return DeviceInfo(
            kind="cuda",
            name=found.name,
            arch=f"sm_{found.major}{found.minor}",
            units=found.multi_processor_count,
            memory_bytes=found.total_memory,
            driver=driver_version(),
            cache_bytes=found.L2_cache_size,
        )

    def _dtype(self, spec: TensorSpec) -> Any:
        return getattr(self._torch, spec.dtype)

    def empty(self, spec: TensorSpec) -> Any:
        """Plain device memory."""
        return self._torch.empty(spec.shape, dtype=self._dtype(spec), device=self._device)

    def random(self, spec: TensorSpec, seed: int) -> Any:
        """Standard normal values, drawn on the device."""
        generator = self._torch.Generator(self._device).manual_seed(seed)
        return self._torch.randn(spec.shape, dtype=self._torch.float32, device=self._device, generator=generator).to(
            self._dtype(spec)
        )

    def poison(self, tensors: Sequence[Any]) -> None:
        """Fills with NaN."""
        for tensor in tensors:
            tensor.fill_(float("nan"))

    def reference(self, task: Task, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """The operator's reference over float64 copies of the inputs."""
        upcast = [i.double() for i in inputs]
        xp = array_api_compat.array_namespace(*upcast)
        with self._torch.no_grad():
            return task.operator.reference(task.workload, xp, *upcast)

    def deviation(self, output: Any, reference: Any, relative: float, of_rms: float) -> float:
        """See Device; in slices along the first axis, so that little more memory than the reference is used."""
        torch = self._torch
        worst = torch.zeros((), dtype=torch.float64, device=self._device)
        for got, wanted in zip(_rows(output).split(4096), _rows(reference).split(4096), strict=True):
            rms = wanted.square().mean(dim=-1, keepdim=True).sqrt() + torch.finfo(torch.float64).tiny
            ratio = (got.double() - wanted).abs() / (relative * wanted.abs() + of_rms * rms)
            worst = torch.maximum(worst, torch.nan_to_num(ratio.max(), nan=torch.inf))
        return float(worst)

    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """What torch offers; a call that this workload or this build of torch cannot make is left out."""
        working = {}
        for name, call in task.operator.torch_library(task.workload, self._torch, inputs, outputs).items():
            with contextlib.suppress(RuntimeError):
                call()
                self.synchronize()
                working[name] = call
        return working

    def time(self, launches: Sequence[BoundLaunch], cold: bool) -> list[float]:
        """Event pairs round each launch; all are queued before the first is waited for."""
        event = self._torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in launches]
        for launch, (start, end) in zip(launches, pairs, strict=True):
            if cold:
                self._flush.zero_()
            start.record()
            launch()
            end.record()
        self.synchronize()
        return [max(1e-9, start.elapsed_time(end) * 1e-3) for start, end in pairs]

    def synchronize(self) -> None:
        """Waits; a sticky error of an earlier launch is raised here."""
        self._torch.cuda.synchronize(self._device)


def _rows(tensor: Any) -> Any:
    """The tensor as a matrix of rows along its last axis."""
    return tensor.reshape(-1, tensor.shape[-1])


def driver_version() -> str:
    """The driver's version through NVML, "" where NVML is not there."""
    try:
        nvml = registry.optional("pynvml", "cuda")
        nvml.nvmlInit()
        return str(nvml.nvmlSystemGetDriverVersion())
    except Exception:
        return ""


def cuda_info() -> DeviceInfo | None:
    """Identity of the first CUDA device through NVML, without starting CUDA; None where there is none."""
    if not registry.available("pynvml"):
        return None
    nvml = registry.optional("pynvml", "cuda")
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByIndex(0)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        name = nvml.nvmlDeviceGetName(handle)
        return DeviceInfo(
            kind="cuda",
            name=name if isinstance(name, str) else name.decode(),
            arch=f"sm_{major}{minor}",
            units=0,
            memory_bytes=nvml.nvmlDeviceGetMemoryInfo(handle).total,
            driver=driver_version(),
        )
    except nvml.NVMLError:
        return None


DEVICE = Cuda
