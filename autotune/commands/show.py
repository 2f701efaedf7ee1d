"""`autotune show`: the trials of a run."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from autotune.cost import cost_line, cost_of
from autotune.display import duration, output, rate, titled
from autotune.journal import RunLog, load_runs
from autotune.measurement import Measurement, Status
from autotune.model_quality import quality_of
from autotune.records import TrialRecord
from autotune.tuned_log import verified_counts
from cost_models.ranking import TOP


@click.command("show")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--status", type=click.Choice([str(s) for s in Status]), help="Only trials that ended so.")
@click.option("--top", type=click.IntRange(min=1), default=20, show_default=True, help="Trials shown, fastest first.")
@click.option("--json", "as_json", is_flag=True, help="Print every trial as a line of JSON.")
@click.option("--price-per-hour", type=click.FloatRange(min=0), metavar="PRICE", help="Of the machine, for the cost.")
def command(path: Path, status: str | None, top: int, as_json: bool, price_per_hour: float | None) -> None:
    """Show the trials of a run, fastest first; failures with their reasons."""
    console = output()
    for log in load_runs(path):
        if as_json:
            for number, trial in enumerate(_chosen(log, status)):
                record = TrialRecord.of(log.runs[-1].run, number, 0.0, trial)
                sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
            continue
        _print(log, status, top, console)
        console.print(f"cost {cost_line(cost_of(log), price_per_hour)}", soft_wrap=True)


def _chosen(log: RunLog, status: str | None) -> Iterator[Measurement]:
    """The trials that ended so."""
    return (m for m in log.trials.values() if status is None or m.status == status)


def _shown(log: RunLog, status: str | None, top: int) -> list[Measurement]:
    """So many of them, fastest first, then those that failed."""
    fastest = [] if status not in (None, Status.OK) else log.trials.fastest(top)
    if len(fastest) == top or status == Status.OK:
        return fastest
    failed = (m for m in _chosen(log, status) if m.status is not Status.OK)
    return [*fastest, *islice(failed, top - len(fastest))]


def _print(log: RunLog, status: str | None, top: int, console: Console) -> None:
    run = log.runs[-1]
    counts = ", ".join(f"{n} {s.replace('_', ' ')}" for s, n in verified_counts(log).items())
    console.print(
        titled(
            str(run.task.workload),
            f" for {run.task.target} on {run.device.name}, strategy {run.strategy}, seed {run.seed}: {counts}",
        )
    )
    table = Table(box=None)
    for name in ("time", "rate", "roofline", "samples"):
        table.add_column(name, justify="right")
    table.add_column("schedule, or why it failed", overflow="fold")
    for trial in _shown(log, status, top):
        if trial.status is Status.OK:
            table.add_row(
                duration(trial.seconds),
                rate(run.operations, run.bytes, trial.seconds),
                f"{run.floor_seconds / trial.seconds:.0%}",
                str(len(trial.samples)),
                str(trial.schedule),
            )
        else:
            table.add_row("", "", "", "", f"{trial.status.replace('_', ' ')}: {trial.detail} [{trial.schedule}]")
    console.print(table)
    if (found := quality_of(log)) is not None:
        name, quality, judged = found
        console.print(
            f"model {name} on {judged} trials kept from it: {quality.pair_accuracy:.0%} of pairs in order, "
            f"{quality.top_recall:.0%} of the {TOP} fastest among its first {TOP}, "
            f"the best of those {quality.regret:.0%} slower than the fastest"
        )


COMMAND = command
