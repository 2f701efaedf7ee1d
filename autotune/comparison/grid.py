"""Runs every strategy on every space with every seed, on all cores, and keeps each result as soon as it is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import FileIO
from multiprocessing.connection import wait
from pathlib import Path

import msgspec

from autotune.comparison.replay import replay
from autotune.comparison.rivals.base import rival_of
from autotune.comparison.source import strategy_hash, uses_prior
from autotune.comparison.spaces import Space, noise_of, recording_of
from autotune.comparison.trace import Trace
from autotune.prior.choosing import NONE, prior_name, prior_without_device
from autotune.process import Child, preload
from autotune.runner import Died, Failure
from search_spaces.errors import CannotWrite
from search_spaces.schedule import digest

# Takes the trace of a search that ended, how many ended so far and how many there are to be.
Watch = Callable[[Trace, int, int], None]
FILE = "cells.jsonl"
# A single search that takes longer than this is hung.
_LONGEST = 3600.0
_POLL_SECONDS = 0.25


@dataclass(frozen=True)
class Cell:
    """One search to be done.

    Attributes:
        strategy: Its name.
        source: Hash of its code.
        space: Where it searches.
        seed: Of everything random.
        trials: Measurements.
        batch: Schedules asked for at a time.
        prior: Which prior it is given, without what that has seen of the space's device: "none", "shipped" or a file.
        prior_name: The same with a hash of the file's content.
    """

    strategy: str
    source: str
    space: Space
    seed: int
    trials: int
    batch: int
    prior: str
    prior_name: str

    @property
    def key(self) -> str:
        """Equal for cells that must give the same trace."""
        names = (self.strategy, self.source, self.space.name, self.space.digest)
        return digest([*names, self.seed, self.trials, self.batch, self.prior_name])


class Stopped(Exception):
    """The user asked to stop; what was searched is kept."""


@dataclass(frozen=True)
class _Line:
    """A line of the file of finished cells."""

    key: str
    trace: Trace


def cells_of(
    strategies: Sequence[str], spaces: Sequence[Space], seeds: Sequence[int], *, trials: int, batch: int, prior: str
) -> list[Cell]:
    """Every strategy with every space and seed; those of one space and seed side by side, since they share its noise.

    Raises:
        AutotuneError: A strategy or the prior is not there.
    """
    sources = {name: strategy_hash(name) for name in strategies}
    priors = {name: (choice := prior if uses_prior(name) else NONE, prior_name(choice)) for name in strategies}
    return [
        Cell(name, source, space, seed, trials, batch, *priors[name])
        for space in spaces
        for seed in seeds
        for name, source in sources.items()
    ]


def finished(folder: Path) -> dict[str, Trace]:
    """Traces of the cells that a folder holds, by key; a line that a kill tore is no result."""
    path = folder / FILE
    done: dict[str, Trace] = {}
    if path.is_file():
        decoder = msgspec.json.Decoder(_Line)
        for line in path.read_bytes().splitlines():
            with suppress(msgspec.DecodeError):
                decoded = decoder.decode(line)
                done[decoded.key] = decoded.trace
    return done


def run_cells(
    cells: Sequence[Cell], folder: Path, jobs: int, watch: Watch, stop: Callable[[], bool] = lambda: False
) -> list[Trace]:
    """The traces of `cells`, in order; only those that the folder lacks are searched.

    Args:
        cells: What to do.
        folder: Takes each trace as soon as it is there.
        jobs: Processes.
        watch: Told of each search that ended.
        stop: Whether the user asked to stop.

    Raises:
        Stopped: They did; what was searched is in the folder.
        CannotWrite: The folder takes no files.
    """
    done = finished(folder)
    missing = list({c.key: c for c in cells if c.key not in done}.values())
    with _opened(folder) as file:
        for ended, (cell, trace) in enumerate(_searched(missing, folder, jobs, stop), start=1):
            done[cell.key] = trace
            file.write(msgspec.json.encode(_Line(cell.key, trace)) + b"\n")
            watch(trace, ended, len(missing))
    return [done[c.key] for c in cells]


def _opened(folder: Path) -> FileIO:
    """The file of finished cells, at the start of a line."""
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        torn = path.is_file() and not path.read_bytes().endswith(b"\n")
        file = FileIO(path, "ab")
        file.write(b"\n" * torn)
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be written ({error.strerror})", "choose another --out") from error
    return file


def _searched(cells: Sequence[Cell], folder: Path, jobs: int, stop: Callable[[], bool]) -> Iterator[tuple[Cell, Trace]]:
    """Searches in children, each result as it comes; a child that dies takes nothing but its own cell with it.

    Raises:
        Stopped: The user asked to stop.
    """
    preload(["autotune.comparison.grid"])
    waiting = deque(cells)
    children: list[Child[Cell]] = [Child(_setup, (), folder / "workers.log") for _ in range(min(jobs, len(cells)))]
    try:
        while True:
            for child in children:
                if child.job is None and waiting:
                    child.send(waiting.popleft(), _LONGEST)
            busy = [c for c in children if c.job is not None]
            if not busy:
                return
            patience = min(_POLL_SECONDS, *(c.remaining() for c in busy))
            ready = wait([c.connection for c in busy], timeout=max(0.0, patience))
            if stop():
                raise Stopped
            for child in busy:
                if child.connection in ready or child.remaining() <= 0:
                    assert child.job is not None
                    yield child.job, _received(child, child.job)
    finally:
        for child in children:
            child.kill()


def _received(child: Child[Cell], cell: Cell) -> Trace:
    """The trace of a cell whose child has answered or ended."""
    try:
        answer = child.receive()
    except TimeoutError:
        error = f"it took more than {_LONGEST / 3600.0:g} h"
    except Died as died:
        error = str(died)
    else:
        if not isinstance(answer, Failure):
            assert isinstance(answer, Trace)
            return answer
        error = answer.summary
    return Trace(cell.strategy, cell.space.name, cell.seed, cell.trials, error=error)


def _setup() -> Callable[[Cell], Trace]:
    return search


def search(cell: Cell) -> Trace:
    """Does one cell, in this process."""
    recording, noise = recording_of(cell.space.path), noise_of(cell.space.path, cell.seed)
    if (rival := rival_of(cell.strategy)) is not None:
        tuner, name = rival
        return tuner.search(recording, name, cell.seed, cell.trials, noise)
    prior_for = partial(prior_without_device, cell.prior)
    return replay(
        recording,
        cell.strategy,
        cell.seed,
        trials=cell.trials,
        batch=cell.batch,
        observed=noise,
        prior_for=prior_for,
    )
