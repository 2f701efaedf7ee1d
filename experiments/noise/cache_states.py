"""What the state of the L2 before a sample does to its time, on the CUDA device at hand.

Library calls are timed after the cache was overwritten, as Triton's do_bench and others flush it; after it was read
through; and as this tuner does it: read through, then as many bytes written as the call writes itself. The truth is
the time of one call of a row of them without any flush, over so many sets of tensors in turn that each finds the cache
as cold as the first, replayed from one CUDA graph.

    python experiments/noise/cache_states.py [OUT.json]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from autotune.clock import now
from autotune.devices.cuda import Cuda
from autotune.environment import read_environment
from search_spaces import registry

torch = registry.optional("torch", "cuda")
SAMPLES = 60
# A row of calls touches at least so many bytes before it touches one again.
ROW_BYTES = 512 << 20
FLUSH_BYTES = 256 << 20


@dataclass(frozen=True)
class Call:
    """A library call.

    Attributes:
        inputs: Shapes of its inputs, all bfloat16.
        output: Shape of what it writes.
        run: Given the inputs and the output.
    """

    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    run: Callable[..., object]

    @property
    def written(self) -> int:
        """Bytes of the output."""
        return 2 * int(np.prod(self.output))

    @property
    def touched(self) -> int:
        """Bytes of all tensors."""
        return self.written + sum(2 * int(np.prod(shape)) for shape in self.inputs)

    def bound(self) -> Callable[[], object]:
        """The call on tensors of its own."""
        inputs = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for shape in self.inputs]
        output = torch.empty(self.output, device="cuda", dtype=torch.bfloat16)
        return lambda: self.run(*inputs, output)


def product(m: int, n: int, k: int) -> Call:
    """Of matrices, by cuBLAS."""
    return Call(((m, k), (k, n)), (m, n), lambda a, b, c: torch.mm(a, b, out=c))


def copied(mebibytes: int) -> Call:
    """A copy of so many MiB."""
    shape = (mebibytes << 10, 512)
    return Call((shape,), shape, lambda a, b: b.copy_(a))


def summed(mebibytes: int) -> Call:
    """Sums of rows, which write next to nothing."""
    return Call((((mebibytes << 7), 4096),), (mebibytes << 7,), lambda a, b: torch.sum(a, dim=1, out=b))


CALLS = {
    "matmul M=16,N=14336,K=4096": product(16, 14336, 4096),
    "matmul M=16,N=4096,K=4096": product(16, 4096, 4096),
    "matmul M=1024,N=1024,K=1024": product(1024, 1024, 1024),
    "matmul M=4096,N=4096,K=4096": product(4096, 4096, 4096),
    "copy 16 MiB": copied(16),
    "copy 64 MiB": copied(64),
    "copy 128 MiB": copied(128),
    "row sums 32 MiB": summed(32),
    "row sums 128 MiB": summed(128),
    "row sums 1024 MiB": summed(1024),
}


def by_flush(device: Cuda, launch: Callable[[], object], call: Call) -> Mapping[str, float]:
    """Median seconds after each kind of flush, and in a row without one."""
    flush = torch.zeros(FLUSH_BYTES // 4, device="cuda", dtype=torch.int32)
    quick = device.compact(launch)
    return {
        "overwritten": _median(flush.zero_, quick),
        "read": float(np.median(device.time([quick] * SAMPLES, True))),
        "read, then as much written": float(np.median(device.time([quick] * SAMPLES, True, call.written))),
        "in a row": in_a_row(device, call),
    }


def _median(flush: Callable[[], object], launch: Callable[[], object]) -> float:
    pairs: list[tuple[Any, Any]] = []
    for _ in range(SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush()
        start.record()
        launch()
        end.record()
        pairs.append((start, end))
    torch.cuda.synchronize()
    return float(np.median([start.elapsed_time(end) * 1e-3 for start, end in pairs]))


def in_a_row(device: Cuda, call: Call) -> float:
    """Median seconds of a call of the row."""
    bound = [call.bound() for _ in range(max(2, -(-ROW_BYTES // call.touched)))]

    def row() -> None:
        for launch in bound:
            launch()

    row()
    replay = device.compact(row)
    replay()
    return float(np.median(device.time([replay] * 15, True))) / len(bound)


def main(out: Path) -> None:
    """Times everything and writes the result."""
    device = Cuda()
    found = {}
    for name, call in CALLS.items():
        launch = call.bound()
        launch()
        seconds = by_flush(device, launch, call)
        found[name] = {"bytes": call.touched, "written": call.written, "seconds": seconds}
        print(f"{name:30}", " ".join(f"{way}={1e6 * s:.1f}" for way, s in seconds.items()), flush=True)
    result = {
        "date": now().isoformat(timespec="seconds"),
        "question": "what does the state of the L2 before a sample do to its time",
        "device": asdict(device.info()),
        "environment": msgspec.to_builtins(read_environment()),
        "calls": found,
    }
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "cache_states.json"))
