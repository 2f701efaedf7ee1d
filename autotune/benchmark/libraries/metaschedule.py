"""TVM's MetaSchedule on a CPU: its own evolutionary search over its own design space."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.benchmark.libraries.base import Library
from autotune.devices.cpu import usable_cores
from autotune.environment import calm_thread_pools
from autotune.generators.tvm import TvmKernel, use_threads, vectorise_exponential
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.sketches.tvm.base import EXTRA, cores_of, tvm_target, workload_module
from search_spaces.task import Task

# As many trials as a run of this tuner has by default on a CPU.
TRIALS = 64
# Trials of a batch, and before its cost model is asked: its defaults of 64 and 100 would be one random batch.
BATCH, WARM_UP = 16, 16
# Seconds in which a build must end, a slow start of its worker included, and a run.
BUILD_SECONDS, RUN_SECONDS = 600.0, 60.0
SEED = 1


class MetaSchedule(Library):
    """Any operator with a TE definition; the code is generated as for this tuner's own candidates."""

    summary = f"TVM MetaSchedule, {TRIALS} trials"
    kinds = ("llvm",)
    slow = True

    def missing(self) -> str | None:
        """It is TVM's."""
        return None if registry.available("tvm") else "TVM is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """The best that it found, tuned anew for the shape; none where it found nothing."""
        tvm = registry.optional("tvm", EXTRA)
        te, topi = (registry.optional(f"tvm.{name}", EXTRA) for name in ("te", "topi"))
        if task.operator.compute(task.workload, te, topi) is None:
            return {}
        calm_thread_pools()
        vectorise_exponential()
        with tempfile.TemporaryDirectory(prefix="autotune-metaschedule-") as folder:
            best = _tuned(task, Path(folder))
        if best is None:
            return {}
        use_threads(tvm, cores_of(task))
        kernel = TvmKernel(tvm.compile(best, target=tvm_target(task)).mod, "llvm")
        return {"MetaSchedule": kernel.bind(inputs, outputs)}


def _tuned(task: Task, folder: Path) -> Any:
    """The scheduled module of the fastest record, None where there is none."""
    ms = registry.optional("tvm.s_tir.meta_schedule", EXTRA)
    module = workload_module(task)
    database = ms.tune_tir(
        mod=module,
        target=tvm_target(task),
        work_dir=str(folder),
        max_trials_global=TRIALS,
        num_trials_per_iter=BATCH,
        builder=ms.builder.LocalBuilder(
            max_workers=usable_cores(), timeout_sec=BUILD_SECONDS, initializer=vectorise_exponential
        ),
        runner=ms.runner.LocalRunner(timeout_sec=RUN_SECONDS),
        cost_model=ms.cost_model.XGBModel(num_warmup_samples=WARM_UP),
        num_tuning_cores=usable_cores(),
        seed=SEED,
    )
    schedule = database.query_schedule(module, tvm_target(task), workload_name="main")
    return None if schedule is None else schedule.mod


LIBRARY = MetaSchedule()
