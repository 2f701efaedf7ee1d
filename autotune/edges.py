"""Small odd workloads on which the sketches of finalists must be right, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from autotune.adapting import nearest
from autotune.measurement import Status
from search_spaces.errors import InvalidWorkload, NothingValid
from search_spaces.operator import Workload
from search_spaces.space import Schedule, ScheduleSpace
from search_spaces.task import Task

# Workloads tried: on a CPU making the space of one and building for it costs up to a second.
_WORKLOADS = {"cuda": 3, "llvm": 1}


@dataclass(frozen=True)
class EdgeCase:
    """One odd workload, and what is tried on it.

    Attributes:
        task: The finalists' task with that workload.
        schedules: Schedules legal there -> the finalist that each stands for, often itself.
    """

    task: Task
    schedules: Mapping[Schedule, Schedule]


@dataclass(frozen=True)
class EdgeFault:
    """A sketch that offers a schedule for a workload and is wrong there.

    It says nothing of the finalist on its own workload, for which that was checked.

    Attributes:
        workload: The odd workload.
        schedule: The schedule tried there.
        finalist: The finalist that it stands for.
        status: How it ended.
        why: In words.
    """

    workload: Workload
    schedule: Schedule
    finalist: Schedule
    status: Status
    why: str

    def __str__(self) -> str:
        return f"{self.schedule.sketch} is not right on {self.workload}, which it does not refuse: {self.why}"


@dataclass(frozen=True)
class EdgeReport:
    """What the odd workloads told.

    Attributes:
        checked: Schedules built, run and compared, summed over the workloads.
        faults: Those that were wrong.
    """

    checked: int = 0
    faults: Sequence[EdgeFault] = field(default_factory=tuple)


def edge_cases(task: Task, finalists: Sequence[Schedule]) -> list[EdgeCase]:
    """What to try: each finalist where it is legal, else for each sketch the legal schedule nearest to a finalist.

    A sketch that refuses a workload or makes no space of it, or whose limits leave nothing there, is not tried.
    """
    cases = []
    only = tuple(dict.fromkeys(task.sketch_of(s).name for s in finalists))
    for workload in task.operator.edge_workloads(task.workload)[: _WORKLOADS[task.target.kind]]:
        edge = replace(task, workload=workload, only=only)
        try:
            chosen = _chosen(edge.space, finalists)
        except (NothingValid, InvalidWorkload):
            continue
        if chosen:
            cases.append(EdgeCase(edge, chosen))
    return cases


def _chosen(space: ScheduleSpace, finalists: Sequence[Schedule]) -> dict[Schedule, Schedule]:
    chosen = {s: s for s in finalists if space.why_not(s) is None}
    covered = {s.sketch for s in chosen}
    offered = {s.sketch for s in space.sketches}
    for finalist in finalists:
        if finalist.sketch in offered - covered:
            covered.add(finalist.sketch)
            # Near in its tiles too: a whole odd extent in the innermost loop, unrolled, compiles for minutes.
            stand_in = nearest(space, finalist.sketch, finalist.knobs)
            if stand_in is not None:
                chosen[stand_in] = finalist
    return chosen
