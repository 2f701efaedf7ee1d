"""Whether the limits that refuse schedules for nothing are right: both sides of them are compiled, without a GPU.

    python experiments/static_rejection.py [COUNT [ARCH [OPERATOR...]]]

For each Triton sketch COUNT schedules drawn from its space, and COUNT neighbours of such, one knob away, that only a
limit of the hardware refuses (shared memory, registers), not one that calls a schedule useless or too long to compile.
What is refused and would run was refused wrongly; what is admitted and cannot be compiled or launched should have been
refused. Spilling is counted apart: such a program runs. With operators named, only those are gone through, and what the
result holds of others is kept.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from noise.recorded import RESULTS, write_result

from autotune.builders import Builders, Built, find_generator, local_builders
from autotune.scratch import scratch_folder
from search_spaces import registry
from search_spaces.hardware import cuda_hardware
from search_spaces.space import SKETCH, Schedule, SketchSpace, Value
from search_spaces.target import Target
from search_spaces.task import OPERATORS, Task, find_operator

# Workloads beside an operator's default on which sketches apply that the default has no use for.
FURTHER: Mapping[str, tuple[Mapping[str, int], ...]] = {
    **{name: ({"M": 16},) for name in ("matmul", "linear", "int8_linear", "fp8_linear", "int8_dynamic_linear")},
    **{name: ({"M": 64, "N": 262144},) for name in ("softmax", "rms_norm", "layer_norm", "reduce", "argmax")},
}
# Words of the reasons that mean the hardware and not use.
CAPACITY = ("shared memory than the", "thread has registers", "gives a thread more than")
TRIES = 400
SECONDS = 120.0


@dataclass(frozen=True)
class Tried:
    """One schedule and how its build ended.

    Attributes:
        reason: Why the limits refuse it, "" where they do not.
        built: The end of the build.
        fault: Why it could not run; "" where it could.
    """

    reason: str
    built: Built
    fault: str

    @property
    def spills(self) -> bool:
        """Whether it runs with registers in memory."""
        return not self.fault and bool(self.built.artifact and self.built.artifact.resources.spill_bytes)


def sketches(arch: str, names: Sequence[str]) -> Iterator[tuple[Task, str]]:
    """Each Triton sketch once, with the first workload to which it applies."""
    for name in names or registry.names(OPERATORS):
        seen: set[str] = set()
        for axes in ({}, *FURTHER.get(name, ())):
            workload = find_operator(name).workload("cuda", **axes)
            task = Task(name, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))
            for sketch in task.sketches:
                if sketch not in seen:
                    seen.add(sketch)
                    yield task, sketch


def refused(space: SketchSpace, legal: Sequence[Schedule], rng: np.random.Generator) -> Iterator[tuple[Schedule, str]]:
    """Neighbours of legal schedules that only limits of the hardware refuse, each with the first reason."""
    seen: set[Schedule] = set()
    for _ in range(TRIES):
        origin = legal[rng.integers(len(legal))]
        knob = space.knobs[rng.integers(len(space.knobs))]
        values: dict[str, Value] = {**origin.knobs, knob.name: knob.values[rng.integers(len(knob.values))]}
        broken = [c.reason for c in space.constraints if not c.holds(*(values[name] for name in c.knobs))]
        schedule = space.at(values)
        if broken and schedule not in seen and all(any(word in r for word in CAPACITY) for r in broken):
            seen.add(schedule)
            yield schedule, broken[0]


def tried(task: Task, schedules: Mapping[Schedule, str], folder: Path) -> list[Tried]:
    """Builds schedules whether or not the limits admit them."""
    found: list[Tried] = []
    limits = task.hardware.limits

    def keep(built: Built) -> None:
        fault = built.detail or ("" if built.artifact else str(built.status))
        if built.artifact is not None:
            used = built.artifact.resources
            if (used.registers or 0) * (used.threads or 0) > limits.registers_per_sm:
                fault = "has more registers than a multiprocessor"
        found.append(Tried(schedules[built.schedule], built, fault))

    with closing(Builders(task, local_builders(task, folder, 1), SECONDS)) as builders:
        builders.build_all(list(schedules), keep)
    return found


def row(task: Task, sketch: str, count: int, folder: Path) -> dict[str, object]:
    """What both sides of one sketch's limits showed."""
    rng = np.random.default_rng(0)
    space, prefix = task.space.sketch(sketch), Schedule(((SKETCH, sketch),))
    legal = list(dict.fromkeys(task.space.sample(rng, prefix) for _ in range(count)))
    beyond = dict(found for found, _ in zip(refused(space, legal, rng), range(count), strict=False))
    admitted, outside = (tried(task, some, folder) for some in (dict.fromkeys(legal, ""), beyond))
    wrongly = [t for t in outside if not t.fault and not t.spills]
    return {
        "workload": str(task.workload),
        "admitted": len(admitted),
        "admitted that cannot run": {str(t.built.schedule): t.fault for t in admitted if t.fault},
        "admitted that spill": sum(t.spills for t in admitted),
        "refused": len(outside),
        "refused by reason": dict(Counter(t.reason for t in outside)),
        "refused that run without spilling": {str(t.built.schedule): t.reason for t in wrongly},
        "refused that run and spill": dict(Counter(t.reason for t in outside if t.spills)),
        "seconds": round(sum(t.built.seconds for t in (*admitted, *outside)), 1),
    }


def main(count: str = "6", arch: str = "sm_90", *names: str) -> None:
    """Goes through the sketches, and writes what is known after each."""
    name = f"static_rejection_{arch}"
    file = RESULTS / f"{name}.json"
    rows: dict[str, dict[str, object]] = json.loads(file.read_text())["sketches"] if names and file.exists() else {}
    with scratch_folder() as folder:
        for task, sketch in sketches(arch, names):
            rows[sketch] = row(task, sketch, int(count), folder)
            keys = [key for key in rows[sketch] if key != "workload"]
            result = {
                "question": "whether limits refuse what would run, or admit what cannot",
                "arch": arch,
                "versions": find_generator("triton").versions(),
                "total": {key: sum(_size(r[key]) for r in rows.values()) for key in keys},
                "sketches": rows,
            }
            write_result(name, result)


def _size(value: object) -> float:
    if isinstance(value, Mapping):
        return sum(value.values()) if all(isinstance(v, int) for v in value.values()) else len(value)
    assert isinstance(value, int | float)
    return value


if __name__ == "__main__":
    main(*sys.argv[1:])
