"""`autotune plan`: what tuning a list of workloads costs, and how long it takes on so many devices."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from autotune.benchmark.suite import Case, cases, suites_for
from autotune.budget import TRIALS
from autotune.display import output, pretty_json, progress_output
from autotune.number_list import number_list
from autotune.planning.costs import CostBook
from autotune.planning.fleet import FleetTime, Workload, fleet_time
from autotune.planning.overheads import SHIPPED, Overheads, read_overheads
from autotune.recordings.finding import FOLDER, find_recordings, read_recording
from autotune.task_options import TaskOptions, make_task
from search_spaces.errors import AutotuneError
from search_spaces.space import SpaceSize
from search_spaces.target import parse_target

_RECORDED = str(FOLDER / "h200")
_HOUR = 3600.0


@dataclass(frozen=True)
class Planned:
    """A workload of the plan and its space."""

    case: Case
    space: SpaceSize
    workload: Workload


@click.command("plan")
@click.argument("suites", metavar="PLAN...", nargs=-1, required=True)
@click.option("--target", default="cuda", show_default=True, help="llvm or cuda; TVM's spelling too.")
@click.option("-arch", "arch", metavar="ARCH", help="Architecture, for example -arch=sm_90.  [default: sm_90]")
@click.option(
    "--devices",
    default="1,8,64,1000",
    show_default=True,
    callback=number_list("of devices"),
    help="Sizes of the fleet.",
)
@click.option(
    "--builders", type=click.IntRange(min=1), default=16, show_default=True, help="Builder processes with each device."
)
@click.option("--trials", type=click.IntRange(min=1), help="Of each search.  [default: 64 on a CPU, 512 on a GPU]")
@click.option(
    "--costs",
    "places",
    multiple=True,
    default=(_RECORDED,),
    show_default=True,
    metavar="RECORDINGS-OR-RUNS",
    help="What trials cost: recordings, folders of them, or runs; repeatable.",
)
@click.option(
    "--overheads",
    type=click.Path(path_type=Path),
    default=SHIPPED,
    metavar="FILE",
    help="What a search costs beside its trials.  [default: as measured on an H200]",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(
    suites: tuple[str, ...],
    target: str,
    arch: str | None,
    devices: tuple[int, ...],
    builders: int,
    trials: int | None,
    places: tuple[str, ...],
    overheads: Path,
    seed: int,
    as_json: bool,
) -> None:
    """Estimate what tuning a list of workloads costs, and simulate it on fleets of several sizes; needs no device.

    \b
    autotune plan experiments/llm.toml --devices 1,8,64,1000
    """
    where = str(parse_target(target, arch, "sm_90"))
    book = CostBook([read_recording(path) for path in find_recordings(places)])
    beside = read_overheads(overheads)
    found = [
        p
        for suite in suites_for(suites, where.partition(" ")[0])
        for p in _planned(list(cases(suite)), where, book, trials)
    ]
    if not found:
        raise AutotuneError("the plan holds no workload", "add some, as in experiments/llm.toml")
    fleets = [fleet_time([p.workload for p in found], n, builders, beside, seed) for n in devices]
    if as_json:
        sys.stdout.write(_json(found, fleets, beside) + "\n")
    else:
        _print(found, fleets, beside, builders, output())


def _planned(listed: Sequence[Case], target: str, book: CostBook, trials: int | None) -> Iterator[Planned]:
    progress = progress_output(quiet=False)
    for case in listed:
        progress.print(f"sizing {case.title}")
        task = make_task(TaskOptions(case.op, target, None, case.shape, case.dtype), measure_roof=False)
        kind = task.target.kind
        size = task.space.size(np.random.default_rng(0))
        count = min(trials or TRIALS[kind], size.legal)
        yield Planned(case, size, Workload(case.title, book.costs_for(task), count, kind == "llvm"))


def _json(found: Sequence[Planned], fleets: Sequence[FleetTime], overheads: Overheads) -> str:
    rows = [
        {
            "workload": p.case.title,
            "legal_schedules": p.space.legal,
            "exact": p.space.exact,
            "trials": p.workload.trials,
            "build_seconds": p.workload.build_seconds,
            "device_seconds": p.workload.device_seconds + overheads.final,
            "costs": p.workload.costs.source,
        }
        for p in found
    ]
    times = [{**{n: getattr(f, n) for n in FleetTime.__dataclass_fields__}, "binds": f.binds} for f in fleets]
    return pretty_json({"workloads": rows, "overheads": overheads, "fleets": times})


def _print(
    found: Sequence[Planned], fleets: Sequence[FleetTime], overheads: Overheads, builders: int, console: Console
) -> None:
    console.print(_workloads(found, overheads))
    build = sum(p.workload.build_seconds for p in found)
    device = sum(p.workload.device_seconds + overheads.final for p in found)
    console.print(
        f"\n{len(found)} workloads, {sum(p.workload.trials for p in found):,} trials: {build / _HOUR:.2f} hours of one "
        f"builder, {device / _HOUR:.2f} hours of one device; costs as recorded in the recordings named",
        soft_wrap=True,
    )
    console.print(
        f"beside the trials, as measured on {overheads.device}: {overheads.start:.3g} s to start a search, "
        f"{overheads.final:.3g} s for its final race, {1e3 * (overheads.suggest + overheads.record):.3g} ms to propose "
        f"and write down a trial\n",
        soft_wrap=True,
    )
    console.print(_fleets(fleets, builders))


def _workloads(found: Sequence[Planned], overheads: Overheads) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("workload", "schedules", "trials", "build s", "device s", "costs as in"):
        table.add_column(name, justify="left" if name in ("workload", "costs as in") else "right", no_wrap=True)
    for p in found:
        about = "" if p.space.exact else "~"
        work = p.workload
        device = work.device_seconds + overheads.final
        table.add_row(
            p.case.title,
            f"{about}{p.space.legal:,}",
            f"{work.trials:,}",
            f"{work.build_seconds:.0f}",
            f"{device:.1f}",
            work.costs.source,
        )
    return table


def _fleets(fleets: Sequence[FleetTime], builders: int) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), title=f"with {builders} builders a device", title_justify="left")
    for name in (
        "devices",
        "searches at a time",
        "wall time",
        "builders busy",
        "devices busy",
        "strategy busy",
        "waits for",
    ):
        table.add_column(name, justify="left" if name == "waits for" else "right", no_wrap=True)
    for f in fleets:
        table.add_row(
            f"{f.devices:,}",
            f"{f.searches:,}",
            f"{f.seconds / _HOUR:.3g} h",
            f"{f.building:.0%}",
            f"{f.measuring:.0%}",
            f"{f.proposing:.0%}",
            f.binds,
        )
    return table


COMMAND = command
