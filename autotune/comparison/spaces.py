"""The recorded spaces of a comparison: found by name, told apart by content, read once by each process."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from autotune.comparison.replay import noisy_seconds
from autotune.comparison.trace import Floats
from autotune.journal import journal_path
from autotune.recordings.finding import FOLDER, find_recordings, read_recording
from autotune.recordings.recording import Recording
from autotune.segments import lines
from search_spaces.errors import AutotuneError


@dataclass(frozen=True)
class Space:
    """A recorded space.

    Attributes:
        path: Its file, or the folder of a run.
        name: The recording's name.
        digest: Hash of the file's content.
    """

    path: Path
    name: str
    digest: str


def find_spaces(places: Sequence[str], folder: Path = FOLDER) -> list[Space]:
    """The spaces that files, folders, patterns, names or beginnings of names mean; see `find_recordings`.

    Args:
        places: What the user wrote.
        folder: Where names are looked up.

    Raises:
        AutotuneError: One is not there or is no recording, or two have the same name.
    """
    spaces: dict[str, Space] = {}
    for path in find_recordings(places, folder):
        name = recording_of(path).name
        if name in spaces:
            raise AutotuneError(f"{path} and {spaces[name].path} are both called {name}", "compare on one of them")
        spaces[name] = Space(path, name, _digest(path))
    return list(spaces.values())


def _digest(path: Path) -> str:
    """A hash of a file, or of a run's journal, whether or not it was compacted."""
    content = (line for _, line in lines(journal_path(path))) if path.is_dir() else (path.read_bytes(),)
    digest = hashlib.sha256()
    for part in content:
        digest.update(part)
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def recording_of(path: Path) -> Recording:
    """The recording in a file, kept while a process works on it."""
    return read_recording(path)


@lru_cache(maxsize=4)
def noise_of(path: Path, seed: int) -> Floats:
    """`noisy_seconds`, drawn once for all strategies of one seed."""
    return noisy_seconds(recording_of(path), seed)
