"""`autotune best`: the best schedules of runs or tuned logs."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autotune.display import output, pretty_json
from autotune.journal import FILE as JOURNAL
from autotune.run_folder import ROOT
from autotune.summary import print_entry
from autotune.tuned_log import Entry, entries_of
from search_spaces.errors import BadLog, NothingValid


@click.command("best")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(paths: tuple[Path, ...], as_json: bool) -> None:
    """Show the best schedules of runs or tuned logs; of all in autotune-runs where none is named."""
    chosen = paths or tuple(sorted(p.parent for p in ROOT.glob(f"*/{JOURNAL}")))
    if not chosen:
        raise BadLog(f"no runs in {ROOT}", "name a run's folder, a journal or a tuned log")
    best: dict[tuple[str, str], Entry] = {}
    for path in chosen:
        for entry in entries_of(path):
            key = (entry.task.key, entry.device.name)
            if key not in best or (entry.raced, -entry.seconds) > (best[key].raced, -best[key].seconds):
                best[key] = entry
    if not best:
        raise NothingValid("no verified schedule in there", "'autotune show' tells why trials failed")
    if as_json:
        sys.stdout.write(pretty_json(list(best.values())) + "\n")
        return
    for entry in best.values():
        print_entry(output(), entry)


COMMAND = command
