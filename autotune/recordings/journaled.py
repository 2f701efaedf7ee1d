"""A journal as a recording: what a run measured of a space."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from autotune.journal import RunLog, load_runs
from autotune.measurement import Status
from autotune.recordings.native import mean_and_deviation
from autotune.recordings.recording import Recording
from autotune.records import RunRecord
from cost_models.context import hardware_context, workload_context
from search_spaces.errors import BadLog, NothingValid
from search_spaces.hardware import Hardware, cpu_hardware, cuda_hardware
from search_spaces.knob import Family
from search_spaces.known_devices import device_words
from search_spaces.listed import ListedSpace
from search_spaces.operator import Cost, Workload
from search_spaces.space import ScheduleSpace
from search_spaces.target import parse_target


def device_slug(name: str) -> str:
    """A device's name as part of a file's: `NVIDIA GeForce RTX 3090` becomes `rtx_3090`, `NVIDIA H200` `h200`."""
    return "_".join(device_words(name)) or "device"


def shape_slug(workload: Workload) -> str:
    """A workload as part of a file's name: `m1024-n1024-k1024-float16`."""
    return "-".join([*(f"{name.lower()}{value}" for name, value in workload.axes), workload.dtype])


def families_of(space: ScheduleSpace) -> dict[str, Family]:
    """What each knob of a space decides."""
    return {knob.name: knob.family for sketch in space.sketches for knob in sketch.knobs}


def recording_of(log: RunLog, families: Mapping[str, Family] | None = None) -> Recording:
    """The trials of one task, failures included, in the order in which they were tried.

    Args:
        log: The task's runs and trials.
        families: What each knob decides, where that is known.

    Raises:
        NothingValid: No trial was verified.
    """
    run = log.runs[0]
    task, device = run.task, run.device
    if log.best is None:
        raise NothingValid(f"none of {len(log.trials)} trials of {task.workload} was verified", "see 'autotune show'")
    trials = list(log.trials.values())
    samples = tuple(np.array(m.samples, np.float64) for m in trials)
    seconds, deviation = mean_and_deviation(samples)
    phases = {p: np.array([getattr(m.phases, p) for m in trials]) for p in ("build", "check", "measure")}
    kernel = Path(task.workload.operator).stem
    name = f"{kernel}__{device_slug(device.name)}__{shape_slug(task.workload)}"
    return Recording(
        name=name,
        kernel=kernel,
        device=device.name,
        space=ListedSpace.of([m.schedule for m in trials], dict(families or {}), identity=name),
        seconds=seconds,
        deviation=deviation,
        cost=np.sum(list(phases.values()), axis=0),
        status=tuple(m.status for m in trials),
        samples=samples,
        context=run_context(run),
        provenance=_provenance(run),
        repeats=max(len(m.samples) for m in trials if m.status is Status.OK),
        phases=phases,
        workload=task.workload,
        target=task.target,
        environment=_environment(run),
    )


def read_journaled(path: Path) -> Recording:
    """The recording in a journal of one task.

    Args:
        path: A journal or the run folder that holds it.

    Raises:
        BadLog: It is no journal, or one of several tasks.
        NothingValid: No trial of it was verified.
    """
    logs = load_runs(path)
    if len(logs) != 1:
        raise BadLog(f"{path} holds trials of {len(logs)} tasks", "name a journal of one task")
    return recording_of(logs[0])


def run_context(run: RunRecord) -> dict[str, float]:
    """The task as numbers, from the record alone."""
    workload = run.task.workload
    cost = Cost(run.operations, run.bytes)
    return {
        **workload_context(dict(workload.axes), workload.dtype, cost),
        **hardware_context(_hardware(run), workload.dtype),
    }


def _hardware(run: RunRecord) -> Hardware:
    target, device = parse_target(run.task.target), run.device
    if target.kind == "cuda":
        return cuda_hardware(target.arch, device.name)
    peak, bandwidth = (known or float("inf") for known in (run.roof.peak, run.roof.bandwidth))
    return cpu_hardware(device.name, target.cores or device.units, device.cache_bytes, bandwidth, {"float32": peak})


def _provenance(run: RunRecord) -> dict[str, str]:
    """Who measured it, how and when."""
    return {
        "source": f"kernel-autotune, strategy {run.strategy}, seed {run.seed}",
        "licence": "Apache-2.0",
        "date": run.started,
        "policy": msgspec.json.encode(run.policy).decode(),
        "identity": run.identity,
        "space": run.task.space,
    }


def _environment(run: RunRecord) -> dict[str, str]:
    known = {**run.environment.versions, **run.environment.tools, "python": run.environment.python}
    return {**known, "system": run.environment.system, **({"driver": run.device.driver} if run.device.driver else {})}
