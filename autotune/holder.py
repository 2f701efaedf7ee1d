"""Which process holds a lock: it leaves its number beside it, for who waits to be told."""

from __future__ import annotations

import os
from pathlib import Path

import psutil

_LONGEST = 80


def write_holder(file: Path) -> None:
    """Leaves the number of this process, which holds the lock.

    Raises:
        OSError: It cannot be written.
    """
    file.write_text(str(os.getpid()))


def holder_in(file: Path) -> str:
    """The holder's process, as far as it left its number."""
    try:
        pid = int(file.read_text())
        command = " ".join(" ".join(psutil.Process(pid).cmdline()).split())
    except (OSError, ValueError, psutil.Error):
        return "which does not say its process"
    return f"process {pid} ({command if len(command) <= _LONGEST else command[: _LONGEST - 3] + '...'})"
