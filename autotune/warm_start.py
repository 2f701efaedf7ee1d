"""Warm starts: configurations that others found good, as the first schedules that a search here measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from autotune.measurement import Status
from autotune.recordings.bounded import faults_as_bad_log, unpacked, write_whole
from autotune.recordings.recording import Recording
from autotune.records import ScheduleData
from search_spaces.errors import BadLog
from search_spaces.knob import Family
from search_spaces.schedule import SKETCH, Schedule, Value
from search_spaces.sketches.tiles import nearest
from search_spaces.space import SketchSpace
from search_spaces.task import Task

SCHEMA = "warm-start/1"
FILE = "warm-start.json"
# Proposals kept of one file: a search measures a few of them.
MOST_OF_A_FILE = 64
# A sketch takes a configuration that decides so many of its knobs, one of them a tile size.
FEWEST_SHARED = 2
# What Triton's kernels call our knobs.
_NAMES: Mapping[str, str] = {
    **{name.format(axis): f"block_{axis}" for axis in "mnk" for name in ("block_size_{}", "b{}", "tile_{}")},
    **dict.fromkeys(("group_m", "group_size_m", "group_size", "grouping"), "group"),
}


class Proposal(msgspec.Struct, frozen=True):
    """A configuration with where it is from. Nobody has verified it here.

    Attributes:
        knobs: Value of each parameter by our knobs' names where we know them, else by its own; the sketch first where
            it is a schedule of one of ours.
        source: Format and file, in words.
        kernel: What was tuned, "" where the file does not tell.
        device: What it was measured on, "" where the file does not tell.
        axes: Extents that the file tells.
        dtype: Of the operands, "" where the file does not tell.
        seconds: Its time there, None where the file holds none.
    """

    knobs: ScheduleData
    source: str
    kernel: str = ""
    device: str = ""
    axes: Mapping[str, int] = {}
    dtype: str = ""
    seconds: float | None = None


class WarmStart(msgspec.Struct, frozen=True):
    """A file of proposals."""

    schema: str
    proposals: tuple[Proposal, ...]


def write_warm_start(path: Path, proposals: Sequence[Proposal]) -> None:
    """Writes `path`, whole or not at all.

    Raises:
        CannotWrite: It cannot be written.
    """
    write_whole(path, msgspec.json.format(msgspec.json.encode(WarmStart(SCHEMA, tuple(proposals))), indent=1))


def read_warm_start(path: Path) -> tuple[Proposal, ...]:
    """Reads what `write_warm_start` wrote.

    Raises:
        BadLog: Not there, none, or of another schema.
    """
    with faults_as_bad_log(path, "warm start"):
        found = msgspec.json.decode(unpacked(path), type=WarmStart)
        if found.schema != SCHEMA:
            raise BadLog(f"{path} has schema {found.schema[:40]!r}, this version reads {SCHEMA}", "import it again")
        return found.proposals


def our_names(values: Mapping[str, Value]) -> dict[str, Value]:
    """Parameters under the names of our knobs where Triton's customs tell which they are, else under their own."""
    return {_NAMES.get(name.lower(), name.lower() if name.isupper() else name): v for name, v in values.items()}


def proposals_of(recording: Recording, source: str) -> tuple[Proposal, ...]:
    """The fastest schedules of a recording."""
    order = [i for i in recording.seconds.argsort(kind="stable").tolist() if recording.status[i] is Status.OK]
    axes, dtype = (dict(recording.workload.axes), recording.workload.dtype) if recording.workload else ({}, "")
    made = []
    for place in order[:MOST_OF_A_FILE]:
        schedule = recording.space.schedules[place]
        ours = schedule.sketch != recording.kernel
        knobs = {**({SKETCH: schedule.sketch} if ours else {}), **our_names(schedule.knobs)}
        seconds = float(recording.seconds[place])
        made.append(Proposal(knobs, source, recording.kernel, recording.device, axes, dtype, seconds))
    return tuple(made)


def warm_schedules(task: Task, proposals: Sequence[Proposal], most: int) -> tuple[list[Schedule], list[str]]:
    """Schedules of `task` that keep every value that a proposal and a sketch have in common.

    Those made for a problem like the task's come first, then the faster ones. Every proposal gives one of the sketch
    that is most like it before any gives one of the next. What it leaves open is as in the sketch's untuned default.

    Args:
        task: What will be tuned.
        proposals: Of any kernels.
        most: Schedules wanted.

    Returns:
        The schedules, and for the proposals that gave none how many there are for each reason, a line each.
    """
    ordered = sorted(proposals, key=lambda p: (_distance(p, task), p.seconds if p.seconds is not None else math.inf))
    found = [(list(_mapped(task, p)), p) for p in ordered]
    depth = max((len(schedules) for schedules, _ in found), default=0)
    chosen = dict.fromkeys(s[i] for i in range(depth) for s, _ in found if i < len(s))
    reasons: dict[str, int] = {}
    for schedules, proposal in found:
        if not schedules:
            why = _why_not(task, proposal)
            reasons[why] = reasons.get(why, 0) + 1
    return list(chosen)[:most], [f"{count} of {len(found)} proposals: {why}" for why, count in reasons.items()]


def _distance(proposal: Proposal, task: Task) -> float:
    """Doublings between the extents that both name; another dtype counts as one."""
    extents = dict(task.workload.axes)
    both = [(proposal.axes[a], extents[a]) for a in proposal.axes if a in extents]
    other = proposal.dtype not in ("", task.workload.dtype)
    return sum(abs(math.log2((max(one, 0) + 1) / (two + 1))) for one, two in both) + float(other)


def _mapped(task: Task, proposal: Proposal) -> Iterator[Schedule]:
    """A schedule of each sketch that takes the proposal, that first of whose knobs it decides the largest share."""
    taking = [(space, given) for space in task.space.sketches if (given := _shared(space, proposal)) is not None]
    for space, given in sorted(taking, key=lambda pair: -len(pair[1]) / len(pair[0].knobs)):
        default = task.sketches[space.sketch.partition("/")[0]].default(task)
        wished = default.knobs if default is not None and default.sketch == space.sketch else {}
        made = nearest(space, {**wished, **given})
        if made is not None and all(made[name] == value for name, value in given.items()):
            yield made


def _shared(space: SketchSpace, proposal: Proposal) -> dict[str, Value] | None:
    """What the proposal decides of a sketch's knobs; None where that is too little, or it is of another sketch."""
    named = proposal.knobs.get(SKETCH)
    if named is not None and named != space.sketch:
        return None
    given = {k.name: proposal.knobs[k.name] for k in space.knobs if k.name in proposal.knobs}
    if any(value not in space.allowed[space.position[name]] for name, value in given.items()):
        return None
    tiled = any(k.name in given and k.family is Family.TILE_SIZES for k in space.knobs)
    whole = len(given) == len(space.knobs) > 0
    return given if whole or (tiled and len(given) >= FEWEST_SHARED) else None


def _why_not(task: Task, proposal: Proposal) -> str:
    """Why no sketch took the proposal, by the sketch that shares most of its knobs."""
    names = set(proposal.knobs) - {SKETCH}
    likest = max(task.space.sketches, key=lambda s: len(names & set(s.position)))
    shared = sorted(names & set(likest.position), key=lambda name: likest.position[name])
    if len(shared) < FEWEST_SHARED:
        return f"no sketch of {task.workload.operator} has its parameters ({', '.join(sorted(names)[:6])})"
    odd = [name for name in shared if proposal.knobs[name] not in likest.allowed[likest.position[name]]]
    if odd:
        return f"{odd[0]}={proposal.knobs[odd[0]]} is no value of any sketch with that knob"
    return f"{likest.sketch} has no legal schedule with these values"
