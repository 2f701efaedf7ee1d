"""`autotune diff`: what two tuned logs say differently."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.table import Table

from autotune.display import duration, output, pretty_json, titled
from autotune.merging import Change, compare
from autotune.tuned_log import entries_of
from search_spaces.schedule import Schedule


@click.command("diff")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(before: Path, after: Path, as_json: bool) -> None:
    """Show where the best schedules of two runs, journals or tuned logs differ, and what their machines differ in.

    Times are compared as they were recorded; 'autotune verify' measures anew.
    """
    changes = compare(entries_of(before), entries_of(after))
    if as_json:
        sys.stdout.write(pretty_json(list(map(_row, changes))) + "\n")
        return
    console = output()
    for change in changes:
        entry = change.entry
        console.print(
            titled(_verdict(change), f"  {entry.task.workload} for {entry.task.target} on {entry.device.name}"),
            soft_wrap=True,
        )
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, side in (("before", change.before), ("after", change.after)):
            if side is not None:
                table.add_row(name, f"{duration(side.seconds)}  {Schedule.from_json(side.schedule)}")
        for difference in change.differences:
            table.add_row("", f"{difference.field}: {difference.recorded or 'none'} -> {difference.here or 'none'}")
        console.print(table)
    if not changes:
        console.print("no difference")


def _verdict(change: Change) -> str:
    if change.before is None:
        return "new"
    if change.after is None:
        return "gone"
    times = change.times_faster
    assert times is not None
    if change.before.schedule == change.after.schedule:
        return f"same schedule, {times:.3g}x"
    return f"other schedule, {times:.3g}x"


def _row(change: Change) -> dict[str, object]:
    return {
        "workload": change.entry.task.workload,
        "target": change.entry.task.target,
        "device": change.entry.device.name,
        "before": change.before and {"schedule": change.before.schedule, "seconds": change.before.seconds},
        "after": change.after and {"schedule": change.after.schedule, "seconds": change.after.seconds},
        "times_faster": change.times_faster,
        "differences": change.differences,
    }


COMMAND = command
