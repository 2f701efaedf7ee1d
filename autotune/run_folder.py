"""Where runs live: a folder per run, and how `--out` and `--resume` choose one."""

from __future__ import annotations

from pathlib import Path

from autotune.clock import now
from autotune.journal import FILE, has_records, read_journal
from autotune.records import RunRecord
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.operator import Workload
from search_spaces.target import Target

ROOT = Path("autotune-runs")


def new_folder(workload: Workload, target: Target) -> Path:
    """A folder under `autotune-runs` named for what is tuned and when."""
    shape = "-".join(f"{k}{v}" for k, v in workload.axes)
    slug = str(target).replace(" ", "").replace("-arch=", "-").replace("-mcpu=", "-").replace("-num-cores=", "-c")
    stem = f"{Path(workload.operator).stem}-{shape}-{workload.dtype}-{slug}-{now():%Y%m%d-%H%M%S}"
    folder, number = ROOT / stem, 1
    while folder.exists():
        number += 1
        folder = ROOT / f"{stem}-{number}"
    return folder


def fresh_folder(out: Path) -> Path:
    """`out`, provided that it holds no run yet.

    Raises:
        CannotWrite: It does.
    """
    if has_records(out):
        raise CannotWrite(f"{out} holds a run already", "add --resume to continue it, or choose another --out")
    return out


def first_record(folder: Path) -> RunRecord:
    """The run record that a folder's journal starts with."""
    record = next(read_journal(folder))
    assert isinstance(record, RunRecord)
    return record


def latest_folder(operator: str | None) -> Path:
    """The newest run folder.

    Args:
        operator: Only runs of this operator, as it was named; None for any.

    Raises:
        BadLog: There is none.
    """
    folders = sorted((p.parent for p in ROOT.glob(f"*/{FILE}")), key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in folders:
        try:
            task = first_record(folder).task
        except BadLog:
            continue
        if operator in (None, task.reference):
            return folder
    raise BadLog(f"no run to resume under {ROOT}", "name its folder: --resume FOLDER")
