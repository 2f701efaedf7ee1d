"""Which GPUs the user leaves to this process, found through NVML: CUDA is started by the process that gets one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from autotune.devices.base import Place
from autotune.environment import visible_devices
from search_spaces import registry

_VARIABLE = "CUDA_VISIBLE_DEVICES"


def visible_gpus() -> tuple[Place, ...]:
    """The machine's GPUs, or the slices of those that MIG divides, as far as CUDA_VISIBLE_DEVICES leaves them.

    Where NVML is not there, one place that says nothing: the first GPU that CUDA finds.
    """
    found = _identifiers()
    if not found:
        return (Place(),)
    return tuple(Place(str(i), {_VARIABLE: uuid}) for i, uuid in enumerate(chosen(found, visible_devices())))


def uuid_of(place: Place) -> str:
    """The identifier of one of `visible_gpus`, as NVML takes it."""
    return place.variables[_VARIABLE]


def whole_gpu(nvml: Any, handle: Any) -> Any:
    """The GPU that a slice of MIG is of, which NVML can ask for more; any other device itself."""
    try:
        return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
    except nvml.NVMLError:
        return handle


def chosen(found: list[str], visible: str | None) -> list[str]:
    """The devices among `found` that a value of CUDA_VISIBLE_DEVICES names, in its order.

    Args:
        found: Identifiers of all, as NVML gives them.
        visible: Numbers or beginnings of identifiers, separated by commas; None for all. As CUDA reads it, what
            follows the first name that is none does not count.
    """
    if visible is None:
        return found
    kept: list[str] = []
    for name in (part.strip() for part in visible.split(",")):
        named = found[int(name) :][:1] if name.isdigit() else [f for f in found if name and f.startswith(name)]
        if len(named) != 1 or named[0] in kept:
            break
        kept += named
    return kept


def _identifiers() -> list[str]:
    """Of all GPUs and MIG slices; none where NVML is not there."""
    if not registry.available("pynvml"):
        return []
    nvml = registry.optional("pynvml", "cuda")
    try:
        nvml.nvmlInit()
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return [_text(nvml.nvmlDeviceGetUUID(part)) for handle in handles for part in _parts(nvml, handle)]
    except nvml.NVMLError:
        return []


def _parts(nvml: Any, handle: Any) -> Iterator[Any]:
    """The slices of a GPU that MIG divides; else the GPU itself."""
    try:
        divided = bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError:
        divided = False
    if not divided:
        yield handle
        return
    for i in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, i)
        except nvml.NVMLError:  # this place is empty
            continue


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode()
