"""The journal: every trial, append-only, as it happens. Resume, tuned logs and reports are read from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import msgspec
from filelock import FileLock, Timeout

from autotune.measurement import Measurement, Status
from autotune.records import SCHEMA, GivenUpRecord, RaceRecord, Record, RunRecord, TrialRecord
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.space import Schedule

FILE = "journal.jsonl"
_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()


def journal_path(path: Path) -> Path:
    """The journal in a run's folder, or `path` itself where it is a file."""
    return path / FILE if path.is_dir() else path


def read_journal(path: Path) -> Iterator[Record]:
    """Records in order. A last line that was cut short by a kill is left out.

    Args:
        path: A journal or the folder that holds it.

    Raises:
        BadLog: Not there, not a journal, damaged in the middle, or of a newer schema.
    """
    file = journal_path(path)
    try:
        data = file.read_bytes()
    except OSError as error:
        raise BadLog(f"no journal at {file} ({error.strerror})", "name a run's folder or its journal.jsonl") from error
    lines = data.split(b"\n")
    lines.pop()  # "" after the last whole line, or the torn rest of one
    if not lines:
        raise BadLog(f"{file} holds no whole record", "name a run's folder or its journal.jsonl")
    for number, line in enumerate(lines, start=1):
        yield _decode(file, number, line)


def read_on(path: Path, offset: int) -> tuple[list[Record], int]:
    """Records that were added to a journal that may still grow.

    Args:
        path: A journal or the folder that holds it; it need not be there yet.
        offset: Bytes read before; 0 to begin with.

    Returns:
        The whole records from there on, and the offset to go on from.

    Raises:
        BadLog: Not a journal, damaged, or of a newer schema.
    """
    file = journal_path(path)
    if not file.is_file():
        return [], offset
    with file.open("rb") as stream:
        stream.seek(offset)
        data = stream.read()
    lines = data[: data.rfind(b"\n") + 1].splitlines()
    first = 1 if offset == 0 else 2
    records = [_decode(file, number, line) for number, line in enumerate(lines, start=first)]
    return records, offset + data.rfind(b"\n") + 1


def _decode(file: Path, number: int, line: bytes) -> Record:
    try:
        record = _DECODER.decode(line)
    except msgspec.DecodeError as error:
        schema = _schema_of(line)
        if schema not in (None, SCHEMA):
            raise BadLog(
                f"{file} has schema {schema}, this version reads {SCHEMA}", "install a newer kernel-autotune"
            ) from error
        what = "is not a journal" if number == 1 else f"is damaged at line {number}"
        raise BadLog(f"{file} {what} ({error})", "restore it, or delete that line") from error
    if isinstance(record, RunRecord) and record.schema != SCHEMA:
        raise BadLog(
            f"{file} has schema {record.schema}, this version reads {SCHEMA}", "install a newer kernel-autotune"
        )
    if number == 1 and not isinstance(record, RunRecord):
        raise BadLog(f"{file} does not start with a run record", "restore its first line")
    return record


def _schema_of(line: bytes) -> str | None:
    try:
        data = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    schema = data.get("schema") if isinstance(data, dict) else None
    return schema if isinstance(schema, str) else None


@dataclass
class RunLog:
    """What a journal says of one task.

    Attributes:
        runs: The run record and its continuations.
        trials: Measurement of each schedule, in order; a later one of the same schedule replaces the earlier.
        races: Final races, in order.
        given_up: Final races that did not end, in order.
    """

    runs: list[RunRecord] = field(default_factory=list)
    trials: dict[Schedule, Measurement] = field(default_factory=dict)
    races: list[RaceRecord] = field(default_factory=list)
    given_up: list[GivenUpRecord] = field(default_factory=list)

    @property
    def best(self) -> Measurement | None:
        """The fastest verified trial by its own samples; None where none is."""
        good = [m for m in self.trials.values() if m.status is Status.OK]
        return min(good, key=lambda m: m.seconds, default=None)


def load_runs(path: Path) -> list[RunLog]:
    """The journal's content, one RunLog for each task (workload, target, space) in it."""
    logs: dict[str, RunLog] = {}
    task_of: dict[str, str] = {}
    for record in read_journal(path):
        if isinstance(record, RunRecord):
            task_of[record.run] = record.task.key
            logs.setdefault(record.task.key, RunLog()).runs.append(record)
            continue
        if record.run not in task_of:
            raise BadLog(f"{journal_path(path)} has a record of run {record.run} before that run", "restore its order")
        log = logs[task_of[record.run]]
        if isinstance(record, TrialRecord):
            measurement = record.measurement()
            log.trials[measurement.schedule] = measurement
        elif isinstance(record, GivenUpRecord):
            log.given_up.append(record)
        else:
            log.races.append(record)
    return list(logs.values())


class Journal:
    """The journal of a run's folder, opened for writing by one process at a time.

    Args:
        folder: Made if it is not there.

    Raises:
        CannotWrite: The folder cannot be written, or another run writes to it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(folder / "lock", timeout=0)
            self._lock.acquire()
            self._cut_torn_line()
            self._file = self.path.open("ab")
        except Timeout as error:
            raise CannotWrite(f"another run writes to {folder}", "wait for it or choose another --out") from error
        except OSError as error:
            raise CannotWrite(f"{folder} cannot be written ({error.strerror})", "choose another --out") from error

    def _cut_torn_line(self) -> None:
        if not self.path.exists():
            return
        data = self.path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            with self.path.open("r+b") as file:
                file.truncate(whole)

    def append(self, record: Record) -> None:
        """Writes one record; it survives the process from here on."""
        try:
            self._file.write(_ENCODER.encode(record) + b"\n")
            self._file.flush()
        except OSError as error:
            raise CannotWrite(f"{self.path} cannot be written ({error.strerror})", "make room and --resume") from error

    def close(self) -> None:
        """Closes the file and lets the next writer in."""
        self._file.close()
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
