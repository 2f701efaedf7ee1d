"""Limits of the processes in which candidates are built and run, so that a mistake in one of them stays in it."""

from __future__ import annotations

import contextlib
import ctypes
import resource
import sys
from pathlib import Path

import psutil

# No file that a builder or a candidate writes is near it; a log that never ends is.
MOST_FILE_BYTES = 1 << 30
MOST_FILES = 4096
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_PR_SET_NO_NEW_PRIVS = 38


def limit_this_process(*, gpu: bool) -> None:
    """Lowers what this process and all that it starts may use; what is lower already stays.

    No core files, which may hold gigabytes and what was in memory; no endless files; no more memory than there is, so
    that an allocation fails here rather than have the system end another process; no rights by setuid programs.

    Args:
        gpu: Whether CUDA runs here. It maps more memory than there is, and may have to load its driver's module with
            a setuid program, so that the last two do not apply.
    """
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, MOST_FILE_BYTES)
    _lower(resource.RLIMIT_NOFILE, MOST_FILES)
    if gpu or sys.platform != "linux":
        return
    _lower(resource.RLIMIT_DATA, memory_bytes())
    ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def memory_bytes() -> int:
    """Memory that this process can have: the machine's, or its container's."""
    total = int(psutil.virtual_memory().total)
    with contextlib.suppress(OSError, ValueError):
        return min(total, int(_CGROUP.read_text()))
    return total


def _lower(kind: int, most: int) -> None:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (_least(most, soft), _least(most, hard)))


def _least(most: int, now: int) -> int:
    return most if now == resource.RLIM_INFINITY else min(most, now)
