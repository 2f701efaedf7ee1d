"""Why a schedule won, from the journal alone: what it uses, what bounds it, and what its neighbours cost."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.journal import RunLog
from autotune.knob_effects import KnobEffect, SketchEffect, Trials, knob_effects, sketch_effects
from autotune.measurement import Measurement, Status
from autotune.occupancy import occupancy, resident_blocks
from autotune.records import Roof, RunRecord
from autotune.trust import is_shipped
from autotune.tuned_log import Entry, entry_of
from search_spaces.errors import AutotuneError
from search_spaces.hardware import Hardware, cpu_hardware, cuda_hardware, cuda_limits
from search_spaces.schedule import Schedule
from search_spaces.target import parse_target
from search_spaces.task import OPERATORS, Task

_PROGRAMS = "log2_programs"
_NUMBER = re.compile(r"\d[\d.]*(e[+-]?\d+)?")


@dataclass(frozen=True)
class Roofline:
    """The winner against the two lines of the roofline.

    Attributes:
        roof: Peak and bandwidth, and where they are from.
        compute_seconds: Operations over peak, None where the peak is not known.
        memory_seconds: Bytes over bandwidth, None where the bandwidth is not known.
        least_seconds: T_SOL, the greater of the two.
        binds: Which of the two that is: "arithmetic" or "memory".
        share: `least_seconds` over the winner's seconds.
        mfu: Operations per second over the peak.
        bandwidth_share: Bytes per second over the bandwidth.
    """

    roof: Roof
    compute_seconds: float | None
    memory_seconds: float | None
    least_seconds: float
    binds: str
    share: float
    mfu: float | None
    bandwidth_share: float | None


@dataclass(frozen=True)
class Residency:
    """How the winner fills a GPU; None where it is not known.

    Attributes:
        occupancy: Resident warps over the most that a multiprocessor holds.
        blocks_per_sm: Blocks that a multiprocessor holds at a time.
        blocks: Blocks of the grid, as the sketch derives them.
        waves: Times that the blocks fill the device.
    """

    occupancy: float | None
    blocks_per_sm: int | None
    blocks: int | None
    waves: float | None


@dataclass(frozen=True)
class Explanation:
    """Why the best schedule of one task won.

    Attributes:
        entry: The best, with its resources and its race.
        default: The untuned default, None where it was not raced.
        roofline: What bounds it.
        residency: How it fills a GPU, None on a CPU.
        derived: What its sketch derives of it.
        derived_default: The same of the default where both are of one sketch.
        missing: Why nothing could be derived, "" where it could.
        sketches: The best of every sketch tried.
        knobs: What changing each knob costs, the most costly first.
        failures: Reason -> trials, the commonest first.
        trials: Trials in all.
    """

    entry: Entry
    default: Schedule | None
    roofline: Roofline
    residency: Residency | None
    derived: Mapping[str, float]
    derived_default: Mapping[str, float]
    missing: str
    sketches: tuple[SketchEffect, ...]
    knobs: tuple[KnobEffect, ...]
    failures: Mapping[str, int]
    trials: int


def explain(log: RunLog) -> Explanation | None:
    """Explains the best of one task; None where nothing was verified."""
    entry = entry_of(log)
    if entry is None:
        return None
    run = log.runs[-1]
    winner = Schedule.from_json(entry.schedule)
    default = Schedule.from_json(log.races[-1].default) if entry.raced else None
    derived, missing = _derived(run, winner)
    same_sketch = default is not None and default != winner and default.sketch == winner.sketch
    trials = Trials.of(log)
    return Explanation(
        entry=entry,
        default=default,
        roofline=_roofline(run, entry),
        residency=_residency(run, entry, derived) if run.device.kind == "cuda" else None,
        derived=derived,
        derived_default=_derived(run, default)[0] if same_sketch and default is not None else {},
        missing=missing,
        sketches=sketch_effects(trials, winner),
        knobs=knob_effects(trials, winner),
        failures=failures_by_reason(trials.all),
        trials=len(trials.all),
    )


def _roofline(run: RunRecord, entry: Entry) -> Roofline:
    roof = run.roof
    compute = run.operations / roof.peak if roof.peak else None
    memory = run.bytes / roof.bandwidth if roof.bandwidth else None
    return Roofline(
        roof=roof,
        compute_seconds=compute,
        memory_seconds=memory,
        least_seconds=run.floor_seconds,
        binds="arithmetic" if (compute or 0.0) > (memory or 0.0) else "memory",
        share=run.floor_seconds / entry.seconds,
        mfu=compute / entry.seconds if compute is not None else None,
        bandwidth_share=memory / entry.seconds if memory is not None else None,
    )


def _residency(run: RunRecord, entry: Entry, derived: Mapping[str, float]) -> Residency:
    limits = cuda_limits(parse_target(run.task.target).arch)
    blocks_per_sm = resident_blocks(entry.resources, limits)
    blocks = round(2.0 ** derived[_PROGRAMS]) if _PROGRAMS in derived else None
    waves = None
    if blocks is not None and blocks_per_sm and run.device.units:
        waves = blocks / (blocks_per_sm * run.device.units)
    return Residency(occupancy(entry.resources, limits), blocks_per_sm, blocks, waves)


def _derived(run: RunRecord, schedule: Schedule) -> tuple[Mapping[str, float], str]:
    """What the schedule's sketch derives of it, and why it does not where it does not."""
    if not is_shipped(OPERATORS, run.task.reference):
        return {}, f"{run.task.reference} is not imported for a log"
    try:
        task = _task_of(run)
        if [name for name, _ in run.task.workload.axes] != [axis.name for axis in task.operator.axes]:
            return {}, f"{run.task.reference} has other axes since"
        sketch = task.sketches.get(schedule.sketch.partition("/")[0])
        if sketch is None:
            return {}, f"{schedule.sketch} is not there any more"
        if run.task.sketches.get(sketch.name) != sketch.source_hash:
            return {}, f"the source of {sketch.name} has changed since"
        derived = sketch.derived(task, schedule)
    except AutotuneError as error:
        return {}, error.message
    return derived, "" if derived else f"{sketch.name} derives nothing"


def _task_of(run: RunRecord) -> Task:
    """The task of a run for the device that it was measured on, which need not be here."""
    target = parse_target(run.task.target)
    return Task(run.task.reference, run.task.workload, target, _hardware_of(run, target.cores), run.task.only)


def _hardware_of(run: RunRecord, cores: int) -> Hardware:
    device, roof = run.device, run.roof
    if device.kind == "cuda":
        return cuda_hardware(parse_target(run.task.target).arch, roof.model or device.name)
    peak = {run.task.workload.dtype: roof.peak or math.inf, "float32": roof.peak or math.inf}
    bandwidth = roof.bandwidth or math.inf
    return cpu_hardware(device.name, cores or device.units, device.cache_bytes, bandwidth, peak)


def failures_by_reason(trials: Sequence[Measurement]) -> dict[str, int]:
    """Reasons with their counts; reasons that differ in numbers only are one, shown as it first came."""
    first: dict[str, str] = {}
    counts: dict[str, int] = {}
    for trial in trials:
        if trial.status is Status.OK:
            continue
        reason = f"{trial.status.replace('_', ' ')}: {trial.detail}" if trial.detail else str(trial.status)
        shown = first.setdefault(_NUMBER.sub("", reason), reason)
        counts[shown] = counts.get(shown, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: -item[1]))
