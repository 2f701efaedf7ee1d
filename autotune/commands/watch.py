"""`autotune watch`: a run as it goes, in the terminal."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.clock import monotonic
from autotune.display import clock_time, duration, output, rate, titled
from autotune.journal import journal_path
from autotune.records import RunRecord, TrialRecord
from autotune.watching import Watched, is_written
from search_spaces.errors import BadLog
from search_spaces.schedule import Schedule

_LOOK_SECONDS = 0.5
# A journal that stays still for so long is asked whether anyone still writes to it.
_STILL_SECONDS = 2.0
# Trials over which the present rate is taken.
_RECENT = 32


@click.command("watch")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Watch a run: best so far, statuses, rate and time left; ends with the run, or on Ctrl-C.

    \b
    autotune watch autotune-runs/FOLDER
    """
    watched = Watched(run)
    if not journal_path(run).is_file() and not is_written(run):
        raise BadLog(f"no journal at {journal_path(run)}", "name a run's folder or its journal.jsonl")
    console = output()
    try:
        with Live(console=console, auto_refresh=False, transient=True) as live:
            _follow(watched, live)
        console.print(view(watched, 0.0, over=True))
    except KeyboardInterrupt:
        console.print(view(watched, 0.0, over=False))
        console.print("the run goes on; watch it again with the same command")


def _follow(watched: Watched, live: Live) -> None:
    """Looks again and again, until the run is over or nobody writes to its journal any more."""
    changed = monotonic()
    while True:
        if watched.read():
            changed = monotonic()
        still = monotonic() - changed
        # What was written just before its writer left is still to be read.
        left_alone = still >= _STILL_SECONDS and not is_written(watched.path) and not watched.read()
        if watched.ended or left_alone:
            return
        live.update(view(watched, still, over=False), refresh=live.console.is_terminal)
        time.sleep(_LOOK_SECONDS)


def view(watched: Watched, since: float, *, over: bool) -> RenderableType:
    """What is shown of a run.

    Args:
        watched: The run.
        since: Seconds since its journal grew last.
        over: Whether nothing more will come.
    """
    run = watched.run
    if run is None:
        return Text("the run has not begun to measure")
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("state", _state(watched, since, over=over))
    bar = ProgressBar(total=max(run.trials, 1), completed=min(watched.done, run.trials), width=40)
    table.add_row("trials", Group(Text(f"{watched.done}/{run.trials}{_pace(watched)}"), bar))
    counts = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in watched.statuses.items())
    table.add_row("statuses", counts or "none yet")
    if watched.best is not None:
        table.add_row("best", _best(run, watched.best))
        table.add_row("schedule", str(Schedule.from_json(watched.best.schedule)))
        table.add_row("found", f"at trial {watched.best.trial}, {clock_time(watched.best.at)} after the start")
    for name, value in _race(watched):
        table.add_row(name, value)
    about = f" for {run.task.target} on {run.device.name}, strategy {run.strategy}, seed {run.seed}"
    return Group(titled(str(run.task.workload), about), table)


def _state(watched: Watched, since: float, *, over: bool) -> str:
    if watched.given_up:
        return f"the final race was given up, {watched.given_up}"
    if watched.ended:
        return "done"
    if over:
        return "stopped; 'autotune run --resume' goes on"
    if watched.left == 0:
        return "racing the finalists"
    remaining = watched.remaining(since)
    return f"searching, {clock_time(remaining)} left" if remaining < float("inf") else "searching"


def _pace(watched: Watched) -> str:
    """Trials a second, since the start and of late."""
    trials = watched.trials
    if len(trials) < 2 or trials[-1].at <= 0:
        return ""
    recent = list(trials)[-_RECENT:]
    span = recent[-1].at - recent[0].at
    late = f", {(len(recent) - 1) / span:.1f} of late" if span > 0 else ""
    return f", {watched.taken / trials[-1].at:.1f} a second{late}"


def _best(run: RunRecord, best: TrialRecord) -> str:
    seconds = best.measurement().seconds
    share = f"{run.floor_seconds / seconds:.1%} of the roofline"
    return f"{duration(seconds)}, {rate(run.operations, run.bytes, seconds)}, {share}"


def _race(watched: Watched) -> list[tuple[str, str]]:
    """The outcome of the final race."""
    race = watched.race
    if race is None:
        return []
    found = []
    for name, ratio in (("default", race.over_default), ("library", race.over_library)):
        if ratio is not None:
            found.append((f"over {name}", f"{ratio.times:.4g}x ({ratio.low:.4g} to {ratio.high:.4g}, 95 %)"))
    samples = race.samples[race.schedules.index(race.winner)]
    return [("winner", f"{Schedule.from_json(race.winner)}, {duration(statistics.median(samples))}"), *found]


COMMAND = command
