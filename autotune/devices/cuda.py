"""A CUDA GPU through torch: events, cold L2, float64 references on the device itself."""

from __future__ import annotations

import contextlib
import ctypes
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import array_api_compat

from autotune.devices.base import Device, DeviceInfo, Place
from autotune.devices.choice import chosen_places
from autotune.devices.telemetry import Conditions, open_telemetry
from autotune.devices.visible import uuid_of, visible_gpus, whole_gpu
from autotune.generators.base import BoundLaunch
from search_spaces import registry
from search_spaces.operator import TensorSpec
from search_spaces.task import Task

# As large as in Triton's do_bench, several times any L2 of today.
_FLUSH_BYTES = 256 << 20
# Samples from which on the device's state is asked for.
_ASKED_FROM = 3
# Some 14 microseconds of a spinning thread, in which the front end has the next launch ready: before a short kernel's
# end it does not begin with it.
_HIDE_CYCLES = 25_000
# Half a millisecond: time for the host to queue a launch and a copy.
_HOLD_CYCLES = 1_000_000
_SETTLE_SECONDS = 0.05
_SLICE_ROWS = 4096
# CU_STREAM_CAPTURE_MODE_RELAXED, which forbids this process nothing.
_CAPTURE_RELAXED = 2


def torch_info(torch: Any, device: Any) -> DeviceInfo:
    """The identity of a device of torch's; changes nothing in it."""
    found = torch.cuda.get_device_properties(device)
    return DeviceInfo(
        kind="cuda",
        name=found.name,
        arch=f"sm_{found.major}{found.minor}",
        units=found.multi_processor_count,
        memory_bytes=found.total_memory,
        driver=driver_version(),
        cache_bytes=found.L2_cache_size,
    )


class Cuda(Device):
    """Runs candidates on the first CUDA device that this process sees."""

    @classmethod
    def places(cls) -> tuple[Place, ...]:
        """Through NVML, see `visible_gpus`."""
        return visible_gpus()

    def __init__(self) -> None:
        self._torch = registry.optional("torch", "cuda")
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._device = self._torch.device("cuda", 0)
        self._flush = self._torch.zeros(_FLUSH_BYTES // 4, dtype=self._torch.int32, device=self._device)
        self._flushed = self._torch.empty((), dtype=self._torch.int32, device=self._device)
        self._cache_bytes = self.info().cache_bytes
        self._telemetry = open_telemetry(self.uuid())
        self._conditions: Conditions | None = None

    def info(self) -> DeviceInfo:
        """Identity as the driver gives it."""
        return torch_info(self._torch, self._device)

    def _dtype(self, spec: TensorSpec) -> Any:
        return getattr(self._torch, spec.dtype)

    @property
    def namespace(self) -> Any:
        """The tensors are torch's."""
        return array_api_compat.array_namespace(self._flush)

    def raw(self, size: int) -> Any:
        """Plain device memory."""
        return self._torch.empty(size, dtype=self._torch.int8, device=self._device)

    def typed(self, raw: Any, spec: TensorSpec) -> Any:
        """A view."""
        return raw.view(self._dtype(spec)).view(spec.shape)

    def normal(self, shape: Sequence[int], seed: int) -> Any:
        """Drawn on the device."""
        generator = self._torch.Generator(self._device).manual_seed(seed)
        return self._torch.randn(tuple(shape), dtype=self._torch.float32, device=self._device, generator=generator)

    def differ(self, pairs: Sequence[tuple[Any, Any]]) -> list[bool]:
        """Compares as integers of the same size, all pairs before the first answer is waited for."""
        integers = {size: getattr(self._torch, f"int{8 * size}") for size in (1, 2, 4, 8)}
        as_bits = [[t.view(integers[t.element_size()]) for t in pair] for pair in pairs]
        found: list[bool] = self._torch.stack([(a != b).any() for a, b in as_bits]).tolist()
        return found

    def poison(self, tensors: Sequence[Any]) -> None:
        """Fills with NaN, whole numbers with -1."""
        for tensor in tensors:
            tensor.fill_(float("nan") if tensor.is_floating_point() else -1)

    def widened(self, inputs: Sequence[Any]) -> list[Any]:
        """Copies."""
        return [i.double() for i in inputs]

    def reference(self, task: Task, wide: Sequence[Any]) -> tuple[Any, ...]:
        """The operator's reference over torch."""
        with self._torch.no_grad():
            return task.operator.reference(task.workload, self.namespace, *wide)

    def allowance(self, reference: Any, relative: float, of_rms: float) -> Any:
        """See Device; in slices along the first axis, so that little more memory than the result is used."""
        allowed = self._torch.empty_like(reference, dtype=self._torch.float32)
        for wanted, made in zip(_slices(reference), _slices(allowed), strict=True):
            rms = wanted.square().mean(dim=-1, keepdim=True).sqrt()
            made.copy_(relative * wanted.abs() + of_rms * rms)
        return allowed.add_(self._torch.finfo(self._torch.float32).tiny)

    def deviation(self, output: Any, reference: Any, allowed: Any) -> float:
        """See Device; in slices as `allowance`."""
        torch = self._torch
        worst = torch.zeros((), dtype=torch.float64, device=self._device)
        for got, wanted, limit in zip(_slices(output), _slices(reference), _slices(allowed), strict=True):
            ratio = (got.double() - wanted).abs_().div_(limit)
            worst = torch.maximum(worst, torch.nan_to_num(ratio.max(), nan=torch.inf, posinf=torch.inf))
        return float(worst)

    def magnitude(self, array: Any) -> float:
        """See Device."""
        return float(array.abs().max())

    def library(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, BoundLaunch]:
        """What torch offers; a call that this workload or this build of torch cannot make is left out."""
        working = {}
        for name, call in task.operator.torch_library(task.workload, self._torch, inputs, outputs).items():
            with contextlib.suppress(RuntimeError):
                call()
                self.synchronize()
                working[name] = call
        return working

    def time(self, launches: Sequence[BoundLaunch], cold: bool, written: int = 0) -> list[float]:
        """Event pairs round each launch; all are queued before the first is waited for, behind flushes that hide it."""
        torch = self._torch
        event = torch.cuda.Event
        pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in launches]
        unwritten = self._flush[: min(written, self._cache_bytes) // 4]
        for launch, (start, end) in zip(launches, pairs, strict=True):
            torch.amax(self._flush, dim=0, out=self._flushed)
            if cold:
                unwritten.zero_()
            else:
                launch()
            torch.cuda._sleep(_HIDE_CYCLES)
            start.record()
            launch()
            end.record()
        # While the device still works through the queue. A few launches are a warm-up, not worth the time to ask.
        self._conditions = self._telemetry.read() if self._telemetry and len(launches) >= _ASKED_FROM else None
        self.synchronize()
        return [max(1e-9, start.elapsed_time(end) * 1e-3) for start, end in pairs]

    def conditions(self) -> Conditions | None:
        """As NVML gave it while the samples were taken; where they were too few to ask then, as it gives it now."""
        return self._conditions or (self._telemetry.read() if self._telemetry else None)

    def compact(self, launch: BoundLaunch) -> BoundLaunch:
        """A CUDA graph of the launch; the launch itself where it cannot be captured."""
        cuda = self._torch.cuda
        graph, stream = cuda.CUDAGraph(), cuda.Stream(self._device)
        self.synchronize()
        try:
            # Not torch.cuda.graph, which empties the allocator's cache first.
            with cuda.stream(stream):
                graph.capture_begin()
                try:
                    launch()
                finally:
                    self._end_capture(graph, stream)
            graph.replay()
            self.synchronize()
        except RuntimeError:
            self.synchronize()
            return launch
        replay: BoundLaunch = graph.replay
        return replay

    def _end_capture(self, graph: Any, stream: Any) -> None:
        """Ends a capture, and raises as torch does where it failed, but with torch in the state of before."""
        left = self._torch.cuda.current_stream(self._device) != stream
        with self._torch.cuda.stream(stream):
            try:
                graph.capture_end()
            except RuntimeError:
                _end_empty_capture(graph, stream)
                raise
        if left:
            raise RuntimeError("the launch left another stream current: what it did there was not captured")

    def uuid(self) -> str:
        """As CUDA gives it, "" where this torch does not tell."""
        return str(getattr(self._torch.cuda.get_device_properties(self._device), "uuid", ""))

    def traits(self) -> Mapping[str, str]:
        """Clocks, power limit and MIG, as NVML gives them."""
        return self._telemetry.limits() if self._telemetry else {}

    def synchronize(self) -> None:
        """Waits; a sticky error of an earlier launch is raised here."""
        self._torch.cuda.synchronize(self._device)

    def hold(self) -> None:
        """Spins on the current stream."""
        self._torch.cuda._sleep(_HOLD_CYCLES)

    def settle(self) -> None:
        """Leaves a host thread the time to launch, and the device the time to end."""
        time.sleep(_SETTLE_SECONDS)
        self.synchronize()

    def stopwatch(self) -> Sequence[tuple[object, str]]:
        """Events, streams and waiting, what flushes the L2, and what compares tensors."""
        torch = self._torch
        events = [(torch.cuda.Event, name) for name in ("__new__", "record", "wait", "synchronize", "elapsed_time")]
        waiting = [(torch.cuda, name) for name in ("Event", "synchronize", "current_stream", "stream", "_sleep")]
        compared = [(torch, name) for name in ("maximum", "nan_to_num", "stack")]
        flushing = [(torch, "amax"), (torch.Tensor, "zero_")]
        return [(time, "perf_counter_ns"), (time, "monotonic"), *events, *waiting, *flushing, *compared]


def _end_empty_capture(graph: Any, stream: Any) -> None:
    """Lets torch end a capture well after one that failed.

    Only then it takes its random generator, its list of captures and its memory pool out of the capture. So an empty
    capture is begun behind its back. A torch that has cleaned up by itself refuses; then the driver ends it.
    """
    driver, handle, made = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(stream.cuda_stream), ctypes.c_void_p()
    if driver.cuStreamBeginCapture_v2(handle, _CAPTURE_RELAXED):
        return
    try:
        with warnings.catch_warnings(action="ignore"):  # that the graph is empty
            graph.capture_end()
    except RuntimeError:
        if driver.cuStreamEndCapture(handle, ctypes.byref(made)) == 0:
            driver.cuGraphDestroy(made)


def _slices(tensor: Any) -> Any:
    """Some rows along the last axis at a time."""
    return tensor.reshape(-1, tensor.shape[-1]).split(_SLICE_ROWS)


def driver_version() -> str:
    """The driver's version through NVML, "" where NVML is not there."""
    if not registry.available("pynvml"):
        return ""
    nvml = registry.optional("pynvml", "cuda")
    try:
        nvml.nvmlInit()
        version = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError:
        return ""
    return version if isinstance(version, str) else version.decode()


def cuda_info(devices: str = "") -> DeviceInfo | None:
    """Identity of a GPU through NVML, without starting CUDA; None where there is none.

    Args:
        devices: GPUs as `--devices` names them, the first of which is meant; "" for the first of all.
    """
    places = chosen_places(visible_gpus(), devices)
    if not places or not places[0].variables:
        return None
    nvml = registry.optional("pynvml", "cuda")
    try:
        nvml.nvmlInit()
        handle = nvml.nvmlDeviceGetHandleByUUID(uuid_of(places[0]))
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(whole_gpu(nvml, handle))
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
