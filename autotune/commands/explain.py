"""`autotune explain`: why the best schedule of a run won."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from autotune.display import duration, output, pretty_json, titled
from autotune.explanation import Explanation, Residency, Roofline, explain
from autotune.journal import load_runs
from autotune.knob_effects import Evidence
from autotune.summary import print_entry
from search_spaces.errors import NothingValid
from search_spaces.schedule import text

_MOST_FAILURES = 8
_LOG2 = "log2_"


@click.command("explain")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(run: Path, as_json: bool) -> None:
    """Show why the best schedule of a run won; needs its journal, no device.

    \b
    autotune explain autotune-runs/FOLDER
    """
    found = [e for log in load_runs(run) if (e := explain(log)) is not None]
    if not found:
        raise NothingValid(f"no verified schedule in {run}", "'autotune show' tells why trials failed")
    if as_json:
        sys.stdout.write(pretty_json(found) + "\n")
        return
    for explanation in found:
        _print(output(), explanation)


def _print(console: Console, explained: Explanation) -> None:
    print_entry(console, explained.entry)
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, line in [*_roofline(explained.roofline), *_residency(explained.residency)]:
        table.add_row(name, line)
    console.print(table)
    _print_derived(console, explained)
    _print_sketches(console, explained)
    _print_knobs(console, explained)
    if explained.failures:
        console.print(titled("\nfailures", f" of {explained.trials} trials"))
        for reason, count in list(explained.failures.items())[:_MOST_FAILURES]:
            console.print(f"  {count:>5}  {reason}", soft_wrap=True)


def _roofline(roofline: Roofline) -> list[tuple[str, str]]:
    """T_SOL and what binds, MFU and the share of the bandwidth."""
    parts = [
        f"{what} {duration(seconds)}"
        for what, seconds in (("arithmetic", roofline.compute_seconds), ("memory", roofline.memory_seconds))
        if seconds
    ]
    if not parts:
        return [("bound", "this journal holds no roofline")]
    shares = [
        f"{share:.1%} of {what}"
        for what, share in (("the peak (MFU)", roofline.mfu), ("the bandwidth", roofline.bandwidth_share))
        if share is not None
    ]
    return [
        (
            "bound",
            f"{roofline.binds} binds: at least {duration(roofline.least_seconds)} "
            f"({', '.join(parts)}); {roofline.share:.1%} of it reached",
        ),
        ("reached", f"{', '.join(shares)}; rates of {roofline.roof.model}, {roofline.roof.source}"),
    ]


def _residency(residency: Residency | None) -> list[tuple[str, str]]:
    if residency is None or residency.occupancy is None:
        return []
    line = f"{residency.occupancy:.0%}, {residency.blocks_per_sm} blocks on a multiprocessor"
    if residency.waves is not None:
        line += f"; {residency.blocks} blocks in {residency.waves:.2f} waves"
    return [("occupancy", line)]


def _print_derived(console: Console, explained: Explanation) -> None:
    """What the sketch derives, beside the default's where that is of the same sketch."""
    if not explained.derived:
        console.print(f"nothing is derived of the schedule: {explained.missing}")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("estimated by the sketch", no_wrap=True)
    table.add_column("winner", justify="right")
    if explained.derived_default:
        table.add_column("default", justify="right")
    for name, value in explained.derived.items():
        others = [explained.derived_default[name]] if explained.derived_default else []
        table.add_row(name.removeprefix(_LOG2), *(_number(name, v) for v in (value, *others)))
    console.print(table)


def _number(name: str, value: float) -> str:
    return f"{2.0**value if name.startswith(_LOG2) else value:.4g}"


def _print_sketches(console: Console, explained: Explanation) -> None:
    if len(explained.sketches) < 2:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("sketch", no_wrap=True)
    for name in ("best trial", "trials", "failed"):
        table.add_column(name, justify="right")
    for effect in explained.sketches:
        behind = "all failed" if effect.percent is None else f"{effect.percent:+.1f} %"
        table.add_row(effect.sketch, behind, str(effect.trials), str(effect.failed))
    console.print(table)


def _print_knobs(console: Console, explained: Explanation) -> None:
    if not explained.knobs:
        return
    console.print(
        titled(
            "\nknobs",
            ", the costliest first: time that another value adds; ~ where the best trial with it differs in other "
            "knobs too",
        ),
        soft_wrap=True,
    )
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("knob", no_wrap=True)
    table.add_column("winner", no_wrap=True)
    table.add_column("median", justify="right", no_wrap=True)
    table.add_column("other values (trials)", overflow="fold")
    for effect in explained.knobs:
        median = "" if effect.cost is None else f"{effect.cost:+.1f} %"
        others = "  ".join(map(_other, effect.others)) or "no other value was tried"
        table.add_row(effect.knob, text(effect.value), median, others)
    console.print(table)


def _other(evidence: Evidence) -> str:
    if evidence.percent is None:
        return f"{text(evidence.value)}: {evidence.failed} ({evidence.trials})"
    about = "" if evidence.alone else "~"
    return f"{text(evidence.value)}: {about}{evidence.percent:+.1f} % ({evidence.trials})"


COMMAND = command
