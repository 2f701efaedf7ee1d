"""Progress of a comparison: a bar with ETA on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from autotune.clock import monotonic
from autotune.comparison.trace import Trace
from autotune.display import clock_time

_PLAIN_EVERY = 15.0


class CellProgress:
    """Watches the searches of a comparison.

    Args:
        console: Where to write (standard error).
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._failed = 0
        self._started = self._last_plain = monotonic()
        self._progress = Progress(
            TextColumn("searches"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("searches", total=None, state="")

    def __enter__(self) -> CellProgress:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def searched(self, trace: Trace, done: int, total: int) -> None:
        """One search ended.

        Args:
            trace: What it did.
            done: Searches ended so far.
            total: Searches to be done.
        """
        self._failed += bool(trace.error)
        elapsed = monotonic() - self._started
        failed = f", {self._failed} failed" if self._failed else ""
        state = f"{trace.strategy} on {trace.space}{failed}, ETA {clock_time(elapsed / done * (total - done))}"
        self._progress.update(self._task, completed=done, total=total, state=state)
        if not self._console.is_terminal and (monotonic() - self._last_plain >= _PLAIN_EVERY or done == total):
            self._last_plain = monotonic()
            self._console.print(f"{done}/{total} searches, {state}")
