"""TVM: MetaSchedule databases, one folder a TVM version, device and target, that Relax and `compile_tir` apply."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from autotune.exporters.base import Exporter, ExportFault
from autotune.generators.tvm import GENERATOR, PACKAGES
from autotune.recall import Winner
from autotune.relax_form import is_scheduled, relax_key, relax_module, same_program
from autotune.reuse.tvm import database_folder
from search_spaces import registry
from search_spaces.errors import InvalidSchedule
from search_spaces.sketches.tvm.base import (
    EXTRA,
    TvmSketch,
    cores_of,
    nodes,
    one_line,
    tvm_target,
    workload_module,
)
from search_spaces.sketches.tvm_names import call_class, dtype_of

_META_SCHEDULE = "tvm.s_tir.meta_schedule"
_NOTES = (
    "MetaSchedule compares no targets: give each device its own folder, or open it with"
    " autotune.reuse.tvm.tuned_database.",
    "Relax applies a database in the pipelines 'zero' (under 'with database') and 'static_shape_tuning'"
    " (work_dir=..., total_trials=0), and in compile_relax; a plain tvm.compile never asks for one.",
)
_EXPONENTIAL = (
    "On a CPU float32 exponentials were tuned in vectors; TVM's own are scalar and slower: call"
    " autotune.reuse.tvm.vectorise_exponential() before compiling."
)


class TvmExporter(Exporter):
    """A record of each winner under two keys: the function as tuned, and the one that Relax makes of the operator."""

    summary = "MetaSchedule databases for TVM's Relax pipelines, compile_relax, compile_tir and query_schedule"
    packages = PACKAGES

    def missing(self) -> str | None:
        """TVM itself."""
        return GENERATOR.missing()

    def why_not(self, winner: Winner) -> str | None:
        """A schedule of another code generator has no trace."""
        sketch = winner.task.sketch_of(winner.schedule)
        if not isinstance(sketch, TvmSketch):
            return f"{sketch.name} is made by {sketch.generator}, not by TVM"
        return None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Commits two records a winner."""
        ms = registry.optional(_META_SCHEDULE, EXTRA)
        for winner in winners:
            work_dir = folder / database_folder(winner)
            work_dir.mkdir(parents=True, exist_ok=True)
            database = ms.database.JSONDatabase(work_dir=str(work_dir))
            for key, schedule in _keyed(winner):
                record = ms.database.TuningRecord(
                    schedule.trace,
                    database.commit_workload(key),
                    list(winner.entry.samples),
                    recorded_target(winner),
                    ms.arg_info.ArgInfo.from_prim_func(key["main"]),
                )
                database.commit_tuning_record(record)

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Queries every key, and has Relax's own pipeline apply the database."""
        ms = registry.optional(_META_SCHEDULE, EXTRA)
        for winner in winners:
            work_dir = str(folder / database_folder(winner))
            database = ms.database.JSONDatabase(work_dir=work_dir, allow_missing=False)
            pairs = list(_keyed(winner))
            for key, schedule in pairs:
                found = database.query_schedule(key, tvm_target(winner.task), "main")
                if found is None or not same_program(found.mod["main"], schedule.mod["main"]):
                    raise ExportFault(f"TVM does not find the schedule of {winner} in its database again")
            applied = _applied_by_relax(winner, database)
            wanted = pairs[-1][1].mod["main"]
            if not any(is_scheduled(f) and same_program(f, wanted) for f in applied):
                raise ExportFault(f"Relax does not apply the schedule of {winner}")
        return (*_NOTES, *((_EXPONENTIAL,) if any(map(_with_exponential, winners)) else ()))


def _with_exponential(winner: Winner) -> bool:
    """Whether TVM itself would compile the winner to another program than was tuned."""
    if winner.task.target.kind != "llvm":
        return False
    calls = nodes(workload_module(winner.task)["main"].body, call_class())
    return any(call.op.name == "tirx.exp" and dtype_of(call) == "float32" for call in calls)


def recorded_target(winner: Winner) -> Any:
    """The `tvm.target.Target` of a record, with the model of the device that it was measured on."""
    tvm = registry.optional("tvm", EXTRA)
    task, model = winner.task, winner.entry.device.name
    if task.target.kind == "llvm":
        named = {"mcpu": task.target.arch} if task.target.arch else {}
        return tvm.target.Target({"kind": "llvm", "num-cores": cores_of(task), "model": model, **named})
    return tvm.target.Target({**tvm_target(task).export(), "model": model})


def _keyed(winner: Winner) -> Iterator[tuple[Any, Any]]:
    """The two keys, each with its `tvm.s_tir.Schedule`; the second is Relax's.

    Raises:
        ExportFault: TVM refuses the schedule, or it has no trace that can be replayed.
    """
    task = winner.task
    s_tir = registry.optional("tvm.s_tir", EXTRA)
    try:
        tuned = cast(TvmSketch, task.sketch_of(winner.schedule)).scheduled(task, winner.schedule)
        if tuned.trace is None or not tuned.trace.insts:
            raise ExportFault(f"{winner}: its sketch records no trace")
        yield workload_module(task), tuned
        replayed = s_tir.Schedule(relax_key(task), seed=1, error_render_level="fast")
        s_tir.Trace.apply_json_to_schedule(tuned.trace.as_json(), replayed)
    except InvalidSchedule as error:
        raise ExportFault(f"{winner}: {error.message}") from error
    except (RuntimeError, ValueError, TypeError) as error:
        raise ExportFault(f"{winner}: TVM refuses to replay its trace: {one_line(error)}") from error
    yield relax_key(task), replayed


def _applied_by_relax(winner: Winner, database: Any) -> list[Any]:
    """The functions of the operator's Relax program after Relax's pipeline with the database."""
    relax, tvm = registry.optional("tvm.relax", EXTRA), registry.optional("tvm", EXTRA)
    with tvm_target(winner.task), database:
        module = relax.get_pipeline("zero")(relax_module(winner.task))
    return [f for _, f in module.functions_items() if isinstance(f, tvm.tirx.PrimFunc)]


EXPORTER = TvmExporter()
