"""Many searches over a fleet: who gets how many devices, when the last search ends, and what it waited for."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.planning.costs import TrialCosts
from autotune.planning.overheads import Overheads
from autotune.planning.simulation import Crew, SearchTime, simulated


@dataclass(frozen=True)
class Workload:
    """A search of the plan.

    Attributes:
        title: For messages.
        costs: What its trials cost.
        trials: How many.
        waves: Whether builds and measurements take turns in it.
    """

    title: str
    costs: TrialCosts
    trials: int
    waves: bool

    @property
    def build_seconds(self) -> float:
        """Expected seconds of building, on one builder."""
        return self.trials * float(self.costs.build.mean())

    @property
    def device_seconds(self) -> float:
        """Expected seconds of checking and timing, on one device."""
        return self.trials * float(self.costs.device.mean())


@dataclass(frozen=True)
class FleetTime:
    """What a fleet takes for a plan.

    Attributes:
        devices: Of the fleet.
        searches: How many run at a time.
        seconds: Until the last one ends.
        alone: Share of the searches' time in which they start or race, on one device each.
        idle: Share of the time in which there was no search left to start.
        building: Share of the builders' time in which they were at work while searches went on.
        measuring: The same of the devices.
        proposing: The same of the processes that propose and write down.
        slowest: Share of that time that the slowest trial of each search takes.
    """

    devices: int
    searches: int
    seconds: float
    alone: float
    idle: float
    building: float
    measuring: float
    proposing: float
    slowest: float

    @property
    def binds(self) -> str:
        """What it mostly waits for."""
        busiest = {
            "builders": self.building,
            "devices": self.measuring,
            "the strategy": self.proposing,
            "the slowest candidates": self.slowest,
        }
        searching = 1.0 - self.alone - self.idle
        named = {"starts and final races": self.alone, "the longest search": self.idle}
        return max({max(busiest, key=lambda n: busiest[n]): searching, **named}.items(), key=lambda item: item[1])[0]


def fleet_time(
    workloads: Sequence[Workload],
    devices: int,
    builders: int,
    overheads: Overheads,
    seed: int,
    *,
    together: bool = False,
) -> FleetTime:
    """Simulates all searches on a fleet.

    There are as many searches at a time as there are workloads, if there are so many devices; each has an equal share
    of the devices, and the longest one starts first.

    Args:
        workloads: The searches, one at least.
        devices: Of the fleet.
        builders: Builder processes that come with each device.
        overheads: What is not shared.
        seed: Of the draws.
        together: One search after the other on all devices instead.
    """
    if not workloads:
        raise ValueError("a plan without workloads")
    searches = 1 if together else min(devices, len(workloads))
    sizes = [devices // searches + (place < devices % searches) for place in range(searches)]
    free = [(0.0, -size) for size in sizes]
    done: list[tuple[SearchTime, Crew]] = []
    draws = np.random.default_rng(seed).spawn(len(workloads))
    order = sorted(range(len(workloads)), key=lambda i: -_longest(workloads[i], builders))
    for place in order:
        at, size = heapq.heappop(free)
        crew = Crew(-size, -size * builders)
        workload = workloads[place]
        took = simulated(workload.costs, workload.trials, crew, overheads, draws[place], waves=workload.waves)
        done.append((took, crew))
        heapq.heappush(free, (at + took.seconds, size))
    wall = max(at for at, _ in free)
    return _summed(done, devices, searches, wall)


def _longest(workload: Workload, builders: int) -> float:
    return max(workload.build_seconds / builders, workload.device_seconds)


def _summed(done: Sequence[tuple[SearchTime, Crew]], devices: int, searches: int, wall: float) -> FleetTime:
    total = wall * searches

    def at_work(part: float, workers: Sequence[int]) -> float:
        spent = math.fsum((took.seconds - took.alone) * n for (took, _), n in zip(done, workers, strict=True))
        return part / spent if spent else 0.0

    return FleetTime(
        devices=devices,
        searches=searches,
        seconds=wall,
        alone=math.fsum(took.alone for took, _ in done) / total,
        idle=max(0.0, 1.0 - math.fsum(took.seconds for took, _ in done) / total),
        building=at_work(math.fsum(took.build for took, _ in done), [crew.builders for _, crew in done]),
        measuring=at_work(math.fsum(took.device for took, _ in done), [crew.devices for _, crew in done]),
        proposing=at_work(math.fsum(took.proposing for took, _ in done), [1] * len(done)),
        slowest=at_work(math.fsum(took.slowest for took, _ in done), [1] * len(done)),
    )
