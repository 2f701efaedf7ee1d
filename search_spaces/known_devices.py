"""Devices that others measured on, by the names that files and drivers give them.

Their kernels are not ours, so no space is made for them: what is published of them tells tasks apart.
"""

from __future__ import annotations

import re

from search_spaces.amd import AMD_LIMITS, HIP_MODELS
from search_spaces.hardware import CUDA_LIMITS, DEVICE_MODELS, KIB, DeviceModel, Hardware

# Words of a device's name that tell nothing apart.
_IDLE = frozenset(("nvidia", "geforce", "amd", "radeon", "pro", "intel", "r", "tm", "cpu", "gpu", "instinct", "tesla"))


def device_words(name: str) -> list[str]:
    """What tells a device's name from others: `NVIDIA GeForce RTX 3090` gives `rtx`, `3090`."""
    return [w for w in re.findall(r"[a-z0-9]+", name.lower().partition("@")[0]) if w not in _IDLE]


def _model(name: str, arch: str, units: int, cache_mib: float, gb_s: float, half: float, single: float) -> DeviceModel:
    """A model by its data sheet; rates in 10^12 operations a second."""
    return DeviceModel(
        name=name,
        arch=arch,
        sms=units,
        l2_bytes=int(cache_mib * KIB * KIB),
        bandwidth=gb_s * 1e9,
        peak={"float16": half * 1e12, "float32": single * 1e12},
        source=f"{name} data sheet, dense rates",
    )


_OTHERS: tuple[DeviceModel, ...] = (
    _model("NVIDIA A100-PCIE-40GB", "sm_80", 108, 40, 1555, 312, 19.5),
    _model("NVIDIA RTX A4000", "sm_86", 48, 4, 448, 76.7, 19.2),
    _model("NVIDIA RTX A6000", "sm_86", 84, 6, 768, 154.8, 38.7),
    _model("NVIDIA GeForce RTX 3060", "sm_86", 28, 3, 360, 51, 12.7),
    _model("NVIDIA GeForce RTX 3060 Laptop GPU", "sm_86", 30, 3, 336, 43.8, 10.9),
    _model("NVIDIA GeForce RTX 2080 Ti", "sm_75", 68, 5.5, 616, 107.6, 13.45),
    _model("NVIDIA TITAN RTX", "sm_75", 72, 6, 672, 130.5, 16.3),
    # One of its two dies, which is what a program sees as a device.
    _model("AMD Instinct MI250X", "gfx90a", 110, 8, 1638, 191.5, 23.95),
    _model("AMD Radeon PRO W6600", "gfx1032", 28, 32, 224, 20.8, 10.4),
    _model("AMD Radeon PRO W7800", "gfx1100", 70, 64, 576, 90.5, 45.2),
)


def find_device(name: str) -> Hardware | None:
    """The limits and published rates of the device called so, in full or for short; None where it is in no table.

    Args:
        name: As a driver gives it (`NVIDIA GeForce RTX 3090`) or as files are named (`rtx3090`, `rtx_3090`, `a100`). A
            short name of several models means the first of them, those that recordings here are of before others.
    """
    wanted = "".join(device_words(name))
    models = [*_OTHERS, *HIP_MODELS.values(), *DEVICE_MODELS]
    names = {m.name: "".join(device_words(m.name)) for m in models}
    exact = [m for m in models if names[m.name] == wanted]
    telling = re.search(r"\d\d", wanted)
    holding = [m for m in models if telling and re.search(rf"(?<!\d){wanted}(?!\d)", names[m.name])]
    found = next(iter([*exact, *holding]), None)
    return None if found is None else Hardware({**CUDA_LIMITS, **AMD_LIMITS}[found.arch], found)
