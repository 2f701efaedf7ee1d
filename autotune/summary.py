"""The end of a run in words and as JSON."""

from __future__ import annotations

import shlex
import statistics

from rich.console import Console
from rich.table import Table

from autotune.clock import now
from autotune.cost import cost_line, cost_of
from autotune.display import duration, pretty_json, rate, titled
from autotune.race import RaceResult
from autotune.records import RaceRecord, Ratio
from autotune.trust import is_shipped
from autotune.tune import STRATEGIES, Outcome
from autotune.tuned_log import Entry, verified_counts
from search_spaces.space import Schedule
from search_spaces.task import OPERATORS


def interval(ratio: Ratio) -> str:
    """A speed-up with its 95 % interval."""
    return f"{ratio.times:.4g}x ({ratio.low:.4g} to {ratio.high:.4g}, 95 %)"


def verdict(entry: Entry) -> str:
    """What may be said of the winner against the untuned default."""
    if entry.race_failed:
        return f"not raced against the default: the final race was given up, {entry.race_failed}"
    if entry.unverified:
        return "not raced against the default: it was measured elsewhere, by another tuner"
    if not entry.raced:
        return "not raced against the default: the run was stopped before its final race"
    if entry.over_default is None:
        return "the untuned default itself failed, see 'autotune show'"
    if entry.over_default.low <= 1.0:
        return "tie with the untuned default, which is kept"
    return f"{interval(entry.over_default)} faster than the untuned default"


def print_entry(console: Console, entry: Entry) -> None:
    """The best of one task, as `run` and `best` show it."""
    work = (entry.operations, entry.bytes)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("schedule", str(Schedule.from_json(entry.schedule)))
    # Of a device that is not here nobody knows the roof.
    share = "" if entry.unverified or not entry.roofline else f", {entry.roofline:.1%} of the roofline"
    table.add_row("time", f"{duration(entry.seconds)}, {rate(*work, entry.seconds)}{share}")
    table.add_row("against", verdict(entry))
    if entry.over_library is not None:
        library = entry.seconds * entry.over_library.times
        table.add_row(
            "library", f"{entry.library}: {duration(library)}, {rate(*work, library)}; {interval(entry.over_library)}"
        )
    used = entry.resources
    if used.registers is not None:
        table.add_row(
            "resources",
            f"{used.registers} registers, {used.spill_bytes or 0} bytes spilled, "
            f"{(used.shared_bytes or 0) / 1024:.4g} KiB shared, {used.threads} threads",
        )
    if entry.foreign:
        table.add_row("foreign", f"measured on {entry.device.arch}: no result for {entry.task.target}")
    if entry.source:
        state = "not verified here" if entry.unverified else "verified since"
        table.add_row("imported", f"from {entry.source}, {state}")
    console.print(titled(str(entry.task.workload), f" for {entry.task.target} on {entry.device.name}"))
    console.print(table)


def print_outcome(console: Console, outcome: Outcome) -> None:
    """The end of `autotune run`."""
    if outcome.entry is not None:
        print_entry(console, outcome.entry)
    counts = ", ".join(f"{n} {status.replace('_', ' ')}" for status, n in verified_counts(outcome.log).items())
    pace = outcome.new_trials / outcome.search_seconds if outcome.search_seconds else 0.0
    lines = [
        f"{outcome.new_trials} trials in {outcome.search_seconds:.1f} s, {pace:.1f} a second from start to end "
        f"(builders worked {outcome.build_seconds:.1f} s, the device {outcome.device_seconds:.1f} s)",
        f"trials     {counts}",
        f"tuned log  {outcome.tuned_log}",
        f"journal    {outcome.journal}",
    ]
    lines.append(f"cost       {cost_line(cost_of(outcome.log))}")
    if outcome.race is not None:
        lines += _race_remarks(outcome.race) + _check_remarks(outcome.log.races[-1])
    if outcome.stopped:
        lines.append(f"stopped; resume with: {resume_command(outcome)}")
    for line in lines:
        console.print(line, soft_wrap=True)


def resume_command(outcome: Outcome) -> str:
    """How the run is continued; plug-ins of the user's own have to be named anew, as a log's are not imported."""
    run = outcome.log.runs[-1]
    named = [] if is_shipped(OPERATORS, run.task.reference) else ["--op", run.task.reference]
    named += [] if is_shipped(STRATEGIES, run.strategy) else ["--strategy", run.strategy]
    return shlex.join(["autotune", "run", "--resume", str(outcome.journal.parent), *named])


def _race_remarks(race: RaceResult) -> list[str]:
    """What the reader should know of how the race went."""
    remarks = []
    if race.tied and race.winner != race.default:
        remarks.append(f"tie        {race.tied} finalists are not told apart from the winner, the simplest of equals")
    if race.voided:
        remarks.append(f"drift      void looks of the race, in which the default drifted: {race.voided}")
    return remarks + [f"left out   of the race: {schedule}: {why}" for schedule, why in race.dropped.items()]


def _check_remarks(race: RaceRecord) -> list[str]:
    """What the closer checks of finalists told that is no fault of the winner."""
    remarks = [f"odd shape  {fault.why}" for fault in race.edge_faults]
    if race.sanitized:
        remarks.append(f"sanitized  finalists, by {', '.join(race.sanitized)}")
    return remarks


def outcome_json(outcome: Outcome) -> str:
    """The same for machines."""
    library = {n: statistics.median(t) for n, t in outcome.race.library.items()} if outcome.race else {}
    default = outcome.race.samples.get(outcome.race.default) if outcome.race else None
    data = {
        "finished": now().isoformat(timespec="seconds"),
        "entry": outcome.entry,
        "default_seconds": statistics.median(default) if default else None,
        "library_seconds": library,
        "statuses": verified_counts(outcome.log),
        "new_trials": outcome.new_trials,
        "search_seconds": outcome.search_seconds,
        "total_seconds": outcome.seconds,
        "schedules_per_second": outcome.new_trials / outcome.search_seconds if outcome.search_seconds else None,
        "build_seconds": outcome.build_seconds,
        "device_seconds": outcome.device_seconds,
        "stopped": outcome.stopped,
        "edges_checked": outcome.log.races[-1].edges_checked if outcome.race else 0,
        "edge_faults": outcome.log.races[-1].edge_faults if outcome.race else (),
        "tuned_log": str(outcome.tuned_log),
        "journal": str(outcome.journal),
    }
    return pretty_json(data)
