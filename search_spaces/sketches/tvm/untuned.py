"""What TVM gives without a search: one schedule and no knobs, the default that a search must beat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from search_spaces import registry
from search_spaces.schedule import SKETCH as SKETCH_KEY
from search_spaces.schedule import Schedule
from search_spaces.sketches.tvm.base import (
    EXTRA,
    TvmSketch,
    empty_schedule,
    nodes,
    refused,
    tvm_target,
    workload_module,
)
from search_spaces.sketches.tvm_names import arguments_of, buffer_of, call_class
from search_spaces.space import SketchSpace

if TYPE_CHECKING:
    from search_spaces.task import Task

# Elements in one vectorised loop, and rows that a contraction keeps in registers.
LANES = 32
ROWS = 4
REDUCTION = 2
CUDA_OPERATORS = ("matmul", "softmax")


class Untuned(TvmSketch):
    """Inlined, tiled, parallel and vectorised loops on a CPU; DLight's rules on a GPU."""

    name = "tvm.untuned"
    summary = "no search: parallel, vectorised loops on a CPU, DLight's default rules on a GPU"
    fallback = True

    def refuses_task(self, task: Task) -> str | None:
        """DLight's rules are tried for matmul and softmax."""
        if task.target.kind == "cuda" and task.workload.operator not in CUDA_OPERATORS:
            return f"DLight's default schedules are offered for {' and '.join(CUDA_OPERATORS)} only"
        return None

    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """One schedule."""
        del task
        return (SketchSpace(self.name, ()),)

    def default(self, task: Task) -> Schedule:
        """The one schedule."""
        del task
        return Schedule(((SKETCH_KEY, self.name),))

    def scheduled(self, task: Task, schedule: Schedule) -> Any:
        """The scheduled module."""
        del schedule
        try:
            return _on_cpu(task) if task.target.kind == "llvm" else _on_gpu(task)
        except (RuntimeError, ValueError, TypeError) as error:
            raise refused(error) from error


def _on_gpu(task: Task) -> Any:
    """DLight's first rule that applies, in the order in which TVM's own pipelines try them."""
    dlight = registry.optional("tvm.s_tir.dlight", EXTRA)
    gpu, target = dlight.gpu, tvm_target(task)
    function = workload_module(task)["main"]
    with target:
        for rule in (gpu.Matmul(), gpu.GEMV(), gpu.Reduction(), gpu.GeneralReduction(), gpu.Fallback()):
            made = rule.apply(function, target, False)
            if made is not None:
                return made[0] if isinstance(made, list) else made
    raise ValueError("no rule of DLight applies")


def _on_cpu(task: Task) -> Any:
    """Rows of the last stage in parallel, the stages before it computed for those rows where they can be."""
    tir = registry.optional("tvm.tirx", EXTRA)
    schedule = empty_schedule(task)
    for block in _stages(schedule)[:-1]:
        if _is_output(schedule, block):
            # TVM moves no output, so that one which others are made of gets loops of its own.
            _parallel_rows(schedule, block)
            _vectorise(tir, schedule, block)
        elif not _reduces(schedule, block) and not _costly(tir, schedule.get(block)):
            schedule.compute_inline(block)
    # A reduction along the rows is split in lanes while it is still at the root, where TVM allows it.
    for block in _stages(schedule):
        if _reduces(schedule, block) and not _contracts(tir, schedule.get(block)):
            _split_in_lanes(schedule, block)
    *stages, last = _stages(schedule)
    before = [block for block in stages if not _is_output(schedule, block)]
    rows = _parallel_rows(schedule, last)
    for block in reversed(before):
        schedule.compute_at(block, rows, preserve_unit_loops=True)
    for block in (*before, last):
        _vectorise(tir, schedule, block)
    return schedule


def _stages(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root", "main")))


def _is_output(schedule: Any, block: Any) -> bool:
    written = buffer_of(schedule.get(block).writes[0])
    return any(written.same_as(parameter) for parameter in arguments_of(schedule.mod["main"]))


def _reduces(schedule: Any, block: Any) -> bool:
    return any(v.iter_type == REDUCTION for v in schedule.get(block).iter_vars)


def _costly(tir: Any, block: Any) -> bool:
    """Whether computing an element twice costs more than storing it: it divides or calls a function."""
    calls = nodes(block.body, call_class())
    return any(call.op.name != "tirx.if_then_else" for call in calls) or bool(nodes(block.body, tir.Div))


def _parallel_rows(schedule: Any, block: Any) -> Any:
    """Fuses all spatial loops but the last into one parallel loop over groups of rows."""
    spatial = len([v for v in schedule.get(block).iter_vars if v.iter_type != REDUCTION])
    outer = list(schedule.get_loops(block))[: max(spatial - 1, 1)]
    rows = _divisor(int(schedule.get(outer[-1]).extent), ROWS)
    outer[-1], _ = schedule.split(outer[-1], [None, rows])
    parallel = schedule.fuse(*outer)
    schedule.parallel(parallel)
    return parallel


def _split_in_lanes(schedule: Any, block: Any) -> None:
    """Reduces every LANES-th element apart, and those partial results last."""
    loops = schedule.get_loops(block)
    _, lanes = schedule.split(loops[-1], [None, _divisor(int(schedule.get(loops[-1]).extent), LANES)])
    schedule.rfactor(lanes, len(loops) - 1)


def _vectorise(tir: Any, schedule: Any, block: Any) -> None:
    """Vectorises the last spatial loop, which the loops of a reduction enclose."""
    stage = schedule.get(block)
    loops = list(schedule.get_loops(block))[1:]
    kinds = [v.iter_type for v in stage.iter_vars][-len(loops) :]
    reduction = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == REDUCTION]
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind != REDUCTION]
    if stage.name_hint.endswith("_rf"):
        # TVM puts the lanes before the other axes.
        _contraction(schedule, block, [*spatial[1:], spatial[0]], reduction)
    elif not reduction:
        _, inner = schedule.split(loops[-1], [None, _divisor(int(schedule.get(loops[-1]).extent), LANES)])
        schedule.vectorize(inner)
    elif _contracts(tir, stage):
        _contraction(schedule, block, spatial, reduction)


def _contraction(schedule: Any, block: Any, spatial: list[Any], reduction: list[Any]) -> None:
    """Keeps a tile of rows and vectors in registers while the reduction runs."""
    *rows, columns = spatial
    outer, inner = schedule.split(columns, [None, _divisor(int(schedule.get(columns).extent), LANES)])
    schedule.reorder(outer, *reduction, *rows, inner)
    for loop in rows:
        schedule.unroll(loop)
    schedule.vectorize(inner)
    schedule.decompose_reduction(block, reduction[0])


def _contracts(tir: Any, block: Any) -> bool:
    """Whether some operand is reused along a spatial axis, as in a matrix product."""
    spatial = [v.var for v in block.iter_vars if v.iter_type != REDUCTION and int(v.dom.extent) > 1]

    def uses(region: Any) -> int:
        used = {var for axis in region.region for var in nodes(axis.min, tir.Var)}
        return sum(var in used for var in spatial)

    return any(uses(region) < len(spatial) for region in block.reads)


def _divisor(extent: int, most: int) -> int:
    return next(d for d in range(min(extent, most), 0, -1) if extent % d == 0)


SKETCH = Untuned()
