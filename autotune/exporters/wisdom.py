"""Kernel Launcher: wisdom files, from which that C++ library chooses a kernel's configuration when it is launched.

Kernel Launcher is a C++ library that is built against CUDA and is in no package index, so no loader of it is asked.
What is written is read again by the rules of its source (`wisdom.cpp`), and the notes of an export say so.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.exporters.base import Exporter, ExportFault
from autotune.recall import Winner
from search_spaces.schedule import text

_VERSION, _OBJECTIVE = "1.0", "time"
# A problem has an x, a y and a z.
_MOST_AXES = 3
_NOTES = (
    "Kernel Launcher itself did not read these files: it is no package. They were read by the rules of its source.",
    "Set KERNEL_LAUNCHER_WISDOM to the folder; a kernel's tuning_key is the `key` of its file, its problem_size the"
    " axes in their order, and it must have exactly the parameters listed.",
)


@dataclass(frozen=True)
class Choice:
    """What the library takes for a problem on a device.

    Attributes:
        config: Parameter -> value.
        seconds: The time that its line states.
        exact: Whether device and problem are those that were asked for.
    """

    config: dict[str, Any]
    seconds: float
    exact: bool


class WisdomExporter(Exporter):
    """One file a kernel: an operator in a dtype and with its options, and one sketch's knobs."""

    summary = "wisdom files of Kernel Launcher, for CUDA C++ at run time"

    def missing(self) -> str | None:
        """Nothing: what is written is read again here, as no loader can be installed."""
        return None

    def why_not(self, winner: Winner) -> str | None:
        """It is for CUDA, needs parameters, and a problem has three extents at most."""
        if winner.task.target.kind != "cuda":
            return "Kernel Launcher runs CUDA kernels only"
        if not winner.schedule.knobs:
            return f"{winner.schedule.sketch} has no knobs"
        extents = _problem(winner)
        return f"it has {len(extents)} extents, of which a problem has three" if len(extents) > _MOST_AXES else None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Groups by kernel; a header, then a line a winner with its time in milliseconds."""
        files: dict[str, list[Winner]] = {}
        for winner in winners:
            files.setdefault(tuning_key(winner), []).append(winner)
        for key, members in files.items():
            names = list(members[0].schedule.knobs)
            header = {"version": _VERSION, "objective": _OBJECTIVE, "tunable_parameters": names, "key": key}
            lines = [header, *map(_line, members)]
            (folder / file_of(key)).write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Chooses for every winner's own device and problem."""
        for winner in winners:
            parameters = _parameters(winner)
            found = chosen(folder, tuning_key(winner), list(parameters), winner.entry.device.name, _problem(winner))
            if found is None or not found.exact or found.config != parameters:
                raise ExportFault(f"the rules of Kernel Launcher do not give the configuration of {winner}")
        return _NOTES


def tuning_key(winner: Winner) -> str:
    """What names a kernel: operator, options, dtype and sketch, of characters that the library keeps in file names."""
    workload = winner.task.workload
    options = [f"{a.name}{workload[a.name]}" for a in winner.task.operator.axes if a.choices]
    return _kept("-".join((workload.operator, *options, workload.dtype, winner.schedule.sketch)))


def file_of(key: str) -> str:
    """The file that the library looks for."""
    return f"{_kept(key)}.wisdom"


def _kept(key: str) -> str:
    return re.sub(r"[^0-9A-Za-z_.-]", "_", key)


def _problem(winner: Winner) -> list[int]:
    """The axes that are no options, in the operator's order."""
    return [winner.task.workload[axis.name] for axis in winner.task.operator.axes if not axis.choices]


def _parameters(winner: Winner) -> dict[str, Any]:
    return {k: text(v) if isinstance(v, tuple) else v for k, v in winner.schedule.knobs.items()}


def _line(winner: Winner) -> dict[str, Any]:
    return {
        "config": list(_parameters(winner).values()),
        "problem_size": _problem(winner),
        "environment": {"device_name": winner.entry.device.name},
        _OBJECTIVE: winner.entry.seconds * 1e3,
    }


def chosen(folder: Path, key: str, parameters: Sequence[str], device: str, problem: Sequence[int]) -> Choice | None:
    """What Kernel Launcher takes by its rules, None where that is the kernel's default.

    The same device goes before another, there the same problem before another; then the nearest product of the extents
    counts, then the time. A header of another version, key or set of parameters makes the library pass the file over, a
    line that it cannot read only that line.
    """
    path = folder / file_of(key)
    if not path.is_file():
        return None
    first, *rest = path.read_text(errors="replace").splitlines() or [""]
    header = _object(first)
    names = header.get("tunable_parameters")
    told = header.get("version") == _VERSION and header.get("key") == key
    if not told or not isinstance(names, list) or sorted(map(str, names)) != sorted(parameters):
        return None
    asked = _padded(problem)
    best: tuple[tuple[int, int, float], Choice] | None = None
    for row in map(_object, filter(None, rest)):
        config, size, time = row.get("config"), row.get("problem_size"), row.get(str(header.get("objective")))
        if not isinstance(config, list) or len(config) != len(names) or not isinstance(time, float):
            continue
        if not isinstance(size, list) or not all(isinstance(extent, int) for extent in size):
            continue
        extents = _padded(size)
        environment = row.get("environment")
        same_device = isinstance(environment, dict) and environment.get("device_name") == device
        mismatch = 0 if same_device and extents == asked else 1 if same_device else 2
        rank = (mismatch, abs(math.prod(extents) - math.prod(asked)), time)
        if best is None or rank < best[0]:
            best = rank, Choice(dict(zip(names, config, strict=True)), time * 1e-3, mismatch == 0)
    return None if best is None else best[1]


def _padded(problem: Sequence[int]) -> list[int]:
    """The extents with 1 for those that are not said."""
    return [*problem, *[1] * _MOST_AXES][:_MOST_AXES]


def _object(line: str) -> dict[str, Any]:
    """A line's JSON object, an empty one where it is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


EXPORTER = WisdomExporter()
