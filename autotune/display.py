"""What people see: numbers with units, the live progress line, tables. Everything goes to the console it is given."""

from __future__ import annotations

from types import TracebackType

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from autotune.budget import Budget
from autotune.clock import monotonic
from autotune.measurement import Measurement, Status

_PLAIN_EVERY = 5.0
_WIDTH_OF_FILES = 160


def output() -> Console:
    """Standard output; wide where it is no terminal, so that tables in files and pipes are not folded."""
    return _console(Console(highlight=False, markup=False))


def progress_output(quiet: bool) -> Console:
    """Standard error, where progress goes."""
    return _console(Console(stderr=True, quiet=quiet, highlight=False, markup=False))


def _console(console: Console) -> Console:
    if not console.is_terminal:
        console.width = _WIDTH_OF_FILES
    return console


def pretty_json(data: object) -> str:
    """Records and plain data as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(data), indent=2).decode()


def titled(title: str, rest: str = "") -> Text:
    """A line that starts in bold."""
    return Text.assemble((title, "bold"), rest)


def duration(seconds: float) -> str:
    """A kernel's time with three digits and a fitting unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def clock_time(seconds: float) -> str:
    """Minutes and seconds of a wait."""
    if seconds == float("inf"):
        return "--:--"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def rate(operations: float, moved: float, seconds: float) -> str:
    """Throughput in the unit that binds: operations, or bytes where there is little arithmetic."""
    if operations / moved >= 8.0:
        value, unit = operations / seconds, "FLOP/s"
    else:
        value, unit = moved / seconds, "B/s"
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= scale:
            return f"{value / scale:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


class ProgressLine:
    """A tracker: live bar with ETA, best so far and share of the roofline; plain lines where there is no terminal.

    Args:
        console: Where to write (standard error).
        operations: Of the workload.
        moved: Bytes of the workload.
        floor: The roofline's seconds.
    """

    def __init__(self, console: Console, operations: float, moved: float, floor: float) -> None:
        self._console = console
        self._work = (operations, moved)
        self._floor = floor
        self._best = float("inf")
        self._failed = 0
        self._last_plain = monotonic()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting the device", total=None, state="")

    def __enter__(self) -> ProgressLine:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def searching(self) -> None:
        """The device is ready."""
        self._progress.update(self._task, description="searching")

    def racing(self) -> None:
        """The search is over."""
        self._progress.update(self._task, description="racing the finalists")

    def _state(self, done: int, budget: Budget) -> str:
        best = "no valid schedule yet"
        if self._best < float("inf"):
            best = f"best {rate(*self._work, self._best)} ({self._floor / self._best:.0%} of roofline)"
        failed = f", {self._failed} failed" if self._failed else ""
        return f"{best}{failed}, ETA {clock_time(budget.remaining(done))}"

    def measured(self, measurement: Measurement, done: int, budget: Budget) -> None:
        """See Tracker."""
        improved = measurement.seconds < self._best
        self._best = min(self._best, measurement.seconds)
        self._failed += measurement.status is not Status.OK
        self._progress.update(self._task, completed=done, total=budget.trials, state=self._state(done, budget))
        if improved and self._console.is_terminal:
            self._progress.console.print(
                f"{clock_time(budget.elapsed)}  {rate(*self._work, self._best)}  {measurement.schedule}",
                overflow="ellipsis",
                no_wrap=True,
            )
        self._plain(done, budget)

    def waiting(self, done: int, budget: Budget) -> None:
        """See Tracker."""
        self._progress.update(self._task, total=budget.trials, state=self._state(done, budget))
        self._plain(done, budget)

    def notice(self, line: str) -> None:
        """See Tracker."""
        self._progress.console.print(line)

    def _plain(self, done: int, budget: Budget) -> None:
        due = monotonic() - self._last_plain >= _PLAIN_EVERY or done == budget.trials
        if not self._console.is_terminal and due:
            self._last_plain = monotonic()
            self._console.print(f"{done}/{budget.trials} trials, {self._state(done, budget)}")
