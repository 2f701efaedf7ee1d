"""What is published of kernels that recordings of others are of: the same numbers that our own operators give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cost_models.context import hardware_context, workload_context
from search_spaces.known_devices import find_device
from search_spaces.operator import Cost

_FLOAT = 4


@dataclass(frozen=True)
class KnownKernel:
    """A kernel with the problem that it was measured on.

    Attributes:
        axes: Extents by name.
        cost: Operations and bytes, as `Operator.cost` counts them.
        source: Where the problem is described.
    """

    axes: Mapping[str, int]
    cost: Cost
    source: str


_HIP = "Lurati et al., Bringing Auto-Tuning to HIP, Euro-Par 2024"


def _gemm(extent: int) -> KnownKernel:
    cost = Cost(2.0 * extent**3, 3.0 * _FLOAT * extent**2)
    return KnownKernel({"M": extent, "N": extent, "K": extent}, cost, _HIP)


def _convolution(extent: int, filtered: int) -> KnownKernel:
    pixels = extent**2
    moved = _FLOAT * (pixels + (extent + filtered - 1) ** 2 + filtered**2)
    return KnownKernel({"M": extent, "N": extent, "K": filtered}, Cost(2.0 * pixels * filtered**2, moved), _HIP)


def _dedispersion(samples: int, measures: int, channels: int) -> KnownKernel:
    """Sums over the channels for every sample and dispersion measure; samples come in as bytes."""
    moved = float(channels * samples + _FLOAT * samples * measures)
    axes = {"M": samples, "N": measures, "K": channels}
    return KnownKernel(axes, Cost(float(samples) * measures * channels, moved), _HIP)


def _hotspot(extent: int) -> KnownKernel:
    """One step of a five-point stencil: some 15 operations a cell, temperature and power in, temperature out."""
    cells = extent**2
    return KnownKernel({"M": extent, "N": extent}, Cost(15.0 * cells, 3.0 * _FLOAT * cells), _HIP)


def _pnpoly(points: int, vertices: int) -> KnownKernel:
    """Every point against every edge: some 6 operations; two coordinates in, one flag out."""
    cost = Cost(6.0 * points * vertices, 3.0 * _FLOAT * points)
    source = "van Werkhoven, Kernel Tuner, Future Generation Computer Systems 90 (2019)"
    return KnownKernel({"M": points, "K": vertices}, cost, source)


KERNELS: Mapping[str, KnownKernel] = {
    "gemm": _gemm(4096),
    "convolution": _convolution(4096, 15),
    "dedispersion": _dedispersion(25_000, 2_048, 1_536),
    "hotspot": _hotspot(4096),
    "pnpoly": _pnpoly(20_000_000, 600),
}


def known_context(kernel: str, device: str) -> dict[str, float]:
    """The numbers of a recording by others, as far as its kernel and its device are known.

    Args:
        kernel: Its name, or one that starts so (`convolution_noshmemknob`).
        device: Name of the device, in full or for short.
    """
    numbers: dict[str, float] = {}
    known = next((k for name, k in KERNELS.items() if kernel.lower().startswith(name)), None)
    if known is not None:
        numbers |= workload_context(known.axes, "float32", known.cost)
    hardware = find_device(device)
    if hardware is not None:
        numbers |= hardware_context(hardware, "float32")
    return numbers
