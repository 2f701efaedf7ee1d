"""Ctrl-C and SIGTERM as a question that a loop asks, so that none is lost in a callback that cannot raise."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether anyone asked to stop; call it to know.

    Attributes:
        terminated: Whether it was SIGTERM that asked first: a batch system whose time is up, not a user.
    """

    def __init__(self) -> None:
        self._asked = False
        self.terminated = False

    def __call__(self) -> bool:
        """Whether it was asked for."""
        return self._asked

    def ask(self, number: int) -> None:
        """Takes in a signal."""
        self.terminated = self.terminated or (not self._asked and number == signal.SIGTERM)
        self._asked = True


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """The first Ctrl-C or SIGTERM asks to stop, which what is given tells; a second Ctrl-C interrupts at once."""
    stop = Stop()

    def ask(number: int, _: FrameType | None) -> None:
        stop.ask(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
