"""MetaSchedule's own design spaces: any operator with a TE definition is tuned without a template.

A scheduled module carries a trace that is a native MetaSchedule record.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_spaces import registry
from search_spaces.errors import InvalidSchedule
from search_spaces.operator import ITEMSIZE
from search_spaces.products import Product
from search_spaces.schedule import Schedule
from search_spaces.sketches import traces
from search_spaces.sketches.tvm.base import (
    EXTRA,
    STATIC_SHARED_BYTES,
    TvmSketch,
    cores_of,
    empty_schedule,
    refused,
    tvm_target,
    workload_module,
)
from search_spaces.space import Constraint, SketchSpace

if TYPE_CHECKING:
    from search_spaces.task import Task

CUDA_OPERATORS = ("matmul", "softmax")
# With more structures than this the variants of split reductions are left out: three of them for each reduction.
MOST_STRUCTURES = 16
# Virtual threads that VerifyGPUCode allows.
MOST_VTHREADS = 8
# Sums of a thread beside its addresses and operands in 255 registers.
MOST_SUMS = 160
# One multiprocessor in so many must have a block, where the result is large enough for blocks of SMALL_TILE elements.
COVERED = 4
SMALL_TILE = 1024


class MetaSchedule(TvmSketch):
    """All structures that a set of MetaSchedule's rules finds."""

    name = "tvm.metaschedule"
    summary = "MetaSchedule's rules: multi-level tiling, inlining, split reductions, compute locations"

    def refuses_task(self, task: Task) -> str | None:
        """On cuda its rules bind threads only for matmul and softmax."""
        if task.target.kind == "cuda" and task.workload.operator not in CUDA_OPERATORS:
            return f"MetaSchedule's CUDA rules are offered for {' and '.join(CUDA_OPERATORS)} only"
        if isinstance(task.operator, Product) and task.operator.form(task.workload).gated:
            return "MetaSchedule's rules fail where two reductions end in one stage"
        return None

    def rules(self, task: Task) -> str:
        """MetaSchedule's name of the set of rules."""
        return task.target.kind

    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """One space a structure."""
        return tuple(
            SketchSpace(f"{self.name}/{i}", tuple(c.knob for c in structure.choices), self.constraints(task, structure))
            for i, structure in enumerate(_structures(task, self.rules(task)))
        )

    def constraints(self, task: Task, structure: traces.Structure) -> tuple[Constraint, ...]:
        """What MetaSchedule's check of GPU code would refuse, for two spatial tiles and one of the reduction."""
        tiles: dict[int, list[str]] = {5: [], 3: []} if task.target.kind == "cuda" else {}
        for knob in (choice.knob for choice in structure.choices):
            value = knob.values[0]
            if isinstance(value, tuple) and len(value) in tiles:
                tiles[len(value)].append(knob.name)
        spatial, reduction = tiles.get(5, []), tiles.get(3, [])
        if len(spatial) != 2 or len(reduction) != 1:
            return ()
        names = (*spatial, *reduction)
        return (*_gpu_constraints(names, ITEMSIZE[task.workload.dtype]), *_worthwhile(names, task.hardware.model.sms))

    def scheduled(self, task: Task, schedule: Schedule) -> Any:
        """Replays the trace with the schedule's decisions and runs the target's postprocessors."""
        rules = self.rules(task)
        structure = _structures(task, rules)[int(schedule.sketch.rpartition("/")[2])]
        made = empty_schedule(task)
        try:
            structure.decided(schedule.knobs).apply_to_schedule(made, remove_postproc=True)
            failed = next((p for p in _generator(task, rules).postprocs if not p.apply(made)), None)
        except (RuntimeError, ValueError, TypeError) as error:
            raise refused(error) from error
        if failed is not None:
            raise InvalidSchedule(f"MetaSchedule's postprocessor {type(failed).__name__} refuses it")
        return made

    def sources(self) -> tuple[Path, ...]:
        """This file and the one that makes knobs of traces."""
        return (*super().sources(), Path(__file__), Path(str(traces.__file__)))


def _gpu_constraints(names: tuple[str, ...], itemsize: int) -> tuple[Constraint, ...]:
    """Limits over the tiles (grid, virtual threads, threads, two levels in a thread) and the reduction's."""

    def fits(i: tuple[int, ...], j: tuple[int, ...], k: tuple[int, ...]) -> bool:
        return (math.prod(i[1:]) + math.prod(j[1:])) * math.prod(k[1:]) * itemsize <= STATIC_SHARED_BYTES

    return (
        Constraint("a block needs 32 to 1024 threads", names[:2], lambda i, j: 32 <= i[2] * j[2] <= 1024),
        Constraint(f"more than {MOST_VTHREADS} virtual threads", names[:2], lambda i, j: i[1] * j[1] <= MOST_VTHREADS),
        Constraint("needs more than 48 KiB of shared memory", names, fits),
    )


def _worthwhile(names: tuple[str, ...], sms: int) -> tuple[Constraint, ...]:
    """Limits on what would run, thousands of times slower than the rest: minutes for nothing."""

    def covered(i: tuple[int, ...], j: tuple[int, ...]) -> bool:
        return COVERED * i[0] * j[0] >= min(sms, math.prod(i) * math.prod(j) // SMALL_TILE)

    return (
        Constraint(
            "holds more sums than a thread has registers",
            names[:2],
            lambda i, j: i[1] * i[3] * i[4] * j[1] * j[3] * j[4] <= MOST_SUMS,
        ),
        Constraint("leaves most multiprocessors without a block", names[:2], covered),
    )


@lru_cache(maxsize=16)
def _generator(task: Task, rules: str, split_reductions: bool = True) -> Any:
    """MetaSchedule's space generator, bound to the module and target of `task`."""
    ms = registry.optional("tvm.s_tir.meta_schedule", EXTRA)
    tvm = registry.optional("tvm", EXTRA)
    chosen = ms.schedule_rule.ScheduleRule.create(rules)
    if not split_reductions:
        chosen = [rule for rule in chosen if not isinstance(rule, ms.schedule_rule.AddRFactor)]
    generator = ms.space_generator.PostOrderApply(
        sch_rules=chosen, postprocs=ms.postproc.Postproc.create(rules), mutator_probs={}
    )
    # By way of the class TuneContext every tensor intrinsic of TVM would be imported, 13 seconds for nothing.
    context = tvm.get_global_func("s_tir.meta_schedule.TuneContext")(
        workload_module(task), tvm_target(task), generator, None, "main", 1, 1, None
    )
    tvm.get_global_func("s_tir.meta_schedule.TuneContextInitialize")(context)
    _CONTEXTS.append(context)
    return generator


# A generator refers to its context weakly.
_CONTEXTS: list[Any] = []


@lru_cache(maxsize=16)
def _structures(task: Task, rules: str) -> tuple[traces.Structure, ...]:
    """The design spaces of `task`, the same in every process."""
    module = workload_module(task)
    designs = list(_generator(task, rules).generate_design_space(module))
    if len(designs) > MOST_STRUCTURES:
        designs = list(_generator(task, rules, split_reductions=False).generate_design_space(module))
    return tuple(traces.structure(module, design.trace, cores_of(task)) for design in designs)


SKETCH = MetaSchedule()
