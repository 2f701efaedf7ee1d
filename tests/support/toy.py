"""An operator Y = X + 1 whose schedules are Python functions: quick to build, and some of them misbehave on purpose.

Given on the command line as any user's operator would be: `--op tests/support/toy.py:Toy`. Its code generator is this
file too, so that the whole engine runs over it with no compiler.
"""

import ctypes
import hashlib
import os
import sys
import time

from autotune.generators.base import Artifact, BuildError, Generator, Kernel, Resources
from search_spaces.operator import Axis, Cost, Operator, TensorSpec
from search_spaces.sketch import Sketch
from search_spaces.space import Constraint, Family, Knob, Schedule, SketchSpace

TRICKS = (
    "none",
    "build_error",
    "build_abort",
    "build_hang",
    "raise",
    "exit",
    "abort",
    "segfault",
    "hang",
    "wrong",
    "skip_write",
    "partial_write",
    "endless",
)

# File beside the builds in which every launch of an endless kernel leaves a line.
LAUNCHES = "launches"


def pause_of(schedule):
    """Seconds that no launch of it can be quicker than, nor, on an idle machine, much slower."""
    return abs(schedule.integer("tile") - 8) * 2e-4 + schedule.integer("width") * 1e-4


class PythonKernel(Kernel):
    def __init__(self, schedule, notes):
        self._schedule = schedule
        self._notes = notes

    def bind(self, inputs, outputs):
        (x,), (y,) = inputs, outputs
        trick = self._schedule["trick"]
        pause = pause_of(self._schedule)

        def launch():
            if trick == "raise":
                raise RuntimeError("an illegal memory access was encountered")
            if trick == "exit":
                os._exit(3)
            if trick == "abort":
                os.abort()
            if trick == "segfault":
                ctypes.string_at(8)
            if trick == "hang":
                time.sleep(3600)
            if trick == "skip_write":
                return
            y[...] = x + (0 if trick == "wrong" else 1)
            if trick == "partial_write":
                y[-1] = float("nan")
            if trick == "endless":
                with self._notes.open("a") as notes:
                    notes.write("launched\n")
            time.sleep(0.3 if trick == "endless" else pause)

        return launch


class PythonGenerator(Generator):
    name = __file__

    def missing(self):
        return None

    def build(self, task, schedule, folder):
        trick = schedule["trick"]
        if trick == "build_error":
            raise BuildError("this one does not compile")
        if trick == "build_abort":
            os.abort()
        if trick == "build_hang":
            time.sleep(3600)
        identity = hashlib.sha256(repr((schedule["trick"], schedule["tile"], schedule["width"])).encode()).hexdigest()
        return Artifact(str(folder), identity, Resources(registers=schedule.integer("tile"), threads=32))

    def load(self, task, schedule, artifact, folder):
        return PythonKernel(schedule, folder / LAUNCHES)

    def versions(self):
        return {"python": sys.version.split()[0]}


class ToySketch(Sketch):
    name = "toy.loops"
    generator = __file__
    operator = "toy"
    summary = "one pass"

    def refuses(self, task):
        return None if task.target.kind == "llvm" else "runs on the CPU only"

    def spaces(self, task):
        tricks = TRICKS if task.workload["tricks"] else ("none",)
        return (
            SketchSpace(
                self.name,
                (
                    Knob("tile", Family.TILE_SIZES, (1, 2, 4, 8, 16)),
                    Knob("width", Family.VECTOR_WIDTH, (1, 2, 4)),
                    Knob("order", Family.LOOP_ORDER, (0, 1)),
                    Knob("trick", Family.UNROLLING, tricks),
                    Knob("chunk", Family.LOOP_ORDER, (1, 2, 4, 8), runtime=True),
                ),
                (Constraint("wider than its tile", ("tile", "width"), lambda tile, width: width <= tile),),
            ),
        )

    def default(self, task):
        return Schedule(
            (("sketch", self.name), ("tile", 1), ("width", 1), ("order", 0), ("trick", "none"), ("chunk", 1))
        )


class Toy(Operator):
    name = "toy"
    summary = "Y = X + 1"
    axes = (Axis("N", "elements"), Axis("tricks", "whether schedules misbehave", least=0, choices=(0, 1)))
    dtypes = ("float32",)

    def defaults(self, kind):
        return {"N": 1024, "tricks": 0, "dtype": "float32"}

    def tensors(self, workload):
        shape = (workload["N"],)
        return TensorSpec("X", shape, "float32"), TensorSpec("Y", shape, "float32", output=True)

    def cost(self, workload):
        return Cost(1.0 * workload["N"], 8.0 * workload["N"])

    def reference(self, workload, xp, *inputs):
        return (inputs[0] + 1,)

    def numpy_library(self, workload, np, inputs, outputs):
        return {"numpy": lambda: np.add(inputs[0], 1, out=outputs[0])}

    def sketches(self):
        return (ToySketch(),)


GENERATOR = PythonGenerator()
