"""`autotune run`: tune an operator on the device at hand, or compile its candidates without one."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from autotune.budget import TRIALS
from autotune.compile_only import compile_only
from autotune.display import ProgressLine, output, progress_output
from autotune.environment import tracking_uri, without_password
from autotune.executors.base import Site
from autotune.importing import proposals_in
from autotune.measurement import Policy
from autotune.prior.choosing import SHIPPED, prior_file
from autotune.records import RunRecord
from autotune.run_folder import first_record, fresh_folder, latest_folder, new_folder
from autotune.sanitizer import find_sanitizer, parse_tools
from autotune.site_options import site_options, taken_site
from autotune.summary import outcome_json, print_outcome
from autotune.task_options import TaskOptions, make_task, on_device, require_device, task_options
from autotune.tracking.follower import EXPERIMENT, following, store_uri
from autotune.trust import require_trusted
from autotune.tune import STRATEGIES, Settings, tune, usable_task
from autotune.warm_start import warm_schedules
from search_spaces import registry
from search_spaces.errors import AutotuneError, ExitCode
from search_spaces.schedule import Schedule
from search_spaces.task import OPERATORS, Task

# Schedules of a warm start at most, and no more than a quarter of the trials.
_MOST_WARM = 16


def _strategy_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in registry.names(STRATEGIES) if name.startswith(incomplete)]


@click.command("run")
@task_options(required=False)
@site_options
@click.option("--strategy", shell_complete=_strategy_names, help="What searches.  [default: hybrid]")
@click.option(
    "--prior", metavar="WHICH", help="What was learnt of other tasks: shipped, none or a file.  [default: shipped]"
)
@click.option(
    "--warm-start",
    "warm_start",
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE",
    help="Measure what others found good first: what 'autotune import' wrote or reads, a tuned log, a recording.",
)
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
@click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    metavar="SECONDS",
    help="Wait so long for a device that another run uses.  [default: until it is free]",
)
@click.option(
    "--mlflow",
    metavar="URI",
    help="Where to log; 'none' for nowhere.  [default: MLFLOW_TRACKING_URI, else a SQLite file beside the runs]",
)
@click.option("--experiment", default=EXPERIMENT, show_default=True, help="The experiment's name in MLflow.")
@click.option(
    "--sanitize",
    is_flag=False,
    flag_value="memcheck",
    metavar="[TOOL,...]",
    help="Run finalists under compute-sanitizer: memcheck, racecheck, initcheck, synccheck; CUDA only, slow.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(**given: Any) -> int:
    """Tune an operator on a device and leave a tuned log.

    \b
    autotune run --op matmul --target llvm --shape M=512,N=512,K=512
    autotune run --op attention --target cuda -arch=sm_80
    """
    names = {"op": given.pop("op"), **{n: given.pop(n) for n in ("target", "arch", "shape", "dtype", "sketches")}}
    return _run(names, RunOptions(site=taken_site(given), **given))


@dataclass(frozen=True)
class RunOptions:
    """The values of the options that say how to tune, None where the user left them out."""

    site: Site
    strategy: str | None
    prior: str | None
    warm_start: Path | None
    trials: int | None
    minutes: float | None
    seed: int | None
    jobs: int | None
    l2: str
    wait: float | None
    out: Path | None
    resume: str | None
    only_compile: bool
    foreign_device: bool
    sanitize: str | None
    mlflow: str | None
    experiment: str
    as_json: bool
    quiet: bool


def _run(names: dict[str, Any], options: RunOptions) -> int:
    """Everything after parsing."""
    folder, earlier = None, None
    if options.resume is not None:
        folder = Path(options.resume) if options.resume else options.out or latest_folder(names["op"])
        earlier = first_record(folder)
    task_names = _task_names(names, earlier)
    if options.strategy is not None:
        registry.find(STRATEGIES, options.strategy, "strategy")
    elif earlier is not None:
        require_trusted(STRATEGIES, "strategy", earlier.strategy, (), "--strategy")
    prior_file(options.prior or SHIPPED)
    _require_sanitizer(task_names, options)
    task = make_task(task_names, measure_roof=not options.only_compile, site=options.site)
    if not options.only_compile:
        task = on_device(task, require_device(task, options.foreign_device, options.site))
    progress = progress_output(options.quiet)
    task, left_out = usable_task(task)
    for reason in left_out:
        progress.print(f"going on without some sketches: {reason}")
    settings = replace(_settings(task, options, earlier), warm=_warm(task, options, progress.print))
    if options.strategy is None and not registry.available("xgboost"):
        progress.print("going on with strategy evolutionary: xgboost is not installed; pip install xgboost-cpu")
        settings = replace(settings, strategy="evolutionary")
    if options.only_compile:
        compile_only(task, settings, output(), progress, as_json=options.as_json)
        return ExitCode.OK
    if folder is None:
        folder = fresh_folder(options.out) if options.out is not None else new_folder(task.workload, task.target)
    return _tune(task, settings, folder, options, progress)


def _task_names(names: dict[str, Any], earlier: RunRecord | None) -> TaskOptions:
    """The task that the user names, else that of the run which is continued.

    Raises:
        AutotuneError: There is neither, or the run names an operator's file or module that the user does not.
    """
    op = names["op"]
    if earlier is not None and (op is None or TaskOptions(**names) == TaskOptions(earlier.task.reference)):
        require_trusted(OPERATORS, "operator", earlier.task.reference, () if op is None else (op,), "--op")
        return TaskOptions.of(earlier.task)
    if op is None:
        raise AutotuneError("no operator", "name one with --op; 'autotune ops' lists them")
    return TaskOptions(**names)


def _tune(task: Task, settings: Settings, folder: Path, options: RunOptions, progress: Console) -> int:
    """The run itself, watched and tracked, and what is said of it in the end."""
    cost = task.operator.cost(task.workload)
    store = store_uri(options.mlflow or tracking_uri(), folder)
    with (
        following(folder, store, options.experiment, progress.print),
        ProgressLine(progress, cost.operations, cost.bytes, task.floor_seconds) as line,
    ):
        outcome = tune(task, settings, folder, [line], line.searching)
    if options.as_json:
        sys.stdout.write(outcome_json(outcome) + "\n")
    else:
        print_outcome(output(), outcome)
        if store is not None:
            output().print(f"mlflow     {without_password(store)}, experiment {options.experiment}", soft_wrap=True)
    return outcome.exit_code


def _warm(task: Task, options: RunOptions, say: Callable[[str], object]) -> tuple[Schedule, ...]:
    """The first schedules, a few of them; said are their number and what became of the other proposals."""
    if options.warm_start is None:
        return ()
    proposals = proposals_in(options.warm_start)
    trials = options.trials or TRIALS[task.target.kind]
    schedules, reasons = warm_schedules(task, proposals, max(1, min(_MOST_WARM, trials // 4)))
    for reason in reasons:
        say(f"left out of the warm start: {reason}")
    say(f"starting from {len(schedules)} schedules that {len(proposals)} proposals in {options.warm_start} gave")
    return tuple(schedules)


def _require_sanitizer(names: TaskOptions, options: RunOptions) -> None:
    """Raises where `--sanitize` cannot be obeyed; before anything is measured."""
    if not parse_tools(options.sanitize):
        return
    if not names.target.startswith("cuda"):
        raise AutotuneError("--sanitize checks kernels of a GPU", f"leave it out for --target {names.target}")
    if not options.site.kind.here:
        raise AutotuneError("--sanitize runs on this machine", f"leave it out with --executor {options.site.executor}")
    find_sanitizer()


def _settings(task: Task, options: RunOptions, earlier: RunRecord | None) -> Settings:
    """What the options say, else what the continued run had, else the defaults."""
    inherited = (
        Settings(strategy=earlier.strategy, trials=earlier.trials, minutes=earlier.minutes, seed=earlier.seed)
        if earlier is not None
        else Settings(trials=TRIALS[task.target.kind])
    )
    return Settings(
        strategy=options.strategy or inherited.strategy,
        trials=options.trials or inherited.trials,
        minutes=options.minutes or inherited.minutes,
        seed=inherited.seed if options.seed is None else options.seed,
        jobs=options.jobs or 0,
        site=options.site,
        policy=Policy(cold=options.l2 == "cold"),
        wait=float("inf") if options.wait is None else options.wait,
        sanitize=parse_tools(options.sanitize),
        prior=options.prior or SHIPPED,
    )


COMMAND = command
