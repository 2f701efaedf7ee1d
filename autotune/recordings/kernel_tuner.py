"""Kernel Tuner's cache files, read and written; also those that a run still appends to or that were cut short."""

from __future__ import annotations

import gzip
import io
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
from autotune.recordings.recording import Recording

# Kernel Tuner's names for what failed, and ours; InvalidConfig breaks a limit that it knows beforehand.
FAILURES: Mapping[str, Status] = {
    "CompilationFailedConfig": Status.BUILD_ERROR,
    "RuntimeFailedConfig": Status.LAUNCH_ERROR,
    "ErrorConfig": Status.LAUNCH_ERROR,
}
_ILLEGAL = "InvalidConfig"
_TIMES = ("compile_time", "verification_time", "benchmark_time", "framework_time")


class Cache(msgspec.Struct):
    """The parts of a cache file that are read; times in milliseconds."""

    tune_params_keys: list[str]
    tune_params: dict[str, list[Any]]
    cache: dict[str, dict[str, Any]]
    device_name: str = ""
    kernel_name: str = ""
    problem_size: Any = None
    objective: str = "time"


def read_kernel_tuner(path: Path) -> Recording:
    """Reads a cache file, packed with gzip or not.

    Raises:
        BadLog: It cannot be read, or is no cache file.
    """
    with faults_as_bad_log(path, "Kernel Tuner cache"):
        return recording_of_cache(path, json_of_cache(unpacked(path)))


def json_of_cache(data: bytes) -> Any:
    """The JSON in a cache file; one that was left open ends with its last whole configuration.

    Raises:
        ValueError: It is no JSON even so.
    """
    text = data.decode()
    ends = [text, text.rstrip().rstrip(",") + "}}", text[: text.rfind("},") + 1] + "}}"]
    for end in ends:
        try:
            return json.loads(end)
        except json.JSONDecodeError as error:
            fault = error
    raise fault


def recording_of_cache(path: Path, data: object) -> Recording:
    """The recording in a cache file's JSON.

    Raises:
        ValueError: It is no cache.
    """
    cache = msgspec.convert(data, Cache)
    constants = constants_of({n: cache.tune_params.get(n, ()) for n in cache.tune_params_keys})
    order = [n for n in cache.tune_params_keys if n not in constants]
    if any(name not in row for row in cache.cache.values() for name in order):
        raise ValueError("a configuration lacks a parameter")
    problem = json.dumps(cache.problem_size)
    provenance = {"source": "a cache file of Kernel Tuner", "problem": problem, "constants": json.dumps(constants)}
    rows = [_configuration(row) for row in cache.cache.values() if _ILLEGAL not in (row.get("time"), _error(row))]
    return assembled(path, Origin(cache.kernel_name, cache.device_name, provenance), order, rows)


def _error(row: Mapping[str, Any]) -> str:
    """Kernel Tuner's name of how a configuration failed, "" where it did not; older files have it in any field."""
    return next((v for v in row.values() if isinstance(v, str) and (v in FAILURES or v == _ILLEGAL)), "")


def _configuration(row: Mapping[str, Any]) -> Configuration:
    phases = tuple(milliseconds(row.get(name)) for name in _TIMES)
    seconds = milliseconds(row.get("time"))
    if _error(row) or not seconds:
        return Configuration(row, FAILURES.get(_error(row), Status.LAUNCH_ERROR), math.inf, phases=phases)
    times = row.get("times")
    samples = tuple(milliseconds(t) for t in times) if isinstance(times, list) else ()
    return Configuration(row, Status.OK, seconds, samples if all(samples) else (), phases=phases)


def write_kernel_tuner(recording: Recording, path: Path) -> None:
    """Writes a cache file that Kernel Tuner reads in its simulation mode; packed where the name ends in `.gz`.

    Raises:
        CannotWrite: It cannot be written.
    """
    parameters = parameters_of(recording)
    header = {
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "problem_size": _problem(recording),
        "tune_params_keys": list(parameters),
        "tune_params": {name: list(values) for name, values in parameters.items()},
        "objective": "time",
    }
    lines = []
    for place, schedule in enumerate(recording.space.schedules):
        values = configuration_of(schedule, parameters)
        row = {**values, **_measured(recording, place)}
        lines.append(f"{json.dumps(','.join(map(str, values.values())))}: {json.dumps(row)}")
    # As Kernel Tuner writes it: it looks for the last bracket of the header, and appends line by line.
    text = json.dumps(header, indent="")[:-2] + ',\n"cache": {\n' + ",\n".join(lines) + "}\n}"
    write_whole(path, packed_by_name(path, text))


def _measured(recording: Recording, place: int) -> dict[str, object]:
    phases = {name: float(part[place]) * 1e3 for name, part in recording.phases.items()}
    if not phases:
        phases = {"measure": float(recording.cost[place]) * 1e3}
    costs = [phases.get(name, 0.0) for name in ("build", "check", "measure", "framework")]
    status = recording.status[place]
    taken: dict[str, object] = {"time": float(recording.seconds[place]) * 1e3}
    if status is not Status.OK:
        taken = {"time": "CompilationFailedConfig" if status is Status.BUILD_ERROR else "RuntimeFailedConfig"}
    elif recording.samples:
        taken["times"] = [float(t) * 1e3 for t in recording.samples[place]]
    when = recording.provenance.get("date", "")
    return {**taken, **dict(zip(_TIMES, costs, strict=True)), "strategy_time": 0, "timestamp": when}


def _problem(recording: Recording) -> object:
    if recording.workload is not None:
        return [extent for _, extent in recording.workload.axes]
    return json.loads(recording.provenance.get("problem", "null"))


def packed_by_name(path: Path, text: str) -> bytes:
    """Text as the bytes of a file, gzip where its name ends in `.gz`; equal texts give equal bytes."""
    if path.suffix != ".gz":
        return text.encode()
    packed = io.BytesIO()
    with gzip.GzipFile("", "wb", 9, packed, mtime=0) as file:
        file.write(text.encode())
    return packed.getvalue()
