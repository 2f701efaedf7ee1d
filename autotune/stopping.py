"""Ctrl-C and SIGTERM as a question that a loop asks, so that none is lost in a callback that cannot raise."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_on_signals() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM asks to stop, which the function given tells; a second Ctrl-C interrupts at once."""
    asked = False

    def ask(_: int, __: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    previous = {s: signal.signal(s, ask) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
