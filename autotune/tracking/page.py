"""The report of a tuning run as an artefact of its MLflow run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from autotune.journal import journal_path, load_runs
from autotune.reporting.page import write_page
from autotune.reporting.report import FILE, report
from autotune.reporting.study import studies_of
from autotune.tracking.store import REPORT, Store


def attach_reports(path: Path, store: Store, run_ids: Mapping[str, str]) -> int:
    """Attaches its report to each run of a journal, unless it has one of the same trials.

    Where somebody has left a report in the run's folder, that one is attached with the folder's other files.

    Args:
        path: A journal that has ended, or its folder.
        store: Where its runs are.
        run_ids: Task key -> MLflow's id of its run.

    Returns:
        Reports attached.

    Raises:
        StoreFailed: The store failed.
        BadLog: The journal cannot be read.
    """
    if not run_ids or (journal_path(path).parent / FILE).is_file():
        return 0
    logs = {log.runs[0].task.key: log for log in load_runs(path)}
    lacking = {key for key, run_id in run_ids.items() if store.tag_of(run_id, REPORT) != str(len(logs[key].trials))}
    for study in studies_of(path, [log for key, log in logs.items() if key in lacking]):
        run_id = run_ids[study.run.task.key]
        with tempfile.TemporaryDirectory() as scratch:
            write_page(Path(scratch, FILE), report([study]))
            store.attach(run_id, [Path(scratch, FILE)])
        store.tag(run_id, {REPORT: str(len(study.log.trials))})
    return len(lacking)
