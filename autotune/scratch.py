"""Folders for what a run builds: private, gone with the run, and those of killed runs gone with the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

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


def _sweep() -> None:
    """Removes the folders of this user's processes that are no more."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        owner = left.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)) and left.stat().st_uid == os.getuid():
            shutil.rmtree(left, ignore_errors=True)
