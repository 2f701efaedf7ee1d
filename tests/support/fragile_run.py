"""One whole run of the fragile operator, in a process of its own, with a short time-out: FOLDER SECONDS."""

import sys
from pathlib import Path

from autotune.measurement import Policy
from autotune.tune import Settings, tune
from search_spaces.hardware import cpu_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

if __name__ == "__main__":
    name = f"{Path(__file__).parent / 'fragile.py'}:Fragile"
    hardware = cpu_hardware("fragile", 2, 1 << 20, 1e13, {"float32": 1e14})
    task = Task(name, find_operator(name).workload("llvm"), Target("llvm"), hardware)
    policy = Policy(samples=3, cold=False, run_seconds=float(sys.argv[2]))
    tune(task, Settings(strategy="random", trials=20, jobs=1, policy=policy), Path(sys.argv[1]))
