"""A device whose clock is moved by the launches themselves: a schedule takes the same time whenever it is timed.

So a whole run, its race included, is a function of its seed. Operator, sketch, generator and device in one file; the
operator is the toy's Y = X + 1.
"""

import hashlib
import os
import time
from pathlib import Path

from autotune.devices.cpu import Cpu
from autotune.executors.base import HERE
from autotune.generators.base import Artifact, BuildError, Generator, Kernel, Resources
from autotune.tune import Settings, tune
from search_spaces.hardware import cpu_hardware
from search_spaces.operator import Axis, Cost, Operator, TensorSpec
from search_spaces.sketch import Sketch
from search_spaces.space import Family, Knob, Schedule, SketchSpace
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

KNOBS = tuple(f"k{i}" for i in range(5))
VALUES = (1, 2, 4, 8, 16, 32, 64, 128)
DEVICE_NAME = f"{__file__}:RecordedDevice"
OPERATOR_NAME = f"{__file__}:Recorded"


def seconds_of(schedule):
    """A bowl with a rough surface."""
    bowl = sum((VALUES.index(schedule[k]) - 2 - i) ** 2 for i, k in enumerate(KNOBS))
    rough = int(hashlib.sha256(schedule.key.encode()).hexdigest()[:6], 16) / 0xFFFFFF
    return 1e-3 * (1.0 + 0.05 * bowl + 0.2 * rough)


class RecordedKernel(Kernel):
    def __init__(self, schedule):
        self._seconds = seconds_of(schedule)

    def bind(self, inputs, outputs):
        (x,), (y,) = inputs, outputs

        def launch():
            y[...] = x + 1
            RecordedDevice.clock += self._seconds

        return launch


class RecordedDevice(Cpu):
    clock = 0.0

    def time(self, launches, cold, written=0):
        # A test that wants to disturb a run makes this file.
        if Path(os.environ.get("RECORDED_SLOWED_BY", "")).is_file():
            time.sleep(0.25)
        taken = []
        for launch in launches:
            before = RecordedDevice.clock
            RecordedDevice.clock = 0.0
            launch()
            taken.append(RecordedDevice.clock)
            RecordedDevice.clock = before
        return taken


class RecordedGenerator(Generator):
    name = __file__

    def missing(self):
        return None

    def build(self, task, schedule, folder):
        if schedule["k0"] == 128:
            raise BuildError("too large")
        identity = hashlib.sha256(schedule.key.encode()).hexdigest()
        path = Path(folder) / f"{identity}.txt"
        path.write_text(schedule.key)
        return Artifact(str(path), identity, Resources(registers=32, threads=32))

    def load(self, task, schedule, artifact, folder):
        return RecordedKernel(schedule)

    def versions(self):
        return {}


class RecordedSketch(Sketch):
    name = "recorded.table"
    generator = __file__
    operator = "recorded"
    summary = "a table"

    def refuses(self, task):
        return None

    def spaces(self, task):
        return (SketchSpace(self.name, tuple(Knob(k, Family.TILE_SIZES, VALUES) for k in KNOBS), ()),)

    def default(self, task):
        return Schedule((("sketch", self.name), *((k, 1) for k in KNOBS)))


class Recorded(Operator):
    name = "recorded"
    summary = "Y = X + 1"
    axes = (Axis("N", "elements"),)
    dtypes = ("float32",)

    def defaults(self, kind):
        return {"N": 64, "dtype": "float32"}

    def tensors(self, workload):
        return TensorSpec("X", (workload["N"],), "float32"), TensorSpec("Y", (workload["N"],), "float32", output=True)

    def cost(self, workload):
        return Cost(1.0 * workload["N"], 8.0 * workload["N"])

    def reference(self, workload, xp, *inputs):
        return (inputs[0] + 1,)

    def sketches(self):
        return (RecordedSketch(),)


GENERATOR = RecordedGenerator()


def recorded_task():
    hardware = cpu_hardware("recorded", 2, 1 << 20, 1e13, {"float32": 1e14})
    return Task(OPERATOR_NAME, find_operator(OPERATOR_NAME).workload("llvm"), Target("llvm"), hardware)


def tune_recorded(folder, trials, strategy, seed=5, trackers=(), jobs=2, site=HERE, device=DEVICE_NAME):
    settings = Settings(strategy=strategy, trials=trials, seed=seed, jobs=jobs, device=device, site=site)
    return tune(recorded_task(), settings, Path(folder), trackers)
