"""The format of recordings here: `<kernel>__<device>[__<shape>].recording.gz`, schema `recording/1`.

Gzip of JSON lines. The first says what was measured and which values the knobs of each sketch have; every other one is
a schedule: `[sketch, [place of each knob's value], status, [seconds of each phase], times]`, where `times` are the raw
repeats in seconds, or mean and standard deviation where those are not at hand, and [] where it failed. Numbers are
kept to seven digits. Equal recordings give equal bytes.
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from autotune.measurement import Status
from autotune.recordings.bounded import faults_as_bad_log, unpacked, write_whole
from autotune.recordings.recording import Floats, Recording
from search_spaces.knob import Family
from search_spaces.listed import ListedSpace
from search_spaces.operator import Workload
from search_spaces.schedule import SKETCH, Schedule, Value

SCHEMA = "recording/1"
SUFFIX = ".recording.gz"
COST = "cost"
_Count = Annotated[int, Meta(ge=0, le=10_000_000)]
_Seconds = Annotated[float, Meta(ge=0.0)]
_Time = Annotated[float, Meta(ge=0.0, lt=1e9)]
_Word = Annotated[str, Meta(max_length=1000)]


class KnobData(msgspec.Struct, frozen=True):
    """A knob with the values that occur."""

    name: _Word
    family: Family
    values: Annotated[tuple[int | str | bool | tuple[int, ...], ...], Meta(min_length=1)]


class SketchData(msgspec.Struct, frozen=True):
    """The knobs of a sketch, in order."""

    name: _Word
    knobs: tuple[KnobData, ...]


class Header(msgspec.Struct, frozen=True):
    """The first line; see `Recording` for the fields that have its names.

    Attributes:
        schema: `recording/1`.
        sketches: Those that occur.
        rows: Lines that follow.
        raw: Whether the times are raw repeats.
        phases: Names of the parts of a schedule's cost, one at least.
    """

    schema: str
    name: _Word
    kernel: _Word
    device: _Word
    rows: _Count
    sketches: tuple[SketchData, ...]
    raw: bool
    repeats: _Count
    phases: Annotated[tuple[_Word, ...], Meta(min_length=1, max_length=16)]
    workload: Workload | None = None
    target: _Word = ""
    context: dict[_Word, float] = {}
    environment: dict[_Word, str] = {}
    provenance: dict[_Word, str] = {}


class Row(msgspec.Struct, frozen=True, array_like=True):
    """One schedule; see the module's text."""

    sketch: _Count
    picks: tuple[_Count, ...]
    status: Status
    phases: tuple[_Seconds, ...]
    times: tuple[_Time, ...]


_HEADER, _ROW = msgspec.json.Decoder(Header), msgspec.json.Decoder(Row)


def write_recording(recording: Recording, path: Path) -> None:
    """Writes `path`, whole or not at all.

    Raises:
        CannotWrite: It cannot be written.
    """
    header = _header(recording)
    encoder = msgspec.json.Encoder()
    lines = [encoder.encode(header), *(encoder.encode(row) for row in _rows(recording, header))]
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:
        file.write(b"\n".join(lines) + b"\n")
    write_whole(path, packed.getvalue())


def _header(recording: Recording) -> Header:
    sketches = tuple(
        SketchData(s.sketch, tuple(KnobData(k.name, k.family, k.values) for k in s.knobs))
        for s in recording.space.sketches
    )
    return Header(
        schema=SCHEMA,
        name=recording.name,
        kernel=recording.kernel,
        device=recording.device,
        rows=len(recording.space.schedules),
        sketches=sketches,
        raw=bool(recording.samples),
        repeats=recording.repeats,
        phases=tuple(recording.phases) or (COST,),
        workload=recording.workload,
        target=recording.target,
        context=dict(recording.context),
        environment=dict(recording.environment),
        provenance=dict(recording.provenance),
    )


def _rows(recording: Recording, header: Header) -> list[Row]:
    places = [[{v: i for i, v in enumerate(k.values)} for k in s.knobs] for s in header.sketches]
    number = {s.name: i for i, s in enumerate(header.sketches)}
    phases = np.stack(list(recording.phases.values()) or [recording.cost], axis=1).tolist()
    rows = []
    for i, schedule in enumerate(recording.space.schedules):
        sketch = number[schedule.sketch]
        values = [v for _, v in schedule.items[1:]]
        picks = tuple(place[v] for place, v in zip(places[sketch], values, strict=True))
        status, times = recording.status[i], _times(recording, i)
        rows.append(Row(sketch, picks, status, tuple(map(_short, phases[i])), tuple(map(_short, times))))
    return rows


def _times(recording: Recording, place: int) -> Sequence[float]:
    if recording.status[place] is not Status.OK:
        return ()
    if recording.samples:
        return [float(t) for t in recording.samples[place]]
    return float(recording.seconds[place]), float(recording.deviation[place])


def _short(number: float) -> float:
    return float(f"{number:.7g}")


def read_native(path: Path) -> Recording:
    """Reads what `write_recording` wrote.

    Raises:
        BadLog: Not there, no recording, damaged, or of a newer schema.
    """
    with faults_as_bad_log(path, "recording"):
        return decoded(unpacked(path))


def decoded(data: bytes) -> Recording:
    """The recording in the unpacked bytes of a file.

    Raises:
        ValueError: It is none.
        msgspec.DecodeError: Likewise.
    """
    first, _, rest = data.partition(b"\n")
    header = _HEADER.decode(first)
    if header.schema != SCHEMA:
        raise ValueError(f"its schema is {header.schema}, this version reads {SCHEMA}")
    rows = [_ROW.decode(line) for line in rest.splitlines()]
    if len(rows) != header.rows:
        raise ValueError(f"{len(rows)} of {header.rows} schedules are there")
    values = [[knob.values for knob in sketch.knobs] for sketch in header.sketches]
    schedules = [_schedule(header, values, row) for row in rows]
    families = {k.name: k.family for s in header.sketches for k in s.knobs}
    seconds, deviation, samples = _measured(header, rows)
    if any(len(row.phases) != len(header.phases) for row in rows):
        raise ValueError("a schedule lacks a part of its cost")
    parts = np.array([row.phases for row in rows], np.float64).reshape(len(rows), len(header.phases)).T
    return Recording(
        name=header.name,
        kernel=header.kernel,
        device=header.device,
        space=ListedSpace.of(schedules, families, identity=header.name),
        seconds=seconds,
        deviation=deviation,
        cost=parts.sum(axis=0),
        status=tuple(row.status for row in rows),
        samples=samples,
        context=header.context,
        provenance=header.provenance,
        repeats=header.repeats,
        phases={} if header.phases == (COST,) else dict(zip(header.phases, parts, strict=True)),
        workload=header.workload,
        target=header.target,
        environment=header.environment,
    )


def _schedule(header: Header, values: Sequence[Sequence[Sequence[Value]]], row: Row) -> Schedule:
    if row.sketch >= len(header.sketches):
        raise ValueError(f"there is no sketch number {row.sketch}")
    sketch = header.sketches[row.sketch]
    if len(row.picks) != len(sketch.knobs) or any(
        pick >= len(known) for pick, known in zip(row.picks, values[row.sketch], strict=True)
    ):
        raise ValueError(f"{list(row.picks)} picks no values of the knobs of {sketch.name}")
    knobs = zip(sketch.knobs, row.picks, strict=True)
    return Schedule(((SKETCH, sketch.name), *((knob.name, knob.values[pick]) for knob, pick in knobs)))


def _measured(header: Header, rows: Sequence[Row]) -> tuple[Floats, Floats, tuple[Floats, ...]]:
    """Mean, deviation and, where they are at hand, raw repeats of each row."""
    if header.raw:
        samples = tuple(np.array(row.times, np.float64) for row in rows)
        return *mean_and_deviation(samples), samples
    pairs = [row.times or (math.inf, 0.0) for row in rows]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError("a time is not a mean and a deviation")
    table = np.array(pairs, np.float64).reshape(len(rows), 2)
    return table[:, 0], table[:, 1], ()


def mean_and_deviation(samples: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each schedule's repeats; inf and 0 where there are none."""
    means = [float(s.mean()) if len(s) else math.inf for s in samples]
    deviations = [float(s.std(ddof=1)) if len(s) > 1 else 0.0 for s in samples]
    return np.array(means), np.array(deviations)
