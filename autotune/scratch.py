"""Folders for what a run builds: private, gone with the run, and those of killed runs gone with the next one."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from search_spaces.errors import CannotWrite

_PREFIX = f"autotune-{os.getuid()}-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder, readable by this user alone, removed at the end."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def host_folder(owner: int, name: str) -> Path:
    """A folder that several processes of this user share, readable by this user alone; kept while `owner` runs.

    Args:
        owner: A process.
        name: Tells the folders of one owner apart.
    """
    _sweep()
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{owner}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise CannotWrite(f"{folder} is not private to this user", "remove it")
    return folder


def _sweep() -> None:
    """Removes the folders of this user's processes that are no more."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)) and left.lstat().st_uid == os.getuid():
            shutil.rmtree(left, ignore_errors=True)
