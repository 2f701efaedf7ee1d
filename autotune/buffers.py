"""Buffers of the arguments, each between two guards that show a write beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autotune.devices.base import Device
from search_spaces.operator import TensorSpec

# A multiple of every alignment that kernels assume; wide enough for a tile that runs over the edge.
GUARD_BYTES = 64 << 10
# All bits set: NaN in every floating dtype, so that a read beside a buffer shows too where its value is used.
_PATTERN = -1


@dataclass(frozen=True)
class Buffer:
    """One argument in memory.

    Attributes:
        spec: What it holds.
        array: The argument.
        before: Guard bytes that end where it starts.
        after: Guard bytes that start where it ends.
    """

    spec: TensorSpec
    array: Any
    before: Any
    after: Any

    @property
    def role(self) -> str:
        """How a message names it."""
        return f"{'output' if self.spec.output else 'input'} {self.spec.name}"


class Buffers:
    """All arguments of a task, shared by its candidates.

    Args:
        device: Whose memory.
        specs: The arguments in the operator's order.
    """

    def __init__(self, device: Device, specs: Sequence[TensorSpec]) -> None:
        self._device = device
        self._all = [self._allocate(spec) for spec in specs]
        self._pattern = device.raw(GUARD_BYTES)
        self._pattern[...] = _PATTERN
        self.inputs = [b.array for b in self._all if not b.spec.output]
        self.outputs = [b.array for b in self._all if b.spec.output]
        self.repair()

    def _allocate(self, spec: TensorSpec) -> Buffer:
        raw = self._device.raw(2 * GUARD_BYTES + spec.bytes)
        end = GUARD_BYTES + spec.bytes
        array = self._device.typed(raw[GUARD_BYTES:end], spec)
        return Buffer(spec, array, raw[:GUARD_BYTES], raw[end:])

    def repair(self) -> None:
        """Writes all guards anew."""
        for buffer in self._all:
            buffer.before[...] = _PATTERN
            buffer.after[...] = _PATTERN

    def fault(self, inputs: Sequence[Any]) -> str:
        """Which guard is broken, or which input is no longer as in `inputs`; "" where all is as it was."""
        givens = [b for b in self._all if not b.spec.output]
        checks = [(f"writes before its {b.role}", b.before, self._pattern) for b in self._all]
        checks += [(f"writes after its {b.role}", b.after, self._pattern) for b in self._all]
        checks += [(f"writes to its {b.role}", b.array, i) for b, i in zip(givens, inputs, strict=True)]
        broken = self._device.differ([(now, wanted) for _, now, wanted in checks])
        return "; ".join(what for (what, _, _), differs in zip(checks, broken, strict=True) if differs)
