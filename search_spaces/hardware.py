"""Hardware limits per architecture and peak rates per device model, from published tables.

The architecture decides what may run (shared memory, registers, threads), so a space is the same
on a laptop as on the GPU. Peaks belong to a device model and serve the roofline only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from search_spaces.errors import UnknownName

KIB = 1024


@dataclass(frozen=True)
class Limits:
    """What one architecture lets a kernel use.

    Attributes:
        arch: `sm_90`, or a CPU's name.
        shared_per_block: Largest shared memory of one block, opt-in, in bytes.
        shared_per_sm: Shared memory of one multiprocessor, in bytes.
        registers_per_sm: 32-bit registers of one multiprocessor.
        registers_per_thread: Most registers a thread can have.
        threads_per_block: Most threads of one block.
        threads_per_sm: Most resident threads of one multiprocessor.
        blocks_per_sm: Most resident blocks of one multiprocessor.
        warp: Threads in a warp.
        vector_bytes: Widest load or store of one thread, in bytes.
        tma: Whether the bulk tensor copy engine (TMA) is there.
        source: Where the numbers are published.
    """

    arch: str
    shared_per_block: int
    shared_per_sm: int
    registers_per_sm: int
    registers_per_thread: int
    threads_per_block: int
    threads_per_sm: int
    blocks_per_sm: int
    warp: int
    vector_bytes: int
    tma: bool
    source: str


@dataclass(frozen=True)
class DeviceModel:
    """Published peak rates of one device model; the roofline's two lines.

    Attributes:
        name: As the driver gives it (`NVIDIA H200`).
        arch: Its architecture.
        sms: Multiprocessors, or cores of a CPU.
        l2_bytes: Last-level cache in bytes.
        bandwidth: Device memory, bytes per second.
        peak: Operations per second by dtype, dense.
        source: Where the numbers are from.
    """

    name: str
    arch: str
    sms: int
    l2_bytes: int
    bandwidth: float
    peak: Mapping[str, float] = field(hash=False)
    source: str


@dataclass(frozen=True)
class Hardware:
    """What a schedule is made for: the limits that bind it and the model that sets the roofline."""

    limits: Limits
    model: DeviceModel

    def peak(self, dtype: str) -> float:
        """Peak operations per second for `dtype`, or that of float32 where none is published."""
        return self.model.peak.get(dtype, self.model.peak["float32"])


_PROGRAMMING_GUIDE = "CUDA C++ Programming Guide, compute capabilities: technical specifications per compute capability"


def _cuda(cc: int, block_kib: int, sm_kib: int, threads_per_sm: int, blocks_per_sm: int) -> Limits:
    return Limits(
        arch=f"sm_{cc}",
        shared_per_block=block_kib * KIB,
        shared_per_sm=sm_kib * KIB,
        registers_per_sm=65536,
        registers_per_thread=255,
        threads_per_block=1024,
        threads_per_sm=threads_per_sm,
        blocks_per_sm=blocks_per_sm,
        warp=32,
        vector_bytes=16,
        tma=cc >= 90,
        source=_PROGRAMMING_GUIDE,
    )


CUDA_LIMITS: Mapping[str, Limits] = {
    limits.arch: limits
    for limits in (
        _cuda(70, 96, 96, 2048, 32),
        _cuda(75, 64, 64, 1024, 16),
        _cuda(80, 163, 164, 2048, 32),
        _cuda(86, 99, 100, 1536, 16),
        _cuda(89, 99, 100, 1536, 24),
        _cuda(90, 227, 228, 2048, 32),
        _cuda(100, 227, 228, 2048, 32),
        _cuda(120, 99, 100, 1536, 24),
    )
}


def _gpu(
    name: str, arch: str, sms: int, l2_mib: float, tb_s: float, tensor16: float, fp32: float, tf32: float, int8: float
) -> DeviceModel:
    tera = 1e12
    return DeviceModel(
        name=name,
        arch=arch,
        sms=sms,
        l2_bytes=int(l2_mib * KIB * KIB),
        bandwidth=tb_s * tera,
        peak={
            "float16": tensor16 * tera,
            "bfloat16": tensor16 * tera,
            "float32": fp32 * tera,
            "tf32": tf32 * tera,
            "int8": int8 * tera,
            # From sm_89 on at the same rate; where it is not there no sketch uses it.
            "float8_e4m3fn": int8 * tera,
        },
        source=f"{name} datasheet, dense rates",
    )


# The first model of an arch is its representative where no device is at hand.
DEVICE_MODELS: tuple[DeviceModel, ...] = (
    _gpu("Tesla V100-SXM2-32GB", "sm_70", 80, 6, 0.9, 125, 15.7, 15.7, 62),
    _gpu("Tesla T4", "sm_75", 40, 4, 0.32, 65, 8.1, 8.1, 130),
    _gpu("NVIDIA A100-SXM4-80GB", "sm_80", 108, 40, 2.039, 312, 19.5, 156, 624),
    _gpu("NVIDIA A100-SXM4-40GB", "sm_80", 108, 40, 1.555, 312, 19.5, 156, 624),
    _gpu("NVIDIA A100 80GB PCIe", "sm_80", 108, 40, 1.935, 312, 19.5, 156, 624),
    _gpu("NVIDIA GeForce RTX 3090", "sm_86", 82, 6, 0.936, 142, 35.6, 35.6, 284),
    _gpu("NVIDIA A10", "sm_86", 72, 6, 0.6, 125, 31.2, 62.5, 250),
    _gpu("NVIDIA L40S", "sm_89", 142, 96, 0.864, 362, 91.6, 183, 733),
    _gpu("NVIDIA GeForce RTX 4090", "sm_89", 128, 72, 1.008, 165, 82.6, 82.6, 661),
    _gpu("NVIDIA L4", "sm_89", 58, 48, 0.3, 121, 30.3, 60, 242),
    _gpu("NVIDIA H100 80GB HBM3", "sm_90", 132, 50, 3.35, 989, 67, 494, 1979),
    _gpu("NVIDIA H200", "sm_90", 132, 50, 4.8, 989, 67, 494, 1979),
    _gpu("NVIDIA H100 PCIe", "sm_90", 114, 50, 2.0, 756, 51, 378, 1513),
    _gpu("NVIDIA B200", "sm_100", 148, 126, 8.0, 2250, 75, 1100, 4500),
    _gpu("NVIDIA GeForce RTX 5090", "sm_120", 170, 96, 1.792, 210, 104.8, 104.8, 838),
)


def cuda_limits(arch: str) -> Limits:
    """The limits of `arch` (`sm_80`; the `a` and `f` suffixes of `sm_90a`, `sm_100f` change no limit)."""
    found = CUDA_LIMITS.get(arch[:-1] if arch.endswith(("a", "f")) else arch)
    if found is None:
        raise UnknownName.of("CUDA arch", arch, CUDA_LIMITS)
    return found


def cuda_hardware(arch: str, device_name: str | None = None) -> Hardware:
    """Limits of `arch` with the peaks of `device_name`, or of the arch's representative model."""
    limits = cuda_limits(arch)
    candidates = [m for m in DEVICE_MODELS if m.arch == limits.arch]
    model = next((m for m in DEVICE_MODELS if m.name == device_name), candidates[0])
    return Hardware(limits, model)


def cpu_hardware(name: str, cores: int, l3_bytes: int, bandwidth: float, peak: Mapping[str, float]) -> Hardware:
    """Hardware of a CPU from what was read or measured on it; a CPU has no shared memory of a block."""
    limits = Limits(
        arch=name,
        shared_per_block=0,
        shared_per_sm=0,
        registers_per_sm=32,
        registers_per_thread=32,
        threads_per_block=1,
        threads_per_sm=1,
        blocks_per_sm=1,
        warp=1,
        vector_bytes=64,
        tma=False,
        source="the machine itself",
    )
    return Hardware(limits, DeviceModel(name, name, cores, l3_bytes, bandwidth, peak, "measured on the machine itself"))
