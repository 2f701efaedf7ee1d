"""`autotune merge`: tuned logs of several runs or machines joined."""

from __future__ import annotations

from pathlib import Path

import click

from autotune.display import output
from autotune.merging import write_shared
from autotune.tuned_log import best_entries, entries_of, write_entries
from search_spaces.errors import NothingValid


@click.command("merge")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="A file that ends in .json, written anew; or a folder that any number of machines add to.",
)
def command(logs: tuple[Path, ...], out: Path) -> None:
    """Join runs, journals and tuned logs: of each workload, target and device the best, raced before not raced.

    \b
    autotune merge laptop.json server/run --out tuned.json
    autotune merge autotune-runs/FOLDER --out /shared/tuned
    """
    found = [entry for log in logs for entry in entries_of(log)]
    if not found:
        raise NothingValid("no verified schedule in these logs", "'autotune show' tells why trials failed")
    kept = best_entries(found)
    if out.suffix == ".json":
        write_entries(out, kept)
    else:
        write_shared(out, kept)
    output().print(f"{len(kept)} of {len(found)} entries kept in {out}", soft_wrap=True)


COMMAND = command
