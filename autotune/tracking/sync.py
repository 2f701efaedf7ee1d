"""Brings a tracking store up to date from a journal: what the store lacks, and nothing twice."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune import tuned_log
from autotune.journal import journal_path, load_runs, read_on
from autotune.records import RaceRecord, Record, RunRecord, TrialRecord
from autotune.reporting import report
from autotune.segments import parts
from autotune.tracking.mapping import Curve, Point, parameters, race_tags, title
from autotune.tracking.models import learnt
from autotune.tracking.page import attach_reports
from autotune.tracking.store import Store, StoreFailed
from search_spaces.errors import MissingDependency

# What of a run's folder is attached to its MLflow run, where it is there.
ATTACHED = (tuned_log.FILE, report.FILE)
# Records whose points are held until they are sent.
_MOST_HELD = 4096


@dataclass
class _Session:
    """One task of the journal, and the MLflow run that stands for it."""

    first: RunRecord
    curve: Curve
    run_id: str
    held: int
    seen: int = 0
    fresh: list[list[Point]] = field(default_factory=list)
    race: RaceRecord | None = None


class Sync:
    """Follows one journal into one store.

    A tuning run and its continuations are one MLflow run. Every record's points are computed, since the best so far
    depends on those before; only points that the store lacks are sent.

    Args:
        path: The journal or its folder; it need not be there yet.
        store: Where to.

    Attributes:
        store: As given.
    """

    def __init__(self, path: Path, store: Store) -> None:
        self._path = path
        self.store = store
        self._place = 0
        self._sessions: dict[str, _Session] = {}
        self._task_of: dict[str, str] = {}

    def catch_up(self) -> int:
        """Sends what the journal gained.

        Returns:
            Records sent.

        Raises:
            StoreFailed: The store failed; call again, nothing is lost or sent twice.
            BadLog: The journal cannot be read.
        """
        sent = 0
        for end, record in read_on(self._path, self._place):
            self._take(record)
            self._place = end
            session = self._sessions[self._task_of[record.run]]
            if len(session.fresh) >= _MOST_HELD:
                sent += self._send(session)
        return sent + sum(self._send(session) for session in self._sessions.values())

    def finish(self) -> None:
        """Attaches journal and tuned log, and closes the runs: FINISHED where the final race was run, else KILLED.

        Raises:
            StoreFailed: The store failed; call again.
        """
        self.catch_up()
        folder = journal_path(self._path).parent
        journal = [part.path for part in parts(journal_path(self._path))]
        files = [*journal, *(folder / name for name in ATTACHED)]
        # The final race is the last that a run writes.
        ended = round(1000 * max((part.stat().st_mtime for part in journal), default=0.0))
        for session in self._sessions.values():
            if session.race is not None:
                self.store.tag(session.run_id, race_tags(session.race))
            self.store.attach(session.run_id, [f for f in files if f.is_file()])
            status = "KILLED" if session.race is None else "FINISHED"
            self.store.end(session.run_id, status, max(session.curve.ended, ended))

    def attach_learnt(self) -> None:
        """Logs the models of each run that lacks them, after `finish`.

        Raises:
            StoreFailed: The store failed; call again.
        """
        folder = journal_path(self._path).parent
        logs = {log.runs[0].task.key: log for log in load_runs(self._path)} if self._sessions else {}
        for key, session in self._sessions.items():
            with tempfile.TemporaryDirectory() as scratch:
                for model in learnt(logs[key], folder, Path(scratch), self.store.models(session.run_id)):
                    self.store.log_model(session.run_id, model)

    def attach_reports(self) -> int:
        """Attaches the report of each run that lacks it, after `finish`; gives how many.

        Raises:
            MissingDependency: What draws them is not installed.
            StoreFailed: The store failed; call again.
        """
        run_ids = {key: session.run_id for key, session in self._sessions.items()}
        return attach_reports(self._path, self.store, run_ids)

    @property
    def run_ids(self) -> tuple[str, ...]:
        """MLflow's ids of the runs seen so far."""
        return tuple(session.run_id for session in self._sessions.values())

    def _take(self, record: Record) -> None:
        if isinstance(record, RunRecord):
            key = self._task_of[record.run] = record.task.key
            if key in self._sessions:
                self._sessions[key].curve.continued(record)
                # Trials after it belong to a run whose race is still to come.
                self._sessions[key].race = None
            else:
                curve = Curve(record)
                run_id, held = self.store.open_run(record.run, title(record), parameters(record), curve.started)
                self._sessions[key] = _Session(record, curve, run_id, held)
            return
        session = self._sessions[self._task_of[record.run]]
        made: list[Point] = []
        if isinstance(record, TrialRecord):
            made += session.curve.points(record)
        elif isinstance(record, RaceRecord):
            session.race = record
            made += session.curve.race_points(record, session.seen)
        session.seen += 1
        if session.seen > session.held:
            session.fresh.append(made)

    def _send(self, session: _Session) -> int:
        sent = len(session.fresh)
        if sent:
            self.store.log(session.run_id, session.fresh, session.held)
            session.held += sent
            session.fresh = []
        return sent


def sync_all(paths: Sequence[Path], store: Store, notice: Callable[[str], None] = lambda _: None) -> dict[Path, int]:
    """Brings a store up to date with journals that have ended; the records sent of each.

    Args:
        paths: Journals or their folders.
        store: Where to.
        notice: Takes a line for the user where a report could not be made.

    Raises:
        StoreFailed: The store failed.
        BadLog: One of them is no journal.
    """
    sent = {}
    for path in paths:
        sync = Sync(path, store)
        sent[path] = sync.catch_up()
        sync.finish()
        sync.attach_learnt()
        try:
            sync.attach_reports()
        except MissingDependency as error:
            notice(f"{path}: no report is attached: {error}")
    return sent


def follow(
    path: Path, open_store: Callable[[], Store], wait: Callable[[], bool], done: Callable[[], None] = lambda: None
) -> None:
    """Keeps a store up to date with a journal that grows; a store that fails is tried again.

    Args:
        path: The journal or its folder; it need not be there yet.
        open_store: Opens the store.
        wait: Waits for the next turn; True when the run has ended.
        done: Called when the store holds all that the run left, before what it learnt is fitted, and its report drawn.

    Raises:
        StoreFailed: It still fails when the run has ended.
    """
    sync: Sync | None = None
    monitored: set[str] = set()
    with contextlib.ExitStack() as monitors:
        while not wait():
            with contextlib.suppress(StoreFailed):
                sync = sync or Sync(path, open_store())
                sync.catch_up()
                for run_id in set(sync.run_ids) - monitored:
                    monitors.enter_context(sync.store.system_metrics(run_id))
                    monitored.add(run_id)
    sync = sync or Sync(path, open_store())
    sync.finish()
    done()
    sync.attach_learnt()
    with contextlib.suppress(MissingDependency):
        sync.attach_reports()
