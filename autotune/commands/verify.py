"""`autotune verify`: the winners of a log, measured again against the default: a regression gate."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autotune.display import duration, output, pretty_json, progress_output, titled
from autotune.environment import calm_thread_pools
from autotune.identity import Reading
from autotune.sanitizer import find_sanitizer, parse_tools
from autotune.summary import interval
from autotune.tuned_log import entries_of, write_entries
from autotune.verification import Rules, State, Verified, prepare, verify
from search_spaces.errors import ExitCode, NothingValid
from search_spaces.space import Schedule

_MOST_DIFFERENCES = 4


@click.command("verify")
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--policy",
    type=click.Choice([str(p) for p in Reading]),
    default=str(Reading.COMPATIBLE),
    show_default=True,
    help="Records of another device, software or source: passed over, verified here where that can be, or refused.",
)
@click.option(
    "--top",
    type=click.IntRange(1, 5),
    default=3,
    show_default=True,
    help="Schedules verified of each entry: the winner and its runners-up.",
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0.0),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="How much slower than recorded a winner may be on the device it was recorded on.",
)
@click.option(
    "--sanitize",
    is_flag=False,
    flag_value="memcheck",
    metavar="[TOOL,...]",
    help="Run them under compute-sanitizer: memcheck, racecheck, initcheck, synccheck; CUDA only, slow.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A tuned log of the winners that hold, as measured here; what was imported is verified from then on.",
)
@click.option(
    "--op", "operators", multiple=True, help="File or module of an operator that may be imported; repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(
    log: Path,
    policy: str,
    top: int,
    tolerance: float,
    sanitize: str | None,
    out: Path | None,
    operators: tuple[str, ...],
    as_json: bool,
) -> int:
    """Measure the winners of a tuned log, journal or run again; exit code 8 unless all of them hold.

    \b
    autotune verify autotune-runs/FOLDER/tuned-log.json --policy exact
    autotune verify imported/tuned-log.json --out verified.json
    """
    entries = entries_of(log)
    if not entries:
        raise NothingValid(f"no verified schedule in {log}", "'autotune show' tells why trials failed")
    calm_thread_pools()
    rules = Rules(Reading(policy), top, tolerance / 100.0, parse_tools(sanitize), operators)
    if rules.sanitize:
        find_sanitizer()
    progress = progress_output(quiet=as_json)
    results = []
    for case in prepare(entries, rules):
        if case.failed is None:
            progress.print(f"measuring {case.entry.task.workload} for {case.entry.task.target}")
        results.append(verify(case, rules, progress.print))
    if out is not None:
        write_entries(out, [r.held for r in results if r.held is not None])
    if as_json:
        rows = [_row(r) for r in results]
        sys.stdout.write(pretty_json(rows) + "\n")
    else:
        for result in results:
            _print(output(), result, rules)
    return ExitCode.OK if all(r.state is State.HOLDS for r in results) else ExitCode.DOES_NOT_HOLD


def _row(result: Verified) -> dict[str, object]:
    entry, judgement = result.entry, result.judgement
    return {
        "workload": entry.task.workload,
        "target": entry.task.target,
        "schedule": entry.schedule,
        "state": result.state.replace(" ", "_"),
        "why": result.why,
        "recorded_device": entry.device.name,
        "recorded_seconds": entry.seconds,
        "seconds": result.seconds,
        "recorded_over_default": entry.over_default,
        "over_default": result.over_default,
        "fastest": result.fastest.to_json() if result.fastest is not None else None,
        "fastest_over_default": result.fastest_over_default,
        "policy": judgement.policy if judgement else None,
        "verified_anew": judgement.must_verify if judgement else None,
        "differences": judgement.differences if judgement else (),
    }


def _print(console: Console, result: Verified, rules: Rules) -> None:
    entry, judgement = result.entry, result.judgement
    why = f": {result.why}" if result.why else ""
    console.print(titled(f"{result.state}  {entry.task.workload} for {entry.task.target}", why), soft_wrap=True)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("schedule", str(Schedule.from_json(entry.schedule)))
    if result.seconds is not None:
        change = result.seconds / entry.seconds - 1.0
        table.add_row(
            "time",
            f"{duration(result.seconds)} here, {duration(entry.seconds)} recorded on {entry.device.name} "
            f"({change:+.1%})",
        )
    if result.over_default is not None:
        recorded = f"; recorded {interval(entry.over_default)}" if entry.over_default is not None else ""
        table.add_row("over default", f"{interval(result.over_default)}{recorded}")
    if judgement is not None and judgement.differences:
        shown = [str(d) for d in judgement.differences[:_MOST_DIFFERENCES]]
        left = len(judgement.differences) - len(shown)
        table.add_row("differs in", "\n".join(shown) + (f"\nand {left} more, see --json" if left else ""))
    if judgement is not None and judgement.must_verify:
        table.add_row("policy", f"{judgement.policy}: the best {rules.top} at most were verified again here")
    if result.fastest is not None and result.fastest != Schedule.from_json(entry.schedule):
        table.add_row("fastest here", str(result.fastest))
    console.print(table)


COMMAND = command
