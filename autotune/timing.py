"""Timing a candidate, and racing several, on a device whose stopwatch is `Device.time`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from autotune.devices.base import Device
from autotune.devices.telemetry import Conditions
from autotune.generators.base import BoundLaunch
from autotune.measurement import Policy

# Warm when two samples in a row differ by no more than this; after so many samples or seconds it will not get warmer.
_STABLE = 0.05
_MOST_WARM_UPS = 6
_WARM_UP_SECONDS = 0.5
# A launch shorter than this shows what enqueueing it costs.
_SHORT = 20e-6
# A sample taken alone is as good as one of many where it is longer than this.
_LONG = 1e-3

# Under load a GPU at its power limit settles within this.
_HEAT_SECONDS = 0.15
_MOST_HEATING = 200


@dataclass(frozen=True)
class Samples:
    """What timing a candidate gave.

    Attributes:
        seconds: Of each timed launch; a single one where the candidate was dropped.
        conditions: State of the device meanwhile, None where it does not tell.
    """

    seconds: tuple[float, ...]
    conditions: Conditions | None = None


class Timer:
    """Takes samples as a policy says.

    Args:
        device: Whose stopwatch.
        policy: How many samples, cold or hot.
        written: Bytes of a launch's outputs, see `Device.time`.
    """

    def __init__(self, device: Device, policy: Policy, written: int) -> None:
        self._device = device
        self._policy = policy
        self._written = written

    def samples(self, launch: BoundLaunch, limit: float) -> Samples:
        """Times a candidate that has run before; drops it where its first two samples are above `limit` seconds.

        Nothing is dropped for what a slowed device did to it.
        """
        warm = self._warm_up(launch, limit)
        if min(warm[:2]) > limit:
            conditions = self._device.conditions()
            if conditions is None or not conditions.slowed:
                return Samples((min(warm[:2]),), conditions)
        reused = warm[-2:] if warm[-1] > _LONG and _agree(*warm[-2:]) else []
        launch = self._compact(launch, warm[-1])
        seconds = self._take([launch] * max(0, self._policy.samples - len(reused)))
        conditions = self._device.conditions()
        if conditions is not None and conditions.slowed:
            reused, seconds = [], self._take([launch] * self._policy.samples)
            conditions = self._device.conditions() or conditions
            conditions = replace(conditions, retaken=True)
        return Samples((*reused, *seconds)[: self._policy.samples], conditions)

    def single(self, launch: BoundLaunch) -> float:
        """Seconds of one launch."""
        return self._take([launch])[0]

    def ready(self, launch: BoundLaunch) -> BoundLaunch:
        """The launch as `rounds` should time it: warm, and with its enqueueing kept out of its time."""
        return self._compact(launch, self._warm_up(launch, math.inf)[-1])

    def rounds(
        self, launches: Sequence[BoundLaunch], count: int, seed: int, anchor: int | None = None
    ) -> list[list[float]]:
        """Seconds of each of `launches` in each of `count` rounds, in random order within a round, with no pause.

        Args:
            launches: As `ready` gave them.
            count: Rounds.
            seed: Of the order.
            anchor: Who is first in the first round and last in the last one; None for no one.
        """
        self._heat(launches)
        rng = np.random.default_rng(seed)
        orders = [[int(i) for i in rng.permutation(len(launches))] for _ in range(count)]
        if anchor is not None:
            orders[0].sort(key=lambda i: i != anchor)
            orders[-1].sort(key=lambda i: i == anchor)
        order = [i for one in orders for i in one]
        taken = self._take([launches[i] for i in order])
        conditions = self._device.conditions()
        if conditions is not None and conditions.slowed:
            taken = self._take([launches[i] for i in order])
        times: list[list[float]] = [[] for _ in launches]
        for index, seconds in zip(order, taken, strict=True):
            times[index].append(seconds)
        return times

    def _heat(self, launches: Sequence[BoundLaunch]) -> None:
        """Runs all of them until a clock that rose in a pause has come down again, so that no look starts faster."""
        spent = 0.0
        for _ in range(_MOST_HEATING):
            spent += sum(self._take(launches))
            if spent >= _HEAT_SECONDS:
                break

    def _take(self, launches: Sequence[BoundLaunch]) -> list[float]:
        return self._device.time(launches, self._policy.cold, self._written)

    def _warm_up(self, launch: BoundLaunch, limit: float) -> list[float]:
        """Samples until two in a row agree; two that are both above `limit` end it as well."""
        seconds = self._take([launch])
        while len(seconds) < 2 or not (_agree(*seconds[-2:]) or min(seconds[:2]) > limit):
            if len(seconds) >= _MOST_WARM_UPS or (len(seconds) > 1 and sum(seconds) > _WARM_UP_SECONDS):
                break
            seconds += self._take([launch])
        return seconds

    def _compact(self, launch: BoundLaunch, seconds: float) -> BoundLaunch:
        return self._device.compact(launch) if seconds < _SHORT else launch


def _agree(one: float, other: float) -> bool:
    return abs(math.log(one / other)) <= _STABLE
