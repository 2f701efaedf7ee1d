"""Whether a candidate replaced what judges it: candidates written in Python share the worker's process."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType

from autotune.devices.base import Device

_JUDGES = (
    "autotune.buffers",
    "autotune.checking",
    "autotune.clock",
    "autotune.devices.base",
    "autotune.inputs",
    "autotune.timing",
    "autotune.worker",
)


class Seal:
    """Remembers the functions that time and check, as they are before a candidate is loaded.

    This finds a replaced clock, not an attacker: code that runs in a process can do anything to it.

    Args:
        device: Names what else its stopwatch rests on.
    """

    def __init__(self, device: Device) -> None:
        names = (*_JUDGES, type(device).__module__)
        modules = [sys.modules[name] for name in names if name in sys.modules]
        owners = [(module.__name__, module) for module in modules]
        self._places = [place for name, module in owners for place in _functions(name, module)]
        self._places += [(f"{getattr(o, '__name__', o)}.{a}", o, a) for o, a in device.stopwatch()]
        self._taken = [_identity(owner, attribute) for _, owner, attribute in self._places]

    def broken(self) -> str:
        """Names what is no longer what it was; "" where all is."""
        pairs = zip(self._places, self._taken, strict=True)
        return ", ".join(name for (name, o, a), taken in pairs if not _same(_identity(o, a), taken))


def _functions(name: str, owner: ModuleType | type) -> Iterator[tuple[str, object, str]]:
    """Functions of a module, those that it imported too, and methods of its classes."""
    for attribute, value in vars(owner).items():
        if isinstance(value, FunctionType):
            yield f"{name}.{attribute}", owner, attribute
        elif isinstance(value, type) and value.__module__ == name:
            yield from _methods(f"{name}.{attribute}", value)


def _methods(name: str, owner: type) -> Iterator[tuple[str, object, str]]:
    for attribute, value in vars(owner).items():
        if isinstance(value, FunctionType):
            yield f"{name}.{attribute}", owner, attribute


def _identity(owner: object, attribute: str) -> tuple[object, object]:
    """A function and its code, which can be exchanged under the same function."""
    found = getattr(owner, attribute, None)
    return found, getattr(found, "__code__", None)


def _same(now: tuple[object, object], then: tuple[object, object]) -> bool:
    return now[0] is then[0] and now[1] is then[1]
