"""An operator Y = X + 1 with few schedules, of which some wait, or eat memory, when a test asks for it.

Its space is `TILES` x `TRICKS`; a trick is played only where the folder named by FRAGILE has a file of its name. Each
leaves the number of its process in that folder.
"""

import hashlib
import os
import sys
import time
from pathlib import Path

from autotune.generators.base import Artifact, Generator, Kernel, Resources
from search_spaces.operator import Axis, Cost, Operator, TensorSpec
from search_spaces.sketch import Sketch
from search_spaces.space import Family, Knob, Schedule, SketchSpace

TILES = (1, 2, 4, 8)
TRICKS = ("none", "wait", "pause", "memory", "killed")
PAUSE = 2.0


def plays(trick):
    """Whether a trick is to be played now; leaves a mark that it is."""
    folder = Path(os.environ.get("FRAGILE", "/nonexistent"))
    if not (folder / trick).exists():
        return False
    (folder / f"{trick}.pid").write_text(str(os.getpid()))
    return True


class FragileKernel(Kernel):
    def __init__(self, schedule):
        self._trick = schedule["trick"]
        # Times far enough from each other that the final race is short.
        self._seconds = 3e-4 * (1 + TRICKS.index(self._trick) + len(TRICKS) * (3 - TILES.index(schedule["tile"])))

    def bind(self, inputs, outputs):
        (x,), (y,) = inputs, outputs

        def launch():
            if self._trick == "wait" and plays("wait"):
                time.sleep(3600)
            if self._trick == "pause" and plays("pause"):
                time.sleep(PAUSE)
            y[...] = x + 1
            time.sleep(self._seconds)

        return launch


class FragileGenerator(Generator):
    name = __file__

    def missing(self):
        return None

    def build(self, task, schedule, folder):
        if schedule["trick"] == "memory" and plays("memory"):
            held = []
            while True:
                held.append(bytearray(64 << 20))
        if schedule["trick"] == "killed" and plays("killed"):
            os.kill(os.getpid(), 9)
        # Long enough for a test to do something while others are still to come.
        time.sleep(0.05)
        (folder / f"{schedule.key}.built").write_bytes(bytes(1024))
        identity = hashlib.sha256(schedule.key.encode()).hexdigest()
        return Artifact(str(folder), identity, Resources(registers=32, threads=32))

    def load(self, task, schedule, artifact, folder):
        return FragileKernel(schedule)

    def versions(self):
        return {"python": sys.version.split()[0]}


class FragileSketch(Sketch):
    name = "fragile.loops"
    generator = __file__
    operator = "fragile"
    summary = "one pass"

    def refuses(self, task):
        return None if task.target.kind == "llvm" else "runs on the CPU only"

    def spaces(self, task):
        knobs = Knob("tile", Family.TILE_SIZES, TILES), Knob("trick", Family.UNROLLING, TRICKS)
        return (SketchSpace(self.name, knobs, ()),)

    def default(self, task):
        return Schedule((("sketch", self.name), ("tile", 1), ("trick", "none")))


class Fragile(Operator):
    name = "fragile"
    summary = "Y = X + 1"
    axes = (Axis("N", "elements"),)
    dtypes = ("float32",)

    def defaults(self, kind):
        return {"N": 1024, "dtype": "float32"}

    def tensors(self, workload):
        shape = (workload["N"],)
        return TensorSpec("X", shape, "float32"), TensorSpec("Y", shape, "float32", output=True)

    def cost(self, workload):
        return Cost(1.0 * workload["N"], 8.0 * workload["N"])

    def reference(self, workload, xp, *inputs):
        return (inputs[0] + 1,)

    def sketches(self):
        return (FragileSketch(),)


GENERATOR = FragileGenerator()
