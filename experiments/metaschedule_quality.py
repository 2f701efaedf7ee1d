"""Kernels found by this tuner and by TVM's MetaSchedule with equal trials on this CPU, raced against each other.

python experiments/metaschedule_quality.py OUT.json [--only NAME,...] [--trials N] [--seeds N] [--sketch PREFIX]

For each workload and seed both tune from nothing, each in a process of its own, one after the other: this tuner with
its defaults; MetaSchedule's evolutionary search with its defaults, and again with its cost model trained from the 16th
trial on and batches of 16, which is better at so few trials. Both generate code alike: MetaSchedule's builder gets this
tuner's exponential. What each held after 32, 64 and 128 trials is compiled again and timed in one process, interleaved.
`--sketch tvm.metaschedule` keeps this tuner to MetaSchedule's own design spaces. Each finished case is kept in OUT.json
at once, and a second call goes on from there. It wants a quiet machine for about ten minutes a case.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from autotune.devices.cpu import Cpu, cpu_info, usable_cores
from autotune.environment import calm_thread_pools, read_environment
from autotune.generators.tvm import TvmKernel, use_threads, vectorise_exponential
from autotune.journal import load_runs
from autotune.task_options import TaskOptions, make_task
from search_spaces.sketches.tvm.base import cores_of, tvm_target, workload_module
from search_spaces.task import Task

WORKLOADS: Mapping[str, tuple[str, str]] = {
    "matmul": ("matmul", "M=512,N=512,K=512"),
    "matmul_odd": ("matmul", "M=196,N=768,K=331"),
    "softmax": ("softmax", "M=1024,N=1024"),
    "attention": ("attention", "B=1,H=4,G=4,S=256,D=64"),
    "layer_norm": ("layer_norm", "M=1024,N=1024"),
}
BUDGETS = (32, 64, 128)
# Options of MetaSchedule: trials a batch, trials before its model is asked.
VARIANTS = {"metaschedule": (64, 100), "metaschedule_early": (16, 16)}
# Seconds in which a build of MetaSchedule must end, a slow start of its worker included, and a run: its own default is
# 30, and a schedule that computes a softmax's sums for every element would else be timed for minutes.
BUILD_PATIENCE, RUN_PATIENCE = 600.0, 60.0
ROUNDS = 101
LEVEL = 0.95


def task_of(name: str) -> Task:
    """The task that both tune."""
    operator, shape = WORKLOADS[name]
    return make_task(TaskOptions(operator, "llvm", None, shape, "float32"), measure_roof=False)


def tune_theirs(name: str, variant: str, trials: int, seed: int, folder: Path) -> None:
    """Leaves MetaSchedule's database in `folder`."""
    from tvm.s_tir import meta_schedule as ms

    batch, warm_up = VARIANTS[variant]
    task = task_of(name)
    ms.tune_tir(
        mod=workload_module(task),
        target=tvm_target(task),
        work_dir=str(folder),
        max_trials_global=trials,
        num_trials_per_iter=min(batch, trials),
        builder=ms.builder.LocalBuilder(
            max_workers=usable_cores(), timeout_sec=BUILD_PATIENCE, initializer=vectorise_exponential
        ),
        runner=ms.runner.LocalRunner(timeout_sec=RUN_PATIENCE),
        cost_model=ms.cost_model.XGBModel(num_warmup_samples=warm_up),
        num_tuning_cores=usable_cores(),
        seed=seed + 1,
    )


def our_modules(task: Task, folder: Path) -> dict[str, Any]:
    """Of every trial that was the best so far, `ours@TRIAL` -> its scheduled module."""
    modules, best = {}, float("inf")
    (log,) = load_runs(folder)
    for trial, measurement in enumerate(log.trials.values(), start=1):
        if measurement.seconds < best:
            best = measurement.seconds
            schedule = measurement.schedule
            modules[f"ours@{trial}"] = task.sketch_of(schedule).scheduled(task, schedule).mod
    return modules


def their_modules(task: Task, variant: str, folder: Path) -> dict[str, Any]:
    """The same of MetaSchedule: its database holds the trials in order."""
    from tvm.s_tir import meta_schedule as ms

    workload = ms.database.Workload(workload_module(task))
    modules, best = {}, float("inf")
    lines = (folder / "database_tuning_record.json").read_text().splitlines()
    for trial, line in enumerate(lines, start=1):
        record = ms.database.TuningRecord.from_json(json.loads(line)[1], workload)
        seconds = [float(s) for s in record.run_secs or ()]
        if seconds and np.mean(seconds) < best:
            best = float(np.mean(seconds))
            modules[f"{variant}@{trial}"] = record.as_measure_candidate().sch.mod
    return modules


def race(name: str, folder: Path, budgets: Sequence[int]) -> dict[str, list[float]]:
    """Seconds of all our incumbents and of theirs at the budgets, one a round, the order of each round drawn anew."""
    import tvm

    task = task_of(name)
    vectorise_exponential()
    use_threads(tvm, cores_of(task))
    modules = our_modules(task, folder / "ours")
    for variant in VARIANTS:
        theirs = their_modules(task, variant, folder / variant)
        modules |= {label: theirs[label] for label in {held_at(theirs, variant, k) for k in budgets}}
    device, rng = Cpu(), np.random.default_rng(0)
    tensors = task.operator.tensors(task.workload)
    memory = [device.typed(device.raw(4 * math.prod(t.shape)), t) for t in tensors]
    inputs = [array for array, t in zip(memory, tensors, strict=True) if not t.output]
    outputs = [array for array, t in zip(memory, tensors, strict=True) if t.output]
    for array in inputs:
        array[...] = rng.standard_normal(array.shape, dtype=np.float32)
    wanted = task.operator.reference(task.workload, np, *[i.astype(np.float64) for i in inputs])
    launches: dict[str, Callable[[], object]] = {}
    for label, module in modules.items():
        launches[label] = TvmKernel(tvm.compile(module, target=tvm_target(task)).mod, "llvm").bind(inputs, outputs)
        launches[label]()
        for output, reference in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(output, reference, rtol=1e-3, atol=1e-3, err_msg=label)
    samples: dict[str, list[float]] = {label: [] for label in launches}
    for _ in range(ROUNDS):
        for label in rng.permutation(list(launches)):
            samples[label] += device.time([launches[label]], True, task.written_bytes)
    return samples


def held_at(samples: Mapping[str, object], who: str, trials: int) -> str:
    """The incumbent of `who` after so many trials."""
    places = [int(label.partition("@")[2]) for label in samples if label.partition("@")[0] == who]
    return f"{who}@{max(p for p in places if p <= trials)}"


def ratio(one: Sequence[float], other: Sequence[float]) -> dict[str, float]:
    """How many times faster `one` is, by medians, with a bootstrap interval over rounds."""

    def times(a: Any, b: Any, axis: int) -> Any:
        return np.median(b, axis=axis) / np.median(a, axis=axis)

    found = stats.bootstrap(
        (one, other), times, paired=True, confidence_level=LEVEL, n_resamples=2000, method="percentile", rng=0
    ).confidence_interval
    return {"times": float(times(one, other, -1)), "low": float(found.low), "high": float(found.high)}


def judged(samples: Mapping[str, Sequence[float]], budgets: Sequence[int]) -> dict[str, object]:
    """Times at each budget, ours against theirs, and in how many of our trials their last result was reached."""
    verdict: dict[str, object] = {}
    ours = sorted((label for label in samples if label.startswith("ours@")), key=lambda n: int(n.partition("@")[2]))
    for variant in VARIANTS:
        last = float(np.median(samples[held_at(samples, variant, budgets[-1])]))
        reached = (int(n.partition("@")[2]) for n in ours if np.median(samples[n]) <= last)
        verdict[variant] = {
            "faster": {
                str(k): ratio(samples[held_at(samples, "ours", k)], samples[held_at(samples, variant, k)])
                for k in budgets
            },
            "reached_in_trials": next(reached, None),
        }
    seconds = {
        who: {str(k): float(np.median(samples[held_at(samples, who, k)])) for k in budgets}
        for who in ("ours", *VARIANTS)
    }
    return {"seconds": seconds, "ours_against": verdict}


def run_case(name: str, trials: int, seed: int, sketch: str, folder: Path) -> dict[str, object]:
    """Tunes one workload with everybody and races what they found."""
    operator, shape = WORKLOADS[name]
    command = [sys.executable, "-m", "autotune", "run", "--op", operator, "--shape", shape, "--dtype", "float32"]
    options = {"--trials": trials, "--seed": seed, "--out": folder / "ours", "--mlflow": "none"}
    command += ["--quiet", *(str(word) for option in options.items() for word in option)]
    command += ["--sketch", sketch] if sketch else []
    commands = {"ours": command}
    for variant in VARIANTS:
        case = ["--only", name, "--tune", variant, "--trials", str(trials), "--seed", str(seed)]
        commands[variant] = [sys.executable, __file__, str(folder / variant), *case]
    spent = {}
    for who, words in commands.items():
        started = time.monotonic()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        spent[who] = time.monotonic() - started
    raced = [sys.executable, __file__, str(folder), "--only", name, "--race", "--trials", str(trials)]
    done = subprocess.run(raced, check=True, stdout=subprocess.PIPE, text=True)
    samples = json.loads(done.stdout.splitlines()[-1])
    return {"workload": name, "seed": seed, **judged(samples, budgets_of(trials)), "wall_seconds": spent}


def budgets_of(trials: int) -> list[int]:
    """Where the searches are looked at."""
    return [k for k in BUDGETS if k < trials] + [trials]


def main() -> None:
    """Runs the cases that the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default=",".join(WORKLOADS))
    parser.add_argument("--trials", type=int, default=BUDGETS[-1])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sketch", default="")
    parser.add_argument("--tune", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--race", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    calm_thread_pools()
    if given.tune:
        tune_theirs(given.only, given.tune, given.trials, given.seed, given.out)
        return
    if given.race:
        print(json.dumps(race(given.only, given.out, budgets_of(given.trials))))
        return
    cases = json.loads(given.out.read_text())["cases"] if given.out.exists() else []
    done = {(case["workload"], case["seed"]) for case in cases}
    for seed in range(given.seeds):
        for name in given.only.split(","):
            if (name, seed) in done:
                continue
            with tempfile.TemporaryDirectory() as scratch:
                cases.append(run_case(name, given.trials, seed, given.sketch, Path(scratch)))
            report = {
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "device": vars(cpu_info()),
                "environment": vars(read_environment()),
                "settings": {"trials": given.trials, "sketch": given.sketch or "all", "variants": VARIANTS},
                "workloads": WORKLOADS,
                "cases": cases,
            }
            given.out.write_text(json.dumps(report, indent=2) + "\n")
            print(json.dumps(cases[-1], indent=2))


if __name__ == "__main__":
    main()
