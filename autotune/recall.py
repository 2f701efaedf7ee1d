"""Recalling: an entry of a tuned log becomes the task and schedule that it records, on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.devices.base import DeviceInfo
from autotune.trust import require_trusted
from autotune.tuned_log import Entry
from search_spaces.errors import BadLog, InvalidSchedule
from search_spaces.hardware import Hardware, cpu_hardware, cuda_hardware
from search_spaces.operator import Workload
from search_spaces.schedule import SKETCH, Schedule
from search_spaces.target import Target, parse_target
from search_spaces.task import OPERATORS, Task, find_operator

# A log from a stranger must not keep this machine busy: no axis is longer, no workload larger.
MOST_EXTENT = 2**24
MOST_BYTES = 2**40


@dataclass(frozen=True)
class Winner:
    """What an entry records, made again.

    Attributes:
        entry: The entry.
        task: Its task, with the hardware that it was recorded on.
        schedule: Its schedule, legal in the task's space.
    """

    entry: Entry
    task: Task
    schedule: Schedule

    def __str__(self) -> str:
        return f"{self.entry.task.workload} for {self.entry.task.target} on {self.entry.device.name}"


def recall(entry: Entry, operators: Sequence[str] = ()) -> Winner:
    """Makes the task and schedule of an entry again; runs no code that the log names unless it is trusted.

    Args:
        entry: The entry.
        operators: Files and modules of operators that may be imported where the entry names them.

    Raises:
        AutotuneError: It names an operator that is not trusted, or one that is not here.
        BadLog: The entry cannot be, or what it needs has changed since.
    """
    reference, data = entry.task.reference, entry.task.workload
    require_trusted(OPERATORS, "operator", reference, operators, "--op")
    operator = find_operator(reference)
    target = parse_target(entry.task.target)
    if any(extent > MOST_EXTENT for _, extent in data.axes):
        raise BadLog(f"{data} has an axis longer than {MOST_EXTENT}", "leave this entry out")
    workload = operator.workload(target.kind, data.dtype, **dict(data.axes))
    if sum(tensor.bytes for tensor in operator.tensors(workload)) > MOST_BYTES:
        raise BadLog(f"{data} needs more than {MOST_BYTES >> 30} GiB", "leave this entry out")
    task = Task(reference, workload, target, recorded_hardware(entry, target, workload), entry.task.only)
    schedule = Schedule.from_json(entry.schedule)
    changes = [*_changed_sources(entry, task, schedule), *_not_legal(task, schedule)]
    if changes:
        raise BadLog(f"{data} for {target}: {changes[0]}", "tune it again with this version")
    return Winner(entry, task, schedule)


def recorded_hardware(entry: Entry, target: Target, workload: Workload) -> Hardware:
    """The hardware that the entry's space was made for; of no roofline, which no schedule depends on."""
    return hardware_of(entry.device, target, workload)


def hardware_of(device: DeviceInfo, target: Target, workload: Workload) -> Hardware:
    """The hardware that a space is made for on a device that need not be here; of no roofline."""
    if target.kind == "cuda":
        return cuda_hardware(target.arch, device.name)
    endless = {"float32": float("inf"), workload.dtype: float("inf")}
    return cpu_hardware(device.name, target.cores or device.units, device.cache_bytes, float("inf"), endless)


def _changed_sources(entry: Entry, task: Task, schedule: Schedule) -> list[str]:
    """The files that the schedule's meaning rests on and that are not those of the record."""
    name = schedule.sketch.partition("/")[0]
    if name not in task.sketches:
        return [f"its sketch {name} does not apply here ({task.refusals.get(name, 'it is not known')})"]
    changes = []
    if entry.task.source and entry.task.source != task.operator.source_hash:
        changes.append(f"the operator {task.workload.operator} has changed since it was recorded")
    recorded = entry.task.sketches.get(name)
    if recorded is not None and recorded != task.sketches[name].source_hash:
        changes.append(f"the {SKETCH} {name} has changed since it was recorded")
    return changes


def _not_legal(task: Task, schedule: Schedule) -> list[str]:
    try:
        why_not = task.space.why_not(schedule)
    except (InvalidSchedule, KeyError) as error:
        why_not = str(error)
    return [f"not in today's space: {why_not}"] if why_not is not None else []
