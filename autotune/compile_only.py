"""Compiles candidates for a target that is not here and lists what each would use."""

from __future__ import annotations

import sys
from contextlib import closing

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from autotune.builders import Builders, Built, local_builders
from autotune.devices.cpu import usable_cores
from autotune.display import pretty_json
from autotune.occupancy import occupancy
from autotune.scratch import scratch_folder
from autotune.strategies.random import STRATEGY as RANDOM
from autotune.tune import Settings
from search_spaces.errors import NothingValid
from search_spaces.task import Task

_MOST = 32


def compile_only(task: Task, settings: Settings, console: Console, progress: Console, *, as_json: bool) -> None:
    """Builds the default and random schedules, at most as many as `settings.trials`, and prints their resources.

    Raises:
        NothingValid: None of them compiled.
    """
    rng = np.random.default_rng(settings.seed)
    count = min(settings.trials, _MOST)
    schedules = list(dict.fromkeys([task.default, *settings.warm, *RANDOM(task.space, rng).ask(count)]))[:count]
    done: list[Built] = []
    steps = iter(track(schedules, f"compiling for {task.target}", console=progress, transient=True))

    def keep(built: Built) -> None:
        done.append(built)
        next(steps, None)

    jobs = settings.jobs or usable_cores()
    with (
        scratch_folder() as scratch,
        closing(Builders(task, local_builders(task, scratch, jobs), settings.policy.build_seconds)) as builders,
    ):
        builders.build_all(schedules, keep)
    done.sort(key=lambda b: schedules.index(b.schedule))
    if as_json:
        sys.stdout.write(_json(task, done) + "\n")
    else:
        _print(task, done, console)
    if not any(b.artifact for b in done):
        raise NothingValid(f"none of {len(done)} schedules compiled for {task.target}", done[0].detail)


def _json(task: Task, done: list[Built]) -> str:
    rows = [
        {
            "schedule": b.schedule.to_json(),
            "status": b.status,
            "detail": b.detail,
            "build_seconds": b.seconds,
            "resources": b.artifact.resources if b.artifact else None,
            "occupancy": occupancy(b.artifact.resources, task.hardware.limits) if b.artifact else None,
        }
        for b in done
    ]
    data = {"workload": task.workload, "target": str(task.target), "compiled": rows}
    return pretty_json(data)


def _print(task: Task, done: list[Built], console: Console) -> None:
    table = Table(title=f"{task.workload} compiled for {task.target}, not measured", title_justify="left", box=None)
    for name in ("registers", "shared KiB", "spilled bytes", "threads", "occupancy", "build s"):
        table.add_column(name, justify="right")
    table.add_column("schedule", overflow="fold", ratio=1)
    for b in done:
        if b.artifact is None:
            table.add_row("", "", "", "", "", f"{b.seconds:.2f}", f"{b.schedule}: {b.status}: {b.detail}")
            continue
        used, share = b.artifact.resources, occupancy(b.artifact.resources, task.hardware.limits)
        shared = "" if used.shared_bytes is None else f"{used.shared_bytes / 1024:.4g}"
        cells = [used.registers, shared, used.spill_bytes, used.threads, "" if share is None else f"{share:.0%}"]
        table.add_row(*("" if c is None else str(c) for c in cells), f"{b.seconds:.2f}", str(b.schedule))
    console.print(table)
