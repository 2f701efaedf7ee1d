"""MetaSchedule's JSON databases: records whose workload is an operator's and whose trace a sketch of ours makes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.generators.tvm import GENERATOR
from autotune.identity import Identity
from autotune.importers.base import FOREIGN, UNKNOWN_DEVICE, Imported, Importer
from autotune.measurement import Policy, Status
from autotune.recall import MOST_EXTENT, hardware_of
from autotune.recognition import Argument, plain_trace, recognised, schedule_of_trace, workloads_of
from autotune.recordings.bounded import faults_as_bad_log, unpacked
from autotune.recordings.journaled import device_slug, shape_slug
from autotune.recordings.native import mean_and_deviation
from autotune.recordings.recording import Recording
from autotune.records import TaskData
from autotune.tuned_log import RUNNERS_UP, Entry, RunnerUp
from autotune.warm_start import proposals_of
from cost_models.context import context_of
from search_spaces.errors import AutotuneError, MissingDependency
from search_spaces.known_devices import find_device
from search_spaces.listed import ListedSpace
from search_spaces.schedule import Schedule
from search_spaces.target import Target
from search_spaces.task import Task

WORKLOADS, RECORDS = "database_workload.json", "database_tuning_record.json"
# Records read of one workload and target, the fastest: each trace takes up to seconds to be recognised.
MOST_OF_A_WORKLOAD = 64
# So many of them that no sketch makes, and the slower ones are not looked at.
_MOST_UNKNOWN = 4
_MOST_LINES = 100_000
_LONGEST_TRACE = 4096
_TENSOR = "TENSOR"
# Longer than MetaSchedule's mark for a failure.
_NO_TIME = 1e9

_Extent = Annotated[int, Meta(ge=1, le=MOST_EXTENT)]
_Shape = tuple[str, str, Annotated[tuple[_Extent, ...], Meta(max_length=16)]]


class _TargetData(msgspec.Struct):
    """What of a target tells hardware apart."""

    kind: str
    arch: str = ""
    mcpu: str = ""
    model: str = ""
    num_cores: int = msgspec.field(default=0, name="num-cores")


class _Line(msgspec.Struct, array_like=True):
    """A record: workload, then trace, seconds, target and arguments."""

    workload: Annotated[int, Meta(ge=0)]
    record: tuple[tuple[list[tuple[str, list[Any], list[Any], list[Any]]], list[tuple[int, Any]]], Any, Any, Any]


class MetaScheduleImporter(Importer):
    """Entries, training data and warm starts; a workload or trace that is none of ours is left out."""

    summary = "MetaSchedule database"

    def takes(self, path: Path, data: Any) -> bool:
        """A folder with the two files."""
        return path.is_dir() and all((path / name).is_file() for name in (WORKLOADS, RECORDS))

    def read(self, path: Path, data: Any, device: str) -> Imported:
        """Groups records by workload and target; without TVM nothing can be compared."""
        missing = GENERATOR.missing()
        if missing is not None:
            raise MissingDependency(f"{self.summary} {path} cannot be compared: {missing}")
        hashes = _workloads(path)
        groups, left_out = read_records(path, hashes)
        source = f"{self.summary} {path.name}"
        found: dict[tuple[str, DeviceInfo], tuple[Task, dict[Schedule, _Row]]] = {}
        for (workload, arguments, target), rows in groups.items():
            try:
                task, info = _task(hashes[workload], arguments, target, device)
            except (AutotuneError, _Unknown) as error:
                left_out.append(f"{len(rows)} records of workload {workload}: {error}")
                continue
            # One task may have two workloads: its function as tuned here, and as Relax makes it.
            known = found.setdefault((task.key, info), (task, {}))[1]
            for schedule, row in _recognised(task, rows, left_out, workload).items():
                known.setdefault(schedule, row)
        good = [(task, info, known, source) for (_, info), (task, known) in found.items() if known]
        recordings = [_recording(*parts) for parts in good]
        entries = [_entry(*parts) for parts in good]
        proposals = [p for r in recordings for p in proposals_of(r, source)]
        return Imported(tuple(proposals), tuple(recordings), tuple(entries), tuple(left_out))


class _Unknown(Exception):
    """Why a workload is none of ours."""


_Row = tuple[tuple[float, ...], Any]
_Group = tuple[int, tuple[Argument, ...], tuple[str, str, str, str, int]]


def _lines(path: Path) -> list[bytes]:
    lines = [line for line in unpacked(path).splitlines() if line.strip()]
    if len(lines) > _MOST_LINES:
        raise ValueError(f"it has more than {_MOST_LINES} lines")
    return lines


def _workloads(path: Path) -> list[str]:
    """The structural hash of each; what is in the rest of a line is not looked at."""
    with faults_as_bad_log(path / WORKLOADS, "file of MetaSchedule"):
        return [msgspec.json.decode(line, type=tuple[str, str])[0] for line in _lines(path / WORKLOADS)]


def read_records(path: Path, hashes: Sequence[str]) -> tuple[dict[_Group, list[_Row]], list[str]]:
    """Records with a time, by workload and target; and what has none, or is of no workload."""
    groups: dict[_Group, list[_Row]] = {}
    odd: dict[str, int] = {}
    with faults_as_bad_log(path / RECORDS, "file of MetaSchedule"):
        for text in _lines(path / RECORDS):
            line = msgspec.json.decode(text, type=_Line)
            trace, times, target, arguments = line.record
            why = _unusable(line, hashes)
            if why:
                odd[why] = odd.get(why, 0) + 1
                continue
            hardware = msgspec.convert(target, _TargetData)
            shapes = tuple((d, s) for _, d, s in msgspec.convert(arguments, list[_Shape]))
            key = (line.workload, shapes, msgspec.structs.astuple(hardware))
            groups.setdefault(key, []).append((tuple(msgspec.convert(times, list[float])), trace))
    return groups, [f"{count} records: {why}" for why, count in odd.items()]


def _unusable(line: _Line, hashes: Sequence[str]) -> str:
    """Why a record is not looked at, "" where it is."""
    (instructions, _), times, target, arguments = line.record
    if line.workload >= len(hashes):
        raise ValueError(f"there is no workload number {line.workload}")
    if not isinstance(times, list) or not times or not all(isinstance(t, float) and 0.0 < t < _NO_TIME for t in times):
        return "they hold no time"
    if not isinstance(target, dict) or not isinstance(arguments, list):
        return "they name no target or no arguments"
    if any(not isinstance(a, list) or a[:1] != [_TENSOR] for a in arguments):
        return "an argument is no tensor"
    return "their traces are too long" if len(instructions) > _LONGEST_TRACE else ""


def _task(
    structural_hash: str, arguments: Sequence[Argument], target: Sequence[Any], device: str
) -> tuple[Task, DeviceInfo]:
    """The task of a group and what it was measured on.

    Raises:
        _Unknown: It is no operator's.
        AutotuneError: The target is none.
    """
    kind, arch, mcpu, model, cores = target
    made = Target(kind, arch if kind == "cuda" else mcpu, max(0, cores) if kind == "llvm" else 0)
    name = model or device or UNKNOWN_DEVICE
    known = find_device(name) if kind == "cuda" else None
    units = known.model.sms if known is not None else made.cores or 1
    info = DeviceInfo(kind, name, arch.rstrip("af") if kind == "cuda" else mcpu, units, 0)
    candidates = [
        Task(reference, workload, made, hardware_of(info, made, workload))
        for reference, workload in sorted(workloads_of(arguments, kind), key=lambda pair: len(pair[1].axes))
    ]
    task = recognised(candidates, structural_hash)
    if task is None:
        shapes = ", ".join(f"{dtype} {'x'.join(map(str, shape))}" for dtype, shape in arguments)
        raise _Unknown(f"no operator here is a function of {shapes} with that hash under the TVM that is installed")
    return task, info


def _recognised(task: Task, rows: Sequence[_Row], left_out: list[str], workload: int) -> dict[Schedule, _Row]:
    """The fastest records as schedules, fastest first; says how many are none."""
    ordered = sorted(rows, key=lambda row: statistics.fmean(row[0]))
    found: dict[Schedule, _Row] = {}
    unknown = looked_at = 0
    for row in ordered[:MOST_OF_A_WORKLOAD]:
        if unknown == _MOST_UNKNOWN:
            break
        looked_at += 1
        schedule = schedule_of_trace(task, plain_trace(*row[1]))
        if schedule is None:
            unknown += 1
        else:
            found.setdefault(schedule, row)
    if unknown:
        left_out.append(f"{unknown} records of workload {workload}, {task.workload}: no sketch makes their traces")
    if len(ordered) > looked_at:
        left_out.append(f"{len(ordered) - looked_at} records of workload {workload}: not looked at after {looked_at}")
    return found


def _recording(task: Task, info: DeviceInfo, known: dict[Schedule, _Row], source: str) -> Recording:
    samples = tuple(np.array(times, np.float64) for times, _ in known.values())
    seconds, deviation = mean_and_deviation(samples)
    kernel = task.workload.operator
    name = f"{kernel}__{device_slug(info.name)}__{shape_slug(task.workload)}"
    families = {knob.name: knob.family for sketch in task.space.sketches for knob in sketch.knobs}
    return Recording(
        name=name,
        kernel=kernel,
        device=info.name,
        space=ListedSpace.of(list(known), families, identity=name),
        seconds=seconds,
        deviation=deviation,
        cost=np.zeros(len(known)),
        status=(Status.OK,) * len(known),
        samples=samples,
        context=context_of(task),
        provenance={"source": source, "foreign": FOREIGN},
        repeats=max(map(len, samples)),
        workload=task.workload,
        target=str(task.target),
    )


def _entry(task: Task, info: DeviceInfo, known: dict[Schedule, _Row], source: str) -> Entry:
    """The fastest as an entry, with no more said of software and circumstances than the database does: nothing."""
    times = {schedule: statistics.median(row[0]) for schedule, row in known.items()}
    best, *others = sorted(times, key=lambda schedule: times[schedule])
    cost = task.operator.cost(task.workload)
    data, environment, policy = TaskData.of(task), Environment({}, "", ""), Policy()
    return Entry(
        task=data,
        device=info,
        foreign=False,
        environment=environment,
        policy=policy,
        schedule=dict(best.items),
        seconds=times[best],
        samples=known[best][0],
        raced=False,
        over_default=None,
        over_library=None,
        library="",
        roofline=0.0,
        operations=cost.operations,
        bytes=cost.bytes,
        resources=Resources(),
        binary="",
        trials=len(known),
        strategy="",
        seed=0,
        identity=Identity.of(data, info, environment, policy).fingerprint,
        runners_up=tuple(RunnerUp(dict(s.items), times[s]) for s in others[:RUNNERS_UP]),
        source=source,
    )


IMPORTER = MetaScheduleImporter()
