"""T4, the results format of the auto-tuning community (schema 1.0.0), read and written."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from autotune.measurement import Status
from autotune.recordings.bounded import faults_as_bad_log, unpacked, write_whole
from autotune.recordings.foreign import (
    Configuration,
    Origin,
    assembled,
    configuration_of,
    constants_of,
    milliseconds,
    parameters_of,
)
from autotune.recordings.kernel_tuner import packed_by_name
from autotune.recordings.recording import Recording

_SCHEMA = "1.0.0"
# What the format calls a result that is not correct; "constraints" breaks a limit that is known beforehand.
_INVALIDITY: Mapping[Status, str] = {
    Status.OK: "correct",
    Status.BUILD_ERROR: "compile",
    Status.LAUNCH_ERROR: "runtime",
    Status.WRONG_RESULT: "correctness",
    Status.TIMEOUT: "timeout",
    Status.CRASHED: "runtime",
    Status.IMPLAUSIBLE: "correctness",
}
_STATUS: Mapping[str, Status] = {
    "correct": Status.OK,
    "compile": Status.BUILD_ERROR,
    "runtime": Status.LAUNCH_ERROR,
    "correctness": Status.WRONG_RESULT,
    "timeout": Status.TIMEOUT,
}
_ILLEGAL = "constraints"
# Beginnings of the time units' names, and how many of the unit a millisecond has.
_PER_MILLISECOND = {"mil": 1.0, "ms": 1.0, "mic": 1e3, "us": 1e3, "nan": 1e6, "ns": 1e6, "s": 1e-3}


class Result(msgspec.Struct):
    """One configuration; times in the file's unit."""

    configuration: dict[str, Any]
    invalidity: str
    times: dict[str, Any] = {}
    measurements: list[dict[str, Any]] = []


class Results(msgspec.Struct):
    """The parts of a file that are read."""

    results: list[Result]
    metadata: dict[str, Any] = {}


def read_t4(path: Path) -> Recording:
    """Reads a T4 file, packed with gzip or not. The format names no device: the file's name should.

    Raises:
        BadLog: It cannot be read, or is no T4 file.
    """
    with faults_as_bad_log(path, "T4 file"):
        return recording_of_t4(path, json.loads(unpacked(path)))


def recording_of_t4(path: Path, data: object) -> Recording:
    """The recording in a T4 file's JSON.

    Raises:
        ValueError: It is none.
    """
    file = msgspec.convert(data, Results)
    legal = [r for r in file.results if r.invalidity != _ILLEGAL]
    if not legal:
        raise ValueError("it holds no results")
    names = list(legal[0].configuration)
    if any(list(r.configuration) != names for r in legal):
        raise ValueError("its configurations differ in their parameters")
    values = {n: list({repr(r.configuration[n]): r.configuration[n] for r in legal}.values()) for n in names}
    constants = constants_of(values)
    scale = 1.0 / _unit(str(file.metadata.get("timeunit", "milliseconds")))
    provenance = {"source": "a T4 file", "constants": json.dumps(constants)}
    told = {str(k): str(v) for k, v in file.metadata.items() if k in ("device_name", "kernel_name")}
    origin = Origin(told.get("kernel_name", ""), told.get("device_name", ""), provenance)
    rows = [_configuration(result, scale) for result in legal]
    return assembled(path, origin, [n for n in names if n not in constants], rows)


def _unit(name: str) -> float:
    """How many of the time unit called `name` a millisecond has."""
    for beginning, count in _PER_MILLISECOND.items():
        if name.lower().startswith(beginning):
            return count
    raise ValueError(f"its time unit is {name:.30}")


def _configuration(result: Result, scale: float) -> Configuration:
    times = result.times
    compiling = times.get("compilation_time", times.get("compilation"))
    runtimes = times.get("runtimes")
    samples = tuple(milliseconds(t) * scale for t in runtimes) if isinstance(runtimes, list) else ()
    stated = next((m.get("value") for m in result.measurements if m.get("name") == "time"), None)
    seconds = milliseconds(stated) * scale
    if not seconds and samples:
        seconds = sum(samples) / len(samples)
    spent = (compiling, times.get("validation"), None, times.get("framework"))
    phases = [milliseconds(part) * scale for part in spent]
    phases[2] = sum(samples)
    status = _STATUS.get(result.invalidity, Status.LAUNCH_ERROR)
    if status is not Status.OK or not seconds:
        failed = Status.LAUNCH_ERROR if status is Status.OK else status
        return Configuration(result.configuration, failed, math.inf, phases=tuple(phases))
    return Configuration(
        result.configuration, Status.OK, seconds, samples if all(samples) else (), phases=tuple(phases)
    )


def write_t4(recording: Recording, path: Path) -> None:
    """Writes a T4 file, packed where the name ends in `.gz`.

    Raises:
        CannotWrite: It cannot be written.
    """
    parameters = parameters_of(recording)
    results = [_result(recording, place, parameters) for place in range(len(recording.status))]
    metadata = {
        "timeunit": "milliseconds",
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "provenance": dict(recording.provenance),
    }
    data = {"schema_version": _SCHEMA, "metadata": metadata, "results": results}
    write_whole(path, packed_by_name(path, json.dumps(data) + "\n"))


def _result(recording: Recording, place: int, parameters: Mapping[str, tuple[object, ...]]) -> dict[str, object]:
    status = recording.status[place]
    seconds = float(recording.seconds[place])
    samples = recording.samples[place] if recording.samples else ()
    phases = {name: float(part[place]) * 1e3 for name, part in recording.phases.items()}
    return {
        "timestamp": recording.provenance.get("date", ""),
        "configuration": configuration_of(recording.space.schedules[place], parameters),
        "objectives": ["time"],
        "times": {
            "compilation_time": phases.get("build", 0.0),
            "runtimes": [float(t) * 1e3 for t in samples],
            "framework": phases.get("framework", 0.0),
            "search_algorithm": 0.0,
            "validation": phases.get("check", 0.0),
        },
        "invalidity": _INVALIDITY[status],
        "correctness": float(status is Status.OK),
        "measurements": [{"name": "time", "value": seconds * 1e3, "unit": "ms"}] if status is Status.OK else [],
    }
