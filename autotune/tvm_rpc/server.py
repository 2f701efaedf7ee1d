"""A server that a tracker lent: modules loaded there, arguments held there, launches timed by its own clock."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune.buffers import GUARD_BYTES
from autotune.clock import monotonic
from autotune.tvm_rpc.tracker import Tracker
from search_spaces import registry
from search_spaces.sketches.tvm.base import EXTRA

# TVM's name for the function that has a server's caches forget all arguments but the first.
_FLUSH = "cache_flush_cpu_non_first_arg"
_ENTRY = "main"
_SHORTEST = 1e-9


class Server:
    """What is borrowed from a tracker, for a limited time: a candidate that hangs there must not keep the server.

    Args:
        tracker: Who lends.
        seconds: Time after which the server ends a session; one is replaced well before, between two operations.
        wait: Seconds to wait at most for a free server.
        threads: Of parallel loops there, 0 for as many as the server chooses.
    """

    def __init__(self, tracker: Tracker, seconds: float, wait: float, threads: int) -> None:
        self._tracker = tracker
        self._seconds = seconds
        self._wait = wait
        self._threads = threads
        self._open()

    def _open(self) -> None:
        self._remote = self._tracker.lend(self._seconds, self._wait)
        self._since = monotonic()
        self._device = self._remote.cpu(0)
        self._modules: dict[str, Any] = {}
        self._copies: dict[tuple[int, int], Copy] = {}
        if self._threads:
            with contextlib.suppress(AttributeError):
                self._remote.get_function("runtime.config_threadpool")(1, self._threads)

    def told(self, name: str) -> Any:
        """What a function without arguments gives there, None where the server has none of that name."""
        try:
            return self._remote.get_function(name)()
        except AttributeError:
            return None

    @property
    def flushes(self) -> bool:
        """Whether its caches can be flushed before a sample."""
        try:
            return self._remote.get_function(_FLUSH) is not None
        except AttributeError:
            return False

    def renew(self) -> None:
        """Borrows anew where a fifth of the session's time is over; call before an operation."""
        if monotonic() - self._since > self._seconds / 5:
            # Given back first, for the tracker to lend it again.
            self.close()
            self._open()

    def close(self) -> None:
        """Gives the server back."""
        del self._modules, self._copies
        with contextlib.suppress(AttributeError, RuntimeError):
            self._remote.get_function("CloseRPCConnection")()
        del self._remote

    def answers(self) -> None:
        """Raises where the server is lost."""
        registry.optional("tvm.runtime", EXTRA).empty((1,), "int8", self._device).numpy()

    def copies(self, arrays: Sequence[Any]) -> list[Copy]:
        """The copies of `arrays` there; made at the first call."""
        for array in arrays:
            self._copies.setdefault(_place(array), Copy(array, self._device))
        return [self._copies[_place(array)] for array in arrays]

    def run(self, path: str, arrays: Sequence[Any]) -> None:
        """One launch of a shared object's function on arrays whose copies are up to date."""
        self._module(path)[_ENTRY](*(copy.tensor for copy in self.copies(arrays)))

    def seconds(self, path: str, arrays: Sequence[Any], count: int, *, cold: bool) -> list[float]:
        """Seconds of `count` launches by the server's clock, after one that is not timed."""
        flush = _FLUSH if cold else ""
        timed = self._module(path).time_evaluator(_ENTRY, self._device, number=1, repeat=count, f_preproc=flush)
        taken = timed(*(copy.tensor for copy in self.copies(arrays))).results
        return [max(_SHORTEST, float(s)) for s in taken]

    def _module(self, path: str) -> Any:
        if path not in self._modules:
            self._remote.upload(path)
            self._modules[path] = self._remote.load_module(Path(path).name)
        return self._modules[path]


class Copy:
    """A local array's copy on a server, with what follows the array in its memory: the guard behind an argument.

    What lies before an argument is not copied: TVM's kernels take no array that starts within an allocation.

    Args:
        array: A view of memory that was allocated as a flat int8 array.
        device: The server's.
    """

    def __init__(self, array: Any, device: Any) -> None:
        memory = array if array.base is None else array.base
        start = array.ctypes.data - memory.ctypes.data
        end = min(memory.nbytes, start + array.nbytes + GUARD_BYTES)
        spare = (end - start) % array.itemsize
        self._local = memory.reshape(-1).view(np.int8)[start : end - spare].view(array.dtype)
        empty = registry.optional("tvm.runtime", EXTRA).empty
        self._whole = empty(self._local.shape, str(array.dtype), device)
        self.tensor = self._whole._create_view(array.shape, str(array.dtype))

    def push(self) -> None:
        """Local to remote."""
        self._whole.copyfrom(self._local)

    def pull(self) -> None:
        """Remote to local."""
        self._local[...] = self._whole.numpy()


def _place(array: Any) -> tuple[int, int]:
    return array.ctypes.data, array.nbytes
