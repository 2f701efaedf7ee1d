"""An operator Y = X + 1 with one kernel for each trick and for each crash; `honest` is the one that is to win.

The trick is a knob, so that a run over the operator meets all of them: `--op tests/evil/kernels.py:Evil`. Each trick is
a function of this file: it is given the arguments and gives what a launch does. What a trick does to be fast is left
out where it need not be fast to be seen; `honest` is slowed down instead.
"""

import contextlib
import ctypes
import hashlib
import itertools
import os
import signal
import sys
import threading
import time

from autotune.generators.base import Artifact, Generator, Kernel, Resources
from search_spaces.operator import Axis, Cost, Operator, TensorSpec
from search_spaces.sketch import Sketch
from search_spaces.space import Family, Knob, Schedule, SketchSpace

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    triton = None

CPU, CUDA = {}, {}
HONEST_PAUSE = 1e-3
# More launches than a trial takes, fewer than the shortest race.
MANY_LAUNCHES = 15


def trick(*tables):
    def put(function):
        for table in tables:
            table[function.__name__] = function
        return function

    return put


def add_one(x, y):
    y[...] = x + 1


@trick(CPU)
def honest(x, y):
    def launch():
        add_one(x, y)
        time.sleep(HONEST_PAUSE)

    return launch


@trick(CUDA)
def honest_on_gpu(x, y):
    return lambda: [add_one(x, y) for _ in range(3)]


@trick(CPU, CUDA)
def nondeterministic(x, y):
    """Right, but in the last bits another time each run: reported, not refused."""
    calls = itertools.count()

    def launch():
        y[...] = x + (1 + next(calls) % 3 * 2.0**-23)
        time.sleep(HONEST_PAUSE)

    return launch


@trick(CPU, CUDA)
def skipped_write(x, y):
    return lambda: None


@trick(CPU, CUDA)
def partly_skipped_write(x, y):
    def launch():
        y[:-1] = x[:-1] + 1

    return launch


@trick(CPU, CUDA)
def skipped_when_timed(x, y):
    """Works when it is called for the first time only."""
    calls = itertools.count()

    def launch():
        if next(calls) == 0:
            add_one(x, y)

    return launch


@trick(CPU, CUDA)
def turns_wrong_after_many_launches(x, y):
    """Right for as long as a trial takes, and wrong in the race, as one that fails under heat would be."""
    calls = itertools.count()

    def launch():
        y[...] = x + (1 if next(calls) < MANY_LAUNCHES else 2)

    return launch


@trick(CPU, CUDA)
def right_on_its_shape_only(x, y):
    """Leaves out what comes after the last whole group of eight: right for the workload, wrong for others."""

    def launch():
        whole = x.shape[-1] // 8 * 8
        y[..., whole:] = 0
        for _ in range(6):
            y[..., :whole] = x[..., :whole] + 1
        if not hasattr(x, "is_cuda"):
            time.sleep(2 * HONEST_PAUSE)

    return launch


@trick(CPU, CUDA)
def cached_output(x, y):
    """Remembers what it computed when it was called for the first time."""
    kept = []

    def launch():
        if not kept:
            kept.append(x + 1)
        y[...] = kept[0]

    return launch


@trick(CPU, CUDA)
def writes_to_input(x, y):
    def launch():
        add_one(x, y)
        x[...] = y

    return launch


@trick(CPU, CUDA)
def writes_to_input_when_timed(x, y):
    calls = itertools.count()

    def launch():
        add_one(x, y)
        if next(calls):
            x[:1] = 0

    return launch


@trick(CPU)
def writes_before_output(x, y):
    def launch():
        add_one(x, y)
        ctypes.memset(y.ctypes.data - y.itemsize, 1, y.itemsize)

    return launch


@trick(CPU)
def writes_after_output(x, y):
    def launch():
        add_one(x, y)
        ctypes.memset(y.ctypes.data + y.nbytes, 1, y.itemsize)

    return launch


@trick(CPU)
def writes_after_input(x, y):
    def launch():
        add_one(x, y)
        ctypes.memset(x.ctypes.data + x.nbytes, 1, x.itemsize)

    return launch


@trick(CPU, CUDA)
def right_for_small_inputs_only(x, y):
    def launch():
        y[...] = x.clip(-8, 8) + 1

    return launch


@trick(CPU)
def exits_on_large_inputs(x, y):
    def launch():
        if abs(x).max() > 8:
            os._exit(5)
        add_one(x, y)

    return launch


@trick(CPU, CUDA)
def deferred_to_thread(x, y):
    def later():
        time.sleep(0.02)
        add_one(x, y)

    return lambda: threading.Thread(target=later).start()


@trick(CPU, CUDA)
def patched_clock(x, y):
    def launch():
        add_one(x, y)
        ticks = itertools.count()
        time.perf_counter_ns = lambda: next(ticks)

    return launch


@trick(CPU, CUDA)
def patched_device(x, y):
    """Puts other code under the device's own stopwatch."""

    def launch():
        add_one(x, y)
        kind = sys.modules["autotune.devices.cuda" if hasattr(x, "is_cuda") else "autotune.devices.cpu"].DEVICE
        kind.time.__code__ = (lambda self, launches, cold: [1e-9 for _ in launches]).__code__

    return launch


@trick(CPU, CUDA)
def raises(x, y):
    def launch():
        raise RuntimeError("no such kernel")

    return launch


@trick(CPU, CUDA)
def exits(x, y):
    return lambda: sys.exit(3)


@trick(CPU, CUDA)
def exits_at_once(x, y):
    return lambda: os._exit(4)


@trick(CPU, CUDA)
def aborts(x, y):
    return os.abort


@trick(CPU)
def illegal_address(x, y):
    return lambda: ctypes.memset(8, 0, 8)


@trick(CPU)
def bus_error(x, y):
    return lambda: signal.raise_signal(signal.SIGBUS)


@trick(CPU)
def huge_allocation(x, y):
    return lambda: type(x)((1 << 50,))


@trick(CPU)
def infinite_loop(x, y):
    def launch():
        until = time.monotonic() + 30
        while time.monotonic() < until:
            pass

    return launch


@trick(CPU, CUDA)
def compiler_aborts(x, y):
    raise AssertionError("is not built")


if triton is not None:

    @triton.jit
    def store(address, offset):
        """Writes one float32 `offset` bytes from an address."""
        place = (address.to(tl.int64, bitcast=True) + offset).to(tl.pointer_type(tl.float32), bitcast=True)
        tl.store(place, 1.0)

    @trick(CUDA)
    def illegal_address_on_gpu(x, y):
        return lambda: store[(1,)](y, 1 << 44)

    @trick(CUDA)
    def misaligned_address_on_gpu(x, y):
        return lambda: store[(1,)](y, 2)

    @trick(CUDA)
    def writes_before_output_on_gpu(x, y):
        return lambda: (add_one(x, y), store[(1,)](y, -4))

    @trick(CUDA)
    def writes_after_output_on_gpu(x, y):
        return lambda: (add_one(x, y), store[(1,)](y, y.numel() * 4))

    @trick(CUDA)
    def writes_after_input_on_gpu(x, y):
        return lambda: (add_one(x, y), store[(1,)](x, x.numel() * 4))

    @triton.jit
    def read(address, offset, output):
        """Reads an integer `offset` bytes from an address, and changes `output` only in the case that it never is."""
        place = (address.to(tl.int64, bitcast=True) + offset).to(tl.pointer_type(tl.int32), bitcast=True)
        if tl.load(place) == 0x2AAAAAAB:
            tl.store(output, 0.0)

    @trick(CUDA)
    def reads_far_beyond_output_on_gpu(x, y):
        """Right, and beyond the guards: the memory there is the allocator's, so that only a sanitizer sees it."""
        return lambda: (add_one(x, y), read[(1,)](y, y.numel() * 4 + (128 << 10), y))

    @trick(CUDA)
    def infinite_loop_on_gpu(x, y):
        """Ends by itself after some twenty seconds."""
        return lambda: torch.cuda._sleep(40_000_000_000)

    @trick(CUDA)
    def huge_allocation_on_gpu(x, y):
        return lambda: torch.empty(1 << 50, device=x.device)

    @trick(CUDA)
    def patched_event(x, y):
        def launch():
            add_one(x, y)
            torch.cuda.Event.elapsed_time = lambda self, other: 1e-3

        return launch

    @trick(CUDA)
    def other_stream(x, y):
        """Hands its work to a stream that nobody times."""
        stream = torch.cuda.Stream()

        def launch():
            with torch.cuda.stream(stream):
                add_one(x, y)

        return launch

    @trick(CUDA)
    def other_stream_in_order(x, y):
        """Waits for what was queued before, but nothing waits for it."""
        stream = torch.cuda.Stream()

        def launch():
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                torch.cuda._sleep(200_000)
                add_one(x, y)

        return launch


class EvilKernel(Kernel):
    def __init__(self, make):
        self._make = make

    def bind(self, inputs, outputs):
        return self._make(inputs[0], outputs[0])


class EvilGenerator(Generator):
    name = __file__

    def missing(self):
        return None

    def build(self, task, schedule, folder):
        if schedule["trick"] == "compiler_aborts":
            os.abort()
        return Artifact(str(folder), hashlib.sha256(schedule["trick"].encode()).hexdigest(), Resources())

    def load(self, task, schedule, artifact, folder):
        return EvilKernel(table(task.target.kind)[schedule["trick"]])

    def versions(self):
        return {"python": sys.version.split()[0]}


def table(kind):
    return CPU if kind == "llvm" else CUDA


class EvilSketch(Sketch):
    name = "evil.tricks"
    generator = __file__
    operator = "evil"
    summary = "one kernel for each trick"

    def refuses(self, task):
        return None

    def spaces(self, task):
        return (SketchSpace(self.name, (Knob("trick", Family.UNROLLING, tuple(table(task.target.kind))),)),)

    def default(self, task):
        return schedule_of(next(iter(table(task.target.kind))))


def schedule_of(name):
    return Schedule((("sketch", EvilSketch.name), ("trick", name)))


class Evil(Operator):
    name = "evil"
    summary = "Y = X + 1"
    axes = (Axis("M", "rows"), Axis("N", "length of a row"))
    dtypes = ("float32",)

    def defaults(self, kind):
        return (
            {"M": 64, "N": 1000, "dtype": "float32"} if kind == "llvm" else {"M": 4096, "N": 4096, "dtype": "float32"}
        )

    def tensors(self, workload):
        shape = (workload["M"], workload["N"])
        return TensorSpec("X", shape, "float32"), TensorSpec("Y", shape, "float32", output=True)

    def cost(self, workload):
        return Cost(1.0, 1.0)

    def reference(self, workload, xp, *inputs):
        return (inputs[0] + 1,)

    def sketches(self):
        return (EvilSketch(),)


with contextlib.suppress(AttributeError):
    # Where a core dump is allowed, each abort would write one.
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

GENERATOR = EvilGenerator()
