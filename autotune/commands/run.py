"""`autotune run`: tune an operator on the device at hand, or compile its candidates without one."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from autotune.compile_only import compile_only
from autotune.devices.cpu import usable_cores
from autotune.display import ProgressLine
from autotune.measurement import Policy
from autotune.records import RunRecord
from autotune.run_folder import first_record, fresh_folder, latest_folder, new_folder
from autotune.summary import outcome_json, print_outcome
from autotune.task_options import make_task, require_device, task_options
from autotune.tune import STRATEGIES, Settings, tune
from search_spaces import registry
from search_spaces.errors import AutotuneError, ExitCode
from search_spaces.hardware import cuda_hardware
from search_spaces.task import Task

_TRIALS = {"llvm": 64, "cuda": 512}


def _strategy_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in registry.names(STRATEGIES) if name.startswith(incomplete)]


@click.command("run")
@task_options(required=False)
@click.option("--strategy", shell_complete=_strategy_names, help="What searches.  [default: xgb]")
@click.option("--trials", type=click.IntRange(min=1), help="Trials in all.  [default: 64 on a CPU, 512 on a GPU]")
@click.option("--minutes", type=click.FloatRange(min=0.0, min_open=True), help="Time limit of the search.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of everything random.  [default: 0]")
@click.option("--jobs", type=click.IntRange(min=1), help="Builder processes.  [default: one a core]")
@click.option(
    "--l2", type=click.Choice(["cold", "hot"]), default="cold", show_default=True, help="Caches before a sample."
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the run.  [default: one in autotune-runs]")
@click.option(
    "--resume", is_flag=False, flag_value="", metavar="[FOLDER]", help="Continue a run: that one, --out, or the newest."
)
@click.option("--compile-only", "only_compile", is_flag=True, help="Compile candidates, measure none; needs no device.")
@click.option("--foreign-device", is_flag=True, help="Measure on a device of another arch; no result for the target.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    op: str | None,
    target: str,
    arch: str | None,
    shape: str,
    dtype: str | None,
    sketches: tuple[str, ...],
    strategy: str | None,
    trials: int | None,
    minutes: float | None,
    seed: int | None,
    jobs: int | None,
    l2: str,
    out: Path | None,
    resume: str | None,
    only_compile: bool,
    foreign_device: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Tune an operator on a device and leave a tuned log.

    \b
    autotune run --op matmul --target llvm --shape M=512,N=512,K=512
    autotune run --op attention --target cuda -arch=sm_80
    """
    folder, earlier = None, None
    if resume is not None:
        folder = Path(resume) if resume else out or latest_folder({"reference": op, "target": None})
        earlier = first_record(folder)
    if op is None:
        if earlier is None:
            raise AutotuneError("no operator", "name one with --op; 'autotune ops' lists them")
        op, target, arch, sketches = earlier.task.reference, earlier.task.target, None, earlier.task.only
        shape, dtype = ",".join(f"{k}={v}" for k, v in earlier.task.workload.axes), earlier.task.workload.dtype
    if strategy is not None:
        registry.find(STRATEGIES, strategy, "strategy")
    task = make_task(op, target, arch, shape, dtype, sketches, measure_roof=not only_compile)
    settings = _settings(task, earlier, strategy, trials, minutes, seed, jobs, l2, foreign_device)
    console, progress = Console(), Console(stderr=True, quiet=quiet)
    if only_compile:
        compile_only(task, settings, console, progress, as_json=as_json)
        return ExitCode.OK
    device = require_device(task, foreign_device)
    if task.target.kind == "cuda" and foreign_device:
        task = replace(task, hardware=cuda_hardware(task.target.arch, device.name))
    if folder is None:
        folder = fresh_folder(out) if out is not None else new_folder(task.workload, task.target)
    cost = task.operator.cost(task.workload)
    with ProgressLine(progress, cost.operations, cost.bytes, task.floor_seconds) as line:
        outcome = tune(task, settings, folder, [line], line.searching)
    if as_json:
        sys.stdout.write(outcome_json(outcome) + "\n")
    else:
        print_outcome(console, outcome)
    return ExitCode.INTERRUPTED if outcome.stopped else ExitCode.OK


def _settings(
    task: Task,
    earlier: RunRecord | None,
    strategy: str | None,
    trials: int | None,
    minutes: float | None,
    seed: int | None,
    jobs: int | None,
    l2: str,
    foreign: bool,
) -> Settings:
    """What the options say, else what the continued run had, else the defaults."""
    return Settings(
        strategy=strategy or (earlier.strategy if earlier else "xgb"),
        trials=trials or (earlier.trials if earlier else _TRIALS[task.target.kind]),
        minutes=minutes if minutes is not None else (earlier.minutes if earlier else None),
        seed=seed if seed is not None else (earlier.seed if earlier else 0),
        jobs=jobs or usable_cores(),
        policy=Policy(cold=l2 == "cold"),
        foreign=foreign,
    )


COMMAND = command
