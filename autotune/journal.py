"""The journal: every trial, append-only, as it happens. Resume, tuned logs and reports are read from it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import msgspec
from filelock import FileLock, Timeout

from autotune.holder import holder_in, write_holder
from autotune.measurement import Measurement
from autotune.records import SCHEMA, DeviceRecord, GivenUpRecord, RaceRecord, Record, RunRecord, TrialRecord
from autotune.segments import JOURNAL, SEGMENT_BYTES, LineReader, lines, pack, parts, rotate
from autotune.trial_index import TrialIndex
from search_spaces.errors import BadLog, CannotWrite

FILE = JOURNAL
LOCK = "lock"
_HOLDER = "lock.pid"
# Bytes read at a time when the end of the last whole line is looked for.
_BLOCK = 1 << 20
_DECODER = msgspec.json.Decoder(Record)
_ENCODER = msgspec.json.Encoder()


def journal_path(path: Path) -> Path:
    """The journal in a run's folder, or `path` itself where it is a file."""
    return path / FILE if path.is_dir() else path


def has_records(path: Path) -> bool:
    """Whether there is a journal, with anything in it.

    Args:
        path: A journal or the folder that holds it.
    """
    file = journal_path(path)
    return bool(parts(file)[:-1]) or (file.is_file() and file.stat().st_size > 0)


def read_journal(path: Path) -> Iterator[Record]:
    """Records in order, one at a time. A last line that was cut short by a kill is left out.

    Args:
        path: A journal or the folder that holds it.

    Raises:
        BadLog: Not there, not a journal, damaged in the middle, or of a newer schema.
    """
    return (record for _, record in placed_records(path))


def placed_records(path: Path) -> Iterator[tuple[int, Record]]:
    """The same with the place of each, as `segments.lines` counts them.

    Raises:
        BadLog: As `read_journal`.
    """
    file, number = journal_path(path), 0
    try:
        for number, (place, line) in enumerate(lines(file), start=1):
            yield place, _decode(file, number, line)
    except OSError as error:
        raise BadLog(f"no journal at {file} ({error.strerror})", "name a run's folder or its journal.jsonl") from error
    if not number:
        raise BadLog(f"{file} holds no whole record", "name a run's folder or its journal.jsonl")


def read_on(path: Path, place: int) -> Iterator[tuple[int, Record]]:
    """Records that were added to a journal that may still grow, each with the place to go on from after it.

    Args:
        path: A journal or the folder that holds it; it need not be there yet.
        place: The place up to which it was read before; 0 to begin with.

    Raises:
        BadLog: Not a journal, damaged, or of a newer schema.
    """
    file = journal_path(path)
    if place == 0 and not has_records(path):
        return
    try:
        for number, (start, line) in enumerate(lines(file, place), start=1 if place == 0 else 2):
            yield start + len(line), _decode(file, number, line)
    except OSError as error:
        raise BadLog(f"{file} cannot be read any more ({error.strerror})", "restore it from a copy") from error


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
        devices: What became of the devices of runs that had several, in order.
        last_trial: Run -> seconds from its start to its last trial.
    """

    runs: list[RunRecord] = field(default_factory=list)
    trials: TrialIndex = field(default_factory=TrialIndex)
    races: list[RaceRecord] = field(default_factory=list)
    given_up: list[GivenUpRecord] = field(default_factory=list)
    devices: list[DeviceRecord] = field(default_factory=list)
    last_trial: dict[str, float] = field(default_factory=dict)

    @property
    def best(self) -> Measurement | None:
        """The fastest verified trial by its own samples; None where none is."""
        return next(iter(self.trials.fastest(1)), None)

    def take(self, place: int, record: Record) -> None:
        """Takes in the record at a place of the journal; `trials.settle` must follow."""
        if isinstance(record, TrialRecord):
            self.trials.take(place, record)
            self.last_trial[record.run] = max(self.last_trial.get(record.run, 0.0), record.at)
        elif isinstance(record, RunRecord):
            self.runs.append(record)
        elif isinstance(record, GivenUpRecord):
            self.given_up.append(record)
        elif isinstance(record, DeviceRecord):
            self.devices.append(record)
        else:
            self.races.append(record)


def load_runs(path: Path) -> list[RunLog]:
    """The journal's content, one RunLog for each task (workload, target, space) in it.

    What a trial's record holds is read again when it is asked for, so that memory does not grow with it.

    Raises:
        BadLog: As `read_journal`.
    """
    logs: dict[str, RunLog] = {}
    task_of: dict[str, str] = {}
    reader = LineReader(journal_path(path))
    for place, record in placed_records(path):
        if isinstance(record, RunRecord):
            task_of[record.run] = record.task.key
            logs.setdefault(record.task.key, RunLog(trials=TrialIndex(reader=reader)))
        elif record.run not in task_of:
            raise BadLog(f"{journal_path(path)} has a record of run {record.run} before that run", "restore its order")
        logs[task_of[record.run]].take(place, record)
    for log in logs.values():
        log.trials.settle()
    return list(logs.values())


class Journal:
    """The journal of a run's folder, opened for writing by one process at a time.

    Args:
        folder: Made if it is not there.

    Raises:
        CannotWrite: The folder cannot be written, or another run writes to it.
        BadLog: A segment of it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._lock = FileLock(folder / LOCK, timeout=0)
        owner = folder / _HOLDER
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            write_holder(owner)
            self._open()
        except Timeout as error:
            raise CannotWrite(
                f"another run writes to {folder}, {holder_in(owner)}", "wait for it or choose another --out"
            ) from error
        except OSError as error:
            self._lock.release()
            raise CannotWrite(f"{folder} cannot be written ({error.strerror})", "choose another --out") from error

    def _open(self) -> None:
        """Opens the file that grows, and cuts off a line that a kill left unfinished."""
        self._file = self.path.open("ab", buffering=0)
        self._size = _whole_bytes(self.path)
        self._file.truncate(self._size)

    def append(self, record: Record) -> None:
        """Writes one record; it survives the process from here on.

        Raises:
            CannotWrite: It cannot be written; what was written before is whole.
        """
        line = _ENCODER.encode(record) + b"\n"
        try:
            if self._size >= SEGMENT_BYTES:
                self._close_segment()
            if os.fstat(self._file.fileno()).st_nlink == 0:
                raise CannotWrite(f"{self.path} was removed while the run wrote to it", "choose another --out")
            try:
                left = memoryview(line)
                while left:
                    # A part may still fit; what is told of the rest says why it does not.
                    left = left[self._file.write(left) :]
            except OSError:
                self._file.truncate(self._size)
                raise
        except OSError as error:
            raise CannotWrite(f"{self.path} cannot be written ({error.strerror})", "make room and --resume") from error
        self._size += len(line)

    def compact(self) -> int:
        """Closes what was written as a segment and packs all that are not packed.

        Returns:
            Segments packed.

        Raises:
            CannotWrite: There is no room; nothing is lost.
        """
        try:
            if self._size:
                self._close_segment()
            return pack(self.path)
        except OSError as error:
            raise CannotWrite(f"{self.path.parent} cannot be written ({error.strerror})", "make room") from error

    def _close_segment(self) -> None:
        rotate(self.path)
        self._file.close()
        self._open()

    def close(self) -> None:
        """Closes the file and lets the next writer in."""
        self._file.close()
        (self.path.parent / _HOLDER).unlink(missing_ok=True)
        self._lock.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _whole_bytes(file: Path) -> int:
    """Bytes of the whole lines of a file."""
    with file.open("rb") as stream:
        end = stream.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - _BLOCK)
            stream.seek(start)
            found = stream.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0
