"""One search as a discrete-event simulation: builders, devices, the strategy and the process that writes down."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from autotune.pace import WAVE, asked_at_a_time, kept_in_flight
from autotune.planning.costs import TrialCosts
from autotune.planning.overheads import Overheads


@dataclass(frozen=True)
class Crew:
    """What a search has to itself.

    Attributes:
        devices: Devices, each with a worker.
        builders: Builder processes, over all hosts.
    """

    devices: int
    builders: int

    def __post_init__(self) -> None:
        if self.devices < 1 or self.builders < 1:
            raise ValueError(f"a search needs a device and a builder, not {self.devices} and {self.builders}")


@dataclass(frozen=True)
class SearchTime:
    """How long a search takes, and who is at work in it.

    Attributes:
        seconds: From its start to the end of its final race.
        alone: Of these, seconds in which nothing can be shared: start and final race.
        build: Seconds of building, summed over builders.
        device: Seconds of checking and timing, summed over devices.
        proposing: Seconds in which the strategy proposes, or trials are written down, whichever are more; where they
            take turns, both.
        slowest: Seconds of the slowest trial, which nobody can share.
    """

    seconds: float
    alone: float
    build: float
    device: float
    proposing: float
    slowest: float


def simulated(
    costs: TrialCosts, trials: int, crew: Crew, overheads: Overheads, rng: np.random.Generator, *, waves: bool
) -> SearchTime:
    """Simulates a search of `trials` trials.

    Args:
        costs: What trials cost; drawn from.
        trials: How many.
        crew: Who works.
        overheads: What is not shared.
        rng: Draws the trials.
        waves: Whether builds and measurements take turns, as they do on a CPU.
    """
    build, device = costs.drawn(trials, rng)
    if waves:
        end, proposing = _in_waves(build, device, crew, overheads)
    else:
        end, proposing = _Pipeline(build, device, crew, overheads).run()
    alone = overheads.start + overheads.final
    slowest = max(map(sum, zip(build, device, strict=True)))
    return SearchTime(end + alone, alone, sum(build), sum(device), proposing, slowest)


class _Event(IntEnum):
    """What has come."""

    PROPOSALS = 0
    BUILD = 1
    MEASUREMENT = 2


class _Pipeline:
    """Builds, measurements and proposals at the same time.

    The strategy is asked beside the rest, one ask at a time. Whoever ends a job waits for the process that writes down
    to give it the next one, and that process does one thing at a time: so it is what many devices end up waiting for.
    """

    def __init__(self, build: Sequence[float], device: Sequence[float], crew: Crew, overheads: Overheads) -> None:
        self._build, self._device, self._overheads = build, device, overheads
        self._batch = asked_at_a_time(crew.builders)
        self._window = kept_in_flight(crew.builders, crew.devices)
        self._builders, self._devices = crew.builders, crew.devices
        self._to_build: deque[int] = deque()
        self._to_measure: deque[int] = deque()
        # When, what, and of which trial, or how many proposals.
        self._events: list[tuple[float, _Event, int]] = []
        self._asked = self._in_flight = 0
        self._thinks = False
        self._clock = self._writing = 0.0

    def run(self) -> tuple[float, float]:
        """Seconds until the last trial is written down, and how many the strategy thought or the process wrote."""
        self._ask()
        while self._events:
            at, event, number = heapq.heappop(self._events)
            self._clock = max(self._clock, at)
            if event is _Event.PROPOSALS:
                self._thinks = False
                self._to_build.extend(range(self._asked - number, self._asked))
            elif event is _Event.BUILD:
                self._builders += 1
                self._to_measure.append(number)
            else:
                self._devices += 1
                self._written()
            self._ask()
            self._dispatch()
        return self._clock, max(len(self._build) * self._overheads.suggest, self._writing)

    def _ask(self) -> None:
        free = self._window - self._in_flight
        wanted = min(free, len(self._build) - self._asked)
        if self._thinks or wanted <= 0 or (free < self._batch and self._in_flight):
            return
        self._thinks = True
        self._asked += wanted
        self._in_flight += wanted
        heapq.heappush(self._events, (self._clock + wanted * self._overheads.suggest, _Event.PROPOSALS, wanted))

    def _dispatch(self) -> None:
        while self._to_build and self._builders:
            trial = self._to_build.popleft()
            self._builders -= 1
            heapq.heappush(self._events, (self._clock + self._build[trial], _Event.BUILD, trial))
        while self._to_measure and self._devices:
            trial = self._to_measure.popleft()
            self._devices -= 1
            heapq.heappush(self._events, (self._clock + self._device[trial], _Event.MEASUREMENT, trial))

    def _written(self) -> None:
        self._clock += self._overheads.record
        self._writing += self._overheads.record
        self._in_flight -= 1


def _in_waves(build: Sequence[float], device: Sequence[float], crew: Crew, overheads: Overheads) -> tuple[float, float]:
    """Seconds of a search whose builds and measurements take turns, and of proposing in it."""
    size = WAVE * crew.devices
    clock = sum(
        _shared(build[start : start + size], crew.builders) + _shared(device[start : start + size], crew.devices)
        for start in range(0, len(build), size)
    )
    busy = len(build) * (overheads.suggest + overheads.record)
    return clock + busy, busy


def _shared(jobs: Sequence[float], workers: int) -> float:
    """Seconds until all jobs are done, each given to the worker that is free first."""
    free = [0.0] * min(workers, len(jobs))
    for seconds in jobs:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)
