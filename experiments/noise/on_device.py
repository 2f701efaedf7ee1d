"""The race's error rates on the CUDA device at hand, and what its timing rests on there.

One softmax schedule is raced against itself, and against the same kernel over 2 % fewer rows, so that the true
difference is known: a default that is 2 % slower must lose, one that is equal must not. A long interleaved run says
what the difference really is.

    python experiments/noise/on_device.py [OUT.json] [RACES]
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec
import numpy as np

from autotune.clock import monotonic, now
from autotune.devices.cuda import Cuda
from autotune.devices.telemetry import open_telemetry
from autotune.environment import read_environment
from autotune.generators.triton import GENERATOR
from autotune.look import Look
from autotune.measurement import Measurement, Policy, Status
from autotune.race import LOOKS, run_race
from autotune.timing import Timer
from search_spaces import registry
from search_spaces.hardware import cuda_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

ROWS, FEWER, COLUMNS = 32768, 32125, 4096
SHORT = (256, 1024)
Launch = Callable[[], object]


class Bench:
    """Softmax launches of one schedule on one device."""

    def __init__(self, folder: Path) -> None:
        self.device = Cuda()
        self.info = self.device.info()
        self.folder = folder

    def launch(self, rows: int, columns: int) -> Launch:
        """The default schedule over random inputs of its own."""
        torch = registry.optional("torch", "cuda")
        workload = find_operator("softmax").workload("cuda", "float16", M=rows, N=columns)
        hardware = cuda_hardware(self.info.arch, self.info.name)
        task = Task("softmax", workload, Target("cuda", self.info.arch), hardware, ("triton.",))
        artifact = GENERATOR.build(task, task.default, self.folder)
        x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
        return GENERATOR.load(task, task.default, artifact, self.folder).bind([x], [torch.empty_like(x)])


def race(timer: Timer, default: Launch, other: Launch, seed: int) -> tuple[bool, int, int]:
    """One race between two launches.

    Returns:
        Whether the default lost, looks that were void, and rounds that counted.
    """
    launches = {Schedule((("sketch", "noise.study"), ("number", i))): x for i, x in enumerate((default, other))}
    trials = [
        Measurement(s, Status.OK, timer.samples(x, float("inf")).seconds, binary=s.key) for s, x in launches.items()
    ]

    def measure(racing: Sequence[Schedule], rounds: int, look: int, *_: object) -> Look:
        times = timer.rounds([launches[s] for s in racing], rounds, look, anchor=0)
        return Look(dict(zip(racing, times, strict=True)), {})

    first = next(iter(launches))
    result = run_race(measure, trials, first, 1000 * seed)
    return result.winner != first, result.voided, len(result.samples[first])


def rates(timer: Timer, default: Launch, other: Launch, races: int) -> dict[str, float]:
    """Many races."""
    started = monotonic()
    ended = [race(timer, default, other, seed) for seed in range(races)]
    return {
        "races": races,
        "default_lost": sum(lost for lost, *_ in ended) / races,
        "void_looks": sum(void for _, void, _ in ended),
        "median_rounds": float(np.median([rounds for *_, rounds in ended])),
        "seconds": round(monotonic() - started, 2),
    }


def short_launches(bench: Bench) -> dict[str, float]:
    """Median microseconds of a launch of a few microseconds, by how it is timed."""
    launch = bench.launch(*SHORT)
    launch()
    graph = bench.device.compact(launch)
    found = {"captured": float(graph is not launch)}
    for name, what, cold in (
        ("cold", launch, True),
        ("cold_graph", graph, True),
        ("hot", launch, False),
        ("hot_graph", graph, False),
    ):
        found[f"{name}_us"] = round(1e6 * float(np.median(bench.device.time([what] * 200, cold))), 3)
    return found


def telemetry(bench: Bench) -> dict[str, object]:
    """What NVML says, and how long it takes to say it."""
    found = open_telemetry(bench.device.uuid())
    if found is None:
        return {"conditions": None}
    started = monotonic()
    states = [found.read() for _ in range(20)]
    milliseconds = round(1e3 * (monotonic() - started) / len(states), 3)
    return {"conditions": msgspec.to_builtins(states[-1]), "milliseconds_of_reading_conditions": milliseconds}


def main(out: Path, races: int) -> None:
    """Runs everything and writes the result."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        timer = Timer(bench.device, replace(Policy(), samples=7), 2 * ROWS * COLUMNS)
        long, fewer = (timer.ready(bench.launch(rows, COLUMNS)) for rows in (ROWS, FEWER))
        truth = timer.rounds([long, fewer], 2000, 0)
        result = {
            "date": now().isoformat(timespec="seconds"),
            "question": "how often does a race end wrongly on a GPU",
            "device": asdict(bench.info),
            "environment": msgspec.to_builtins(read_environment()),
            "looks": LOOKS,
            "rows": [ROWS, FEWER],
            "true_ratio_of_rows": ROWS / FEWER,
            "median_ratio_of_2000_rounds": float(np.median(np.array(truth[0]) / np.array(truth[1]))),
            "median_seconds": float(np.median(truth[0])),
            "against_itself": rates(timer, long, long, races),
            "against_2_percent_faster": rates(timer, long, fewer, races),
            "against_2_percent_slower": rates(timer, fewer, long, races),
            "short_launches": short_launches(bench),
            **telemetry(bench),
        }
    text = json.dumps(result, indent=1)
    out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "on_device.json"), int(sys.argv[2]) if len(sys.argv) > 2 else 50)
