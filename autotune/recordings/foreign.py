"""What the readers of other projects' files share: configurations become a recording, values become knobs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from autotune.measurement import Status
from autotune.recordings.known_kernels import known_context
from autotune.recordings.native import mean_and_deviation
from autotune.recordings.recording import Recording
from search_spaces.known_devices import device_words, find_device
from search_spaces.listed import ListedSpace
from search_spaces.schedule import SKETCH, Schedule, Value

PHASES = ("build", "check", "measure", "framework")
# Written for a knob that a configuration's sketch does not have.
ABSENT = "-"
# A stated time may differ so much from the mean of the repeats, by rounding; beyond, the repeats are of something else.
_ROUNDING = 2e-3
_TUPLE = re.compile(r"-?\d+x(-?\d+(x-?\d+)*)?")


@dataclass(frozen=True)
class Configuration:
    """One measured configuration of another project's file.

    Attributes:
        values: Its parameters.
        status: How it ended.
        seconds: The stated time, inf where it failed.
        samples: Raw repeats in seconds, () where they are not at hand.
        deviation: Standard deviation of a repeat where that is stated.
        phases: Seconds for each of PHASES.
    """

    values: Mapping[str, object]
    status: Status
    seconds: float
    samples: tuple[float, ...] = ()
    deviation: float = 0.0
    phases: tuple[float, ...] = (0.0,) * len(PHASES)


@dataclass(frozen=True)
class Origin:
    """What a file says, by its name or inside, of what was measured.

    Attributes:
        kernel: The kernel's name, "" where nothing is said.
        device: The device's name, "" where nothing is said.
        provenance: Whatever else a reader should know.
    """

    kernel: str = ""
    device: str = ""
    provenance: Mapping[str, str] = field(default_factory=dict)


def stem_of(path: Path) -> str:
    """A file's name without its endings."""
    return re.sub(r"(\.(csv|json|gz|jsonl|recording|T4|kernel_tuner_cache))+$", "", path.name)


def assembled(
    path: Path,
    origin: Origin,
    order: Sequence[str],
    configurations: Sequence[Configuration],
    repeats: int = 0,
) -> Recording:
    """A recording of the configurations; of one that is there twice the later.

    Args:
        path: The file; `kernel__device` in its name goes before what it says inside.
        origin: What it says of itself.
        order: Parameters that become knobs, in order.
        configurations: What was measured.
        repeats: Repeats behind each time, where they themselves are not at hand.

    Raises:
        ValueError: There is no configuration, or none that worked.
    """
    kernel, device = _names(path, origin)
    latest = {schedule_of(kernel, order, c.values): c for c in configurations}
    rows = list(latest.values())
    seconds = np.array([c.seconds for c in rows])
    deviation = np.array([c.deviation for c in rows])
    samples = tuple(np.array(c.samples) for c in rows)
    if _repeats_agree(rows):
        seconds, deviation = mean_and_deviation(samples)
        repeats = max(len(s) for s in samples)
    else:
        samples = ()
    phases = np.array([c.phases for c in rows], np.float64).reshape(len(rows), len(PHASES)).T
    hardware = find_device(device)
    name = f"{kernel}__{'_'.join(device_words(device)) or 'device'}"
    return Recording(
        name=stem_of(path) if "__" in path.name else name,
        kernel=kernel,
        device=device if hardware is None else hardware.model.name,
        space=ListedSpace.of(list(latest), identity=name),
        seconds=seconds,
        deviation=deviation,
        cost=phases.sum(axis=0),
        status=tuple(c.status for c in rows),
        samples=samples,
        context=known_context(kernel, device),
        provenance=origin.provenance,
        repeats=repeats,
        phases=dict(zip(PHASES, phases, strict=True)),
    )


def _names(path: Path, origin: Origin) -> tuple[str, str]:
    """Kernel and device: by the file's name where it is `kernel__device`, else as the file says, else by its name."""
    stem = stem_of(path)
    kernel, split, device = stem.partition("__")
    if split:
        return kernel, device.partition("__")[0]
    kernel, _, device = stem.rpartition("_")
    if not kernel or find_device(device) is None:
        kernel, device = stem, stem
    return origin.kernel.removesuffix("_kernel") or kernel, origin.device or device


def _repeats_agree(rows: Sequence[Configuration]) -> bool:
    good = [c for c in rows if c.status is Status.OK]
    return bool(good) and all(
        c.samples and math.isclose(c.seconds, sum(c.samples) / len(c.samples), rel_tol=_ROUNDING) for c in good
    )


def schedule_of(kernel: str, order: Sequence[str], values: Mapping[str, object]) -> Schedule:
    """The schedule with these parameters; where one of them is the sketch, of that sketch."""
    given = [(name, value_of(values[name])) for name in order if name != SKETCH and values[name] != ABSENT]
    return Schedule(((SKETCH, str(values.get(SKETCH, kernel))), *given))


def value_of(value: object) -> Value:
    """A parameter's value as a knob's; a number with a fraction, and whatever else no knob has, as a word.

    Raises:
        ValueError: It is nothing that a configuration can hold.
    """
    if isinstance(value, str):
        return tuple(int(part) for part in value.split("x") if part) if _TUPLE.fullmatch(value) else value
    if isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    if isinstance(value, list) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise ValueError(f"a parameter has the value {value!r:.50}")


def parameters_of(recording: Recording) -> dict[str, tuple[object, ...]]:
    """Names and values of the parameters in which a recording is written elsewhere: constants last.

    Where it has several sketches, the sketch is the first parameter and a knob that a sketch lacks is ABSENT.
    """
    sketches = recording.space.sketches
    values: dict[str, list[object]] = {}
    if [s.sketch for s in sketches] != [recording.kernel]:
        values[SKETCH] = [s.sketch for s in sketches]
    for sketch in sketches:
        for knob in sketch.knobs:
            values.setdefault(knob.name, []).extend(map(plain, knob.values))
    for name, known in values.items():
        if name != SKETCH and any(name not in s.position for s in sketches):
            known.append(ABSENT)
    constants = json.loads(recording.provenance.get("constants", "{}"))
    named = {n: tuple(dict.fromkeys(v)) for n, v in values.items()}
    return named | {n: (v,) for n, v in constants.items() if n not in named}


def configuration_of(schedule: Schedule, parameters: Mapping[str, tuple[object, ...]]) -> dict[str, object]:
    """A schedule as values of `parameters`."""
    knobs = {name: plain(value) for name, value in schedule.items}
    return {n: knobs.get(n, known[0] if len(known) == 1 else ABSENT) for n, known in parameters.items()}


def plain(value: Value) -> int | str | bool:
    """A knob's value as one that every project has: a tuple as `8x4x2`, or `8x` where it has one number."""
    if isinstance(value, tuple):
        return "x".join(map(str, value)) + ("x" if len(value) < 2 else "")
    return value


def constants_of(parameters: Mapping[str, Sequence[object]]) -> dict[str, object]:
    """Parameters with a single value: they tell no two configurations apart, so they become no knobs.

    A file with sketches is one of ours, and there a knob stays a knob.
    """
    return {} if SKETCH in parameters else {n: values[0] for n, values in parameters.items() if len(values) == 1}


def milliseconds(value: object) -> float:
    """A stated number of milliseconds, in seconds; 0 where it is none."""
    number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    return number * 1e-3 if math.isfinite(number) and number > 0 else 0.0
