"""AMD's GPUs: limits per architecture and the peak rates of models, from published tables.

A multiprocessor is a compute unit, a warp a wavefront, shared memory the local data share.
"""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.errors import UnknownName
from search_spaces.hardware import KIB, DeviceModel, Hardware, Limits


def _amd(arch: str, registers: int, most: int, threads: int, warp: int, source: str) -> Limits:
    return Limits(
        arch=arch,
        shared_per_block=64 * KIB,
        shared_per_sm=64 * KIB,
        registers_per_sm=registers,
        registers_per_thread=most,
        threads_per_block=1024,
        threads_per_sm=threads,
        blocks_per_sm=32,
        warp=warp,
        vector_bytes=16,
        tma=False,
        source=source,
    )


AMD_LIMITS: Mapping[str, Limits] = {
    limits.arch: limits
    for limits in (
        _amd("gfx90a", 131072, 256, 2048, 64, "AMD CDNA 2 architecture white paper and ISA reference guide"),
        # Vector and accumulation registers are one file, of which a thread may have all 512.
        _amd("gfx942", 131072, 512, 2048, 64, "AMD CDNA 3 architecture white paper and ISA reference guide"),
        _amd("gfx1032", 65536, 256, 1024, 32, "AMD RDNA 2 ISA reference guide"),
        _amd("gfx1100", 98304, 256, 1024, 32, "AMD RDNA 3 ISA reference guide"),
    )
}

_TERA = 1e12
# What is compiled for, though nothing here measures on it: the model that sets the roofline, by architecture.
HIP_MODELS: Mapping[str, DeviceModel] = {
    "gfx942": DeviceModel(
        name="AMD Instinct MI300X",
        arch="gfx942",
        sms=304,
        l2_bytes=256 << 20,
        bandwidth=5.3 * _TERA,
        peak={
            "float16": 1307.4 * _TERA,
            "bfloat16": 1307.4 * _TERA,
            "float32": 163.4 * _TERA,
            "int8": 2614.9 * _TERA,
        },
        source="AMD Instinct MI300X data sheet, dense rates; the cache is the Infinity Cache",
    )
}


def hip_hardware(arch: str) -> Hardware:
    """Limits of an architecture that programs are compiled for, with the peaks of its representative model.

    Raises:
        UnknownName: It is none.
    """
    if arch not in HIP_MODELS:
        raise UnknownName.of("AMD arch", arch, HIP_MODELS)
    return Hardware(AMD_LIMITS[arch], HIP_MODELS[arch])
