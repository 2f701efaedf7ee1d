"""Timing a candidate, and racing several, on a device whose stopwatch is `Device.time`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.devices.base import Device
from autotune.generators.base import BoundLaunch
from autotune.measurement import Policy


class Timer:
    """Takes samples as a policy says.

    Args:
        device: Whose stopwatch.
        policy: How many samples, cold or hot, when to give up.
    """

    def __init__(self, device: Device, policy: Policy) -> None:
        self._device = device
        self._policy = policy

    def samples(self, launch: BoundLaunch, best: float) -> list[float]:
        """Seconds of a candidate that has run before; a single one where it is hopeless against `best`.

        The first sample is taken again where it is slow: it may hold a wake-up rather than the candidate.
        """
        hopeless = self._policy.give_up * best
        first = self._device.time([launch], self._policy.cold)
        if first[0] > hopeless:
            second = self._device.time([launch], self._policy.cold)
            if second[0] > hopeless:
                return second
        return self._device.time([launch] * self._policy.samples, self._policy.cold)

    def rounds(self, launches: Sequence[BoundLaunch], count: int, seed: int) -> list[list[float]]:
        """Seconds of each of `launches` in each of `count` rounds, in random order within a round, with no pause."""
        for launch in launches:
            launch()
        rng = np.random.default_rng(seed)
        order = [int(i) for _ in range(count) for i in rng.permutation(len(launches))]
        times: list[list[float]] = [[] for _ in launches]
        for index, seconds in zip(
            order, self._device.time([launches[i] for i in order], self._policy.cold), strict=True
        ):
            times[index].append(seconds)
        return times
