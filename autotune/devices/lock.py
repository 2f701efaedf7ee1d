"""One tuner per device: a file lock that ends with the process that holds it, however that process ends."""

from __future__ import annotations

import math
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from autotune.clock import monotonic
from autotune.devices.base import DeviceInfo
from autotune.environment import lock_folder
from autotune.holder import holder_in, write_holder
from search_spaces.errors import CannotWrite, NoDevice

_POLL_SECONDS = 0.2


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


@dataclass(frozen=True)
class Queue:
    """How to wait for a device that another tuner uses.

    Attributes:
        seconds: At most so long, inf for as long as it takes.
        notice: Told at once, in a line, whom this waits for.
        stop: Whether the user asked to stop; asked while waiting.
    """

    seconds: float = math.inf
    notice: Callable[[str], object] = _to_stderr
    stop: Callable[[], bool] = lambda: False


@contextmanager
def device_lock(info: DeviceInfo, uuid: str, queue: Queue) -> Iterator[None]:
    """Holds the device for this process, after waiting for the tuner that holds it.

    Args:
        info: The device.
        uuid: Its own identifier, "" where it has none: there is one CPU, the host.
        queue: How to wait.

    Raises:
        NoDevice: The other tuner still has it after `queue.seconds`.
        KeyboardInterrupt: The user stopped the wait.
        CannotWrite: The folder of the locks is not this user's own, or cannot be made.
    """
    path = _private(lock_folder()) / f"{info.kind}-{uuid or 'host'}.lock"
    owner = path.with_suffix(".pid")
    lock = FileLock(path)
    until = monotonic() + queue.seconds
    patience = 0.0
    while True:
        try:
            lock.acquire(timeout=patience)
            break
        except Timeout:
            holder = f"{info.name} is in use by another tuner, {holder_in(owner)}"
        if monotonic() >= until:
            raise NoDevice(holder, "wait for it, or give a longer --wait")
        if queue.stop():
            raise KeyboardInterrupt
        if not patience:
            queue.notice(f"waiting: {holder}")
        patience = min(_POLL_SECONDS, max(1e-3, until - monotonic()))
    try:
        write_holder(owner)
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()


def _private(folder: Path) -> Path:
    """`folder`, made where it is not there; others must not be able to put links or files into it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be made ({error.strerror})", "set AUTOTUNE_LOCK_DIR") from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise CannotWrite(f"{folder} is not private to this user", "remove it, or set AUTOTUNE_LOCK_DIR")
    return folder
