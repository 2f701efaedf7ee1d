"""Opens whatever holds a recording, and finds recordings by folder, file, pattern or name."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from pathlib import Path

import msgspec

from autotune.journal import FILE
from autotune.recordings.bounded import faults_as_bad_log, unpacked
from autotune.recordings.foreign import stem_of
from autotune.recordings.journaled import read_journaled
from autotune.recordings.kernel_tuner import json_of_cache, recording_of_cache
from autotune.recordings.native import SUFFIX, decoded
from autotune.recordings.recording import Recording
from autotune.recordings.replay_table import recording_of_table
from autotune.recordings.t4 import recording_of_t4
from search_spaces.errors import BadLog, UnknownName

# Where names of recordings are looked up by default.
FOLDER = Path("experiments/spaces")
# A folder's recordings: our own, and tables that others made of theirs.
_IN_FOLDERS = (f"*{SUFFIX}", "*__*.csv.gz", "*__*.csv")


class _Beginning(msgspec.Struct):
    """What tells a file of ours: the first line of a recording or a journal."""

    schema: str = ""
    kind: str = ""


def read_recording(path: Path) -> Recording:
    """Reads a recording of any kind, told by what is in it.

    Args:
        path: A recording of ours, a journal or its folder, a Kernel Tuner cache, a T4 file, or a replay table; packed
            with gzip or not.

    Raises:
        BadLog: It cannot be read, or is none of these.
        NothingValid: It is a journal in which no trial was verified.
    """
    if path.is_dir():
        return read_journaled(path)
    with faults_as_bad_log(path, "recording"):
        data = unpacked(path)
        beginning = _beginning(data)
        if beginning.kind == "run":
            return read_journaled(path)
        if beginning.schema.startswith("recording/"):
            return decoded(data)
        if data.lstrip()[:1] != b"{":
            return recording_of_table(path, data)
        found = json_of_cache(data)
        if isinstance(found, dict) and "cache" in found:
            return recording_of_cache(path, found)
        if isinstance(found, dict) and "results" in found:
            return recording_of_t4(path, found)
    raise BadLog(f"{path} holds no measurements", "name a recording, a journal, a Kernel Tuner cache or a T4 file")


def _beginning(data: bytes) -> _Beginning:
    try:
        return msgspec.json.decode(data[: data.find(b"\n") + 1] or data, type=_Beginning)
    except msgspec.DecodeError:
        return _Beginning()


def find_recordings(places: Iterable[str | Path], folder: Path = FOLDER) -> list[Path]:
    """The files that `places` mean, each once, in order.

    Args:
        places: Files, folders, patterns (`spaces/*a100*`), names of recordings in `folder` (`convolution__a100`), or
            beginnings of such names.
        folder: Where names are looked up.

    Raises:
        UnknownName: Nothing of that name.
        BadLog: A folder holds no recording.
    """
    known = {stem_of(p): p for p in _inside(folder)}
    found: dict[Path, None] = {}
    for place in map(str, places):
        path = Path(place)
        if path.is_dir():
            inside = [path] if (path / FILE).is_file() else _inside(path)
            if not inside:
                raise BadLog(f"{path} holds no recording", f"name a folder of files like kernel__device{SUFFIX}")
        elif path.is_file():
            inside = [path]
        else:
            inside = sorted(map(Path, glob.glob(place))) if glob.has_magic(place) else _named(place, known)
            if not inside:
                raise UnknownName.of("recording", place, known)
        found.update(dict.fromkeys(inside))
    return list(found)


def _named(name: str, known: dict[str, Path]) -> list[Path]:
    """The recording of that name, else those whose names start so."""
    return [known[name]] if name in known else [path for stem, path in known.items() if stem.startswith(name)]


def _inside(folder: Path) -> list[Path]:
    """Recordings in a folder and the folders in it."""
    return sorted({p for pattern in _IN_FOLDERS for p in folder.rglob(pattern)})
