"""A journal on disk: closed segments, packed or not, and the file that grows; read as one stream of lines.

A closed segment is the growing file under another name, `journal-000001.jsonl`, so that closing one is a single
rename. Packing writes it as gzip files `journal-000001.001-of-002.jsonl.gz` and then removes it; while it is there it
counts and they do not, so that a kill at any moment leaves every line once.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from search_spaces.errors import BadLog

JOURNAL = "journal.jsonl"
# Bytes of lines after which a segment is closed, and of which a packed file is made: one line of it costs unpacking it.
SEGMENT_BYTES = 16 << 20
_CLOSED = re.compile(r"journal-(\d{6})(?:\.(\d{3,})-of-(\d{3,})\.jsonl\.gz|\.jsonl)")
_LEVEL = 6
_RESTORE = "restore it from a copy"


@dataclass(frozen=True)
class Part:
    """A file of a journal.

    Attributes:
        path: The file.
        start: Bytes of lines in the files before it.
        size: Bytes of lines in it, None for the file that grows.
    """

    path: Path
    start: int
    size: int | None

    @property
    def packed(self) -> bool:
        """Whether it is gzip."""
        return self.path.suffix == ".gz"

    def open(self) -> IO[bytes]:
        """Opens it for reading lines."""
        return cast(IO[bytes], gzip.open(self.path, "rb")) if self.packed else self.path.open("rb")


def parts(journal: Path) -> list[Part]:
    """The files of a journal, in order; the last is `journal`, which may not be there.

    A journal under another name than `journal.jsonl` has no segments.

    Raises:
        BadLog: A segment is missing, or cut short.
    """
    found: list[Part] = []
    start = 0
    for path in _closed(journal):
        size = _unpacked_size(path) if path.suffix == ".gz" else path.stat().st_size
        found.append(Part(path, start, size))
        start += size
    return [*found, Part(journal, start, None)]


def disk_bytes(journal: Path) -> int:
    """What the files of a journal take, packed as they are."""
    return sum(part.path.stat().st_size for part in parts(journal) if part.path.is_file())


def lines(journal: Path, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """Whole lines with their places, from one on; a last line that was cut short is left out.

    A place is the number of bytes of lines before it, and stays what it is when the journal is compacted. Segments
    may be closed and packed meanwhile.

    Args:
        journal: The file that grows.
        offset: Where to begin, the place of a line.

    Raises:
        OSError: A file cannot be read, or there is none.
        BadLog: A segment is damaged or missing.
    """
    while True:
        part, stream = _opened(journal, offset)
        if stream is None:
            return
        with stream:
            for line in _lines_from(part, stream, offset):
                if not line.endswith(b"\n"):
                    if part.size is None:
                        return
                    raise BadLog(f"{part.path} ends within a line", _RESTORE)
                yield offset, line
                offset += len(line)
        if part.size is None:
            return


class LineReader:
    """Reads lines of a journal by their places, fastest in order; holds one unpacked segment at most.

    Args:
        journal: The file that grows.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._stream: IO[bytes] | None = None
        self._part = Part(journal, 0, None)
        self._end = 0

    def line(self, offset: int) -> bytes:
        """The line that begins at a place.

        Raises:
            BadLog: It is not there any more.
        """
        if self._stream is None or not self._part.start <= offset < self._end:
            self.close()
            try:
                self._part, self._stream = _opened(self._journal, offset)
                if self._part.packed and self._stream is not None:
                    self._stream = _unpacked(self._part, self._stream)
                self._end = self._part.start + (self._part.size or self._journal.stat().st_size)
            except OSError as error:
                raise BadLog(f"{self._journal} is gone ({error.strerror})", _RESTORE) from error
        line = next(_lines_from(self._part, self._stream, offset), b"") if self._stream is not None else b""
        if not line:
            raise BadLog(f"{self._journal} is shorter than it was", _RESTORE)
        return line

    def close(self) -> None:
        """Closes what is open; a later line opens it again."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def rotate(journal: Path) -> None:
    """Closes the file that grows, which holds whole lines, as a segment.

    Raises:
        OSError: It cannot be renamed.
    """
    closed = _closed(journal)
    number = 1 + (int(_numbers(closed[-1])[0]) if closed else 0)
    journal.rename(journal.with_name(f"{journal.stem}-{number:06}.jsonl"))


def pack(journal: Path) -> int:
    """Packs closed segments that are not packed yet.

    Returns:
        How many.

    Raises:
        OSError: A file cannot be written.
        BadLog: A segment is missing.
    """
    plain = [path for path in _closed(journal) if path.suffix != ".gz"]
    for path in plain:
        _pack(path)
    return len(plain)


def _pack(path: Path) -> None:
    partial: list[Path] = []
    with path.open("rb") as lines_left:
        while block := lines_left.readlines(SEGMENT_BYTES):
            partial.append(path.with_name(f"{path.stem}.{len(partial) + 1:03}.partial"))
            with partial[-1].open("wb") as file:
                # No name and no time in it: equal lines give equal bytes.
                with gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed:
                    packed.writelines(block)
                file.flush()
                os.fsync(file.fileno())
    for number, written in enumerate(partial, start=1):
        written.replace(path.with_name(f"{path.stem}.{number:03}-of-{len(partial):03}.jsonl.gz"))
    path.unlink()


def _opened(journal: Path, offset: int) -> tuple[Part, IO[bytes] | None]:
    """The file that holds the line at a place, opened before a writer could have given it another name.

    The file that grows may be missing beside segments, for a moment or since a kill: then None is opened.
    """
    while True:
        before = _closed(journal)
        part = next(p for p in parts(journal) if p.size is None or offset < p.start + p.size)
        stream = None
        try:
            stream = part.open()
        except FileNotFoundError:
            if before == _closed(journal) and not (before and part.size is None):
                raise
        if before == _closed(journal):
            return part, stream
        if stream is not None:
            stream.close()


def _closed(journal: Path) -> list[Path]:
    """Closed segments in order: of each the plain file where it is there, else its packed files.

    Raises:
        BadLog: One is missing.
    """
    if journal.name != JOURNAL or not journal.parent.is_dir():
        return []
    plain: dict[int, Path] = {}
    packed: dict[int, dict[int, Path]] = {}
    wanted: dict[int, int] = {}
    for path in journal.parent.iterdir():
        if _CLOSED.fullmatch(path.name):
            number, piece, pieces = _numbers(path)
            if pieces:
                packed.setdefault(number, {})[piece] = path
                wanted[number] = pieces
            else:
                plain[number] = path
    found: list[Path] = []
    for number in range(1, 1 + max([*plain, *packed], default=0)):
        if number in plain:
            found.append(plain[number])
        elif len(packed.get(number, ())) == wanted.get(number, 1):
            found += [path for _, path in sorted(packed[number].items())]
        else:
            raise BadLog(f"{journal.parent} lacks a part of segment {number:06} of its journal", _RESTORE)
    return found


def _numbers(path: Path) -> tuple[int, int, int]:
    """Number of a segment, and of the packed file among how many; zeros where it is not packed."""
    match = _CLOSED.fullmatch(path.name)
    assert match is not None, path
    return int(match[1]), int(match[2] or 0), int(match[3] or 0)


def _unpacked_size(path: Path) -> int:
    """What the last four bytes of a gzip file say.

    Raises:
        BadLog: It cannot be one.
    """
    with path.open("rb") as file:
        length = file.seek(0, os.SEEK_END)
        file.seek(max(0, length - 4))
        size = int.from_bytes(file.read(4), "little")
    if length < 18 or size == 0:
        raise BadLog(f"{path} is damaged (it holds nothing)", _RESTORE)
    return size


def _unpacked(part: Part, stream: IO[bytes]) -> IO[bytes]:
    """A packed file in memory: to go back by a line would unpack it from its start."""
    try:
        with stream:
            return io.BytesIO(stream.read())
    except (OSError, EOFError, zlib.error) as error:
        raise BadLog(f"{part.path} is damaged ({error})", _RESTORE) from error


def _lines_from(part: Part, stream: IO[bytes], offset: int) -> Iterator[bytes]:
    """The lines of a file from a place on; damage of a packed one is told in one line."""
    try:
        stream.seek(offset - part.start)
        # Not the file itself, which would be closed with this generator when one line is asked for.
        yield from iter(stream.readline, b"")
    except (OSError, EOFError, zlib.error) as error:
        raise BadLog(f"{part.path} is damaged ({error})", _RESTORE) from error
