"""Files from strangers: read up to a size, told in one line where they are not what they should be."""

from __future__ import annotations

import gzip
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from search_spaces.errors import AutotuneError, BadLog, CannotWrite

# Largest file once unpacked. The largest cache of the FAIR benchmark hub has some 60 MB.
MOST_BYTES = 256 * 1024 * 1024
_GZIP = b"\x1f\x8b"


def unpacked(path: Path) -> bytes:
    """What a file holds, unpacked where it is gzip.

    Raises:
        OSError: It cannot be read.
        EOFError: It is cut short.
        zlib.error: It is damaged.
        ValueError: It is too large.
    """
    with path.open("rb") as plain:
        packed = plain.read(len(_GZIP)) == _GZIP
    with gzip.open(path, "rb") if packed else path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it holds more than {MOST_BYTES // 1024**2} MiB")
    return data


@contextmanager
def faults_as_bad_log(path: Path, what: str, hint: str = "name a recording") -> Iterator[None]:
    """Turns whatever reading a damaged or foreign file raises into one line that any terminal can show.

    Raises:
        BadLog: It is no `what`.
    """
    try:
        yield
    except AutotuneError:
        raise
    except (OSError, EOFError, zlib.error, msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        text = "".join(c if c.isprintable() else " " for c in str(reason))
        said = " ".join(text.split())[:300] or type(error).__name__
        raise BadLog(f"{path} is no {what} ({said})", hint) from error


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file, whole or not at all.

    Raises:
        CannotWrite: It cannot be written.
    """
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror})", "choose another place") from error
