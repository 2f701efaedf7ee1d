"""TVM's RPC tracker: which servers it has under a key, and how to be lent one."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from autotune.clock import monotonic
from search_spaces import registry
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.sketches.tvm.base import EXTRA

_ANSWER_SECONDS = 5.0
# A server that was lost or restarted is with the tracker again within a few seconds.
_BACK_SECONDS = 12.0
_POLL_SECONDS = 0.5
_PREFIX = "server:"


@dataclass(frozen=True)
class Tracker:
    """A tracker's address and the key under which servers are asked for.

    Attributes:
        host: Name or address.
        port: TCP port.
        key: What the servers were started with.
    """

    host: str
    port: int
    key: str

    @staticmethod
    def at(address: str, key: str) -> Tracker:
        """The tracker at `host:port`.

        Raises:
            AutotuneError: The address or the key is missing or cannot be.
        """
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdigit() and 0 < int(port) < 1 << 16):
            raise AutotuneError(f"no tracker at '{address}'", "give --tracker HOST:PORT")
        if not key or key.split() != [key]:
            raise AutotuneError(f"no servers under the key '{key}'", "give --key, as the servers were started with")
        return Tracker(host, int(port), key)

    def servers(self) -> int:
        """Servers under the key, those that are lent to somebody included.

        Raises:
            NoDevice: The tracker is not there, or has no server under the key.
        """
        with self._asked() as session:
            return self._count(session.summary())

    def lend(self, seconds: float, wait: float) -> Any:
        """A `tvm.rpc` session with a free server.

        Args:
            seconds: After so long the server ends the session, whatever runs in it.
            wait: Seconds to wait at most for a server that others use.

        Raises:
            NoDevice: There is none, or none became free.
        """
        until = monotonic() + wait
        back = monotonic() + min(wait, _BACK_SECONDS)
        while True:
            patient = monotonic() < back
            try:
                found = self._summary_or_session(seconds)
                if not isinstance(found, dict):
                    return found
                count = self._count(found)
                if monotonic() > until:
                    raise NoDevice(f"none of {count} servers under the key '{self.key}' is free", "try again later")
            except NoDevice:
                # Else somebody was faster, or tracker or server are being started again.
                if not patient:
                    raise
            time.sleep(_POLL_SECONDS)

    def _summary_or_session(self, seconds: float) -> Any:
        """A session where a server is free, else what the tracker says of its servers."""
        with self._asked() as session:
            found = session.summary()
            if found["queue_info"].get(self.key, {}).get("free", 0):
                return session.request(self.key, session_timeout=seconds, max_retry=1)
            return found

    def _count(self, summary: Any) -> int:
        keys = [str(server["key"]).removeprefix(_PREFIX) for server in summary["server_info"]]
        if self.key not in keys:
            known = ", ".join(sorted(set(keys))) or "none"
            raise NoDevice(
                f"the tracker at {self.host}:{self.port} has no server under the key '{self.key}'",
                f"start one with that key; known: {known}",
            )
        return keys.count(self.key)

    @contextlib.contextmanager
    def _asked(self) -> Iterator[Any]:
        """A connection to the tracker; whatever goes wrong with it is one kind of error."""
        rpc = registry.optional("tvm.rpc", EXTRA)
        with _impatient():
            try:
                # TVM itself goes on trying for a minute.
                socket.create_connection((self.host, self.port)).close()
                session = rpc.connect_tracker(self.host, self.port)
            except (OSError, RuntimeError) as error:
                raise NoDevice(
                    f"no TVM RPC tracker answers at {self.host}:{self.port} ({error})", "start it"
                ) from error
            try:
                yield session
            except (OSError, RuntimeError) as error:
                reason = " ".join(str(error).split())[:200]
                raise NoDevice(
                    f"the tracker at {self.host}:{self.port} lent no server under the key '{self.key}' ({reason})",
                    "see its log",
                ) from error
            finally:
                session.close()


@contextlib.contextmanager
def _impatient() -> Iterator[None]:
    """While the block runs, sockets that are made wait no longer than some seconds; TVM's own would wait for ever."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_ANSWER_SECONDS)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
