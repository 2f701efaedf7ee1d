"""`autotune bench`: suites of workloads, tuned and held against the libraries that are here."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from autotune.benchmark.contest import library_names
from autotune.benchmark.measuring import Stopped, Terms, measured
from autotune.benchmark.report import as_json, in_a_line, print_report, write_report
from autotune.benchmark.result import CaseResult, Results, standings
from autotune.benchmark.suite import Suite, cases, load_suite, shipped, suites_for
from autotune.clock import now
from autotune.devices.cpu import cpu_info, usable_cores
from autotune.devices.cuda import cuda_info
from autotune.display import output, progress_output
from autotune.measurement import Policy
from autotune.run_folder import ROOT
from autotune.tune import STRATEGIES, Settings
from search_spaces import registry
from search_spaces.errors import ExitCode
from search_spaces.target import parse_target

_SECONDS = 60.0
# A search ends by its seconds; so many trials are never reached.
_TRIALS = 1_000_000


@dataclass(frozen=True)
class BenchOptions:
    """The values of the options."""

    suites: tuple[str, ...]
    target: str
    arch: str | None
    seconds: float
    trials: int
    logs: tuple[Path, ...]
    strategy: str | None
    seed: int
    jobs: int | None
    l2: str
    compiled: bool
    wait: float | None
    out: Path | None
    gate: bool
    as_json: bool
    quiet: bool


@click.command("bench")
@click.argument("suites", nargs=-1)
@click.option("--target", default="llvm", show_default=True, help="llvm or cuda; TVM's spelling too.")
@click.option("-arch", "arch", metavar="ARCH", help="Architecture, for example -arch=sm_90.  [default: the device's]")
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.0, min_open=True),
    default=_SECONDS,
    show_default=True,
    help="Time limit of each workload's search.",
)
@click.option("--trials", type=click.IntRange(min=1), default=_TRIALS, help="Trials of each search, at most.")
@click.option(
    "--log", "logs", multiple=True, type=click.Path(path_type=Path), help="Take schedules from tuned logs; repeatable."
)
@click.option("--strategy", help="What searches.  [default: hybrid]")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of everything random.")
@click.option("--jobs", type=click.IntRange(min=1), help="Builder processes.  [default: one a core]")
@click.option(
    "--l2", type=click.Choice(["cold", "hot"]), default="cold", show_default=True, help="Caches before a sample."
)
@click.option("--compile", "compiled", is_flag=True, help="Let torch.compile max-autotune take part; slow.")
@click.option("--wait", type=click.FloatRange(min=0.0), metavar="SECONDS", help="Wait so long for a device in use.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder; one that holds results is continued.")
@click.option("--gate", is_flag=True, help="Exit code 8 unless every mark is met.")
@click.option("--list", "listed", is_flag=True, help="List the suites and end.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(listed: bool, **given: Any) -> int:
    """Tune suites of workloads and hold the kernels against every library that is here.

    \b
    autotune bench cpu --seconds 20
    autotune bench matmul rows --target cuda --seconds 120 --out bench
    """
    if listed:
        _list(output())
        return ExitCode.OK
    return _bench(BenchOptions(**given))


def _list(console: Console) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("suite", "target", "workloads", "about"):
        table.add_column(name, no_wrap=True)
    for suite in map(load_suite, shipped()):
        table.add_row(suite.name, " ".join(suite.targets), str(len(list(cases(suite)))), suite.title)
    console.print(table)


def _bench(options: BenchOptions) -> int:
    """Everything after parsing."""
    progress = progress_output(options.quiet)
    strategy = options.strategy or ("hybrid" if registry.available("xgboost") else "evolutionary")
    if options.strategy is None and strategy != "hybrid":
        progress.print(f"going on with strategy {strategy}: xgboost is not installed; pip install xgboost-cpu")
    registry.find(STRATEGIES, strategy, "strategy")
    at_hand = cuda_info() if options.target.startswith("cuda") else cpu_info()
    target = parse_target(options.target, options.arch, at_hand.arch if at_hand else None)
    suites = suites_for(options.suites, target.kind)
    here, absent = library_names(target.kind, slow=options.compiled)
    folder = options.out or ROOT / f"bench-{now():%Y%m%d-%H%M%S}"
    for name, why in absent.items():
        progress.print(f"going on without {name}: {why}")
    terms = Terms(
        str(target),
        at_hand.name if at_hand else "",
        _settings(options, strategy),
        tuple(here),
        options.logs,
        folder,
        progress.print,
    )
    results: dict[str, list[CaseResult]] = {suite.name: [] for suite in suites}
    stopped = not _run(suites, terms, results)
    written = write_report(folder, "bench", results, suites, absent, partial(progress.print, soft_wrap=True))
    if options.as_json:
        sys.stdout.write(as_json(results, suites, absent) + "\n")
    else:
        print_report(output(), results, suites)
        output().print(f"written    {', '.join(map(str, written))}", soft_wrap=True)
    if stopped:
        progress.print(f"stopped; go on with the same options and --out {folder}", soft_wrap=True)
        return ExitCode.INTERRUPTED
    missed = any(not s.met for suite in suites for s in standings(suite.mark, results[suite.name]))
    return ExitCode.DOES_NOT_HOLD if options.gate and missed else ExitCode.OK


def _settings(options: BenchOptions, strategy: str) -> Settings:
    return Settings(
        strategy=strategy,
        trials=options.trials,
        minutes=options.seconds / 60.0,
        seed=options.seed,
        jobs=options.jobs or usable_cores(),
        policy=Policy(cold=options.l2 == "cold"),
        wait=float("inf") if options.wait is None else options.wait,
    )


def _run(suites: Sequence[Suite], terms: Terms, results: Mapping[str, list[CaseResult]]) -> bool:
    """Measures what is not measured yet; False where the user stopped it."""
    kept = Results(terms.folder)
    for suite in suites:
        for case in cases(suite):
            result = kept.known(terms.asked(case))
            if result is None:
                terms.say(f"{suite.name}: {case.title}")
                try:
                    result = measured(case, terms)
                except (Stopped, KeyboardInterrupt):
                    return False
                kept.keep(result)
                terms.say(f"  {f'failed: {result.failed}' if result.failed else in_a_line(result)}")
            results[suite.name].append(result)
    return True


COMMAND = command
