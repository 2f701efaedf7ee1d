"""Several devices on one machine: cores with the recorded device's clock, slow, unlike or broken as a test wants them.

A test sets the environment variable CORES to a JSON list with an object for each core: `speed` multiplies its times,
`name` is its model, `lost` a file that makes the core fail for good while it is there, as a GPU with a sticky error
does, `calls` a file to which its process appends its number and the number of each preparation of inputs.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

from autotune.devices.base import Place
from search_spaces.registry import load_file

recorded = load_file(Path(__file__).parent / "recorded.py")
NAME = f"{__file__}:Core"


class Core(recorded.RecordedDevice):
    def __init__(self):
        super().__init__()
        self._number = int(os.environ["CORE"])
        self._is = json.loads(os.environ["CORES"])[self._number]
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[self._number % len(cores)]})
        self._note(f"started {os.getpid()}")

    @classmethod
    def places(cls):
        cores = os.environ["CORES"]
        return tuple(Place(str(i), {"CORE": str(i), "CORES": cores}) for i in range(len(json.loads(cores))))

    def _note(self, line):
        if "calls" in self._is:
            with Path(self._is["calls"]).open("a") as file:
                file.write(f"{line}\n")

    def info(self):
        return replace(super().info(), name=self._is.get("name", "a core"))

    def uuid(self):
        return f"core-{self._number}"

    def traits(self):
        return {"power limit": self._is.get("power", "5 W")}

    def normal(self, shape, seed):
        self.synchronize()
        return super().normal(shape, seed)

    def time(self, launches, cold, written=0):
        self._note("timed")
        self.synchronize()
        return [self._is.get("speed", 1.0) * seconds for seconds in super().time(launches, cold, written)]

    def synchronize(self):
        if "lost" in self._is and Path(self._is["lost"]).exists():
            raise RuntimeError("CUDA error: unspecified launch failure")


def set_cores(monkeypatch, *cores):
    monkeypatch.setenv("CORES", json.dumps(cores))


DEVICE = Core
