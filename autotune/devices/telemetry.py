"""What a GPU says of itself while it is timed: clocks, power, temperature, and why it throttles. Reads, never sets."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from search_spaces import registry

# NVML's bits (nvmlClocksEventReasons) and their names.
_REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# What makes a sample worthless. A power cap is no fault: under load a data-centre GPU lives at it.
_FAULTS = 0x8 | 0x20 | 0x40 | 0x80


@dataclass(frozen=True)
class Conditions:
    """State of a GPU while samples were taken.

    Attributes:
        sm_mhz: Clock of the multiprocessors.
        memory_mhz: Clock of the memory.
        watts: Power drawn, averaged by the device.
        celsius: Temperature.
        reasons: Why the clock is not higher, joined by "+"; "" for no reason. `sw_power_cap` is normal under load.
        slowed: A slowdown by heat or by the hardware: the samples are no measure of the candidate.
        retaken: The samples are the second ones, because the first were slowed.
    """

    sm_mhz: int
    memory_mhz: int
    watts: float
    celsius: int
    reasons: str = ""
    slowed: bool = False
    retaken: bool = False


def named_reasons(bits: int) -> str:
    """The names of NVML's bits; idle is none, since a device is idle between samples."""
    return "+".join(name for bit, name in _REASONS.items() if bits & bit)


class Telemetry:
    """NVML's view of one device.

    Args:
        uuid: The device's identifier, as CUDA and NVML give it.
    """

    def __init__(self, uuid: str) -> None:
        self._nvml = registry.optional("pynvml", "cuda")
        self._nvml.nvmlInit()
        self._handle: Any = self._nvml.nvmlDeviceGetHandleByUUID(uuid if uuid.startswith("MIG") else f"GPU-{uuid}")

    def read(self) -> Conditions | None:
        """The state now; None where the driver does not tell."""
        nvml, handle = self._nvml, self._handle
        try:
            bits = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
            return Conditions(
                sm_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM),
                memory_mhz=nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM),
                watts=nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
                celsius=nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
                reasons=named_reasons(bits),
                slowed=bool(bits & _FAULTS),
            )
        except nvml.NVMLError:
            return None

    def limits(self) -> dict[str, str]:
        """What bounds the device's speed, and whether it is a slice of one; what the driver does not tell is left out.

        Two devices of one model may differ in it.
        """
        nvml, handle = self._nvml, self._handle
        asked: dict[str, Callable[[], str]] = {
            "highest clock": lambda: f"{nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)} MHz",
            "highest memory clock": lambda: f"{nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)} MHz",
            "power limit": lambda: f"{nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000.0:.0f} W",
            "MIG": lambda: "on" if nvml.nvmlDeviceGetMigMode(handle)[0] else "off",
        }
        found = {}
        for name, ask in asked.items():
            with contextlib.suppress(nvml.NVMLError):
                found[name] = ask()
        return found


def open_telemetry(uuid: str) -> Telemetry | None:
    """NVML for the device called `uuid`; None where NVML is not there, too old, or does not know it."""
    if not uuid or not registry.available("pynvml"):
        return None
    nvml = registry.optional("pynvml", "cuda")
    try:
        made = Telemetry(uuid)
        return made if made.read() is not None else None
    except (nvml.NVMLError, AttributeError):
        return None
