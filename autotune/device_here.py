"""Who the device at hand is, as the worker would say it, asked in a process of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from autotune.devices.base import Device, DeviceInfo
from autotune.devices.cpu import cpu_info
from autotune.process import Child
from autotune.runner import started
from autotune.worker import DEVICES, Identify
from search_spaces import registry

_SECONDS = 300.0


def device_here(kind: str, folder: Path) -> DeviceInfo:
    """The identity that a worker for targets of `kind` gives.

    Args:
        kind: "cuda" or "llvm".
        folder: Takes the log of the process that is asked.

    Raises:
        NoDevice: The device does not start.
    """
    return cpu_info() if kind == "llvm" else asked(kind, folder)


def asked(kind: str, folder: Path) -> DeviceInfo:
    """Starts the device in a child, so that this process stays free of it, and asks it.

    Raises:
        NoDevice: The device does not start.
    """
    child: Child[Identify] = Child(_setup, (kind,), folder / "device.log", fresh=True)
    try:
        child.send(Identify(), _SECONDS)
        remedy = "run 'autotune doctor'"
        answer = started(child, "the device did not start", remedy, remedy)
    finally:
        child.kill()
    assert isinstance(answer, DeviceInfo)
    return answer


def _setup(kind: str) -> Callable[[Identify], DeviceInfo]:
    """Runs in the child."""
    device: Device = registry.find("autotune.devices", DEVICES[kind], "device")()
    return lambda _: device.info()
