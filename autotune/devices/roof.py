"""The two lines of a CPU's roofline, measured: fused multiply-adds in registers, and a copy in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.clock import nanoseconds
from search_spaces import registry
from search_spaces.sketches.tvm.base import EXTRA

# A tile of this many rows by two vectors leaves room for operands in 32 registers, half of it in 16.
ROWS = 12
VECTORS = 2
DEPTH = 64
WIDE_BITS = 512
RUN_SECONDS = 0.005
RUNS = 40
COPY_BYTES = 256 << 20
COPIES = 4


def measured_peak(cores: int) -> float | None:
    """Fused multiply-adds in float32 on `cores` cores, operations per second; None without TVM.

    One core is measured and multiplied: on a machine that does something else too, one core is soon found free, all of
    them together are not, and a roof that is too low would call good results implausible.
    """
    if not registry.available("tvm"):
        return None
    tvm = registry.optional("tvm", EXTRA)
    target = tvm.target.Target({"kind": "llvm", "mcpu": tvm.get_global_func("target.llvm_get_system_cpu")()})
    bits = int(tvm.get_global_func("target.llvm_get_vector_width")(target))
    rows, lanes = ROWS if bits >= WIDE_BITS else ROWS // 2, bits // 32
    rng = np.random.default_rng(0)
    operands = [rng.random((DEPTH, width), dtype=np.float32) for width in (rows, lanes * VECTORS)]
    tensors = [tvm.runtime.tensor(a) for a in (*operands, np.zeros((rows, lanes * VECTORS), np.float32))]

    def seconds(repeats: int, runs: int) -> float:
        kernel = tvm.compile(_multiply_adds(rows, lanes, repeats), target=target)["main"]
        return _fastest(lambda: kernel(*tensors), runs)

    trial = 1000
    repeats = max(trial, round(trial * RUN_SECONDS / seconds(trial, 2)))
    return 2.0 * cores * rows * lanes * VECTORS * DEPTH * repeats / seconds(repeats, RUNS)


def _multiply_adds(rows: int, lanes: int, repeats: int) -> Any:
    """A matrix product so small that its operands stay in the first-level cache, summed over and over."""
    tvm, te = registry.optional("tvm", EXTRA), registry.optional("tvm.te", EXTRA)
    a = te.placeholder((DEPTH, rows), name="a")
    b = te.placeholder((DEPTH, lanes * VECTORS), name="b")
    again, k = te.reduce_axis((0, repeats), name="again"), te.reduce_axis((0, DEPTH), name="k")
    c = te.compute((rows, lanes * VECTORS), lambda i, j: te.sum(a[k, i] * b[k, j], axis=[again, k]), name="c")
    made = tvm.s_tir.Schedule(te.create_prim_func([a, b, c]))
    block = made.get_sblock("c")
    made.cache_write(block, 0, "local")
    i, j, outer, inner = made.get_loops(block)
    group, lane = made.split(j, [VECTORS, lanes])
    made.reorder(outer, inner, i, group, lane)
    made.vectorize(lane)
    made.unroll(group)
    made.unroll(i)
    made.decompose_reduction(block, outer)
    return made.mod


def measured_bandwidth() -> float:
    """Bytes per second between memory and all cores: the faster of a copy and a dot product, far beyond the caches."""
    cores = len(os.sched_getaffinity(0))
    source = np.ones(COPY_BYTES // 8)
    copy = np.zeros_like(source)
    parts = list(zip(np.array_split(source, cores), np.array_split(copy, cores), strict=True))
    with ThreadPoolExecutor(cores) as pool, threadpool_limits(1):
        copied = _fastest(lambda: list(pool.map(lambda part: np.copyto(part[1], part[0]), parts)), COPIES)
        read = _fastest(lambda: list(pool.map(lambda part: np.dot(*part), parts)), COPIES)
    return 2.0 * COPY_BYTES / min(copied, read)


def _fastest(work: Callable[[], object], runs: int) -> float:
    """Seconds of the fastest of `runs` runs after one that warms up."""
    times = []
    for _ in range(runs + 1):
        start = nanoseconds()
        work()
        times.append((nanoseconds() - start) * 1e-9)
    return min(times[1:])
