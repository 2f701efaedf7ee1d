"""`autotune compact`: pack the journals of runs."""

from __future__ import annotations

from pathlib import Path

import click

from autotune.display import output
from autotune.journal import Journal, has_records, journal_path
from autotune.segments import disk_bytes
from search_spaces.errors import BadLog


@click.command("compact")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(paths: tuple[Path, ...]) -> None:
    """Pack the journals of runs, to a seventh or so of their size; every command reads them as before.

    What was written becomes closed segments beside journal.jsonl, JSON lines as gzip; the run can be resumed. A run
    that is going on is not touched.

    \b
    autotune compact autotune-runs/*
    """
    for path in paths:
        if not path.is_dir() or not has_records(path):
            raise BadLog(f"no journal in {path}", "name a run's folder")
        before = disk_bytes(journal_path(path))
        with Journal(path) as journal:
            packed = journal.compact()
        after = _mib(disk_bytes(journal_path(path)))
        done = f"{_mib(before)}, now {after}" if packed else f"packed already, {after}"
        output().print(f"{path}: {done}", soft_wrap=True)


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


COMMAND = command
